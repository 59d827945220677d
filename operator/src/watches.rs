//! Watches that keep the caches up to date.

use std::collections::HashSet;
use std::error::Error;

use futures_util::StreamExt as _;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch_objects};
use kube::{Api, Resource};

use crate::caches::{Cache, CachedObject, Origin};
use crate::object::{ObjectKey, Version};

/// Watches the objects of one kind, in one namespace or in all. Never returns: it retries after errors.
pub(crate) async fn follow<O: CachedObject>(
    cache: Cache<O>,
    api: Api<O::Kind>,
    namespace: Option<String>,
    config: watcher::Config,
) {
    let kind = O::Kind::kind(&());
    let mut events = watch_objects(api, config).default_backoff().boxed();
    let mut listed = HashSet::new();
    let (mut is_synced, mut is_failing) = (false, false);
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                if std::mem::take(&mut is_failing) {
                    tracing::info!(%kind, "watch of the Kubernetes API works again");
                }
                let is_complete = matches!(event, Event::InitDone);
                handle(&cache, event, namespace.as_deref(), &mut listed);
                if is_complete && !std::mem::replace(&mut is_synced, true) {
                    cache.confirm_synced();
                }
            }
            // Log an outage only once.
            Err(error) if !is_failing => {
                is_failing = true;
                tracing::warn!(%kind, error = &error as &dyn Error, "watch of the Kubernetes API failed, will retry");
            }
            Err(_) => {}
        }
    }
}

fn handle<O: CachedObject>(
    cache: &Cache<O>,
    event: Event<O::Kind>,
    namespace: Option<&str>,
    listed: &mut HashSet<ObjectKey>,
) {
    match event {
        Event::Init => listed.clear(),
        Event::InitApply(object) => {
            listed.extend(ObjectKey::from_meta(object.meta()));
            cache.apply(&object, Origin::Watch);
        }
        Event::InitDone => {
            cache.retain(namespace, listed);
            listed.clear();
        }
        Event::Apply(object) => cache.apply(&object, Origin::Watch),
        Event::Delete(object) => {
            if let Some(key) = ObjectKey::from_meta(object.meta()) {
                cache.remove(&key, Version::from_meta(object.meta()));
            }
        }
    }
}
