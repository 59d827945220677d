//! Validation `all-hosts-are-ready-to-install`: whether every host of the cluster can be installed.

use assisted::host::HostStatus;
use serde::{Deserialize, Serialize};

use super::group::ClusterGroup;
use super::input::ClusterInput;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};

/// The statuses in which a host can be installed.
const READY: [HostStatus; 3] =
    [HostStatus::Known, HostStatus::PreparingForInstallation, HostStatus::PreparingSuccessful];

/// The outcome of the validation `all-hosts-are-ready-to-install`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostsReadyOutcome {
    /// All hosts can be installed.
    Ready,
    /// At least one host cannot be installed.
    NotReady,
}

impl TypedOutcome for HostsReadyOutcome {
    type Group = ClusterGroup;
    type Input<'a> = ClusterInput<'a>;

    const DEFINITION: ValidationDefinition<ClusterGroup> = ValidationDefinition {
        category: ValidationCategory::HostsData,
        groups: &[ClusterGroup::RequiredForInstall],
        is_ignorable: false,
        hidden_in: &[],
        applies_to: "all clusters",
        passes_if: "every host is `known`, `preparing-for-installation` or `preparing-successful`",
    };

    fn evaluate(input: &ClusterInput<'_>) -> Self {
        let is_ready = input.view.hosts.iter().all(|host| READY.contains(&host.status));
        if is_ready { Self::Ready } else { Self::NotReady }
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::Ready => OutcomeDescription::success("All hosts in the cluster are ready to install."),
            Self::NotReady => OutcomeDescription::failure(
                "The cluster has hosts that are not ready to install.",
                "Look at the hosts that are not `known`, and repair or remove them.",
            ),
        }
    }

    fn samples() -> Vec<Self> {
        vec![Self::Ready, Self::NotReady]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use assisted::ClusterId;
    use uuid::Uuid;

    use super::*;
    use crate::requirements::HardwareRequirements;
    use crate::validation::settings::ValidationSettings;
    use crate::view::{ClusterSettings, ClusterView, HostView};

    fn outcome(statuses: &[HostStatus]) -> HostsReadyOutcome {
        let host = |status: &HostStatus| {
            let host = HostView::new(Uuid::nil().into(), Uuid::nil().into());
            Arc::new(HostView { status: *status, ..host })
        };
        let cluster = Arc::new(ClusterSettings::new(ClusterId::from(Uuid::nil())));
        let view = ClusterView { cluster, hosts: statuses.iter().map(host).collect() };
        let (hardware, settings) = (HardwareRequirements::default(), ValidationSettings::default());
        HostsReadyOutcome::evaluate(&ClusterInput { view: &view, hardware: &hardware, settings: &settings })
    }

    #[test]
    fn cluster_without_hosts_is_ready() {
        assert_eq!(outcome(&[]), HostsReadyOutcome::Ready);
    }

    #[test]
    fn one_host_in_another_status_is_a_failure() {
        for status in HostStatus::ALL {
            let is_ready =
                matches!(status.as_str(), "known" | "preparing-for-installation" | "preparing-successful");
            let expected = if is_ready { HostsReadyOutcome::Ready } else { HostsReadyOutcome::NotReady };
            assert_eq!(outcome(&[HostStatus::Known, *status]), expected, "{status}");
        }
    }

    #[test]
    fn messages_match_the_recordings() {
        let messages = HostsReadyOutcome::samples().into_iter().map(|it| it.describe().message);
        let expected = [
            "All hosts in the cluster are ready to install.",
            "The cluster has hosts that are not ready to install.",
        ];
        assert!(messages.eq(expected));
    }
}
