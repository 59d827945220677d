//! The changes to a host when it joins a cluster, leaves it, or is deleted.

use assisted::host::{HostKind, HostRole};
use rules::host::state::{HostEvent, decide};

use super::cluster::{is_add_hosts_cluster, is_single_node};
use super::findings::HostFindings;
use super::record::{Choices, HostRecord, Logs, Progress};
use crate::cluster::ClusterRecord;
use crate::event::Severity;
use crate::journal::Journal;
use crate::store::ReportKind;
use crate::time::Micros;
use assisted::Secret;

/// Sets the cluster of a host, and the kind and role that follow from the cluster.
pub(crate) fn set_cluster(host: &mut HostRecord, cluster: &ClusterRecord, now: Micros) {
    host.cluster_id = Some(cluster.id);
    host.kind = if is_add_hosts_cluster(cluster) { HostKind::Joining } else { HostKind::Host };
    host.single_node = is_single_node(cluster);
    if host.role == HostRole::AutoAssign && host.single_node {
        (host.role, host.suggested_role) = (HostRole::Master, HostRole::Master);
    }
    if host.role == HostRole::AutoAssign && host.joins() {
        (host.role, host.suggested_role) = (HostRole::Worker, HostRole::Worker);
    }
    host.findings = HostFindings::default();
    host.progress = Progress::default();
    host.updated_at = now;
}

/// Removes a host from its cluster, and resets everything that depends on the cluster. The event is
/// [`HostEvent::Unbind`] or [`HostEvent::DeleteCluster`].
pub(crate) fn clear_cluster(host: &mut HostRecord, event: &HostEvent<'_>, journal: &mut Journal) {
    if let Ok(transition) = decide(host.status(), event, journal.now()) {
        journal.apply(host, &transition);
    }
    journal.add_host_event(
        host,
        "host_unbind_succeeded",
        Severity::Info,
        "Successfully unbound from cluster",
    );
    host.cluster_id = None;
    host.kind = HostKind::Host;
    (host.role, host.suggested_role) = (HostRole::AutoAssign, HostRole::AutoAssign);
    (host.bootstrap, host.single_node) = (false, false);
    host.choices = Choices {
        installation_disk: None,
        machine_config_pool_name: String::new(),
        ..std::mem::take(&mut host.choices)
    };
    for kind in [
        ReportKind::Connectivity,
        ReportKind::DomainNameResolutions,
        ReportKind::FreeAddresses,
        ReportKind::ImagesStatus,
        ReportKind::ApiVipConnectivity,
    ] {
        host.findings.reports.remove(kind.as_str());
    }
    host.progress = Progress::default();
    host.logs = Logs::default();
}

/// Marks a host as deleted. The record stays without secrets and reports until it is purged.
pub(crate) fn deregister(host: &mut HostRecord, journal: &mut Journal) {
    host.deleted_at = Some(journal.micros());
    let hostname = std::mem::take(&mut host.findings.hostname);
    host.findings = HostFindings { hostname, ..HostFindings::default() };
    host.choices = Choices {
        ignition_config_overrides: String::new(),
        ignition_endpoint_token: Secret::default(),
        ignition_endpoint_http_headers: Vec::new(),
        fencing_credentials: String::new(),
        ..std::mem::take(&mut host.choices)
    };
    let message = format!("Host {} deregistered", host.name());
    journal.add_event(host, "host_deregistered", Severity::Info, message);
}
