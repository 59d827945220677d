//! The labels, annotations and owner of an Agent.

use std::sync::Arc;

use inventory::service::HostDetails;
use kube::api::ObjectMeta;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::creation::{initial, is_auto_approving, owner_reference};
use super::{AgentController, OwnedHost};
use crate::cached_agent::CachedAgent;
use crate::caches::CachedObject as _;
use crate::classification::labels::{LabelChanges, changes};
use crate::controllers::classification::classifications;
use crate::crds::InfraEnv;
use crate::crds::names::{AGENT_FINALIZER, AUTO_APPROVED_ANNOTATION, LABEL_TRUE};
use crate::errors::ReconcileError;
use crate::merge_patch;
use crate::object::ObjectKey;
use crate::projection::agent::AgentView;
use crate::writer::Part;

impl AgentController {
    /// Adds a missing finalizer or owner to an Agent. Resets the Agent if its machine has booted the image of another
    /// InfraEnv. Approves the Agent once if its InfraEnv approves Agents automatically.
    pub(super) async fn claim(
        &self,
        key: &ObjectKey,
        agent: Arc<CachedAgent>,
        host: &OwnedHost,
    ) -> Result<Arc<CachedAgent>, ReconcileError> {
        let infra_env = &host.infra_env;
        let patch = match agent.infra_env() == infra_env.metadata.name.as_deref() {
            true => missing(&agent, infra_env),
            false => Some(reset(&agent, infra_env)?),
        };
        let Some(patch) = patch else { return Ok(agent) };
        let object = self.writer.patch(&self.agents, agent.as_ref(), (Part::Object, patch)).await?;
        Ok(self.cached(key, object))
    }

    /// Returns the changes of the labels that AgentClassifications set on the Agent.
    pub(super) async fn classify(
        &self,
        key: &ObjectKey,
        agent: &CachedAgent,
        host: &HostDetails,
        view: &AgentView,
    ) -> Result<LabelChanges, ReconcileError> {
        let classifications = classifications(&self.classifications, &key.namespace);
        if classifications.is_empty() {
            return Ok(LabelChanges::new());
        }
        let labels = agent.meta().labels.clone().unwrap_or_default();
        let inventory = match host.inventory_json().is_empty() {
            true => None,
            false => Some(to_value(&view.status.inventory)?),
        };
        let queries = Arc::clone(&self.queries);
        // A malicious query may take some time, so the queries run on a thread that may block.
        let evaluate = move || changes(&labels, &classifications, inventory.as_ref(), &queries);
        let evaluated = tokio::task::spawn_blocking(evaluate).await;
        evaluated
            .map_err(|error| ReconcileError::Backend(format!("the evaluation of a query failed: {error}")))
    }

    /// Writes the labels and annotations that differ. All others stay unchanged.
    pub(super) async fn label(
        &self,
        key: &ObjectKey,
        agent: Arc<CachedAgent>,
        view: &AgentView,
        classified: LabelChanges,
    ) -> Result<Arc<CachedAgent>, ReconcileError> {
        let labels = view.labels.iter().filter(|(key, value)| agent.label(key) != Some(value));
        let mut labels: Map<_, _> = labels.map(|(key, value)| (key.clone(), json!(value))).collect();
        labels.extend(classified.into_iter().map(|(key, value)| (key, json!(value))));
        let annotations = view.annotations.iter().filter(|(key, text)| !agent.has_annotation(key, text));
        let annotations: Map<_, _> = annotations.map(|(key, text)| (key.clone(), json!(text))).collect();
        if labels.is_empty() && annotations.is_empty() {
            return Ok(agent);
        }
        let patch = json!({"metadata": {"labels": labels, "annotations": annotations}});
        let object = self.writer.patch(&self.agents, agent.as_ref(), (Part::Object, patch)).await?;
        Ok(self.cached(key, object))
    }
}

fn missing(agent: &CachedAgent, infra_env: &InfraEnv) -> Option<Value> {
    let meta = agent.meta();
    let mut metadata = Map::new();
    let mut finalizers = meta.finalizers.clone().unwrap_or_default();
    if !finalizers.iter().any(|finalizer| finalizer == AGENT_FINALIZER) {
        finalizers.push(AGENT_FINALIZER.to_owned());
        metadata.insert("finalizers".to_owned(), json!(finalizers));
    }
    let mut owners = meta.owner_references.clone().unwrap_or_default();
    if !owners.iter().any(|owner| Some(&owner.uid) == infra_env.metadata.uid.as_ref()) {
        owners.push(owner_reference(infra_env));
        metadata.insert("ownerReferences".to_owned(), json!(owners));
    }
    let mut patch = Map::new();
    if is_auto_approving(infra_env)
        && !agent.spec.approved
        && !agent.has_annotation(AUTO_APPROVED_ANNOTATION, LABEL_TRUE)
    {
        metadata.insert("annotations".to_owned(), json!({AUTO_APPROVED_ANNOTATION: LABEL_TRUE}));
        patch.insert("spec".to_owned(), json!({"approved": true}));
    }
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), Value::Object(metadata));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Returns the patch that resets the Agent to a new Agent of this InfraEnv. Annotations of other programs stay.
fn reset(agent: &CachedAgent, infra_env: &InfraEnv) -> Result<Value, ReconcileError> {
    let (ObjectMeta { labels, annotations, owner_references, .. }, spec) = initial(infra_env);
    let before = json!({"labels": agent.meta().labels, "spec": to_value(&agent.spec)?});
    let after = json!({"labels": labels, "spec": to_value(&spec)?});
    let mut patch = merge_patch::difference(&before, &after).unwrap_or_else(|| json!({}));
    let labels = patch.get_mut("labels").map(Value::take);
    let spec = patch.get_mut("spec").map(Value::take);
    Ok(json!({
        "metadata": {
            "labels": labels.unwrap_or_else(|| json!({})),
            "annotations": annotations,
            "ownerReferences": owner_references,
        },
        "spec": spec.unwrap_or_else(|| json!({})),
    }))
}

fn to_value(value: &impl Serialize) -> Result<Value, ReconcileError> {
    serde_json::to_value(value)
        .map_err(|error| ReconcileError::Backend(format!("cannot write an Agent as JSON: {error}")))
}
