//! The id of the inventory record that belongs to a resource.

use inventory::id::InfraEnvId;
use kube::api::ObjectMeta;

use crate::crds::names::RECORD_ID_ANNOTATION;
use crate::errors::ReconcileError;

/// Returns the id of an InfraEnv's infra-env: the annotation, or the uid if the resource has no annotation yet. The
/// annotation survives a restore of the hub, which changes uids.
///
/// # Errors
///
/// Returns an error if the annotation is not a UUID.
pub(crate) fn of_infra_env(meta: &ObjectMeta) -> Result<InfraEnvId, ReconcileError> {
    let annotation = meta.annotations.as_ref().and_then(|annotations| annotations.get(RECORD_ID_ANNOTATION));
    let (place, text) = match annotation {
        Some(text) => (RECORD_ID_ANNOTATION, text.as_str()),
        None => ("metadata.uid", meta.uid.as_deref().unwrap_or_default()),
    };
    text.parse().map_err(|_| ReconcileError::Input(format!("{place} is {text:?}, which is not a UUID")))
}
