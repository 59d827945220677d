//! The controller of AgentClassifications. It counts the matching Agents, and handles deletion. The controller of
//! Agents sets the labels.

use std::sync::Arc;

use inventory::Inventory;
use serde_json::{Value, json};

use super::Controller;
use crate::cached_agent::CachedAgent;
use crate::caches::{Cache, CachedObject as _};
use crate::classification::Classification;
use crate::classification::counts::{Counts, QUERY_ERRORS, may_drop_finalizer};
use crate::conditions::{self, ConditionValue};
use crate::crds::names::AGENT_CLASSIFICATION_FINALIZER;
use crate::crds::{AgentClassification, AgentClassificationStatus};
use crate::errors::ReconcileError;
use crate::merge_patch;
use crate::object::ObjectKey;
use crate::queue::Next;
use crate::writer::{Part, Writer};

/// The controller of AgentClassifications.
#[derive(Debug)]
pub(crate) struct ClassificationController {
    pub(crate) inventory: Inventory,
    pub(crate) writer: Writer,
    pub(crate) agents: Cache<CachedAgent>,
    pub(crate) classifications: Cache<AgentClassification>,
}

impl Controller for ClassificationController {
    const NAME: &'static str = "agent_classification";

    async fn reconcile(&self, key: &ObjectKey) -> Next {
        let Some(object) = self.classifications.get(key) else { return Next::Wait };
        match self.try_reconcile(key, &object).await {
            Ok(()) => Next::Wait,
            Err(error) => {
                let next = error.next();
                let error = &error as &dyn std::error::Error;
                tracing::debug!(error, classification = %key, "could not reconcile");
                next
            }
        }
    }
}

impl ClassificationController {
    async fn try_reconcile(
        &self,
        key: &ObjectKey,
        object: &Arc<AgentClassification>,
    ) -> Result<(), ReconcileError> {
        let classification = Classification::from(object.as_ref());
        let agents = self.agents.in_namespace(&key.namespace);
        let labels = || agents.iter().filter_map(|(_, agent)| agent.meta().labels.as_ref());
        if classification.deleting {
            let others = classifications(&self.classifications, &key.namespace);
            if may_drop_finalizer(&classification, &others, labels()) {
                self.set_finalizers(object, |finalizers| {
                    finalizers.retain(|finalizer| finalizer != AGENT_CLASSIFICATION_FINALIZER);
                })
                .await?;
                return Ok(());
            }
        }
        let object = match has_finalizer(object) || classification.deleting {
            true => Arc::clone(object),
            false => {
                let add = |finalizers: &mut Vec<String>| {
                    finalizers.push(AGENT_CLASSIFICATION_FINALIZER.to_owned());
                };
                self.set_finalizers(object, add).await?
            }
        };
        self.show(&object, Counts::new(&classification, labels())).await
    }

    async fn set_finalizers(
        &self,
        object: &Arc<AgentClassification>,
        edit: impl FnOnce(&mut Vec<String>),
    ) -> Result<Arc<AgentClassification>, ReconcileError> {
        let mut finalizers = object.metadata.finalizers.clone().unwrap_or_default();
        let before = finalizers.len();
        edit(&mut finalizers);
        if finalizers.len() == before {
            return Ok(Arc::clone(object));
        }
        let patch = (Part::Object, json!({"metadata": {"finalizers": finalizers}}));
        Ok(Arc::new(self.writer.patch(&self.classifications, object.as_ref(), patch).await?))
    }

    /// Writes the status if it differs from the cached status.
    async fn show(&self, object: &Arc<AgentClassification>, counts: Counts) -> Result<(), ReconcileError> {
        let to_number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let before = object.status.clone().unwrap_or_default();
        let mut after = AgentClassificationStatus {
            matched_count: to_number(counts.matched),
            error_count: to_number(counts.errors),
            conditions: before.conditions.clone(),
        };
        let condition = counts.condition();
        let value = ConditionValue::new(condition.status, condition.reason, condition.message);
        conditions::set(&mut after.conditions, QUERY_ERRORS, value, self.inventory.clock().now());
        let to_value = |status: &AgentClassificationStatus| -> Result<Value, ReconcileError> {
            serde_json::to_value(status)
                .map_err(|error| ReconcileError::Backend(format!("cannot write a status as JSON: {error}")))
        };
        let Some(patch) = merge_patch::difference(&to_value(&before)?, &to_value(&after)?) else {
            return Ok(());
        };
        let patch = (Part::Status, json!({"status": patch}));
        self.writer.patch(&self.classifications, object.as_ref(), patch).await?;
        Ok(())
    }
}

/// Returns all classifications of a namespace.
pub(super) fn classifications(cache: &Cache<AgentClassification>, namespace: &str) -> Vec<Classification> {
    let objects = cache.in_namespace(namespace);
    objects.iter().map(|(_, object)| Classification::from(object.as_ref())).collect()
}

fn has_finalizer(object: &AgentClassification) -> bool {
    object.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == AGENT_CLASSIFICATION_FINALIZER)
}

impl From<&AgentClassification> for Classification {
    fn from(object: &AgentClassification) -> Self {
        Self {
            name: object.metadata.name.clone().unwrap_or_default(),
            label_key: object.spec.label_key.clone(),
            label_value: object.spec.label_value.clone(),
            query: object.spec.query.clone(),
            deleting: object.metadata.deletion_timestamp.is_some(),
        }
    }
}
