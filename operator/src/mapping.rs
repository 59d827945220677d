//! Finds the resources that depend on a changed object, in its old and its new state.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};

use crate::cached_agent::CachedAgent;
use crate::caches::{Cache, CacheChange, CachedObject as _, Origin};
use crate::crds::{AgentClassification, InfraEnv, NMStateConfig};
use crate::object::ObjectKey;
use crate::queue::Queue;
use crate::references::Reference;
use crate::selector;

/// The caches of all objects on which InfraEnvs depend.
#[derive(Clone, Debug)]
pub(crate) struct InfraEnvCaches {
    pub(crate) infra_envs: Cache<InfraEnv>,
    pub(crate) networks: Cache<NMStateConfig>,
    pub(crate) secrets: Cache<Reference<Secret>>,
    pub(crate) config_maps: Cache<Reference<ConfigMap>>,
}

impl InfraEnvCaches {
    /// Adds an InfraEnv to the queue when it changes, or when an object that it selects or refers to changes.
    pub(crate) fn fill(&self, queue: &Queue<ObjectKey>) {
        let own = queue.clone();
        self.infra_envs.on_change(move |change| {
            if change.origin == Origin::Watch {
                own.push(change.key.clone());
            }
        });
        let (own, caches) = (queue.clone(), self.infra_envs.clone());
        self.networks.on_change(move |change| {
            // Users often apply many configs together, so the InfraEnvs are queued as part of a burst.
            selecting(&caches, change).into_iter().for_each(|key| own.push_in_burst(key));
        });
        let (own, caches) = (queue.clone(), self.infra_envs.clone());
        self.secrets.on_change(move |change| {
            for (key, infra_env) in caches.in_namespace(&change.key.namespace) {
                if infra_env.spec.pull_secret_ref.name == change.key.name {
                    own.push(key);
                }
            }
        });
        let (own, caches) = (queue.clone(), self.infra_envs.clone());
        self.config_maps.on_change(move |change| {
            let is_named = |infra_env: &InfraEnv| {
                let mirrors = infra_env.spec.mirror_registry_ref.as_ref();
                mirrors.is_some_and(|it| it.name == change.key.name && it.namespace == change.key.namespace)
            };
            caches.keys_of(is_named).into_iter().for_each(|key| own.push(key));
        });
    }
}

/// Returns the InfraEnvs that select a config before or after its change. An InfraEnv with an invalid selector is
/// included, so that it reports the error.
fn selecting(infra_envs: &Cache<InfraEnv>, change: &CacheChange<NMStateConfig>) -> BTreeSet<ObjectKey> {
    let selects = |infra_env: &InfraEnv, config: &NMStateConfig| {
        let selector = &infra_env.spec.nm_state_config_label_selector;
        selector::matches(selector, config.metadata.labels.as_ref()).unwrap_or(true)
    };
    let infra_envs = infra_envs.in_namespace(&change.key.namespace);
    let selecting = infra_envs
        .into_iter()
        .filter(|(_, infra_env)| change.states().any(|config| selects(infra_env, config)));
    selecting.map(|(key, _)| key).collect()
}

/// Adds an Agent to the queue when it changes, or when its InfraEnv begins to approve its Agents.
pub(crate) fn fill_agents(
    queue: &Queue<ObjectKey>,
    agents: &Cache<CachedAgent>,
    infra_envs: &Cache<InfraEnv>,
) {
    let own = queue.clone();
    agents.on_change(move |change| {
        if change.origin == Origin::Watch {
            own.push(change.key.clone());
        }
    });
    let (own, agents) = (queue.clone(), agents.clone());
    infra_envs.on_change(move |change| {
        let approval = |infra_env: &InfraEnv| infra_env.spec.agent_approval.clone();
        if change.before.as_deref().map(approval) == change.after.as_deref().map(approval) {
            return;
        }
        for (key, agent) in agents.in_namespace(&change.key.namespace) {
            if agent.infra_env() == Some(&change.key.name) {
                own.push(key);
            }
        }
    });
}

/// Adds a changed AgentClassification and the Agents of its namespace to the queues. When the labels of an Agent
/// change, adds the classifications of its namespace.
pub(crate) fn fill_classifications(
    (queue, agent_queue): (&Queue<ObjectKey>, &Queue<ObjectKey>),
    classifications: &Cache<AgentClassification>,
    agents: &Cache<CachedAgent>,
) {
    let (own, agent_queue, cached) = (queue.clone(), agent_queue.clone(), agents.clone());
    classifications.on_change(move |change| {
        if change.origin == Origin::OwnWrite {
            return;
        }
        own.push(change.key.clone());
        let decides = |object: &AgentClassification| {
            (object.spec.clone(), object.metadata.deletion_timestamp.is_some())
        };
        if change.before.as_deref().map(decides) != change.after.as_deref().map(decides) {
            let agents = cached.in_namespace(&change.key.namespace);
            agents.into_iter().for_each(|(key, _)| agent_queue.push_in_burst(key));
        }
    });
    let (own, classifications) = (queue.clone(), classifications.clone());
    agents.on_change(move |change| {
        let labels = |agent: &CachedAgent| agent.meta().labels.clone();
        if change.before.as_deref().map(labels) != change.after.as_deref().map(labels) {
            let of_namespace = classifications.in_namespace(&change.key.namespace);
            of_namespace.into_iter().for_each(|(key, _)| own.push_in_burst(key));
        }
    });
}
