//! Hosts become part of clusters and leave them.

use super::cluster::{find_cluster, is_joined, is_single_node, takes_hosts, takes_none};
use super::journal::Journal;
use super::key::HostKey;
use super::record::{Choices, Findings, HostRecord, Logs, Progress};
use super::stage::HostRole;
use super::status::{HostKind, HostStatus};
use crate::api_error::ApiError;
use crate::images::ReleaseArchitecture;
use crate::inventory::cluster::ClusterRecord;
use crate::inventory::event::{Event, Severity};
use crate::inventory::id::ClusterId;
use crate::inventory::infra_env::InfraEnvRecord;
use crate::inventory::request::RequestId;
use crate::inventory::store::{Change, Records, Stored};
use crate::inventory::{Inventory, logs};

/// A host and a cluster that somebody brings together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binding {
    pub(super) place: HostKey,
    pub(super) cluster: ClusterId,
    pub(super) request: RequestId,
}

impl Binding {
    /// Makes the host part of the cluster, as soon as its agent registers again.
    pub(super) async fn bind(self, inventory: &Inventory) -> Result<HostRecord, ApiError> {
        let records = inventory.records();
        let bound = records.change(|| self.attempt(records)).await;
        if let Err(refusal) = &bound
            && refusal.status() != axum::http::StatusCode::NOT_FOUND
        {
            let HostKey { infra_env_id, host_id } = self.place;
            let reason = refusal.reason();
            let message = format!("Failed to bind host {host_id} to cluster {}: {reason}", self.cluster);
            let event = Event::now("host_bind_failed", Severity::Error, message).of_host(host_id);
            records.tell(event.of_infra_env(infra_env_id).in_answer_to(self.request.0)).await?;
        }
        bound
    }

    async fn attempt(self, records: &Records) -> Result<(Change, HostRecord), ApiError> {
        let mut change = Change::new();
        let Stored { record: mut host, generation, .. } = self.place.find(records).await?;
        if let Some(cluster) = host.cluster_id {
            return Err(ApiError::conflict(format!(
                "Host {} is already bound to cluster {cluster}",
                host.id
            )));
        }
        let cluster = find_cluster(records, self.cluster).await?;
        let cluster =
            cluster.ok_or_else(|| ApiError::bad(format!("Cluster ID {} does not exist", self.cluster)))?;
        self.check_architecture(records, &cluster).await?;
        if !takes_hosts(&cluster) {
            return Err(takes_none(&cluster));
        }
        if host.status != HostStatus::KnownUnbound {
            let reason =
                format!("Host {} is in state {}, not {}", host.id, host.status, HostStatus::KnownUnbound);
            return Err(ApiError::conflict(reason));
        }
        change.require(&cluster);
        let mut journal = Journal::of(self.request);
        enter(&mut host, &cluster, &mut journal);
        change.replace(&host, generation);
        journal.write(&mut change);
        Ok((change, host))
    }

    async fn check_architecture(self, records: &Records, cluster: &ClusterRecord) -> Result<(), ApiError> {
        let infra_env = records.find::<InfraEnvRecord>(None, self.place.infra_env_id.0).await?;
        let own = infra_env.map(|infra_env| infra_env.record.cpu_architecture);
        match (own, cluster.cpu_architecture) {
            (Some(own), Some(ReleaseArchitecture::One(wanted))) if own != wanted => {
                let reason =
                    format!("InfraEnv's CPU architecture ({own}) doesn't match Cluster's ({wanted})");
                Err(ApiError::bad(reason))
            }
            _ => Ok(()),
        }
    }
}

fn enter(host: &mut HostRecord, cluster: &ClusterRecord, journal: &mut Journal) {
    host.cluster_id = Some(cluster.id);
    host.kind = if is_joined(cluster) { HostKind::Joining } else { HostKind::Host };
    host.single_node = is_single_node(cluster);
    if host.role == HostRole::AutoAssign && host.single_node {
        (host.role, host.suggested_role) = (HostRole::Master, HostRole::Master);
    }
    if host.role == HostRole::AutoAssign && host.joins() {
        (host.role, host.suggested_role) = (HostRole::Worker, HostRole::Worker);
    }
    host.findings = Findings::default();
    host.progress = Progress::default();
    host.updated_at = journal.micros();
    journal.move_host(host, HostStatus::Binding, "Host is waiting to be bound to the cluster");
    let message = format!("Successfully bound to cluster {}", cluster.id);
    journal.tell(host, "host_bind_succeeded", Severity::Info, message);
}

/// Takes a host out of its cluster, as soon as its agent registers again.
pub(super) async fn unbind(
    inventory: &Inventory,
    place: HostKey,
    request: RequestId,
) -> Result<HostRecord, ApiError> {
    let records = inventory.records();
    let unbound = records
        .change(|| async {
            let mut change = Change::new();
            let Stored { record: mut host, generation, .. } = place.find(records).await?;
            let mut journal = Journal::of(request);
            check_unbind(records, &host).await?;
            let cluster = host.cluster_id;
            leave(&mut host, &mut journal);
            host.updated_at = journal.micros();
            change.replace(&host, generation);
            journal.write(&mut change);
            Ok((change, (host, cluster)))
        })
        .await;
    if let Err(refusal) = &unbound
        && refusal.status() != axum::http::StatusCode::NOT_FOUND
    {
        let message = format!("Failed to unbind host {}: {}", place.host_id, refusal.reason());
        let event = Event::now("host_unbind_failed", Severity::Error, message).of_host(place.host_id);
        records.tell(event.of_infra_env(place.infra_env_id).in_answer_to(request.0)).await?;
    }
    let (host, cluster) = unbound?;
    logs::delete_of_host(inventory, cluster, &host).await;
    Ok(host)
}

async fn check_unbind(records: &Records, host: &HostRecord) -> Result<(), ApiError> {
    if host.cluster_id.is_none() {
        return Err(ApiError::conflict(format!("Host {} is already unbound", host.id)));
    }
    let infra_env = records.find::<InfraEnvRecord>(None, host.infra_env_id.0).await?;
    if let Some(cluster) = infra_env.and_then(|infra_env| infra_env.record.cluster_id) {
        let reason =
            format!("InfraEnv {} is bound to cluster {cluster}, and its hosts with it", host.infra_env_id);
        return Err(ApiError::conflict(reason));
    }
    if host.status.is_installing() || when_it_leaves(host.status).is_none() {
        return Err(ApiError::conflict(format!(
            "Host {} cannot be unbound in state {}",
            host.id, host.status
        )));
    }
    Ok(())
}

/// The state of a host that leaves its cluster in another one. Without an agent somebody has to boot the image.
fn when_it_leaves(status: HostStatus) -> Option<HostStatus> {
    use HostStatus as S;
    match status {
        _ if status.is_before_installation() => Some(S::Unbinding),
        S::Installed | S::AddedToExistingCluster | S::Error | S::Cancelled => {
            Some(S::UnbindingPendingUserAction)
        }
        _ if status.is_installing() => Some(S::UnbindingPendingUserAction),
        _ => None,
    }
}

/// A host leaves its cluster, in whatever state it is.
pub(super) fn leave(host: &mut HostRecord, journal: &mut Journal) {
    let status = when_it_leaves(host.status).unwrap_or(match host.status {
        // Its agent still asks for steps.
        HostStatus::Binding => HostStatus::Unbinding,
        _ => HostStatus::UnbindingPendingUserAction,
    });
    journal.move_host(host, status, "Host is waiting to be unbound from the cluster");
    journal.tell(host, "host_unbind_succeeded", Severity::Info, "Successfully unbound from its cluster");
    host.cluster_id = None;
    host.kind = HostKind::Host;
    (host.role, host.suggested_role) = (HostRole::AutoAssign, HostRole::AutoAssign);
    (host.bootstrap, host.single_node) = (false, false);
    host.choices = Choices {
        installation_disk: None,
        machine_config_pool_name: String::new(),
        ..std::mem::take(&mut host.choices)
    };
    let findings = &mut host.findings;
    for finding in [
        &mut findings.connectivity,
        &mut findings.domain_name_resolutions,
        &mut findings.free_addresses,
        &mut findings.images_status,
        &mut findings.api_vip_connectivity,
    ] {
        finding.clear();
    }
    host.progress = Progress::default();
    host.logs = Logs::default();
}
