//! Secrets and ConfigMaps that resources refer to.
//!
//! Their metadata is watched, as far as they have the label for it. Their data is read when it is needed and never
//! cached. A controller remembers the version that it has applied, and does not read the data again until the watch
//! shows another version.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ObjectMeta, PartialObjectMeta};
use kube::{Resource, ResourceExt as _};
use serde_json::json;

use crate::caches::{Cache, CachedObject, pruned_meta};
use crate::crds::names::{BACKUP_LABEL, LABEL_TRUE, WATCH_LABEL};
use crate::errors::{ReconcileError, RequestError};
use crate::object::{ObjectKey, Version};
use crate::writer::{NamespacedKind, Writer, with_version};

/// The key of a pull secret in a Secret.
const PULL_SECRET: &str = ".dockerconfigjson";
/// The keys of mirrors of registries in a ConfigMap.
const REGISTRIES: &str = "registries.conf";
const REGISTRIES_AUTHORITY: &str = "ca-bundle.crt";

/// The metadata of a watched Secret or ConfigMap.
#[derive(Debug)]
pub(crate) struct Reference<K> {
    meta: ObjectMeta,
    kind: std::marker::PhantomData<fn() -> K>,
}

impl<K> CachedObject for Reference<K>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + Sync + 'static,
{
    type Kind = PartialObjectMeta<K>;

    fn from_object(object: PartialObjectMeta<K>) -> Self {
        Self { meta: pruned_meta(object.metadata), kind: std::marker::PhantomData }
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }
}

/// The version of an object that a controller has applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AppliedReference {
    /// The object.
    pub(crate) key: ObjectKey,
    /// Its version.
    pub(crate) version: Version,
}

impl AppliedReference {
    /// Returns `true` if the watch shows that the object still has this version.
    pub(crate) fn is_current<K>(&self, cache: &Cache<Reference<K>>, key: &ObjectKey) -> bool
    where
        K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + Sync + 'static,
    {
        let shown = cache.get(key).map(|object| Version::from_meta(object.meta()));
        self.key == *key && shown.is_some_and(|shown| shown.is_at_most(&self.version))
    }
}

/// A pull secret, and the version of its Secret.
#[derive(Debug)]
pub(crate) struct PullSecret {
    /// The text.
    pub(crate) text: inventory::Secret,
    /// The Secret.
    pub(crate) applied: AppliedReference,
}

/// Reads a pull secret, and labels its Secret so that its changes are watched and it is part of the hub's backup.
///
/// # Errors
///
/// Returns an error if the Secret or its key does not exist, or if a request fails.
pub(crate) async fn pull_secret(writer: &Writer, key: &ObjectKey) -> Result<PullSecret, ReconcileError> {
    let name = &key.name;
    let secret: Option<Secret> = writer.get(key).await?;
    let Some(secret) = secret else {
        return Err(ReconcileError::Reference(format!(
            "failed to find secret {name}: failed to get secret {key} from API: secrets {name:?} not found"
        )));
    };
    let data: &BTreeMap<String, ByteString> = secret.data.as_ref().unwrap_or(const { &BTreeMap::new() });
    let Some(ByteString(bytes)) = data.get(PULL_SECRET) else {
        return Err(ReconcileError::Reference(format!("secret {name} did not contain key {PULL_SECRET}")));
    };
    let text = String::from_utf8(bytes.clone())
        .map_err(|_| ReconcileError::Reference(format!("key {PULL_SECRET} of secret {name} is not UTF-8")))?;
    let version = labelled(writer, &secret).await?;
    let applied = AppliedReference { key: key.clone(), version };
    Ok(PullSecret { text: inventory::Secret::new(text), applied })
}

/// Mirrors of container registries, and the version of their ConfigMap.
#[derive(Debug)]
pub(crate) struct MirrorConfig {
    /// The text of `registries.conf`. Empty: no mirrors.
    pub(crate) registries: String,
    /// The authorities that signed the certificates of the mirrors, in PEM.
    pub(crate) certificates: Option<String>,
    /// The ConfigMap.
    pub(crate) applied: AppliedReference,
}

/// Reads mirrors of container registries, and labels their ConfigMap as [`pull_secret`] labels a Secret.
///
/// # Errors
///
/// Returns an error if the ConfigMap or its key `registries.conf` does not exist, or if a request fails.
pub(crate) async fn mirror_config(writer: &Writer, key: &ObjectKey) -> Result<MirrorConfig, ReconcileError> {
    let name = &key.name;
    let config_map: Option<ConfigMap> = writer.get(key).await?;
    let Some(mut config_map) = config_map else {
        return Err(ReconcileError::Reference(format!(
            "failed to find configmap {name}: failed to get configmap {key} from API: configmaps {name:?} not found"
        )));
    };
    let mut data = config_map.data.take().unwrap_or_default();
    let Some(registries) = data.remove(REGISTRIES) else {
        return Err(ReconcileError::Reference(format!("configmap {name} did not contain key {REGISTRIES}")));
    };
    let certificates = data.remove(REGISTRIES_AUTHORITY);
    let version = labelled(writer, &config_map).await?;
    let applied = AppliedReference { key: key.clone(), version };
    Ok(MirrorConfig { registries, certificates, applied })
}

/// Adds the missing labels to an object. Returns its version afterwards.
async fn labelled<K>(writer: &Writer, object: &K) -> Result<Version, RequestError>
where
    K: NamespacedKind,
{
    let version = Version::from_meta(object.meta());
    let is_labelled = |label: &str| object.labels().get(label).is_some_and(|value| value == LABEL_TRUE);
    if is_labelled(WATCH_LABEL) && is_labelled(BACKUP_LABEL) {
        return Ok(version);
    }
    let Some(key) = ObjectKey::from_meta(object.meta()) else { return Ok(version) };
    let labels = json!({"metadata": {"labels": {WATCH_LABEL: LABEL_TRUE, BACKUP_LABEL: LABEL_TRUE}}});
    let patch = with_version(labels, &version);
    let object: PartialObjectMeta<K> = writer.patch_meta(&key, patch).await?;
    Ok(Version::from_meta(&object.metadata))
}
