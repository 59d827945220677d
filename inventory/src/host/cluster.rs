//! The cluster of a host: how many hosts a cluster has, and what its deletion does to them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::draft::HostDraft;
use super::key::HostKey;
use super::membership::clear_cluster;
use super::record::{Choices, HostFindings, HostRecord};
use super::state::HostEvent;
use super::status::HostStatus;
use crate::cluster::state::ClusterOperation;
use crate::cluster::{ClusterKind, ClusterRecord};
use crate::error::Error;
use crate::event::Severity;
use crate::id::{ClusterId, HostId, InfraEnvId};
use crate::infra_env::InfraEnvRecord;
use crate::journal::Journal;
use crate::store::{Change, Filter, Kind, ReadSet, Reader as _};
use crate::{Inventory, Secret};

/// Returns the cluster with this id; `None` if it does not exist or is deleted.
pub(crate) async fn find_cluster(reads: &ReadSet, id: ClusterId) -> Result<Option<ClusterRecord>, Error> {
    let found = reads.find::<ClusterRecord>(None, id.0).await?;
    Ok(found.map(|cluster| cluster.record).filter(|cluster| !cluster.is_deleted()))
}

/// Returns `true` if hosts can be bound to the cluster in its current status.
pub(crate) fn accepts_hosts(cluster: &ClusterRecord) -> bool {
    ClusterOperation::AddHost.is_allowed(cluster.status())
}

/// Returns the error for a cluster that cannot accept hosts.
pub(crate) fn cannot_accept_hosts(cluster: &ClusterRecord) -> Error {
    Error::conflict(format!(
        "Cluster {} is in state {} and cannot accept hosts",
        cluster.id,
        cluster.status()
    ))
}

/// Returns `true` if the cluster is already installed, and hosts are added to it.
pub(crate) fn is_add_hosts_cluster(cluster: &ClusterRecord) -> bool {
    cluster.kind == ClusterKind::AddHostsCluster
}

/// Returns `true` if the cluster is installed on a single node.
pub(crate) fn is_single_node(cluster: &ClusterRecord) -> bool {
    cluster.control_plane_count == 1 && !is_add_hosts_cluster(cluster)
}

/// Numbers of hosts of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostCounts {
    /// Hosts that are ready to be installed.
    pub(crate) ready: i64,
    /// Hosts that are enabled for installation.
    pub(crate) enabled: i64,
    /// All hosts.
    pub(crate) total: i64,
}

impl HostCounts {
    /// Counts a host with this status.
    pub(crate) fn add(&mut self, status: HostStatus) {
        self.total += 1;
        self.ready += i64::from(status == HostStatus::Known);
        self.enabled += i64::from(status != HostStatus::Disabled);
    }
}

/// Whether a response contains deleted hosts of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeletedHosts {
    Omitted,
    Included,
}

/// Returns the number of hosts of each cluster that has any. One query counts them without reading the hosts.
pub(crate) async fn host_counts(
    inventory: &Inventory,
    clusters: &[ClusterId],
    deleted: DeletedHosts,
) -> Result<BTreeMap<ClusterId, HostCounts>, Error> {
    let ids: Vec<_> = clusters.iter().map(|id| id.0).collect();
    let mut counts = BTreeMap::<_, HostCounts>::new();
    let found = inventory.records().host_counts(&ids).await?;
    for found in found.into_iter().filter(|found| deleted == DeletedHosts::Included || !found.deleted) {
        // More than `i64::MAX` hosts cannot be stored.
        let hosts = i64::try_from(found.hosts).unwrap_or(i64::MAX);
        let of_cluster = counts.entry(ClusterId(found.cluster)).or_default();
        of_cluster.total += hosts;
        if found.status == HostStatus::Known.as_str() {
            of_cluster.ready += hosts;
        }
        if found.status != HostStatus::Disabled.as_str() {
            of_cluster.enabled += hosts;
        }
    }
    Ok(counts)
}

/// Returns a host of a cluster. Several infra-envs may have a host with this id: without an infra-env, the first one of
/// the cluster is returned.
pub(crate) async fn find_in_cluster(
    inventory: &Inventory,
    cluster: ClusterId,
    host_id: HostId,
    infra_env: Option<InfraEnvId>,
) -> Result<HostRecord, Error> {
    let infra_env = match infra_env {
        Some(id) => Some(id),
        None => {
            let found = inventory.records().store().hosts_in_cluster(cluster, &[host_id]).await?;
            found.first().and_then(|key| key.parent).map(InfraEnvId)
        }
    };
    let infra_env_id = infra_env.ok_or_else(|| {
        Error::not_found(format!("failed to get host {host_id} in cluster {cluster}: record not found"))
    })?;
    let host = HostKey { infra_env_id, host_id }.find(inventory.records()).await?.record;
    require_bound_to(cluster, &host)?;
    Ok(host)
}

/// Returns an error unless the host is bound to this cluster.
pub(crate) fn require_bound_to(cluster: ClusterId, host: &HostRecord) -> Result<(), Error> {
    if host.cluster_id == Some(cluster) {
        return Ok(());
    }
    Err(Error::conflict(format!("Host {} is not part of cluster {cluster}", host.id)))
}

/// Deletes or unbinds the hosts of a cluster, as part of the change that deletes the cluster.
///
/// Hosts of an infra-env that is bound to the cluster are deleted. Hosts of other infra-envs are unbound.
///
/// # Errors
///
/// Returns an error if the database fails.
pub(crate) async fn release_hosts(
    reads: &ReadSet,
    change: &mut Change,
    cluster: ClusterId,
    journal: &mut Journal,
) -> Result<(), Error> {
    let mut bound_infra_envs = BTreeMap::new();
    for stored in reads.list::<HostRecord>(Filter::all(Kind::Host).of_cluster(cluster.0)).await? {
        let mut draft = HostDraft::new(stored);
        let host = &mut draft.record;
        // Most hosts of a cluster are in one infra-env.
        let is_bound = match bound_infra_envs.entry(host.infra_env_id) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => {
                let infra_env = reads.find::<InfraEnvRecord>(None, host.infra_env_id.0).await?;
                *unknown.insert(infra_env.is_some_and(|found| found.record.cluster_id == Some(cluster)))
            }
        };
        if is_bound {
            deregister(host, journal);
        } else {
            clear_cluster(host, HostEvent::DeleteCluster, journal);
        }
        host.updated_at = journal.micros();
        draft.write(change)?;
    }
    // A host that is bound at the same moment would refer to a deleted cluster.
    change.require_none(Filter::all(Kind::Host).of_cluster(cluster.0));
    Ok(())
}

/// Marks a host as deleted. The record stays until it is purged, without secrets and reports.
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
