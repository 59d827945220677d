//! Checks that a token grants access to the resources that a request names.
//!
//! A token in a URL grants access only to the resource that it was issued for. In an agent's header, the same token
//! also grants access to the clusters of its infra-env and of that infra-env's hosts, and to the other hosts of these
//! clusters: during an installation, one host reports the progress of other hosts.

use std::collections::BTreeSet;

use super::kind::{AuthKind, Scope};
use super::unavailable::unavailable;
use crate::error::Error;
use crate::id::{ClusterId, HostId, InfraEnvId};
use crate::store::{Filter, Key, Kind, Records};

/// Maximum number of hosts in one request with a token of an infra-env or cluster. Each host may require a lookup.
const MAX_HOSTS: usize = 1000;

/// The resources that a request names. Each of them must be within the scope of the caller's token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The infra-env, if the request names one.
    pub infra_env: Option<InfraEnvId>,
    /// The cluster, if the request names one.
    pub cluster: Option<ClusterId>,
    /// The hosts. Empty if the request names no host.
    pub hosts: Vec<HostId>,
}

impl Named {
    /// Returns `true` if the token grants access to every named resource. A request that names no resource concerns the
    /// whole service and requires a user's token.
    pub(crate) async fn is_within(
        &self,
        kind: AuthKind,
        scope: Scope,
        records: &Records,
    ) -> Result<bool, Error> {
        if scope != Scope::Everything && self.hosts.len() > MAX_HOSTS {
            let host_count = self.hosts.len();
            return Err(Error::invalid(format!("the request names {host_count} hosts (limit {MAX_HOSTS})")));
        }
        match (scope, kind) {
            (Scope::Everything, _) => Ok(true),
            (Scope::InfraEnv(own), AuthKind::Agent) => {
                self.is_accessible_to_agents_of_infra_env(own, records).await
            }
            (Scope::Cluster(own), AuthKind::Agent) => {
                self.is_accessible_to_agents_of_cluster(own, records).await
            }
            (Scope::InfraEnv(own), _) => match (self.cluster, self.infra_env) {
                (Some(_), _) => Ok(false),
                (None, Some(infra_env)) if infra_env != own => Ok(false),
                (None, None) if self.hosts.is_empty() => Ok(false),
                (None, _) => self.has_hosts_in_infra_env(own, records).await,
            },
            (Scope::Cluster(own), _) => match (self.cluster, self.infra_env) {
                (Some(cluster), None) if cluster == own => self.has_hosts_in_cluster(own, records).await,
                _ => Ok(false),
            },
        }
    }

    /// Returns `true` if all named hosts exist in the named infra-env or, if the request names none, in the named
    /// cluster.
    pub(crate) async fn has_its_hosts(&self, records: &Records) -> Result<bool, Error> {
        match (self.infra_env, self.cluster) {
            _ if self.hosts.is_empty() => Ok(true),
            (Some(infra_env), _) => self.has_hosts_in_infra_env(infra_env, records).await,
            (None, Some(cluster)) => self.has_hosts_in_cluster(cluster, records).await,
            (None, None) => Ok(false),
        }
    }

    /// Returns `true` if all named hosts are in the infra-env.
    async fn has_hosts_in_infra_env(&self, infra_env: InfraEnvId, records: &Records) -> Result<bool, Error> {
        for host in &self.hosts {
            let exists = records.store().exists(host_key(infra_env, *host)).await;
            if !exists.map_err(|error| unavailable(&error))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns `true` if all named hosts are in the cluster.
    async fn has_hosts_in_cluster(&self, cluster: ClusterId, records: &Records) -> Result<bool, Error> {
        if self.hosts.is_empty() {
            return Ok(true);
        }
        let existing = records.store().hosts_in_cluster(cluster, &self.hosts).await;
        let existing = existing.map_err(|error| unavailable(&error))?;
        let existing: BTreeSet<_> = existing.into_iter().map(|key| key.id).collect();
        Ok(self.hosts.iter().all(|host| existing.contains(&host.0)))
    }

    /// Returns `true` if an agent of the infra-env may access all named resources.
    async fn is_accessible_to_agents_of_infra_env(
        &self,
        own: InfraEnvId,
        records: &Records,
    ) -> Result<bool, Error> {
        if let Some(cluster) = self.cluster
            && !is_in_cluster(records, own, cluster).await?
        {
            return Ok(false);
        }
        match (self.infra_env, self.cluster) {
            // The operation checks that the host exists, because its error names the host.
            (Some(infra_env), _) if infra_env == own => Ok(true),
            (Some(infra_env), _) => {
                for host in &self.hosts {
                    let Some(cluster) = cluster_of_host(records, infra_env, *host).await? else {
                        return Ok(false);
                    };
                    if !is_in_cluster(records, own, cluster).await? {
                        return Ok(false);
                    }
                }
                Ok(!self.hosts.is_empty())
            }
            (None, Some(cluster)) => self.has_hosts_in_cluster(cluster, records).await,
            (None, None) => Ok(false),
        }
    }

    /// Returns `true` if an agent of the cluster may access all named resources.
    async fn is_accessible_to_agents_of_cluster(
        &self,
        own: ClusterId,
        records: &Records,
    ) -> Result<bool, Error> {
        if self.cluster.is_some_and(|cluster| cluster != own) {
            return Ok(false);
        }
        let Some(infra_env) = self.infra_env else {
            return Ok(self.cluster.is_some() && self.has_hosts_in_cluster(own, records).await?);
        };
        if cluster_of_infra_env(records, infra_env).await? == Some(own) {
            return Ok(true);
        }
        for host in &self.hosts {
            if cluster_of_host(records, infra_env, *host).await? != Some(own) {
                return Ok(false);
            }
        }
        Ok(!self.hosts.is_empty())
    }
}

/// Returns `true` if the cluster exists, and the infra-env or one of its hosts belongs to it.
async fn is_in_cluster(records: &Records, infra_env: InfraEnvId, cluster: ClusterId) -> Result<bool, Error> {
    // An infra-env keeps the id of its cluster after the cluster is deleted, so check that the cluster exists.
    let key = Key { kind: Kind::Cluster, parent: None, id: cluster.0 };
    if !records.store().exists(key).await.map_err(|error| unavailable(&error))? {
        return Ok(false);
    }
    if cluster_of_infra_env(records, infra_env).await? == Some(cluster) {
        return Ok(true);
    }
    let hosts = Filter::all(Kind::Host).within(infra_env.0).of_cluster(cluster.0);
    records.store().has_any(hosts).await.map_err(|error| unavailable(&error))
}

fn host_key(infra_env: InfraEnvId, host: HostId) -> Key {
    Key { kind: Kind::Host, parent: Some(infra_env.0), id: host.0 }
}

async fn cluster_of_host(
    records: &Records,
    infra_env: InfraEnvId,
    host: HostId,
) -> Result<Option<ClusterId>, Error> {
    cluster_of(records, host_key(infra_env, host)).await
}

async fn cluster_of_infra_env(records: &Records, id: InfraEnvId) -> Result<Option<ClusterId>, Error> {
    cluster_of(records, Key { kind: Kind::InfraEnv, parent: None, id: id.0 }).await
}

async fn cluster_of(records: &Records, key: Key) -> Result<Option<ClusterId>, Error> {
    records.store().cluster_of(key).await.map_err(|error| unavailable(&error))
}
