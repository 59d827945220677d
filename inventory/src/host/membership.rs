//! Binding hosts to clusters and unbinding them.

use super::cluster::{
    accepts_hosts, cannot_accept_hosts, find_cluster, is_add_hosts_cluster, is_single_node,
};
use super::draft::HostDraft;
use super::key::HostKey;
use super::record::{Choices, HostFindings, HostRecord, Logs, Progress};
use super::stage::HostRole;
use super::state::{HostEvent, HostFacts, find_rule};
use super::status::{HostKind, HostStatus};
use crate::Inventory;
use crate::catalogue::ReleaseArchitecture;
use crate::cluster::ClusterRecord;
use crate::error::{Error, ErrorKind};
use crate::event::Severity;
use crate::id::{ClusterId, InfraEnvId};
use crate::infra_env::InfraEnvRecord;
use crate::journal::Journal;
use crate::request_id::RequestId;
use crate::store::{Change, ReadSet, Reader as _, ReportKind};
use crate::time::Micros;

/// A request to bind a host to a cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding {
    /// Key of the host.
    pub(crate) key: HostKey,
    /// Id of the cluster.
    pub(crate) cluster: ClusterId,
    /// Id of the request.
    pub(crate) request: RequestId,
}

impl Binding {
    /// Binds the host to the cluster. The binding is complete when its agent registers again. A refusal adds an event.
    pub(crate) async fn bind(self, inventory: &Inventory) -> Result<HostRecord, Error> {
        let records = inventory.records();
        let bound =
            records.change(|reads: ReadSet| async move { self.attempt(&reads, inventory).await }).await;
        if let Err(refusal) = &bound
            && refusal.kind() != ErrorKind::NotFound
        {
            let HostKey { infra_env_id, host_id } = self.key;
            let reason = refusal.reason();
            let message = format!("Failed to bind host {host_id} to cluster {}: {reason}", self.cluster);
            let event =
                inventory.journal(Some(self.request)).event("host_bind_failed", Severity::Error, message);
            records.add_event(event.of_host(host_id).of_infra_env(infra_env_id)).await?;
        }
        bound
    }

    async fn attempt(self, records: &ReadSet, inventory: &Inventory) -> Result<(Change, HostRecord), Error> {
        let mut change = Change::new();
        let mut draft = HostDraft::new(self.key.find(records).await?);
        let host = &mut draft.record;
        if let Some(cluster) = host.cluster_id {
            return Err(Error::conflict(format!("Host {} is already bound to cluster {cluster}", host.id)));
        }
        let cluster = find_cluster(records, self.cluster).await?;
        let cluster =
            cluster.ok_or_else(|| Error::invalid(format!("Cluster ID {} does not exist", self.cluster)))?;
        self.check_architecture(records, &cluster).await?;
        if !accepts_hosts(&cluster) {
            return Err(cannot_accept_hosts(&cluster));
        }
        let Some(rule) = find_rule(host.status(), HostEvent::Bind, &HostFacts::default()) else {
            let reason =
                format!("Host {} is in state {}, not {}", host.id, host.status(), HostStatus::KnownUnbound);
            return Err(Error::conflict(reason));
        };
        change.require(&cluster);
        let mut journal = inventory.journal(Some(self.request));
        set_cluster(host, &cluster, journal.micros());
        journal.apply(host, &rule.transition(""));
        let message = format!("Successfully bound to cluster {}", cluster.id);
        journal.add_host_event(host, "host_bind_succeeded", Severity::Info, message);
        let host = draft.write(&mut change)?;
        journal.write(&mut change)?;
        Ok((change, host))
    }

    async fn check_architecture(self, records: &ReadSet, cluster: &ClusterRecord) -> Result<(), Error> {
        let found = infra_env_of(records, self.key.infra_env_id).await?.cpu_architecture;
        match cluster.cpu_architecture {
            Some(ReleaseArchitecture::One(wanted)) if found != wanted => {
                let reason =
                    format!("InfraEnv's CPU architecture ({found}) doesn't match Cluster's ({wanted})");
                Err(Error::invalid(reason))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the infra-env of a host. It exists unless both are being deleted.
async fn infra_env_of(records: &ReadSet, id: InfraEnvId) -> Result<InfraEnvRecord, Error> {
    let found = records.find::<InfraEnvRecord>(None, id.0).await?;
    found.map(|stored| stored.record).ok_or_else(|| Error::not_found("record not found"))
}

/// Sets the cluster of a host, with the kind and role that follow from it.
fn set_cluster(host: &mut HostRecord, cluster: &ClusterRecord, now: Micros) {
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

/// Unbinds a host from its cluster. The unbinding is complete when its agent registers again. A refusal adds an event.
pub(crate) async fn unbind(
    inventory: &Inventory,
    key: HostKey,
    request: RequestId,
) -> Result<HostRecord, Error> {
    let records = inventory.records();
    let unbound = records
        .change(|reads: ReadSet| async move {
            let mut change = Change::new();
            let mut draft = HostDraft::new(key.find(&reads).await?);
            let mut journal = inventory.journal(Some(request));
            check_unbind(&reads, &draft.record).await?;
            journal.add_log_deletion(&draft.record);
            clear_cluster(&mut draft.record, HostEvent::Unbind, &mut journal);
            draft.record.updated_at = journal.micros();
            let host = draft.write(&mut change)?;
            journal.write(&mut change)?;
            Ok((change, host))
        })
        .await;
    if let Err(refusal) = &unbound
        && refusal.kind() != ErrorKind::NotFound
    {
        let message = format!("Failed to unbind host {}: {}", key.host_id, refusal.reason());
        let event = inventory.journal(Some(request)).event("host_unbind_failed", Severity::Error, message);
        records.add_event(event.of_host(key.host_id).of_infra_env(key.infra_env_id)).await?;
    }
    unbound
}

async fn check_unbind(records: &ReadSet, host: &HostRecord) -> Result<(), Error> {
    if host.cluster_id.is_none() {
        return Err(Error::conflict(format!("Host {} is already unbound", host.id)));
    }
    if let Some(cluster) = infra_env_of(records, host.infra_env_id).await?.cluster_id {
        let reason = format!(
            "InfraEnv {} is bound to cluster {cluster}, so its hosts cannot be unbound",
            host.infra_env_id
        );
        return Err(Error::conflict(reason));
    }
    if find_rule(host.status(), HostEvent::Unbind, &HostFacts::default()).is_none() {
        return Err(Error::conflict(format!(
            "Host {} cannot be unbound in state {}",
            host.id,
            host.status()
        )));
    }
    Ok(())
}

/// Removes a host from its cluster, and resets everything that depends on the cluster. The event is
/// [`HostEvent::Unbind`] or [`HostEvent::DeleteCluster`].
pub(crate) fn clear_cluster(host: &mut HostRecord, event: HostEvent, journal: &mut Journal) {
    if let Some(rule) = find_rule(host.status(), event, &HostFacts::default()) {
        journal.apply(host, &rule.transition(""));
    }
    journal.add_host_event(
        host,
        "host_unbind_succeeded",
        Severity::Info,
        "Successfully unbound from its cluster",
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
