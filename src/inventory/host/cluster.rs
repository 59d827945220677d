//! What becomes of hosts when their cluster goes, and what they have to know of it.

use futures_util::TryStreamExt;

use super::journal::Journal;
use super::key::HostKey;
use super::membership::leave;
use super::record::{Choices, Findings, HostRecord};
use crate::api_error::ApiError;
use crate::inventory::cluster::{ClusterKind, ClusterRecord, ClusterStatus};
use crate::inventory::event::Severity;
use crate::inventory::id::{ClusterId, HostId, InfraEnvId};
use crate::inventory::infra_env::InfraEnvRecord;
use crate::inventory::store::{Change, Filter, Kind, Record, Records, Stored};
use crate::inventory::{Inventory, Secret};

/// The cluster of an id, if it is there.
pub(super) async fn find_cluster(
    records: &Records,
    id: ClusterId,
) -> Result<Option<ClusterRecord>, ApiError> {
    let found = records.find::<ClusterRecord>(None, id.0).await?;
    Ok(found.map(|cluster| cluster.record).filter(|cluster| !cluster.is_deleted()))
}

/// Whether hosts may still become part of a cluster.
pub(super) fn takes_hosts(cluster: &ClusterRecord) -> bool {
    matches!(
        cluster.status,
        ClusterStatus::Insufficient
            | ClusterStatus::Ready
            | ClusterStatus::PendingForInput
            | ClusterStatus::AddingHosts
    )
}

/// Why a cluster takes no hosts.
pub(super) fn takes_none(cluster: &ClusterRecord) -> ApiError {
    let status = serde_json::to_value(cluster.status).unwrap_or_default();
    let status = status.as_str().unwrap_or_default();
    ApiError::conflict(format!("Cluster {} is in state {status} and takes no hosts", cluster.id))
}

/// Whether a cluster was there before its hosts.
pub(super) fn is_joined(cluster: &ClusterRecord) -> bool {
    cluster.kind == ClusterKind::AddHostsCluster
}

/// Whether a cluster is one machine.
pub(super) fn is_single_node(cluster: &ClusterRecord) -> bool {
    cluster.control_plane_count == 1 && !is_joined(cluster)
}

/// A host of a cluster. Without an infra-env, the first one of this id.
pub(crate) async fn find_in_cluster(
    inventory: &Inventory,
    cluster: ClusterId,
    host_id: HostId,
    infra_env: Option<InfraEnvId>,
) -> Result<HostRecord, ApiError> {
    let host = if let Some(infra_env_id) = infra_env {
        Some(HostKey { infra_env_id, host_id }.find(inventory.records()).await?.record)
    } else {
        let all = inventory.records().stream::<HostRecord>(Filter::all(Kind::Host).of_cluster(cluster.0));
        let found = all.try_filter(|host| std::future::ready(host.record.id == host_id));
        std::pin::pin!(found).try_next().await?.map(|host| host.record)
    };
    let host = host.ok_or_else(|| {
        ApiError::not_found(format!("failed to get host {host_id} in cluster {cluster}: record not found"))
    })?;
    require_part_of(cluster, &host)?;
    Ok(host)
}

/// Refuses a host of another cluster, or of none.
pub(super) fn require_part_of(cluster: ClusterId, host: &HostRecord) -> Result<(), ApiError> {
    if host.cluster_id == Some(cluster) {
        return Ok(());
    }
    Err(ApiError::conflict(format!("Host {} is not part of cluster {cluster}", host.id)))
}

/// A cluster goes: hosts of an infra-env that is its own go with it, others only leave it.
///
/// This is part of the change that deletes the cluster.
///
/// # Errors
///
/// When the database fails.
pub(crate) async fn release_hosts(
    records: &Records,
    change: &mut Change,
    cluster: ClusterId,
) -> Result<(), ApiError> {
    for Stored { record: mut host, generation, .. } in
        records.list::<HostRecord>(Filter::all(Kind::Host).of_cluster(cluster.0)).await?
    {
        let infra_env = records.find::<InfraEnvRecord>(None, host.infra_env_id.0).await?;
        let is_its_own = infra_env.is_some_and(|infra_env| infra_env.record.cluster_id == Some(cluster));
        let mut journal = Journal::of_time();
        if is_its_own {
            deregister(&mut host, &mut journal);
        } else {
            leave(&mut host, &mut journal);
        }
        host.updated_at = journal.micros();
        change.replace(&host, generation);
        journal.write(change);
    }
    // One that becomes part of it just now would stay with a cluster that is gone.
    change.require_none(Filter::all(Kind::Host).of_cluster(cluster.0));
    Ok(())
}

/// A host goes. It is kept for a while, without secrets and without the reports of its agent.
pub(super) fn deregister(host: &mut HostRecord, journal: &mut Journal) {
    host.deleted_at = Some(journal.micros());
    let hostname = std::mem::take(&mut host.findings.hostname);
    host.findings = Findings { hostname, ..Findings::default() };
    host.choices = Choices {
        ignition_config_overrides: String::new(),
        ignition_endpoint_token: Secret::default(),
        ignition_endpoint_http_headers: Vec::new(),
        fencing_credentials: String::new(),
        ..std::mem::take(&mut host.choices)
    };
    let message = format!("Host {} deregistered", host.name());
    journal.tell_in_full(host, "host_deregistered", Severity::Info, message);
}
