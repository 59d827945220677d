//! The cached views, and which of their records have changed.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use lru::LruCache;
use uuid::Uuid;

use super::current::CurrentView;
use crate::id::ClusterId;
use crate::store::{Key, Kind, RecordChange};

/// Maximum total size of the views in bytes. 10,000 typical hosts need a third of it.
pub(super) const MAX_BYTES: usize = 64 << 20;
/// Maximum number of cached views.
const MAX_VIEWS: NonZero<usize> = NonZero::new(4096).unwrap();
/// Maximum number of changed hosts whose cluster is unknown. If there are more, all views are dropped.
const MAX_STRAYS: usize = 4096;
/// Maximum number of records that one check of the feed compares with the database. The next check continues with the
/// records after them.
const MAX_COMPARED: usize = 2048;

/// The records of a view that have changed since the view was read.
#[derive(Clone, Debug, Default)]
pub(super) struct Outdated {
    pub(super) hosts: BTreeSet<Key>,
    /// Whether the cluster or an infra-env has changed.
    pub(super) settings: bool,
}

impl Outdated {
    fn is_empty(&self) -> bool {
        self.hosts.is_empty() && !self.settings
    }
}

#[derive(Debug)]
struct Entry {
    view: Arc<CurrentView>,
    outdated: Outdated,
}

/// The changes reported during the load of a view.
#[derive(Debug, Default)]
pub(super) struct LoadLog(Mutex<LoggedChanges>);

#[derive(Debug, Default)]
struct LoggedChanges {
    outdated: Outdated,
    /// Whether any record may have changed.
    all: bool,
}

impl LoadLog {
    fn edit<T>(&self, edit: impl FnOnce(&mut LoggedChanges) -> T) -> T {
        edit(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The cached views with their bookkeeping.
#[derive(Debug)]
pub(super) struct Content {
    views: LruCache<Uuid, Entry>,
    bytes: usize,
    max_bytes: usize,
    /// The cluster of each host that is in a view.
    clusters: BTreeMap<Key, Uuid>,
    /// Hosts that have changed and are in no view. Any of them may have joined the cluster of a view.
    strays: BTreeSet<Key>,
    /// The loads in progress, each with its cluster and its log.
    loads: Vec<(Uuid, Weak<LoadLog>)>,
    /// The last key that the feed has compared, or `None` to start with the first key.
    compared_until: Option<Key>,
}

impl Content {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            views: LruCache::new(MAX_VIEWS),
            bytes: 0,
            max_bytes,
            clusters: BTreeMap::new(),
            strays: BTreeSet::new(),
            loads: Vec::new(),
            compared_until: None,
        }
    }

    /// Returns the view of a cluster unless a record in it may have changed.
    pub(super) fn current(&mut self, cluster: ClusterId) -> Option<Arc<CurrentView>> {
        if !self.strays.is_empty() {
            return None;
        }
        let entry = self.views.get(&cluster.0)?;
        entry.outdated.is_empty().then(|| Arc::clone(&entry.view))
    }

    /// Marks the parts of views that depend on a changed record as outdated.
    pub(super) fn mark(&mut self, change: &RecordChange) {
        let key = change.key;
        self.loads.retain(|(_, log)| log.strong_count() > 0);
        match key.kind {
            Kind::Host => self.mark_host(change),
            Kind::HostResults => self.mark_results(Key { kind: Kind::Host, ..key }),
            Kind::Cluster => {
                if let Some(entry) = self.views.peek_mut(&key.id)
                    && entry.view.cluster_generation() != change.generation
                {
                    entry.outdated.settings = true;
                }
                self.log(|cluster, changes| changes.outdated.settings |= cluster == key.id);
            }
            // A change to an infra-env can affect any view: a view contains the settings of its cluster's infra-envs,
            // and the change may have bound the infra-env to another cluster.
            _ => {
                for (_, entry) in self.views.iter_mut() {
                    entry.outdated.settings = true;
                }
                self.log(|_, changes| changes.outdated.settings = true);
            }
        }
    }

    fn mark_host(&mut self, change: &RecordChange) {
        let key = change.key;
        self.log(|_, changes| {
            changes.outdated.hosts.insert(key);
        });
        let Some(cluster) = self.clusters.get(&key) else { return self.add_stray(key) };
        let Some(entry) = self.views.peek_mut(cluster) else { return self.add_stray(key) };
        let viewed = entry.view.host(&key);
        // A view at the generation of the change already contains the change.
        if viewed.is_none_or(|host| host.generation != change.generation) {
            entry.outdated.hosts.insert(key);
        }
    }

    /// Marks a host with changed validation results as outdated. A host that is in no view is ignored.
    fn mark_results(&mut self, host: Key) {
        self.log(|_, changes| {
            changes.outdated.hosts.insert(host);
        });
        if let Some(entry) = self.clusters.get(&host).and_then(|cluster| self.views.peek_mut(cluster)) {
            entry.outdated.hosts.insert(host);
        }
    }

    /// Returns the cluster of a host that is in a view.
    pub(super) fn cluster_of(&self, host: &Key) -> Option<ClusterId> {
        self.clusters.get(host).copied().map(ClusterId)
    }

    /// Adds a changed host that is in no view. Does nothing if there are no views.
    fn add_stray(&mut self, host: Key) {
        if self.views.is_empty() {
            return;
        }
        self.strays.insert(host);
        if self.strays.len() > MAX_STRAYS {
            self.drop_all();
        }
    }

    /// Adds a change to the logs of all loads in progress.
    fn log(&self, add: impl Fn(Uuid, &mut LoggedChanges)) {
        for (cluster, log) in &self.loads {
            if let Some(log) = log.upgrade() {
                log.edit(|changes| add(*cluster, changes));
            }
        }
    }

    /// Returns the changed hosts that are in no view.
    pub(super) fn strays(&self) -> Vec<Key> {
        self.strays.iter().copied().collect()
    }

    /// Assigns a stray host to its cluster, and marks the host in the view of the cluster as outdated.
    pub(super) fn place_stray(&mut self, host: Key, cluster: Option<ClusterId>) {
        self.strays.remove(&host);
        if let Some(entry) = cluster.and_then(|cluster| self.views.peek_mut(&cluster.0)) {
            entry.outdated.hosts.insert(host);
        }
    }

    /// Begins to load the view of a cluster. Returns a log that collects changes until the load ends. Also returns the
    /// previous view, if any, with its outdated records.
    pub(super) fn begin_load(
        &mut self,
        cluster: ClusterId,
    ) -> (Arc<LoadLog>, Option<(Arc<CurrentView>, Outdated)>) {
        let log = Arc::<LoadLog>::default();
        self.loads.push((cluster.0, Arc::downgrade(&log)));
        let entry = self.views.peek(&cluster.0);
        (log, entry.map(|entry| (Arc::clone(&entry.view), entry.outdated.clone())))
    }

    /// Stores a loaded view, and applies the changes reported during the load. `loaded` is `None` if the cluster does
    /// not exist.
    pub(super) fn end_load(&mut self, cluster: ClusterId, log: &LoadLog, loaded: Option<Arc<CurrentView>>) {
        self.remove(cluster.0);
        let Some(view) = loaded else { return };
        let (all, outdated) = log.edit(|changes| (changes.all, std::mem::take(&mut changes.outdated)));
        if all {
            return;
        }
        self.bytes = self.bytes.saturating_add(view.len());
        for host in view.hosts() {
            self.clusters.insert(host.key, cluster.0);
        }
        // A host that changed during the load may be missing in the view, because it has joined another cluster, or has
        // joined this cluster after its hosts were read. Such a host becomes a stray.
        let (known, others): (BTreeSet<_>, _) =
            outdated.hosts.into_iter().partition(|host| self.clusters.get(host) == Some(&cluster.0));
        let outdated = Outdated { hosts: known, settings: outdated.settings };
        let pushed_out = self.views.push(cluster.0, Entry { view, outdated });
        self.forget(pushed_out);
        self.strays.extend(others.into_iter().filter(|host| !self.clusters.contains_key(host)));
        while self.bytes > self.max_bytes
            && self.views.len() > 1
            && let Some(removed) = self.views.pop_lru()
        {
            self.forget(Some(removed));
        }
    }

    pub(super) fn discard(&mut self, cluster: ClusterId) {
        self.remove(cluster.0);
    }

    fn remove(&mut self, cluster: Uuid) {
        let removed = self.views.pop_entry(&cluster);
        self.forget(removed);
    }

    /// Subtracts the size of a removed view, and removes its hosts from `clusters`.
    fn forget(&mut self, removed: Option<(Uuid, Entry)>) {
        let Some((cluster, entry)) = removed else { return };
        self.bytes = self.bytes.saturating_sub(entry.view.len());
        for host in entry.view.hosts() {
            if self.clusters.get(&host.key) == Some(&cluster) {
                self.clusters.remove(&host.key);
            }
        }
    }

    pub(super) fn drop_all(&mut self) {
        self.views.clear();
        self.clusters.clear();
        self.strays.clear();
        self.bytes = 0;
        self.log(|_, changes| changes.all = true);
    }

    /// Returns the next records for the feed to compare with the database, in key order.
    pub(super) fn next_compared(&mut self) -> Vec<(Key, i64)> {
        let after = self.compared_until;
        let mut next: Vec<_> =
            self.views.iter().flat_map(|(cluster, entry)| records_of_view(*cluster, &entry.view)).collect();
        next.retain(|(key, _)| after.is_none_or(|after| *key > after));
        let is_last = next.len() <= MAX_COMPARED;
        if !is_last {
            next.select_nth_unstable(MAX_COMPARED - 1);
            next.truncate(MAX_COMPARED);
        }
        let end = next.iter().map(|(key, _)| *key).max();
        self.compared_until = end.filter(|_| !is_last);
        next
    }
}

/// Returns the keys and generations of the records in a view.
fn records_of_view(cluster: Uuid, view: &CurrentView) -> impl Iterator<Item = (Key, i64)> {
    let cluster = Key { kind: Kind::Cluster, parent: None, id: cluster };
    let hosts = view.hosts().iter().map(|host| (host.key, host.generation));
    std::iter::once((cluster, view.cluster_generation())).chain(hosts)
}
