//! The controller of InfraEnvs. It makes the infra-env in the inventory equal to the resource, and shows the image in
//! the status.

mod deletion;
mod fault_events;
mod faults;
mod inputs;

pub(crate) use inputs::params;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use inventory::id::InfraEnvId;
use inventory::infra_env::{InfraEnvRecord, ResourceOwner};
use inventory::service::infra_envs::{ImageUrls, IpxeScript};
use inventory::{ErrorKind, Inventory};
use serde_json::{Value, json};

use super::Controller;
use crate::bridge::{HostBridge, InfraEnvIndex};
use crate::crds::InfraEnv;
use crate::crds::names::{INFRA_ENV_FINALIZER, RECORD_ID_ANNOTATION};
use crate::errors::ReconcileError;
use crate::events::EventRecorder;
use crate::mapping::InfraEnvCaches;
use crate::merge_patch;
use crate::object::ObjectKey;
use crate::projection::infra_env::{ImageState, status};
use crate::queue::Next;
use crate::record_id;
use crate::references::AppliedReference;
use crate::writer::{Part, Writer};

/// The controller of InfraEnvs.
#[derive(Debug)]
pub(crate) struct InfraEnvController {
    pub(crate) inventory: Inventory,
    pub(crate) writer: Writer,
    pub(crate) events: EventRecorder,
    pub(crate) caches: InfraEnvCaches,
    pub(crate) bridge: HostBridge,
    pub(crate) index: InfraEnvIndex,
    pub(crate) applied: AppliedReferences,
}

/// The applied versions of Secrets and ConfigMaps, by InfraEnv.
#[derive(Debug, Default)]
pub(crate) struct AppliedReferences(Mutex<HashMap<ObjectKey, Applied>>);

#[derive(Clone, Debug)]
struct Applied {
    pull_secret: AppliedReference,
    mirrors: Option<AppliedReference>,
}

impl AppliedReferences {
    fn find(&self, key: &ObjectKey) -> Option<Applied> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Returns an InfraEnv whose applied references satisfy a condition, and the references.
    fn find_by(&self, condition: impl Fn(&Applied) -> bool) -> Option<(ObjectKey, Applied)> {
        let applied = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (key, applied) = applied.iter().find(|(_, applied)| condition(applied))?;
        Some((key.clone(), applied.clone()))
    }

    fn insert(&self, key: &ObjectKey, applied: Applied) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), applied);
    }

    fn remove(&self, key: &ObjectKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

impl Controller for InfraEnvController {
    const NAME: &'static str = "infra_env";

    async fn reconcile(&self, key: &ObjectKey) -> Next {
        let Some(object) = self.caches.infra_envs.get(key) else {
            self.applied.remove(key);
            return Next::Wait;
        };
        match self.try_reconcile(key, &object).await {
            Ok(next) => next,
            Err(error) => {
                let next = error.next();
                let error = &error as &dyn std::error::Error;
                match next {
                    Next::BackOff => {
                        tracing::warn!(error, infra_env = %key, "could not reconcile, will retry")
                    }
                    _ => tracing::debug!(error, infra_env = %key, "could not reconcile"),
                }
                next
            }
        }
    }
}

impl InfraEnvController {
    async fn try_reconcile(&self, key: &ObjectKey, object: &Arc<InfraEnv>) -> Result<Next, ReconcileError> {
        if object.metadata.deletion_timestamp.is_some() {
            return self.delete(key, object).await;
        }
        let (object, image) = match self.claim(object).await {
            Ok(object) => {
                let image = self.image(key, &object).await;
                (object, image)
            }
            Err(error) => (Arc::clone(object), Err(error)),
        };
        let (image, next) = match image {
            Ok(image) => (image, Next::Wait),
            Err(error @ (ReconcileError::Input(_) | ReconcileError::Networks { .. })) => {
                let image = ImageState::InvalidInput(error.to_string());
                // Create the events before writing the condition: if the process ends between the two writes, the next
                // attempt repeats both.
                if !image.is_shown(object.status.as_ref()) {
                    self.report(key, &object, &error).await;
                }
                (image, Next::Wait)
            }
            // No watch event announces a Secret without the label, so the controller must try again.
            Err(ReconcileError::Reference(cause) | ReconcileError::Backend(cause)) => {
                (ImageState::InternalError(cause), Next::BackOff)
            }
            Err(error @ ReconcileError::Request(_)) => return Err(error),
        };
        self.show(key, &object, &image).await?;
        Ok(next)
    }

    /// Adds the finalizer and the id of the record in one patch. So every infra-env belongs to a resource that contains
    /// its id.
    async fn claim(&self, object: &Arc<InfraEnv>) -> Result<Arc<InfraEnv>, ReconcileError> {
        let meta = &object.metadata;
        let id = record_id::of_infra_env(meta)?;
        let has_id = meta
            .annotations
            .as_ref()
            .is_some_and(|annotations| annotations.contains_key(RECORD_ID_ANNOTATION));
        if has_id && has_finalizer(object) {
            return Ok(Arc::clone(object));
        }
        let mut finalizers = meta.finalizers.clone().unwrap_or_default();
        if !has_finalizer(object) {
            finalizers.push(INFRA_ENV_FINALIZER.to_owned());
        }
        let annotations = json!({RECORD_ID_ANNOTATION: id.to_string()});
        let metadata = json!({"finalizers": finalizers, "annotations": annotations});
        let patch = (Part::Object, json!({"metadata": metadata}));
        Ok(Arc::new(self.writer.patch(&self.caches.infra_envs, object.as_ref(), patch).await?))
    }

    /// Makes the infra-env equal to the resource, and returns the state of its image.
    async fn image(&self, key: &ObjectKey, object: &InfraEnv) -> Result<ImageState, ReconcileError> {
        let id = record_id::of_infra_env(&object.metadata)?;
        let stored = self.stored(id, key).await?;
        if stored.is_some() {
            // The hosts of the infra-env need Agents even while the resource has a fault.
            self.confirm(id, key).await?;
        }
        if let Some(cluster) = &object.spec.cluster_ref {
            return Ok(ImageState::MissingCluster(format!(
                "failed to get clusterDeployment with name {} in namespace {}: this service does not support \
                 ClusterDeployments yet",
                cluster.name, cluster.namespace
            )));
        }
        let inputs = self.inputs(key, object, stored).await?;
        let ensured = self.inventory.ensure_infra_env(id, inputs.definition, None).await;
        let record = match ensured {
            Ok(ensured) => ensured.into_inner(),
            Err(error) => {
                let error = faults::with_config_names(error, &inputs.config_names);
                if matches!(error, ReconcileError::Backend(_)) {
                    // The infra-env may have changed despite the error, so its values must not be reused.
                    self.applied.remove(key);
                }
                return Err(error);
            }
        };
        self.applied.insert(key, inputs.applied);
        self.confirm(id, key).await?;
        let urls = self.inventory.image_urls(&record).await?;
        Ok(available(object, &record, urls))
    }

    /// Records that an InfraEnv owns an infra-env. The first time, adds the Agents of all its hosts to the queue.
    /// Earlier changes of the hosts may have been missed, and a recreated InfraEnv already has hosts.
    async fn confirm(&self, id: InfraEnvId, key: &ObjectKey) -> Result<(), ReconcileError> {
        if self.index.find(id).as_ref() == Some(key) {
            return Ok(());
        }
        self.index.confirm(id, key);
        self.bridge.push_all(id, key).await.map_err(|error| {
            self.index.remove(id);
            error.into()
        })
    }

    /// Returns the infra-env with this id, or `None` if it does not exist. The infra-env must belong to this InfraEnv.
    async fn stored(
        &self,
        id: InfraEnvId,
        key: &ObjectKey,
    ) -> Result<Option<InfraEnvRecord>, ReconcileError> {
        match self.inventory.infra_env(id).await {
            Ok(record) if record.owner == Some(owner(key)) => Ok(Some(record)),
            // A forged annotation must not take over the infra-env of another owner.
            Ok(record) => Err(ReconcileError::Input(match record.owner {
                Some(owner) => format!("infra-env {id} is defined by {owner}"),
                None => format!("infra-env {id} was created with the REST API"),
            })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the status if it differs from the cached status.
    async fn show(
        &self,
        key: &ObjectKey,
        object: &Arc<InfraEnv>,
        image: &ImageState,
    ) -> Result<(), ReconcileError> {
        let now = self.inventory.clock().now();
        let after = status(object.status.as_ref(), &key.name, image, now);
        let to_value = |status| {
            serde_json::to_value(status).map_err(|error| {
                ReconcileError::Backend(format!("cannot write the status of InfraEnv {key} as JSON: {error}"))
            })
        };
        let before = object.status.as_ref().map_or(Ok(Value::Null), to_value)?;
        let Some(patch) = merge_patch::difference(&before, &to_value(&after)?) else { return Ok(()) };
        let patch = (Part::Status, json!({"status": patch}));
        self.writer.patch(&self.caches.infra_envs, object.as_ref(), patch).await?;
        Ok(())
    }
}

fn owner(key: &ObjectKey) -> ResourceOwner {
    ResourceOwner::new("InfraEnv", &key.namespace, &key.name)
}

fn has_finalizer(object: &InfraEnv) -> bool {
    object.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == INFRA_ENV_FINALIZER)
}

fn available(object: &InfraEnv, record: &InfraEnvRecord, urls: ImageUrls) -> ImageState {
    let script = match object.spec.ipxe_script_type.as_deref() {
        Some("BootOrderControl") => IpxeScript::BootOrderControl,
        _ => IpxeScript::DiscoveryImageAlways,
    };
    let has_networks = !record.image.static_network_config.is_empty();
    ImageState::Available { urls: Box::new(urls), script, has_networks }
}
