//! Validation `ntp-server-configured`: whether the clocks of all hosts are synchronized.

use assisted::host::HostStatus;
use serde::{Deserialize, Serialize};

use super::group::ClusterGroup;
use super::input::ClusterInput;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};
use crate::view::HostView;

/// Maximum difference between two clocks, in whole minutes.
const MAX_DIFFERENCE_MINUTES: u64 = 4;

/// The outcome of the validation `ntp-server-configured`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NtpServerOutcome {
    /// The clocks differ by a few minutes at most.
    Synchronized,
    /// Two clocks differ by more than the maximum.
    Differing,
}

impl TypedOutcome for NtpServerOutcome {
    type Group = ClusterGroup;
    type Input<'a> = ClusterInput<'a>;

    const DEFINITION: ValidationDefinition<ClusterGroup> = ValidationDefinition {
        category: ValidationCategory::Network,
        groups: &[ClusterGroup::RequiredForInstall],
        is_ignorable: true,
        hidden_in: &[],
        applies_to: "all clusters; hosts that are `disconnected`, `discovering` or `resetting-pending-user-action`, and \
                     those whose agent sends no time, do not count",
        passes_if: "the clocks of any two hosts differ by less than five minutes",
    };

    fn evaluate(input: &ClusterInput<'_>) -> Self {
        let clocks = || {
            input.view.hosts.iter().filter(|host| has_current_time(host)).filter_map(|host| host.clock_skew)
        };
        let Some((first, last)) = clocks().min().zip(clocks().max()) else { return Self::Synchronized };
        if last.abs_diff(first) / 60 > MAX_DIFFERENCE_MINUTES { Self::Differing } else { Self::Synchronized }
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::Synchronized => OutcomeDescription::success("No ntp problems found"),
            Self::Differing => OutcomeDescription::failure(
                format!(
                    "Hosts' clocks are not synchronized (there's more than a {MAX_DIFFERENCE_MINUTES} minutes gap \
                     between clocks), please configure an NTP server via DHCP or set clocks manually."
                ),
                "Configure an NTP server that all hosts reach, with DHCP or in `additional_ntp_source`.",
            ),
        }
    }

    fn samples() -> Vec<Self> {
        vec![Self::Synchronized, Self::Differing]
    }
}

/// Returns `true` if the clock of the host is compared. In other statuses, the reported time may be outdated.
fn has_current_time(host: &HostView) -> bool {
    use HostStatus::{Disconnected, Discovering, ResettingPendingUserAction};
    !matches!(host.status, Disconnected | Discovering | ResettingPendingUserAction)
}
