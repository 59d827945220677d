//! Restores the host of an Agent after the loss of the database.

use assisted::host::{HostKind, HostRole};
use chrono::{DateTime, Utc};
use inventory::ErrorKind;
use inventory::host::RestoredHost;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::AgentController;
use crate::cached_agent::CachedAgent;
use crate::crds::{Agent, names};
use crate::errors::ReconcileError;
use crate::object::ObjectKey;

impl AgentController {
    /// Recreates the host from the data recorded in its Agent. Returns `true` if the host exists afterwards. Does
    /// nothing if the InfraEnv or its infra-env does not exist.
    pub(super) async fn restore(
        &self,
        key: &ObjectKey,
        cached: &CachedAgent,
    ) -> Result<bool, ReconcileError> {
        let keys = self.host_keys(key, Some(cached));
        let Some(host_key) =
            keys.into_iter().find(|host| self.live_infra_env(key, host.infra_env_id).is_some())
        else {
            return Ok(false);
        };
        // The cache does not contain large annotations.
        let Some(agent) = self.writer.get::<Agent>(key).await? else { return Ok(false) };
        // The cached Agent may be outdated: the previous leader may have deleted the host and the Agent.
        if agent.metadata.deletion_timestamp.is_some() {
            return Ok(false);
        }
        let restored =
            self.inventory.restore_host(host_key, recorded(&agent, self.inventory.clock().now()), None).await;
        match restored {
            Ok(_) => {
                tracing::info!(agent = %key, "host restored from its Agent");
                Ok(true)
            }
            // The machine has registered in the meantime.
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(true),
            // The infra-env is not restored yet.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the recorded data of an Agent's host. Unknown values, written by other versions, are omitted.
fn recorded(agent: &Agent, now: DateTime<Utc>) -> RestoredHost {
    let text = |name: &str| {
        let text = agent.metadata.annotations.as_ref()?.get(name)?;
        (!text.is_empty()).then(|| text.clone())
    };
    let created = agent.metadata.creation_timestamp.as_ref();
    let registered_at = created.and_then(|time| time.0.to_string().parse().ok());
    RestoredHost {
        cluster_id: None,
        kind: HostKind::Host,
        status: text(names::AGENT_STATE_ANNOTATION).and_then(known),
        role: text(names::AGENT_ROLE_ANNOTATION).and_then(known).unwrap_or(HostRole::AutoAssign),
        stage: text(names::AGENT_CURRENT_STAGE_ANNOTATION).and_then(known),
        inventory: text(names::AGENT_INVENTORY_ANNOTATION),
        approved: agent.spec.approved,
        registered_at: registered_at.unwrap_or(now),
    }
}

fn known<T: DeserializeOwned>(name: String) -> Option<T> {
    serde_json::from_value(Value::String(name)).ok()
}
