//! Admission rules for Agents.

use super::Denial;
use crate::crds::{Agent, AgentSpec};

const BOTH_DISKS: &str = "Either InstallationDiskID or InstallationDiskPath can be set, not both.";

const CLUSTER_OF_INSTALLING: &str =
    "Attempted to change Spec.ClusterDeploymentName which is immutable during Agent installation.";

/// The states of a host during an installation.
const INSTALLING: [&str; 6] = [
    "preparing-for-installation",
    "preparing-failed",
    "preparing-successful",
    "installing",
    "installing-in-progress",
    "installing-pending-user-action",
];

/// The kind of a host that joins an installed cluster.
const DAY_2: &str = "AddToExistingClusterHost";

/// Checks an update of an Agent.
///
/// An Agent created with both an id and a path of its installation disk can still be updated in other fields.
///
/// # Errors
///
/// Returns the denial of the request.
pub(crate) fn update(old: &Agent, new: &Agent) -> Result<(), Denial> {
    let (before, after) = (&old.spec, &new.spec);
    if disks(before) != disks(after) && matches!(disks(after), (Some(_), Some(_))) {
        let fields = ["spec.installation_disk_id", "spec.installation_disk_path"];
        return Err(Denial::bad_request(BOTH_DISKS, &fields));
    }
    if before.cluster_deployment_name != after.cluster_deployment_name && is_bound_by_installation(new) {
        return Err(Denial::bad_request(CLUSTER_OF_INSTALLING, &["spec.clusterDeploymentName"]));
    }
    Ok(())
}

fn disks(spec: &AgentSpec) -> (Option<&str>, Option<&str>) {
    (spec.installation_disk_id.as_deref(), spec.installation_disk_path.as_deref())
}

/// Returns `true` if the Agent cannot move to another cluster because its host is being installed. A host that joins an
/// installed cluster can be unbound at any time.
fn is_bound_by_installation(agent: &Agent) -> bool {
    let Some(status) = &agent.status else { return false };
    let is_unbound_day_2 = status.kind == DAY_2 && agent.spec.cluster_deployment_name.is_none();
    INSTALLING.contains(&status.debug_info.state.as_str()) && !is_unbound_day_2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crds::ClusterRef;

    fn with_disks(id: Option<&str>, path: Option<&str>) -> Agent {
        let spec = AgentSpec {
            installation_disk_id: id.map(str::to_owned),
            installation_disk_path: path.map(str::to_owned),
            ..AgentSpec::default()
        };
        Agent::new("a", spec)
    }

    fn agent(cluster: Option<&str>, state: &str, kind: &str) -> Agent {
        let cluster = cluster.map(|name| ClusterRef { name: name.to_owned(), namespace: "ns".to_owned() });
        let mut agent =
            Agent::new("a", AgentSpec { cluster_deployment_name: cluster, ..AgentSpec::default() });
        let status = agent.status.get_or_insert_default();
        (status.debug_info.state, status.kind) = (state.to_owned(), kind.to_owned());
        agent
    }

    #[test]
    fn rejects_both_disks_unless_they_are_unchanged() {
        let both = with_disks(Some("id"), Some("path"));
        let denial = update(&with_disks(Some("id"), None), &both).unwrap_err();
        assert_eq!((denial.code, &*denial.message), (400, BOTH_DISKS));
        update(&both, &both).unwrap();
        update(&both, &with_disks(None, Some("path"))).unwrap();
        assert!(update(&both, &with_disks(Some("id"), Some("other"))).is_err());
        // An empty text counts as absent.
        let object = serde_json::json!({"spec": {"installation_disk_id": "", "installation_disk_path": "p"}});
        update(&with_disks(None, None), &serde_json::from_value(object).unwrap()).unwrap();
    }

    #[test]
    fn rejects_another_cluster_during_installation() {
        for state in INSTALLING {
            for (old, new) in [(Some("a"), Some("b")), (Some("a"), None), (None, Some("a"))] {
                let old = agent(old, state, "Host");
                let denial = update(&old, &agent(new, state, "Host")).unwrap_err();
                assert_eq!((denial.code, &*denial.message), (400, CLUSTER_OF_INSTALLING));
            }
            update(&agent(Some("a"), state, "Host"), &agent(Some("a"), state, "Host")).unwrap();
        }
        for state in ["", "known", "installed", "error"] {
            update(&agent(Some("a"), state, "Host"), &agent(Some("b"), state, "Host")).unwrap();
        }
    }

    #[test]
    fn day_2_host_can_be_unbound_but_not_moved_during_installation() {
        let old = agent(Some("a"), "installing", DAY_2);
        update(&old, &agent(None, "installing", DAY_2)).unwrap();
        assert!(update(&old, &agent(Some("b"), "installing", DAY_2)).is_err());
    }
}
