//! Validation `sufficient-masters-count`: whether the control plane has the required size.

use assisted::host::HostRole;
use serde::{Deserialize, Serialize};

use super::group::ClusterGroup;
use super::input::ClusterInput;
use crate::cluster::roles::{CONTROL_PLANE_WITH_ARBITER, RoleCounts, meets_role};
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};
use crate::view::HostView;

/// The outcome of the validation `sufficient-masters-count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MastersCountOutcome {
    /// The control plane has the required size.
    Exact,
    /// A single-node cluster has workers, or does not have exactly one control plane node.
    NotSingleNode,
    /// The number of control plane nodes is wrong, or a two-node control plane has neither an arbiter nor fencing.
    NotExact {
        /// The required number of control plane nodes.
        expected: i64,
    },
}

impl TypedOutcome for MastersCountOutcome {
    type Group = ClusterGroup;
    type Input<'a> = ClusterInput<'a>;

    const DEFINITION: ValidationDefinition<ClusterGroup> = ValidationDefinition {
        category: ValidationCategory::HostsData,
        groups: &[ClusterGroup::RequiredForInstall],
        is_ignorable: false,
        hidden_in: &[],
        applies_to: "all clusters",
        passes_if: "the cluster has as many control plane nodes as its `control_plane_count`. With one, it must not have \
                    workers. With two, it also needs an arbiter, or fencing credentials for both. Hosts without a role \
                    count as the role for which their CPU cores and memory suffice",
    };

    fn evaluate(input: &ClusterInput<'_>) -> Self {
        let expected = input.view.cluster.control_plane_count;
        let plan = RolePlan::new(input);
        let counts = plan.counts;
        let is_exact = counts.masters == expected
            && match expected {
                1 => counts.workers == 0,
                CONTROL_PLANE_WITH_ARBITER => counts.arbiters > 0 || plan.is_fenced,
                _ => true,
            };
        match expected {
            _ if is_exact => Self::Exact,
            1 => Self::NotSingleNode,
            _ => Self::NotExact { expected },
        }
    }

    fn describe(&self) -> OutcomeDescription {
        const REMEDY: &str = "Add or remove hosts, or change their roles.";
        match *self {
            Self::Exact => OutcomeDescription::success(
                "The cluster has the exact amount of dedicated control plane nodes.",
            ),
            Self::NotSingleNode => OutcomeDescription::failure(
                "Single-node clusters must have a single control plane node and no workers.",
                "Leave one host in the cluster.",
            ),
            Self::NotExact { expected } => {
                let or_fencing = match expected {
                    CONTROL_PLANE_WITH_ARBITER => {
                        " and at least 1 arbiter node or the control plane nodes must have fencing credentials"
                    }
                    _ => "",
                };
                let message = format!(
                    "The cluster must have exactly {expected} dedicated control plane nodes{or_fencing}. Add or remove \
                     hosts, or change their roles configurations to meet the requirement."
                );
                OutcomeDescription::failure(message, REMEDY)
            }
        }
    }

    fn samples() -> Vec<Self> {
        let not_exact = |expected| Self::NotExact { expected };
        vec![Self::Exact, Self::NotSingleNode, not_exact(2), not_exact(3)]
    }
}

/// The roles of all hosts in a cluster. Hosts without a role are planned with a role for which they suffice.
struct RolePlan {
    counts: RoleCounts,
    /// `true` if all control plane nodes have fencing credentials.
    is_fenced: bool,
}

impl RolePlan {
    fn new(input: &ClusterInput<'_>) -> Self {
        let hosts = input.view.hosts.iter();
        let (candidates, assigned): (Vec<_>, Vec<_>) =
            hosts.partition(|host| host.effective_role() == HostRole::AutoAssign);
        let mut plan = Self { counts: RoleCounts::default(), is_fenced: true };
        for host in assigned {
            plan.add(host, host.effective_role());
        }
        for host in candidates {
            plan.add(host, plan.candidate_role(input, host));
        }
        plan
    }

    fn add(&mut self, host: &HostView, role: HostRole) {
        let counts = self.counts.with(role);
        self.is_fenced &= counts.masters == self.counts.masters || host.has_fencing_credentials;
        self.counts = counts;
    }

    /// Returns the role for a host without a role, according to the hosts already in the plan.
    fn candidate_role(&self, input: &ClusterInput<'_>, host: &HostView) -> HostRole {
        let cluster = &input.view.cluster;
        let meets = |role| meets_role(host, role, cluster, input.hardware);
        let size = cluster.control_plane_count;
        if self.counts.masters < size && meets(HostRole::Master) {
            HostRole::Master
        } else if size == CONTROL_PLANE_WITH_ARBITER && meets(HostRole::Arbiter) {
            HostRole::Arbiter
        } else {
            HostRole::Worker
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use assisted::ClusterId;
    use assisted::host::HostRole::{Arbiter, AutoAssign, Master, Worker};
    use uuid::Uuid;

    use super::*;
    use crate::requirements::HardwareRequirements;
    use crate::summary::{HostSummary, InventorySummary};
    use crate::validation::outcome::OutcomeStatus;
    use crate::validation::settings::ValidationSettings;
    use crate::view::{ClusterSettings, ClusterView};

    /// Hardware that suffices for every role.
    const LARGE: Option<(i64, i64)> = Some((8, 32));
    /// Hardware that suffices for workers and arbiters.
    const SMALL: Option<(i64, i64)> = Some((2, 8));

    /// Returns a host with a suggested role. `hardware` is its number of CPU cores and its memory in GiB.
    fn host(suggested_role: HostRole, hardware: Option<(i64, i64)>) -> HostView {
        let inventory = hardware.map(|(cpus, gib)| InventorySummary {
            cpus: Some(cpus),
            physical_bytes: Some(gib << 30),
            ..InventorySummary::default()
        });
        let summary = HostSummary { inventory: inventory.map(Box::new), ..HostSummary::default() };
        let host = HostView::new(Uuid::nil().into(), Uuid::nil().into());
        HostView { suggested_role, summary: Arc::new(summary), ..host }
    }

    fn outcome(control_plane_count: i64, hosts: Vec<HostView>) -> MastersCountOutcome {
        let cluster =
            ClusterSettings { control_plane_count, ..ClusterSettings::new(ClusterId::from(Uuid::nil())) };
        let hosts = hosts.into_iter().map(Arc::new).collect();
        let view = ClusterView { cluster: Arc::new(cluster), hosts };
        let (hardware, settings) = (HardwareRequirements::default(), ValidationSettings::default());
        MastersCountOutcome::evaluate(&ClusterInput { view: &view, hardware: &hardware, settings: &settings })
    }

    fn outcome_of_roles(control_plane_count: i64, roles: &[HostRole]) -> MastersCountOutcome {
        outcome(control_plane_count, roles.iter().map(|role| host(*role, LARGE)).collect())
    }

    #[test]
    fn control_plane_must_have_the_exact_size() {
        let not_exact = MastersCountOutcome::NotExact { expected: 3 };
        for (roles, expected) in [
            (&[] as &[HostRole], not_exact),
            (&[Master; 3], MastersCountOutcome::Exact),
            (&[Master, Master, Master, Worker], MastersCountOutcome::Exact),
            (&[Master, Master, Worker, Worker], not_exact),
            (&[Master; 4], not_exact),
            (&[Worker; 3], not_exact),
            (&[AutoAssign; 5], MastersCountOutcome::Exact),
            (&[AutoAssign, AutoAssign, Master], MastersCountOutcome::Exact),
            (&[AutoAssign, Master], not_exact),
        ] {
            assert_eq!(outcome_of_roles(3, roles), expected, "{roles:?}");
        }
    }

    #[test]
    fn hosts_without_a_role_count_if_hardware_suffices() {
        let hosts = |third| vec![host(Master, SMALL), host(AutoAssign, LARGE), host(AutoAssign, third)];
        assert_eq!(outcome(3, hosts(LARGE)), MastersCountOutcome::Exact);
        for third in [SMALL, None] {
            assert_eq!(outcome(3, hosts(third)), MastersCountOutcome::NotExact { expected: 3 }, "{third:?}");
        }
    }

    #[test]
    fn single_node_has_no_workers() {
        for (roles, expected) in [
            (&[] as &[HostRole], MastersCountOutcome::NotSingleNode),
            (&[Master], MastersCountOutcome::Exact),
            (&[AutoAssign], MastersCountOutcome::Exact),
            (&[Worker], MastersCountOutcome::NotSingleNode),
            (&[Master, Worker], MastersCountOutcome::NotSingleNode),
            (&[Master, AutoAssign], MastersCountOutcome::NotSingleNode),
        ] {
            assert_eq!(outcome_of_roles(1, roles), expected, "{roles:?}");
        }
    }

    #[test]
    fn control_plane_with_two_nodes_needs_an_arbiter_or_fencing() {
        let not_exact = MastersCountOutcome::NotExact { expected: 2 };
        for (roles, expected) in [
            (&[Master, Master] as &[HostRole], not_exact),
            (&[Master, Master, Worker], not_exact),
            (&[Master, Master, Arbiter], MastersCountOutcome::Exact),
            (&[Master, Master, AutoAssign], MastersCountOutcome::Exact),
            (&[Master, Arbiter], not_exact),
        ] {
            assert_eq!(outcome_of_roles(2, roles), expected, "{roles:?}");
        }
        let candidates = vec![host(AutoAssign, SMALL), host(AutoAssign, LARGE), host(AutoAssign, LARGE)];
        assert_eq!(outcome(2, candidates), MastersCountOutcome::Exact);

        let fenced =
            |role, has_fencing_credentials| HostView { has_fencing_credentials, ..host(role, LARGE) };
        for (hosts, expected) in [
            (vec![fenced(Master, true), fenced(AutoAssign, true)], MastersCountOutcome::Exact),
            (vec![fenced(Master, true), fenced(Master, false)], not_exact),
            (vec![fenced(Master, true); 3], not_exact),
            (
                vec![fenced(Master, true), fenced(Master, true), fenced(Worker, false)],
                MastersCountOutcome::Exact,
            ),
        ] {
            assert_eq!(outcome(2, hosts), expected);
        }
    }

    #[test]
    fn messages_match_the_assisted_installer() {
        let descriptions = MastersCountOutcome::samples().into_iter().map(|it| it.describe());
        let messages: Vec<_> = descriptions.map(|it| (it.status, it.message.into_owned())).collect();
        let expected = [
            (OutcomeStatus::Success, "The cluster has the exact amount of dedicated control plane nodes."),
            (
                OutcomeStatus::Failure,
                "Single-node clusters must have a single control plane node and no workers.",
            ),
            (
                OutcomeStatus::Failure,
                "The cluster must have exactly 2 dedicated control plane nodes and at least 1 arbiter node or the \
                 control plane nodes must have fencing credentials. Add or remove hosts, or change their roles \
                 configurations to meet the requirement.",
            ),
            (
                OutcomeStatus::Failure,
                "The cluster must have exactly 3 dedicated control plane nodes. Add or remove hosts, or change their \
                 roles configurations to meet the requirement.",
            ),
        ];
        assert_eq!(messages, expected.map(|(status, message)| (status, message.to_owned())));
    }
}
