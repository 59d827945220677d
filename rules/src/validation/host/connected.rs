//! Validation `connected`: whether the agent of the host checks in.

use assisted::host::{HostKind, HostRole, HostStage};
use serde::{Deserialize, Serialize};

use super::group::{AFTER_REBOOT, HostGroup};
use super::input::HostInput;
use crate::host::stages::{StageFacts, stages_of};
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};

/// The outcome of the validation `connected`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectedOutcome {
    /// The agent has checked in recently, or does not check in during this stage of the installation.
    Connected,
    /// The agent has not checked in recently.
    Disconnected,
}

impl TypedOutcome for ConnectedOutcome {
    type Group = HostGroup;
    type Input<'a> = HostInput<'a>;

    const DEFINITION: ValidationDefinition<HostGroup> = ValidationDefinition {
        category: ValidationCategory::Network,
        groups: &[HostGroup::Connection],
        is_ignorable: false,
        hidden_in: AFTER_REBOOT,
        applies_to: "all hosts",
        passes_if: "the agent has checked in recently, or the host reboots after the installation",
    };

    fn evaluate(input: &HostInput<'_>) -> Self {
        let host = input.host;
        if host.is_connected || !host.stage.is_none_or(runs_agent) {
            Self::Connected
        } else {
            Self::Disconnected
        }
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::Connected => OutcomeDescription::success("Host is connected"),
            Self::Disconnected => OutcomeDescription::failure(
                "Host is disconnected",
                "Check that the host is powered on, and that it reaches this service over the network.",
            ),
        }
    }

    fn samples() -> Vec<Self> {
        vec![Self::Connected, Self::Disconnected]
    }
}

/// Returns `true` if the agent still checks in during this stage. The bootstrap host completes all its stages before
/// its reboot.
fn runs_agent(stage: HostStage) -> bool {
    let facts =
        StageFacts { kind: HostKind::Host, role: HostRole::Master, single_node: false, bootstrap: true };
    stages_of(facts).iter().take_while(|it| **it != HostStage::Rebooting).any(|it| *it == stage)
}
