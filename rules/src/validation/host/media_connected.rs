//! Validation `media-connected`: whether the host can read its boot media.

use serde::{Deserialize, Serialize};

use super::group::{AFTER_REBOOT, HostGroup};
use super::input::HostInput;
use crate::host::status::MEDIA_DISCONNECTED;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};

/// The outcome of the validation `media-connected`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MediaConnectedOutcome {
    /// The agent has not reported a problem.
    Connected,
    /// The agent has reported that it cannot read the media.
    Disconnected,
}

impl TypedOutcome for MediaConnectedOutcome {
    type Group = HostGroup;
    type Input<'a> = HostInput<'a>;

    const DEFINITION: ValidationDefinition<HostGroup> = ValidationDefinition {
        category: ValidationCategory::Network,
        groups: &[HostGroup::Connection],
        is_ignorable: true,
        hidden_in: AFTER_REBOOT,
        applies_to: "all hosts",
        passes_if: "the agent has not reported that it cannot read the boot media",
    };

    fn evaluate(input: &HostInput<'_>) -> Self {
        if input.host.has_media { Self::Connected } else { Self::Disconnected }
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::Connected => OutcomeDescription::success("Media device is connected"),
            Self::Disconnected => OutcomeDescription::failure(
                MEDIA_DISCONNECTED,
                "Connect the boot media again, or boot the host from a minimal ISO.",
            ),
        }
    }

    fn samples() -> Vec<Self> {
        vec![Self::Connected, Self::Disconnected]
    }
}
