//! Runs the whole assessment of a cluster, as the service does.

use std::sync::Arc;

use assisted::host::HostStatus;
use chrono::{DateTime, Utc};
use ignition::Cidr;
use rules::assessment::{
    AssessedCluster, AssessedHost, EvaluationSettings, RoleAssignment, assess_cluster, assess_hosts,
};
use rules::cluster::state::ClusterTransition;
use rules::host::state::Transition;
use rules::requirements::HardwareRequirements;
use rules::validation::{ValidationOutcome, ValidationResults, ValidationSettings};
use rules::view::{ClusterSettings, ClusterView, HostView};

/// The results of an assessment, and the cluster after it.
#[derive(Debug)]
pub(crate) struct Assessment {
    pub(crate) machine_networks: Option<Vec<Cidr>>,
    pub(crate) hosts: Vec<AssessedHost>,
    pub(crate) cluster: AssessedCluster,
    /// The cluster with the assessed statuses, roles and networks.
    pub(crate) view: ClusterView,
}

/// A validation as clients see it: id, status and message.
pub(crate) type Row = (String, String, String);

/// Assesses a cluster with default settings.
pub(crate) fn assess(view: &ClusterView) -> Assessment {
    assess_with(view, |view| view)
}

/// Assesses a cluster. `after_hosts` may change the hosts before the cluster itself is assessed.
pub(crate) fn assess_with(
    view: &ClusterView,
    after_hosts: impl FnOnce(ClusterView) -> ClusterView,
) -> Assessment {
    let hardware = HardwareRequirements::default();
    let settings = EvaluationSettings { hardware: &hardware, validations: &ValidationSettings::default() };
    let now = DateTime::<Utc>::UNIX_EPOCH;
    let assessment = assess_hosts(view, |_| None, settings, RoleAssignment::Automatic, now).unwrap();
    let applied = after_hosts(assessment.applied_to(view, |_| true));
    let cluster = assess_cluster(&applied, assessment.peers.groups, settings, now).unwrap().unwrap();
    let status =
        cluster.transition.as_ref().and_then(ClusterTransition::status).unwrap_or(applied.cluster.status);
    let settings = ClusterSettings { status, ..ClusterSettings::clone(&applied.cluster) };
    let view = ClusterView { cluster: Arc::new(settings), ..applied };
    Assessment { machine_networks: assessment.machine_networks, hosts: assessment.hosts, cluster, view }
}

/// Returns the new status of a host, and the new status text.
pub(crate) fn status_of(host: &AssessedHost) -> (HostStatus, Option<&str>) {
    let transition = host.transition.as_ref().unwrap();
    (transition.status().unwrap(), Transition::info(transition))
}

/// Returns the validations that clients see, sorted by id.
pub(crate) fn rows<O: ValidationOutcome>(results: &ValidationResults<O>) -> Vec<Row> {
    let visible = results.shown().into_values().flatten();
    let mut rows: Vec<Row> = visible.map(|row| (row.id, serde_text(&row.status), row.message)).collect();
    rows.sort();
    rows
}

fn serde_text(status: &impl serde::Serialize) -> String {
    serde_json::to_value(status).unwrap().as_str().unwrap().to_owned()
}

/// Returns a view of these hosts, sorted by id.
pub(crate) fn view(cluster: ClusterSettings, hosts: impl IntoIterator<Item = HostView>) -> ClusterView {
    let mut hosts: Vec<_> = hosts.into_iter().map(Arc::new).collect();
    hosts.sort_by_key(|host| host.id);
    ClusterView { cluster: Arc::new(cluster), hosts }
}
