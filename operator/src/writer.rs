//! Sends all writes to the Kubernetes API.
//!
//! A write requires that this replica is the leader, and that the object is unchanged since the controller read it. The
//! result is put into the cache. All requests share one rate limit.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use kube::api::{PartialObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde_json::{Value, json};

use crate::caches::{Cache, CachedObject, Origin};
use crate::errors::RequestError;
use crate::leader::Leadership;
use crate::object::{ObjectKey, Version};
use crate::requests::{RateLimit, RequestCounts, Verb};

/// Maximum time of one request.
const MAX_TIME: Duration = Duration::from_secs(10);

/// The part of an object to patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The metadata and the spec.
    Object,
    /// The status subresource.
    Status,
}

/// A sender of requests to the Kubernetes API. Clones share the rate limit.
#[derive(Clone)]
pub(crate) struct Writer {
    client: Client,
    leadership: Leadership,
    rate: Arc<RateLimit>,
    counts: RequestCounts,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl Writer {
    /// Creates a writer for the current term of leadership.
    #[must_use]
    pub(crate) fn new(
        client: Client,
        leadership: Leadership,
        requests_per_second: u32,
        counts: RequestCounts,
    ) -> Self {
        Self { client, leadership, rate: Arc::new(RateLimit::new(requests_per_second)), counts }
    }

    /// Reads an object. Returns `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the request fails.
    pub(crate) async fn get<K>(&self, key: &ObjectKey) -> Result<Option<K>, RequestError>
    where
        K: NamespacedKind,
    {
        let api = self.api::<K>(&key.namespace);
        match self.send::<K, _>(Verb::Get, api.get(&key.name)).await {
            Ok(object) => Ok(Some(object)),
            Err(RequestError::Gone) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Applies a merge patch to an object if it still has the version that the caller read. Returns the new state.
    ///
    /// # Errors
    ///
    /// Returns [`RequestError::Conflict`] if the object has changed, or an error if the request fails.
    pub(crate) async fn patch<O>(
        &self,
        cache: &Cache<O>,
        cached: &O,
        (part, patch): (Part, Value),
    ) -> Result<O::Kind, RequestError>
    where
        O: CachedObject<Kind: NamespacedKind>,
    {
        let meta = cached.meta();
        let key = ObjectKey::from_meta(meta).ok_or(RequestError::Gone)?;
        let patch = with_version(patch, &Version::from_meta(meta));
        let object = match self.patch_part::<O::Kind>(&key, (part, patch)).await {
            // The cache may still contain the deleted object, if the response to an earlier write arrived after the
            // watch reported the deletion.
            Err(RequestError::Gone) => {
                cache.remove(&key, Version::from_meta(meta));
                return Err(RequestError::Gone);
            }
            Err(RequestError::Conflict) => {
                self.refresh(cache, &key).await;
                return Err(RequestError::Conflict);
            }
            result => result?,
        };
        // The API server removes a deleted object together with its last finalizer, so the object no longer exists.
        let is_gone = object.meta().deletion_timestamp.is_some()
            && object.meta().finalizers.as_ref().is_none_or(Vec::is_empty);
        if is_gone {
            cache.remove(&key, Version::from_meta(object.meta()));
        } else {
            cache.apply(&object, Origin::OwnWrite);
        }
        Ok(object)
    }

    /// Applies a merge patch to the metadata of an uncached object, and returns the new metadata. The patch contains
    /// the version that the caller read.
    ///
    /// # Errors
    ///
    /// Returns an error if the request fails.
    pub(crate) async fn patch_meta<K>(
        &self,
        key: &ObjectKey,
        patch: Value,
    ) -> Result<PartialObjectMeta<K>, RequestError>
    where
        K: NamespacedKind,
    {
        let (api, params) = (self.api::<K>(&key.namespace), PatchParams::default());
        let patch = Patch::Merge(&patch);
        self.send::<K, _>(Verb::Patch, api.patch_metadata(&key.name, &params, &patch)).await
    }

    async fn patch_part<K>(&self, key: &ObjectKey, (part, patch): (Part, Value)) -> Result<K, RequestError>
    where
        K: NamespacedKind,
    {
        let api = self.api::<K>(&key.namespace);
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        match part {
            Part::Object => self.send::<K, _>(Verb::Patch, api.patch(&key.name, &params, &patch)).await,
            Part::Status => {
                self.send::<K, _>(Verb::PatchStatus, api.patch_status(&key.name, &params, &patch)).await
            }
        }
    }

    /// Creates an object, and returns it as the API server stored it.
    ///
    /// # Errors
    ///
    /// Returns [`RequestError::Conflict`] if the object exists, or an error if the request fails.
    pub(crate) async fn create<O>(&self, cache: &Cache<O>, object: &O::Kind) -> Result<O::Kind, RequestError>
    where
        O: CachedObject<Kind: NamespacedKind + Serialize>,
    {
        let namespace = object.meta().namespace.as_deref().unwrap_or_default();
        let (api, params) = (self.api::<O::Kind>(namespace), PostParams::default());
        let result = self.send::<O::Kind, _>(Verb::Create, api.create(&params, object)).await;
        if let (Err(RequestError::Conflict), Some(key)) = (&result, ObjectKey::from_meta(object.meta())) {
            self.refresh(cache, &key).await;
        }
        let created = result?;
        cache.apply(&created, Origin::OwnWrite);
        Ok(created)
    }

    /// Creates an uncached object, unless an object with its name exists.
    ///
    /// # Errors
    ///
    /// Returns an error if the request fails.
    pub(crate) async fn create_if_absent<K>(&self, object: &K) -> Result<(), RequestError>
    where
        K: NamespacedKind + Serialize,
    {
        let api = self.api::<K>(object.meta().namespace.as_deref().unwrap_or_default());
        match self.send::<K, _>(Verb::Create, api.create(&PostParams::default(), object)).await {
            Ok(_) | Err(RequestError::Conflict) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Puts the current state of an object into the cache after a conflict, because the watch may be interrupted.
    async fn refresh<O>(&self, cache: &Cache<O>, key: &ObjectKey)
    where
        O: CachedObject<Kind: NamespacedKind>,
    {
        if let Ok(Some(object)) = self.get::<O::Kind>(key).await {
            cache.apply(&object, Origin::Watch);
        }
    }

    fn api<K: NamespacedKind>(&self, namespace: &str) -> Api<K> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Waits for the rate limit, and then sends a request.
    ///
    /// # Errors
    ///
    /// Returns an error if this replica may not write, or if the request fails.
    pub(crate) async fn send<K: Resource<DynamicType = ()>, T>(
        &self,
        verb: Verb,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, RequestError> {
        self.rate.acquire().await;
        // Checked after the wait, because the wait may be long.
        if verb != Verb::Get && !self.leadership.is_valid() {
            return Err(RequestError::NotLeader);
        }
        let result = match tokio::time::timeout(MAX_TIME, request).await {
            Ok(result) => result.map_err(RequestError::from),
            Err(_) => Err(RequestError::TimedOut { seconds: MAX_TIME.as_secs() }),
        };
        self.counts.count(&K::kind(&()), verb, &result);
        result
    }
}

/// A namespaced kind.
pub(crate) trait NamespacedKind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + fmt::Debug
    + Send
    + serde::de::DeserializeOwned
{
}

impl<K> NamespacedKind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + fmt::Debug
        + Send
        + serde::de::DeserializeOwned
{
}

/// Adds the version to a merge patch, so that it applies only to this version of the object.
pub(crate) fn with_version(mut patch: Value, version: &Version) -> Value {
    if let Some(patch) = patch.as_object_mut() {
        let metadata = patch.entry("metadata").or_insert_with(|| json!({}));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("resourceVersion".to_owned(), json!(version.as_str()));
        }
    }
    patch
}
