//! A cache of clusters with the facts about their hosts.
//!
//! Steps, validations and roles depend on all hosts of a cluster. A [`CurrentView`] contains these facts in the form
//! that rules need. It is built once. When the feed reports a change, only the changed records are read again.

mod content;
mod current;
mod load;

use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError};

use assisted::host::HostStatus;
use chrono::{DateTime, Utc};
use lru::LruCache;
use rules::steps::ConnectivityThrottle;
use rules::view::HostView;

use self::content::Content;
pub(crate) use self::current::{CurrentView, ViewedHost};
use crate::error::Error;
use crate::id::ClusterId;
use crate::store::{Feed, FeedCache, Key, Kind, RecordChange, Records};

/// Maximum number of large clusters whose limits on connectivity checks are remembered.
const MAX_THROTTLES: NonZero<usize> = NonZero::new(256).unwrap();

/// Number of locks for loading views. Several clusters can share a lock.
const LOAD_LOCKS: usize = 64;

/// A cache of cluster views, limited by their total size. Drops the least recently used views first.
#[derive(Debug)]
pub(crate) struct ClusterViews {
    shared: Arc<SharedViews>,
    /// Limits on connectivity checks in large clusters.
    throttles: Mutex<LruCache<ClusterId, ConnectivityThrottle>>,
    load_locks: Vec<tokio::sync::Mutex<()>>,
    /// A lock for the lookup of the clusters of changed hosts that are in no view.
    stray_lock: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct SharedViews(Mutex<Content>);

impl SharedViews {
    fn with_content<T>(&self, use_it: impl FnOnce(&mut Content) -> T) -> T {
        let mut content = self.0.lock().unwrap_or_else(|poisoned| {
            // A panic may have left the content inconsistent, so all views are dropped and loaded again.
            let mut content = poisoned.into_inner();
            content.drop_all();
            self.0.clear_poison();
            content
        });
        use_it(&mut content)
    }
}

impl FeedCache for SharedViews {
    fn cached(&self) -> Vec<(Key, i64)> {
        self.with_content(Content::next_compared)
    }

    fn drop_changed(&self, change: &RecordChange) {
        if matches!(change.key.kind, Kind::Host | Kind::HostResults | Kind::Cluster | Kind::InfraEnv) {
            self.with_content(|content| content.mark(change));
        }
    }

    fn drop_all(&self) {
        self.with_content(Content::drop_all);
    }
}

impl ClusterViews {
    /// Returns a cache of views that `feed` keeps current.
    pub(crate) fn on_feed(feed: &Feed) -> Self {
        Self::with_max_bytes(feed, content::MAX_BYTES)
    }

    fn with_max_bytes(feed: &Feed, max_bytes: usize) -> Self {
        let shared = Arc::new(SharedViews(Mutex::new(Content::new(max_bytes))));
        let cache: Arc<dyn FeedCache> = Arc::<SharedViews>::clone(&shared);
        feed.add_cache(&cache);
        let load_locks = (0..LOAD_LOCKS).map(|_| tokio::sync::Mutex::default()).collect();
        let throttles = Mutex::new(LruCache::new(MAX_THROTTLES));
        Self { shared, throttles, load_locks, stray_lock: tokio::sync::Mutex::default() }
    }

    /// Returns the current view of a cluster. Returns `None` if the cluster does not exist or is deleted.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails or contains an invalid record.
    pub(crate) async fn of_cluster(
        &self,
        records: &Records,
        cluster: ClusterId,
    ) -> Result<Option<Arc<CurrentView>>, Error> {
        let feed = records.store().feed();
        if let Some(view) = self.current(cluster, feed) {
            return Ok(Some(view));
        }
        let _guard = self.load_lock(cluster).lock().await;
        self.find_strays(records).await?;
        if let Some(view) = self.current(cluster, feed) {
            return Ok(Some(view));
        }
        let (log, before) = self.shared.with_content(|content| content.begin_load(cluster));
        let before = before.filter(|(view, _)| view.is_followed(feed));
        let loaded = match before {
            Some((view, outdated)) => load::refresh(records, &view, &outdated).await?,
            None => load::full(records, cluster).await?,
        };
        let loaded = loaded.map(Arc::new);
        self.shared.with_content(|content| content.end_load(cluster, &log, loaded.clone()));
        Ok(loaded)
    }

    /// Discards the view of a cluster because it is older than the database. The next load reads all records.
    pub(crate) fn discard(&self, cluster: ClusterId) {
        self.shared.with_content(|content| content.discard(cluster));
    }

    /// Returns the cached view of a cluster if it is current.
    fn current(&self, cluster: ClusterId, feed: &Feed) -> Option<Arc<CurrentView>> {
        let view = self.shared.with_content(|content| content.current(cluster))?;
        view.is_followed(feed).then_some(view)
    }

    /// Returns `true` if a host that is checking in may check its connectivity now. In large clusters, hosts take
    /// turns.
    pub(crate) fn may_check(&self, view: &CurrentView, host: &HostView, now: DateTime<Utc>) -> bool {
        let checks =
            matches!(host.status, HostStatus::Insufficient | HostStatus::PendingForInput | HostStatus::Known);
        if !checks || !ConnectivityThrottle::applies_to(view.hosts().len()) {
            return checks;
        }
        let mut throttles = self.throttles.lock().unwrap_or_else(PoisonError::into_inner);
        let throttle = throttles.get_or_insert_mut(view.facts().cluster.id, ConnectivityThrottle::default);
        // No clock is set before 1970.
        throttle.may_check(host.id, u64::try_from(now.timestamp()).unwrap_or_default())
    }

    /// Returns the cluster of a host that is in a cached view.
    pub(crate) fn known_cluster(&self, host: &Key) -> Option<ClusterId> {
        self.shared.with_content(|content| content.cluster_of(host))
    }

    fn load_lock(&self, cluster: ClusterId) -> &tokio::sync::Mutex<()> {
        let index = (cluster.0.as_u128() % LOAD_LOCKS as u128) as usize;
        self.load_locks.get(index).unwrap_or(&self.stray_lock)
    }

    /// Looks up the clusters of changed hosts that are in no view, and marks the hosts in the views of these clusters.
    async fn find_strays(&self, records: &Records) -> Result<(), Error> {
        let _guard = self.stray_lock.lock().await;
        for host in self.shared.with_content(|content| content.strays()) {
            let cluster = load::cluster_of(records, host).await?;
            self.shared.with_content(|content| content.place_stray(host, cluster));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
