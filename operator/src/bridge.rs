//! Forwards changes to inventory records to the controllers: adds the resources that show a changed record to the
//! queues.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use futures_util::{StreamExt as _, TryStreamExt as _};
use inventory::Inventory;
use inventory::id::{HostId, InfraEnvId};
use inventory::service::{HostQuery, ResourceId, WatchEvent, WatchQuery};
use uuid::Uuid;

use crate::cached_agent::CachedAgent;
use crate::caches::Cache;
use crate::crds::InfraEnv;
use crate::object::ObjectKey;
use crate::queue::Queue;

/// An index of InfraEnvs by the ids of their infra-envs. Clones share the index.
///
/// The id in an annotation of an InfraEnv is only a claim: any user who may create an InfraEnv can write it. So an
/// entry is added only after the inventory has confirmed that the InfraEnv owns the infra-env.
#[derive(Clone, Debug, Default)]
pub(crate) struct InfraEnvIndex(Arc<RwLock<HashMap<InfraEnvId, ObjectKey>>>);

impl InfraEnvIndex {
    /// Returns an index that drops each InfraEnv that disappears from a cache.
    pub(crate) fn following(cache: &Cache<InfraEnv>) -> Self {
        let index = Self::default();
        let own = index.clone();
        cache.on_change(move |change| {
            if change.after.is_none() {
                own.write().retain(|_, key| *key != change.key);
            }
        });
        index
    }

    /// Adds an InfraEnv whose ownership of the infra-env is confirmed.
    pub(crate) fn confirm(&self, id: InfraEnvId, key: &ObjectKey) {
        self.write().insert(id, key.clone());
    }

    /// Drops the InfraEnv of an infra-env.
    pub(crate) fn remove(&self, id: InfraEnvId) {
        self.write().remove(&id);
    }

    /// Returns the InfraEnv that owns an infra-env.
    pub(crate) fn find(&self, id: InfraEnvId) -> Option<ObjectKey> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// Drops all InfraEnvs, so that each must be confirmed again.
    pub(crate) fn clear(&self) {
        self.write().clear();
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<InfraEnvId, ObjectKey>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The known hosts, each with its infra-env. A machine may have hosts with the same id in several infra-envs. Clones
/// share the index.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostIndex(Arc<RwLock<BTreeSet<(HostId, InfraEnvId)>>>);

impl HostIndex {
    /// Returns the infra-envs that may contain a host with this id.
    pub(crate) fn find(&self, host: HostId) -> BTreeSet<InfraEnvId> {
        let all = (host, InfraEnvId(Uuid::nil()))..=(host, InfraEnvId(Uuid::max()));
        let hosts = self.0.read().unwrap_or_else(PoisonError::into_inner);
        hosts.range(all).map(|(_, infra_env)| *infra_env).collect()
    }

    /// Drops the hosts with this id in infra-envs that satisfy a condition.
    pub(crate) fn remove(&self, host: HostId, condition: impl Fn(InfraEnvId) -> bool) {
        let infra_envs: Vec<_> = self.find(host).into_iter().filter(|id| condition(*id)).collect();
        let mut hosts = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for infra_env in infra_envs {
            hosts.remove(&(host, infra_env));
        }
    }

    fn insert(&self, host: HostId, infra_env: InfraEnvId) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert((host, infra_env));
    }
}

/// A bridge from the inventory's hosts to the queue of Agents: adds the Agents of changed hosts to the queue.
#[derive(Clone, Debug)]
pub(crate) struct HostBridge {
    pub(crate) inventory: Inventory,
    pub(crate) hosts: HostIndex,
    pub(crate) agents: Queue<ObjectKey>,
    pub(crate) cached_agents: Cache<CachedAgent>,
}

impl HostBridge {
    /// Adds the Agent of one host to the queue.
    fn push(&self, infra_env: (InfraEnvId, &ObjectKey), host: HostId) {
        let (id, infra_env) = infra_env;
        self.hosts.insert(host, id);
        // A machine that has just booted causes several changes within a second, so the Agent is queued as part of a
        // burst.
        self.agents.push_in_burst(ObjectKey::new(&infra_env.namespace, host.to_string()));
    }

    /// Adds the Agents of all hosts of an infra-env to the queue, and the Agents of its InfraEnv whose hosts no longer
    /// exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub(crate) async fn push_all(
        &self,
        id: InfraEnvId,
        infra_env: &ObjectKey,
    ) -> Result<(), inventory::Error> {
        let query = HostQuery { infra_env: Some(id), ..HostQuery::default() };
        let mut hosts = self.inventory.hosts(query);
        while let Some(host) = hosts.try_next().await? {
            self.push((id, infra_env), host.id);
        }
        for (key, agent) in self.cached_agents.in_namespace(&infra_env.namespace) {
            if agent.infra_env() == Some(&infra_env.name) {
                self.agents.push_in_burst(key);
            }
        }
        Ok(())
    }
}

/// Adds the resources of changed records to the queues. Does not return while the inventory is open.
pub(crate) async fn follow(
    bridge: HostBridge,
    index: InfraEnvIndex,
    infra_envs: (Cache<InfraEnv>, Queue<ObjectKey>),
) {
    let (cache, queue) = infra_envs;
    let mut events = bridge.inventory.watch(WatchQuery::default());
    while let Some(event) = events.next().await {
        let WatchEvent::Changed(change) = event else {
            // Changes may have been missed, so all InfraEnvs are reconciled. The reconciliation confirms each of them
            // again, and adds the Agents of its hosts to the queue.
            index.clear();
            cache.keys().into_iter().for_each(|key| queue.push(key));
            continue;
        };
        match change.resource {
            ResourceId::InfraEnv(id) => {
                if let Some(key) = index.find(id) {
                    queue.push(key);
                }
            }
            ResourceId::Host(host) => {
                if let Some(key) = index.find(host.infra_env_id) {
                    bridge.push((host.infra_env_id, &key), host.host_id);
                }
            }
            _ => {}
        }
    }
}
