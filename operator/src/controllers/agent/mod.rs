//! The controller of Agents. Each host has an Agent, whose status shows the host and whose spec configures it.

mod creation;
mod host_spec;
mod metadata;
mod restoration;
mod status_times;

use std::sync::Arc;
use std::time::Duration;

use inventory::id::{HostId, HostKey, InfraEnvId};
use inventory::infra_env::ResourceOwner;
use inventory::service::HostDetails;
use inventory::{ErrorKind, Inventory};
use serde_json::json;

pub(crate) use self::status_times::StatusTimes;

use super::Controller;
use crate::bridge::{HostIndex, InfraEnvIndex};
use crate::cached_agent::CachedAgent;
use crate::caches::{Cache, CachedObject as _};
use crate::classification::Queries;
use crate::crds::names::AGENT_FINALIZER;
use crate::crds::{Agent, AgentClassification, InfraEnv};
use crate::errors::ReconcileError;
use crate::merge_patch;
use crate::object::ObjectKey;
use crate::projection::SpecSync;
use crate::projection::agent::{AgentView, AppliedSpec, view};
use crate::queue::Next;
use crate::record_id;
use crate::status_members::agent_status_members;
use crate::writer::{Part, Writer};

/// Delay before the next attempt if a host disappears during a reconciliation.
const SOON: Duration = Duration::from_secs(1);

/// The controller of Agents.
#[derive(Debug)]
pub(crate) struct AgentController {
    pub(crate) inventory: Inventory,
    pub(crate) writer: Writer,
    pub(crate) infra_envs: Cache<InfraEnv>,
    pub(crate) agents: Cache<CachedAgent>,
    pub(crate) infra_env_ids: InfraEnvIndex,
    pub(crate) hosts: HostIndex,
    pub(crate) classifications: Cache<AgentClassification>,
    pub(crate) queries: Arc<Queries>,
    pub(crate) status_times: StatusTimes,
}

/// A host, and the InfraEnv whose image it booted.
struct OwnedHost {
    key: HostKey,
    details: HostDetails,
    infra_env: Arc<InfraEnv>,
}

impl Controller for AgentController {
    const NAME: &'static str = "agent";

    async fn reconcile(&self, key: &ObjectKey) -> Next {
        match self.try_reconcile(key).await {
            Ok(next) => next,
            Err(error) => {
                let next = error.next();
                let error = &error as &dyn std::error::Error;
                match next {
                    Next::BackOff => tracing::warn!(error, agent = %key, "could not reconcile, will retry"),
                    _ => tracing::debug!(error, agent = %key, "could not reconcile"),
                }
                next
            }
        }
    }
}

impl AgentController {
    async fn try_reconcile(&self, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let agent = self.agents.get(key);
        if let Some(agent) = agent.as_ref().filter(|agent| agent.meta().deletion_timestamp.is_some()) {
            return self.delete(key, agent).await;
        }
        let Some(host) = self.host(key, agent.as_deref()).await? else {
            return match agent {
                Some(agent) if self.restore(key, &agent).await? => Ok(Next::After(SOON)),
                Some(_) => Ok(Next::Wait),
                None => {
                    self.drop_hosts(key);
                    self.status_times.remove(key);
                    Ok(Next::Wait)
                }
            };
        };
        let agent = match agent {
            Some(agent) => agent,
            None => self.create(key, &host).await?,
        };
        self.synchronize(key, agent, host).await
    }

    /// Returns the host of an Agent. If a machine has booted images of several InfraEnvs, returns the host that
    /// registered last, and deletes the machine's other hosts.
    async fn host(
        &self,
        key: &ObjectKey,
        agent: Option<&CachedAgent>,
    ) -> Result<Option<OwnedHost>, ReconcileError> {
        let mut hosts = Vec::new();
        for host_key in self.host_keys(key, agent) {
            let Some(infra_env) = self.live_infra_env(key, host_key.infra_env_id) else { continue };
            if let Some(details) = self.inventory.host_details(host_key).await? {
                hosts.push(OwnedHost { key: host_key, details, infra_env });
            }
        }
        hosts.sort_by_key(|host| host.details.record.registered_at);
        let last = hosts.pop();
        for other in hosts {
            self.inventory.deregister_host_if_present(other.key, None).await?;
        }
        Ok(last)
    }

    /// Returns the keys of all hosts that may belong to an Agent.
    fn host_keys(&self, key: &ObjectKey, agent: Option<&CachedAgent>) -> Vec<HostKey> {
        let Ok(host_id) = key.name.parse::<HostId>() else { return Vec::new() };
        let mut ids = self.hosts.find(host_id);
        let labelled = agent.and_then(CachedAgent::infra_env);
        let labelled = labelled.and_then(|name| self.infra_envs.get(&ObjectKey::new(&key.namespace, name)));
        ids.extend(labelled.and_then(|infra_env| record_id::of_infra_env(&infra_env.metadata).ok()));
        // The annotation of an InfraEnv must not connect an Agent to a host of another namespace.
        let is_own = |id: &InfraEnvId| {
            self.infra_env_ids.find(*id).is_some_and(|infra_env| infra_env.namespace == key.namespace)
        };
        let ids = ids.into_iter().filter(is_own);
        ids.map(|infra_env_id| HostKey { infra_env_id, host_id }).collect()
    }

    /// Drops the known hosts of an Agent that has no host. Hosts of other namespaces remain.
    fn drop_hosts(&self, key: &ObjectKey) {
        let Ok(host_id) = key.name.parse::<HostId>() else { return };
        let is_foreign =
            |id| self.infra_env_ids.find(id).is_some_and(|infra_env| infra_env.namespace != key.namespace);
        self.hosts.remove(host_id, |id| !is_foreign(id));
    }

    /// Returns the InfraEnv of an infra-env, if it is in the namespace of the Agent and is not being deleted.
    fn live_infra_env(&self, key: &ObjectKey, id: InfraEnvId) -> Option<Arc<InfraEnv>> {
        let infra_env = self.infra_env_ids.find(id).filter(|owner| owner.namespace == key.namespace)?;
        let infra_env = self.infra_envs.get(&infra_env)?;
        infra_env.metadata.deletion_timestamp.is_none().then_some(infra_env)
    }

    /// Applies the spec to the host, and updates the Agent from the host.
    async fn synchronize(
        &self,
        key: &ObjectKey,
        agent: Arc<CachedAgent>,
        host: OwnedHost,
    ) -> Result<Next, ReconcileError> {
        let agent = self.claim(key, agent, &host).await?;
        let (sync, has_changed) = self.apply_spec(&agent.spec, &host).await?;
        let details = match has_changed {
            true => self.inventory.host_details(host.key).await?,
            false => Some(host.details),
        };
        let Some(details) = details else { return Ok(Next::After(SOON)) };
        let urls = self.inventory.host_urls(&details.record).await?;
        let spec = AppliedSpec { is_approved: agent.spec.approved, sync };
        let view = view(&details, &urls, &spec, agent.conditions(), self.inventory.clock().now())?;
        let changes = self.classify(key, &agent, &details, &view).await?;
        let agent = self.label(key, agent, &view, changes).await?;
        Ok(match (self.show(key, &agent, &view).await?, spec.sync) {
            (Some(delay), _) => Next::After(delay),
            (None, SpecSync::BackendError(_)) => Next::BackOff,
            (None, _) => Next::Wait,
        })
    }

    /// Writes the status if it differs from the cached status. If the last write was too recent, returns the time to
    /// wait.
    async fn show(
        &self,
        key: &ObjectKey,
        agent: &Arc<CachedAgent>,
        view: &AgentView,
    ) -> Result<Option<Duration>, ReconcileError> {
        if agent.shows(&view.status) {
            return Ok(None);
        }
        if let Some(delay) = self.status_times.delay(key) {
            return Ok(Some(delay));
        }
        let status = serde_json::to_value(&view.status).map_err(|error| {
            ReconcileError::Backend(format!("cannot write the status of an Agent as JSON: {error}"))
        })?;
        let patch = merge_patch::replacement(agent_status_members()?, status);
        self.writer.patch(&self.agents, agent.as_ref(), (Part::Status, json!({"status": patch}))).await?;
        self.status_times.note(key);
        Ok(None)
    }

    /// Deletes the host, and then removes the finalizer. If the machine still runs, it registers again.
    async fn delete(&self, key: &ObjectKey, agent: &Arc<CachedAgent>) -> Result<Next, ReconcileError> {
        let finalizers = agent.meta().finalizers.iter().flatten();
        let others: Vec<_> = finalizers.clone().filter(|finalizer| *finalizer != AGENT_FINALIZER).collect();
        if others.len() == finalizers.count() {
            return Ok(Next::Wait);
        }
        let mut hosts = self.host_keys(key, Some(agent));
        hosts.extend(self.unconfirmed_host(key, agent).await?);
        for host_key in hosts {
            self.inventory.deregister_host_if_present(host_key, None).await?;
        }
        let patch = (Part::Object, json!({"metadata": {"finalizers": others}}));
        self.writer.patch::<CachedAgent>(&self.agents, agent.as_ref(), patch).await?;
        Ok(Next::Wait)
    }

    /// Returns the host of an Agent whose InfraEnv this leader has not reconciled yet. The caller must delete this host
    /// too. Otherwise, the reconciliation of the InfraEnv would create the deleted Agent again.
    async fn unconfirmed_host(
        &self,
        key: &ObjectKey,
        agent: &CachedAgent,
    ) -> Result<Option<HostKey>, ReconcileError> {
        let Some(name) = agent.infra_env() else { return Ok(None) };
        let Some(infra_env) = self.infra_envs.get(&ObjectKey::new(&key.namespace, name)) else {
            return Ok(None);
        };
        let (Ok(infra_env_id), Ok(host_id)) =
            (record_id::of_infra_env(&infra_env.metadata), key.name.parse())
        else {
            return Ok(None);
        };
        if self.infra_env_ids.find(infra_env_id).is_some() {
            return Ok(None);
        }
        let owner = ResourceOwner::new("InfraEnv", &key.namespace, name);
        match self.inventory.infra_env(infra_env_id).await {
            Ok(record) if record.owner == Some(owner) => Ok(Some(HostKey { infra_env_id, host_id })),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the cached form of a newly written Agent.
    fn cached(&self, key: &ObjectKey, agent: Agent) -> Arc<CachedAgent> {
        self.agents.get(key).unwrap_or_else(|| Arc::new(CachedAgent::from_object(&agent)))
    }
}
