//! Caches of the watched objects, one for each kind. A cache stores copies of the parts that controllers read.
//!
//! A cache follows a watch. The result of a write by this process is also put into the cache immediately, and later
//! watch events with an older version are ignored. So a controller never acts on a state older than its own last write.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use kube::Resource;
use kube::api::ObjectMeta;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::crds::{CustomResource, Kind};
use crate::object::{ObjectKey, Version};

/// Maximum number of remembered deletions. A deletion is remembered until all responses sent before it have arrived.
const MAX_DELETIONS: usize = 10_000;

/// The form in which a cache stores an object.
pub(crate) trait CachedObject: fmt::Debug + Send + Sync + Sized + 'static {
    /// The watched kind.
    type Kind: Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug + Send + Sync + 'static;

    /// Copies the cached parts of an object. If the cache took them out of the object, they would lie between the freed
    /// memory of the other parts, which an allocator could then not return to the system.
    fn from_object(object: &Self::Kind) -> Self;

    /// Returns the metadata of the object.
    fn meta(&self) -> &ObjectMeta;
}

impl<S> CachedObject for CustomResource<S>
where
    S: Kind<Status: Send + Sync> + Send + Sync + 'static,
{
    type Kind = Self;

    fn from_object(object: &Self) -> Self {
        let Self { metadata, spec, status } = object;
        Self { metadata: pruned_meta(metadata), spec: spec.clone(), status: status.clone() }
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}

/// The source from which a cache received a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An event of the watch.
    Watch,
    /// The response to a write by this process. The controller already has the new state.
    OwnWrite,
}

/// A change of a cached object.
#[derive(Clone, Debug)]
pub(crate) struct CacheChange<O> {
    /// The key of the object.
    pub(crate) key: ObjectKey,
    /// The source of the change.
    pub(crate) origin: Origin,
    /// The object before the change. `None` if it is new.
    pub(crate) before: Option<Arc<O>>,
    /// The object after the change. `None` if it was deleted.
    pub(crate) after: Option<Arc<O>>,
}

impl<O> CacheChange<O> {
    fn removal(key: ObjectKey, before: Arc<O>) -> Self {
        Self { key, origin: Origin::Watch, before: Some(before), after: None }
    }

    /// Returns the old and the new state of the object, if they exist.
    pub(crate) fn states(&self) -> impl Iterator<Item = &O> {
        self.before.iter().chain(&self.after).map(Arc::as_ref)
    }
}

type ChangeHandler<O> = Box<dyn Fn(&CacheChange<O>) + Send + Sync>;

/// A cache of the objects of one kind. Clones share the objects.
pub(crate) struct Cache<O: CachedObject>(Arc<CacheParts<O>>);

struct CacheParts<O> {
    objects: RwLock<Objects<O>>,
    /// Number of watches whose initial list is not complete yet.
    unsynced: watch::Sender<usize>,
    on_change: RwLock<Vec<ChangeHandler<O>>>,
}

struct Objects<O> {
    by_key: BTreeMap<ObjectKey, Arc<O>>,
    deletions: HashMap<ObjectKey, Version>,
}

impl<O: CachedObject> Clone for Cache<O> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<O: CachedObject> fmt::Debug for Cache<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("kind", &O::Kind::kind(&())).field("objects", &self.len()).finish()
    }
}

impl<O: CachedObject> Cache<O> {
    /// Returns an empty cache, to be filled by `watches` watches.
    #[must_use]
    pub(crate) fn new(watches: usize) -> Self {
        Self(Arc::new(CacheParts {
            objects: RwLock::new(Objects { by_key: BTreeMap::new(), deletions: HashMap::new() }),
            unsynced: watch::Sender::new(watches),
            on_change: RwLock::default(),
        }))
    }

    /// Registers a function to call after each change, including changes by this process.
    pub(crate) fn on_change(&self, handler: impl Fn(&CacheChange<O>) + Send + Sync + 'static) {
        self.0.on_change.write().unwrap_or_else(PoisonError::into_inner).push(Box::new(handler));
    }

    /// Returns the object with this key.
    #[must_use]
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Arc<O>> {
        self.read(|objects| objects.by_key.get(key).cloned())
    }

    /// Returns the objects of a namespace, sorted by name.
    #[must_use]
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<(ObjectKey, Arc<O>)> {
        let first = ObjectKey::new(namespace, "");
        self.read(|objects| {
            let rest = objects.by_key.range(first..).take_while(|(key, _)| key.namespace == namespace);
            rest.map(|(key, object)| (key.clone(), Arc::clone(object))).collect()
        })
    }

    /// Returns the keys of all objects.
    #[must_use]
    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        self.read(|objects| objects.by_key.keys().cloned().collect())
    }

    /// Returns the keys of the objects for which `condition` is true.
    pub(crate) fn keys_of(&self, condition: impl Fn(&O) -> bool) -> Vec<ObjectKey> {
        self.read(|objects| {
            let selected = objects.by_key.iter().filter(|(_, object)| condition(object));
            selected.map(|(key, _)| key.clone()).collect()
        })
    }

    /// Returns the number of objects.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.read(|objects| objects.by_key.len())
    }

    /// Waits until the initial lists of all watches are complete.
    pub(crate) async fn synced(&self) {
        // The sender cannot be dropped before `self`, so `wait_for` does not fail.
        let _ = self.0.unsynced.subscribe().wait_for(|unsynced| *unsynced == 0).await;
    }

    /// Returns `true` if the initial lists of all watches are complete.
    pub(crate) fn is_synced(&self) -> bool {
        *self.0.unsynced.borrow() == 0
    }

    /// Stores the cached parts of an object, unless the cache has a newer version or has recorded a newer deletion.
    pub(crate) fn apply(&self, object: &O::Kind, origin: Origin) {
        let Some(key) = ObjectKey::from_meta(object.meta()) else { return };
        let version = Version::from_meta(object.meta());
        let change = self.write(|objects| {
            if objects.deletions.get(&key).is_some_and(|deleted| version.is_at_most(deleted)) {
                return None;
            }
            let is_old = |cached: &Arc<O>| version.is_at_most(&Version::from_meta(cached.meta()));
            if objects.by_key.get(&key).is_some_and(is_old) {
                return None;
            }
            let after = Arc::new(O::from_object(object));
            let before = objects.by_key.insert(key.clone(), Arc::clone(&after));
            Some(CacheChange { key, origin, before, after: Some(after) })
        });
        self.report(change);
    }

    /// Removes an object, unless the cache has a newer version.
    pub(crate) fn remove(&self, key: &ObjectKey, version: Version) {
        let change = self.write(|objects| {
            let is_newer = |cached: &Arc<O>| !Version::from_meta(cached.meta()).is_at_most(&version);
            if objects.by_key.get(key).is_some_and(is_newer) {
                return None;
            }
            if objects.deletions.len() >= MAX_DELETIONS {
                objects.deletions.clear();
            }
            objects.deletions.insert(key.clone(), version);
            let before = objects.by_key.remove(key);
            before.map(|before| CacheChange::removal(key.clone(), before))
        });
        self.report(change);
    }

    /// Removes the objects that are missing from a complete list. `namespace` is the listed namespace, or `None` for
    /// all.
    pub(crate) fn retain(&self, namespace: Option<&str>, listed: &HashSet<ObjectKey>) {
        let is_missing = |key: &&ObjectKey| {
            namespace.is_none_or(|namespace| key.namespace == namespace) && !listed.contains(*key)
        };
        let missing: Vec<_> =
            self.read(|objects| objects.by_key.keys().filter(is_missing).cloned().collect());
        for key in missing {
            let before = self.write(|objects| objects.by_key.remove(&key));
            self.report(before.map(|before| CacheChange::removal(key, before)));
        }
    }

    /// Records that the initial list of one more watch is complete.
    pub(crate) fn confirm_synced(&self) {
        self.0.unsynced.send_modify(|unsynced| *unsynced = unsynced.saturating_sub(1));
    }

    fn report(&self, change: Option<CacheChange<O>>) {
        let Some(change) = change else { return };
        for handler in &*self.0.on_change.read().unwrap_or_else(PoisonError::into_inner) {
            handler(&change);
        }
    }

    fn read<T>(&self, read: impl FnOnce(&Objects<O>) -> T) -> T {
        read(&self.0.objects.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, write: impl FnOnce(&mut Objects<O>) -> T) -> T {
        write(&mut self.0.objects.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Copies the metadata that controllers read.
pub(crate) fn pruned_meta(meta: &ObjectMeta) -> ObjectMeta {
    let is_read = |(key, _): &(&String, &String)| *key != "kubectl.kubernetes.io/last-applied-configuration";
    let annotations = |map: &BTreeMap<String, String>| {
        map.iter().filter(is_read).map(|(key, text)| (key.clone(), text.clone())).collect()
    };
    ObjectMeta {
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        deletion_timestamp: meta.deletion_timestamp.clone(),
        labels: meta.labels.clone(),
        annotations: meta.annotations.as_ref().map(annotations),
        finalizers: meta.finalizers.clone(),
        owner_references: meta.owner_references.clone(),
        ..ObjectMeta::default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[derive(Debug)]
    struct Named(ObjectMeta);

    impl CachedObject for Named {
        type Kind = ConfigMap;

        fn from_object(object: &ConfigMap) -> Self {
            Self(pruned_meta(&object.metadata))
        }

        fn meta(&self) -> &ObjectMeta {
            &self.0
        }
    }

    fn object(name: &str, version: u32) -> ConfigMap {
        let metadata = ObjectMeta {
            namespace: Some("ns".to_owned()),
            name: Some(name.to_owned()),
            resource_version: Some(version.to_string()),
            ..ObjectMeta::default()
        };
        ConfigMap { metadata, ..ConfigMap::default() }
    }

    fn version_of(cache: &Cache<Named>, name: &str) -> Option<String> {
        cache.get(&ObjectKey::new("ns", name))?.meta().resource_version.clone()
    }

    #[test]
    fn older_version_does_not_replace_a_newer_one() {
        let cache = Cache::<Named>::new(1);
        cache.apply(&object("a", 10), Origin::Watch);
        cache.apply(&object("a", 9), Origin::Watch);
        assert_eq!(version_of(&cache, "a").as_deref(), Some("10"));
        cache.remove(&ObjectKey::new("ns", "a"), Version::from_meta(&object("a", 9).metadata));
        assert_eq!(version_of(&cache, "a").as_deref(), Some("10"));
    }

    #[test]
    fn late_response_does_not_restore_a_deleted_object() {
        let cache = Cache::<Named>::new(1);
        cache.apply(&object("a", 10), Origin::Watch);
        cache.remove(&ObjectKey::new("ns", "a"), Version::from_meta(&object("a", 12).metadata));
        cache.apply(&object("a", 11), Origin::Watch);
        assert_eq!(version_of(&cache, "a"), None);
        cache.apply(&object("a", 13), Origin::Watch);
        assert_eq!(version_of(&cache, "a").as_deref(), Some("13"));
    }

    #[test]
    fn handlers_see_the_old_and_the_new_state() {
        let cache = Cache::<Named>::new(1);
        let changes = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&changes);
        cache.on_change(move |change| {
            let versions: Vec<_> = change.states().map(|it| it.meta().resource_version.clone()).collect();
            log.lock().unwrap().push(versions);
        });
        cache.apply(&object("a", 1), Origin::Watch);
        cache.apply(&object("a", 1), Origin::Watch);
        cache.apply(&object("a", 2), Origin::Watch);
        cache.retain(None, &HashSet::new());
        let version = |text: &str| Some(text.to_owned());
        let expected = [vec![version("1")], vec![version("1"), version("2")], vec![version("2")]];
        assert_eq!(*changes.lock().unwrap(), expected);
    }

    #[test]
    fn namespaces_with_a_common_name_prefix_are_separate() {
        let cache = Cache::<Named>::new(1);
        for namespace in ["ns", "ns-2", "n"] {
            let mut other = object("a", 1);
            other.metadata.namespace = Some(namespace.to_owned());
            cache.apply(&other, Origin::Watch);
        }
        let keys: Vec<_> = cache.in_namespace("ns").into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, [ObjectKey::new("ns", "a")]);
    }
}
