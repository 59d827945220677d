//! What tokens reach.
//!
//! A token in a URL reaches the one thing that it was made for. The same token in a machine's header reaches also what the
//! machine is part of: the clusters that its infra-env or any host of it belongs to, and the other hosts of these clusters,
//! which an installation reports on in turn.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use uuid::Uuid;

use super::{AuthKind, Scope, unavailable};
use crate::inventory::Refusal;
use crate::inventory::id::{ClusterId, HostId, InfraEnvId};
use crate::inventory::request::Query;
use crate::inventory::store::{Filter, Key, Kind, Records, Row};

/// The most hosts that a query names. More of them are refused, rather than looked up one by one.
const MOST_HOSTS: usize = 1000;

/// What an operation touches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) infra_env: Option<InfraEnvId>,
    pub(crate) cluster: Option<ClusterId>,
    pub(crate) hosts: Vec<HostId>,
}

impl Target {
    /// What the path of a request says and, where it leaves something out, the query. An id that cannot be read names
    /// nothing.
    pub(super) async fn of(parts: &mut Parts, query: &Query) -> Self {
        let path = RawPathParams::from_request_parts(parts, &()).await;
        let named = |name: &str| {
            let found = path.as_ref().ok()?.iter().find(|(key, _)| *key == name);
            found.map(|(_, text)| text).or_else(|| query.text(name))?.parse::<Uuid>().ok()
        };
        let mut hosts: Vec<HostId> = named("host_id").map(HostId).into_iter().collect();
        hosts.extend(query.ids::<HostId>("host_ids").unwrap_or_default());
        Self {
            infra_env: named("infra_env_id").map(InfraEnvId),
            cluster: named("cluster_id").map(ClusterId),
            hosts,
        }
    }

    /// Whether a token reaches it. What names nothing is everything, and only a token of people reaches that.
    pub(super) async fn is_within(
        &self,
        kind: AuthKind,
        scope: Scope,
        records: &Records,
    ) -> Result<bool, Refusal> {
        if self.hosts.len() > MOST_HOSTS {
            return Ok(false);
        }
        match (scope, kind) {
            (Scope::Everything, _) => Ok(true),
            (Scope::InfraEnv(own), AuthKind::Agent) => self.is_near_infra_env(own, records).await,
            (Scope::Cluster(own), AuthKind::Agent) => self.is_near_cluster(own, records).await,
            // All that is named has to be its own: which of several names counts is for the operation to say.
            (Scope::InfraEnv(own), _) => {
                let is_foreign = self.infra_env.is_some_and(|infra_env| infra_env != own);
                match self.cluster {
                    Some(_) => Ok(false),
                    None if is_foreign => Ok(false),
                    None if self.hosts.is_empty() => Ok(self.infra_env.is_some()),
                    None => self.has_only_hosts_of(own, records).await,
                }
            }
            (Scope::Cluster(own), _) => Ok(self.cluster == Some(own)),
        }
    }

    /// Whether the hosts are where it says that they are: in its infra-env or, where it names none, in its cluster.
    pub(super) async fn has_its_hosts(&self, records: &Records) -> Result<bool, Refusal> {
        match (self.infra_env, self.cluster) {
            _ if self.hosts.is_empty() => Ok(true),
            (Some(infra_env), _) => self.has_only_hosts_of(infra_env, records).await,
            (None, Some(cluster)) => {
                let rows = records.store().list(Filter::all(Kind::Host).of_cluster(cluster.0)).await;
                let rows = rows.map_err(|error| unavailable(&error))?;
                Ok(self.hosts.iter().all(|host| rows.iter().any(|row| row.key.id == host.0)))
            }
            (None, None) => Ok(false),
        }
    }

    async fn has_only_hosts_of(&self, infra_env: InfraEnvId, records: &Records) -> Result<bool, Refusal> {
        for host in &self.hosts {
            if host_row(records, infra_env, *host).await?.is_none() {
                return Ok(false);
            }
        }
        Ok(!self.hosts.is_empty())
    }

    async fn is_near_infra_env(&self, own: InfraEnvId, records: &Records) -> Result<bool, Refusal> {
        if let Some(cluster) = self.cluster
            && !belongs(records, own, cluster).await?
        {
            return Ok(false);
        }
        match self.infra_env {
            Some(infra_env) if infra_env == own => Ok(true),
            Some(infra_env) => {
                for host in &self.hosts {
                    let Some(cluster) = cluster_of(host_row(records, infra_env, *host).await?) else {
                        return Ok(false);
                    };
                    if !belongs(records, own, cluster).await? {
                        return Ok(false);
                    }
                }
                Ok(!self.hosts.is_empty())
            }
            None => Ok(self.cluster.is_some()),
        }
    }

    async fn is_near_cluster(&self, own: ClusterId, records: &Records) -> Result<bool, Refusal> {
        if self.cluster.is_some_and(|cluster| cluster != own) {
            return Ok(false);
        }
        let Some(infra_env) = self.infra_env else { return Ok(self.cluster.is_some()) };
        if cluster_of(row(records, Kind::InfraEnv, None, infra_env.0).await?) == Some(own) {
            return Ok(true);
        }
        for host in &self.hosts {
            if cluster_of(host_row(records, infra_env, *host).await?) != Some(own) {
                return Ok(false);
            }
        }
        Ok(!self.hosts.is_empty())
    }
}

/// Whether an infra-env, or any of its hosts, is part of a cluster.
async fn belongs(records: &Records, infra_env: InfraEnvId, cluster: ClusterId) -> Result<bool, Refusal> {
    if cluster_of(row(records, Kind::InfraEnv, None, infra_env.0).await?) == Some(cluster) {
        return Ok(true);
    }
    let hosts = Filter::all(Kind::Host).within(infra_env.0).of_cluster(cluster.0);
    records.store().has_any(hosts).await.map_err(|error| unavailable(&error))
}

fn cluster_of(row: Option<Row>) -> Option<ClusterId> {
    row?.cluster.map(ClusterId)
}

async fn host_row(records: &Records, infra_env: InfraEnvId, host: HostId) -> Result<Option<Row>, Refusal> {
    row(records, Kind::Host, Some(infra_env.0), host.0).await
}

/// A record that is there and not deleted.
async fn row(records: &Records, kind: Kind, parent: Option<Uuid>, id: Uuid) -> Result<Option<Row>, Refusal> {
    let found = records.store().get(Key { kind, parent, id }).await;
    Ok(found.map_err(|error| unavailable(&error))?.filter(|row| !row.deleted))
}
