//! Secrets and ConfigMaps that resources refer to.
//!
//! The metadata of labelled Secrets and ConfigMaps is watched. Their data is read on demand and never cached. A
//! controller remembers the version that it has applied, which the database contains. It reads the data again only if
//! the watch shows another version. InfraEnvs with the same Secret or ConfigMap read it once.

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

/// The key of the pull secret in a Secret.
const PULL_SECRET: &str = ".dockerconfigjson";
/// The key of the mirror configuration in a ConfigMap.
const REGISTRIES: &str = "registries.conf";
const REGISTRIES_AUTHORITY: &str = "ca-bundle.crt";

/// The metadata of a watched Secret or ConfigMap, without its data.
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

    fn from_object(object: &PartialObjectMeta<K>) -> Self {
        Self { meta: pruned_meta(&object.metadata), kind: std::marker::PhantomData }
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }
}

/// The object and version that a controller has applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AppliedReference {
    pub(crate) key: ObjectKey,
    pub(crate) version: Version,
}

impl AppliedReference {
    /// Returns `true` if `key` is this object, and the watch shows no newer version of it.
    pub(crate) fn is_current<K>(&self, cache: &Cache<Reference<K>>, key: &ObjectKey) -> bool
    where
        K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + Sync + 'static,
    {
        let cached = cache.get(key).map(|object| Version::from_meta(object.meta()));
        self.key == *key && cached.is_some_and(|cached| cached.is_at_most(&self.version))
    }
}

/// A pull secret, and the version of the Secret that contains it.
#[derive(Debug)]
pub(crate) struct PullSecret {
    pub(crate) text: inventory::Secret,
    pub(crate) applied: AppliedReference,
}

/// Reads a pull secret. Labels its Secret, so that changes are watched and the Secret is part of the hub's backup.
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

/// The mirrors of container registries, and the version of the ConfigMap that contains them.
#[derive(Debug)]
pub(crate) struct MirrorConfig {
    /// The content of `registries.conf`. Empty without mirrors.
    pub(crate) registries: String,
    /// CA certificates of the mirrors, in PEM.
    pub(crate) certificates: Option<String>,
    pub(crate) applied: AppliedReference,
}

/// Reads the mirrors of container registries. Labels their ConfigMap, as [`pull_secret`] labels a Secret.
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

/// Adds the missing labels to an object. Returns the resulting version.
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
