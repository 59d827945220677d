//! The form in which the cache stores Agents: without the inventory and other large texts.

use kube::api::ObjectMeta;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::cached_condition::CachedCondition;
use crate::caches::{CachedObject, pruned_meta};
use crate::crds::names::{AGENT_INVENTORY_ANNOTATION, INFRA_ENV_LABEL};
use crate::crds::{Agent, AgentInstallCondition, AgentSpec, AgentStatus};

/// Maximum length of an annotation that the cache stores as text. For a longer annotation, it stores only a digest,
/// which is enough to detect a change.
const MAX_ANNOTATION: usize = 128;

/// An Agent without its large parts.
#[derive(Debug)]
pub(crate) struct CachedAgent {
    meta: ObjectMeta,
    pub(crate) spec: AgentSpec,
    conditions: Box<[CachedCondition]>,
    status_digest: Option<[u8; 32]>,
}

impl CachedObject for CachedAgent {
    type Kind = Agent;

    fn from_object(object: &Agent) -> Self {
        let mut meta = pruned_meta(&object.metadata);
        for (key, text) in meta.annotations.iter_mut().flatten() {
            *text = cached_text(key, text);
        }
        let status_digest = object.status.as_ref().and_then(digest);
        let conditions = object.status.iter().flat_map(|status| &status.conditions);
        let conditions = conditions.map(CachedCondition::from).collect();
        Self { meta, spec: object.spec.clone(), conditions, status_digest }
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }
}

impl CachedAgent {
    /// Returns the conditions of the status. Those of [`CONDITION_TYPES`](crate::projection::CONDITION_TYPES) may have no
    /// reason and no message.
    pub(crate) fn conditions(&self) -> Vec<AgentInstallCondition> {
        self.conditions.iter().map(AgentInstallCondition::from).collect()
    }

    /// Returns `true` if the Agent already has this status. Differences in measurements are ignored.
    pub(crate) fn shows(&self, status: &AgentStatus) -> bool {
        self.status_digest.is_some() && self.status_digest == digest(status)
    }

    /// Returns `true` if the Agent already has this annotation. Differences in measurements of an inventory are
    /// ignored.
    pub(crate) fn has_annotation(&self, key: &str, text: &str) -> bool {
        let annotation = self.meta.annotations.as_ref().and_then(|annotations| annotations.get(key));
        annotation.is_some_and(|annotation| *annotation == cached_text(key, text))
    }

    /// Returns the value of the label with this key.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.meta.labels.as_ref()?.get(key).map(String::as_str)
    }

    /// Returns the name of the Agent's InfraEnv, from its label.
    pub(crate) fn infra_env(&self) -> Option<&str> {
        self.label(INFRA_ENV_LABEL)
    }
}

fn cached_text(key: &str, text: &str) -> String {
    if key == AGENT_INVENTORY_ANNOTATION
        && let Ok(mut inventory) = serde_json::from_str::<Value>(text)
    {
        remove_measurement(&mut inventory, "memory", "usable_bytes");
        return hex_digest(&inventory.to_string());
    }
    if text.len() <= MAX_ANNOTATION {
        return text.to_owned();
    }
    hex_digest(text)
}

fn hex_digest(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().fold("sha256:".to_owned(), |hex, byte| format!("{hex}{byte:02x}"))
}

fn digest(status: &AgentStatus) -> Option<[u8; 32]> {
    let mut status = serde_json::to_value(status).ok()?;
    if let Some(inventory) = status.get_mut("inventory") {
        remove_measurement(inventory, "memory", "usableBytes");
    }
    Some(Sha256::digest(status.to_string()).into())
}

/// Removes a measurement from an inventory. Measurements differ between reports of an unchanged machine, so a changed
/// measurement alone must not cause a write.
fn remove_measurement(inventory: &mut Value, group: &str, name: &str) {
    if let Some(group) = inventory.get_mut(group).and_then(Value::as_object_mut) {
        group.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn agent(usable: i64, physical: i64) -> Agent {
        let report = json!({"memory": {"physical_bytes": physical, "usable_bytes": usable}});
        let mut status = AgentStatus::default();
        status.inventory.memory.physical_bytes = physical;
        status.inventory.memory.usable_bytes = usable;
        let annotations = [(AGENT_INVENTORY_ANNOTATION.to_owned(), report.to_string())];
        let metadata = ObjectMeta { annotations: Some(annotations.into()), ..ObjectMeta::default() };
        Agent { metadata, spec: AgentSpec::default(), status: Some(status) }
    }

    fn shows(cached: &CachedAgent, agent: &Agent) -> [bool; 2] {
        let annotations = agent.metadata.annotations.as_ref().unwrap();
        let text = &annotations[AGENT_INVENTORY_ANNOTATION];
        let status = agent.status.as_ref().unwrap();
        [cached.shows(status), cached.has_annotation(AGENT_INVENTORY_ANNOTATION, text)]
    }

    #[test]
    fn usable_memory_is_not_a_difference() {
        let cached = CachedAgent::from_object(&agent(7, 8));
        assert_eq!(shows(&cached, &agent(6, 8)), [true, true]);
        assert_eq!(shows(&cached, &agent(7, 16)), [false, false]);
    }
}
