//! A cache of records for reads that are frequent while changes are rare.
//!
//! The change feed drops a record from the cache when the record changes. Check-ins are not changes, so the check-in
//! time of a cached host may be old.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use lru::LruCache;

use super::{ChangeKind, Contact, Feed, FeedCache, Key, Record, RecordChange, Records, StoreError, Stored};

/// Time for which a cached record is valid while the feed does not report changes by other processes.
const FRESH: Duration = Duration::from_millis(500);
/// Maximum total length of the documents in a cache, in bytes. Agents determine the length of host documents. 20,000
/// typical hosts need half of the limit.
const MAX_BYTES: usize = 128 << 20;
/// Maximum number of records that one check of the feed compares with the database. The next check continues with the
/// records after them.
const MAX_COMPARED: usize = 2048;

/// A record that is in a cache, or has left the cache.
#[derive(Debug)]
pub struct CachedRecord<R> {
    record: Arc<R>,
    generation: i64,
    /// The length of the record's document in bytes.
    len: usize,
    /// Whether the record has changed since it was read or has left the cache. The feed does not report changes to
    /// records outside the cache.
    is_outdated: AtomicBool,
    /// Time when the database last confirmed this generation.
    checked: CheckTime,
    /// The [number](Feed::listening_since) of the feed's connection at the time of `checked`.
    listening_since: AtomicU64,
}

impl<R> CachedRecord<R> {
    /// Returns the record as it was read.
    #[must_use]
    pub fn record(&self) -> &Arc<R> {
        &self.record
    }

    /// Returns the generation of the record as it was read.
    #[must_use]
    pub fn generation(&self) -> i64 {
        self.generation
    }

    /// Returns `true` if the record may have changed: the feed reported a change, or the record has left the cache.
    #[must_use]
    pub(crate) fn is_outdated(&self) -> bool {
        self.is_outdated.load(Ordering::Acquire)
    }

    /// Returns the time since the database last confirmed this generation.
    pub(crate) fn age(&self) -> Duration {
        self.checked.elapsed()
    }

    /// Returns `true` if the record is current. While the database is unreachable or unusable, a record counts as
    /// current for `outage_grace`.
    #[must_use]
    pub(crate) fn is_current(&self, feed: &Feed, outage_grace: Duration) -> bool {
        !self.is_outdated()
            && match feed.contact() {
                // If the feed has reconnected since the read, notifications may have been lost in between.
                Contact::Connected => self.listening_since.load(Ordering::Acquire) == feed.listening_since(),
                Contact::Polling => self.age() < FRESH,
                Contact::Reconnecting | Contact::Unusable | Contact::Unreachable => {
                    feed.silence().min(self.age()) <= outage_grace && !outage_grace.is_zero()
                }
            }
    }
}

/// A time that can be moved forward without a lock.
#[derive(Debug)]
struct CheckTime {
    first: Instant,
    /// The time, in microseconds after `first`.
    micros: AtomicU64,
}

impl CheckTime {
    fn new(first: Instant) -> Self {
        Self { first, micros: AtomicU64::new(0) }
    }

    fn set(&self, time: Instant) {
        let micros =
            u64::try_from(time.saturating_duration_since(self.first).as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_max(micros, Ordering::AcqRel);
    }

    fn elapsed(&self) -> Duration {
        self.first.elapsed().saturating_sub(Duration::from_micros(self.micros.load(Ordering::Acquire)))
    }
}

/// The state of a record in the cache.
#[derive(Debug)]
pub(crate) enum CacheEntry<R> {
    Present(Arc<CachedRecord<R>>),
    /// The record was in the cache when it was removed from the database.
    Removed,
}

impl<R> CacheEntry<R> {
    /// Marks the record as outdated when its entry leaves the cache.
    fn mark_outdated(&self) {
        if let Self::Present(cached) = self {
            cached.is_outdated.store(true, Ordering::Release);
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Present(cached) => cached.len,
            Self::Removed => 0,
        }
    }
}

impl<R> Clone for CacheEntry<R> {
    fn clone(&self) -> Self {
        match self {
            Self::Present(cached) => Self::Present(Arc::clone(cached)),
            Self::Removed => Self::Removed,
        }
    }
}

/// A cache of records that the change feed keeps current.
#[derive(Debug)]
pub(crate) struct RecordCache<R>(Arc<SharedCache<R>>);

#[derive(Debug)]
struct SharedCache<R>(Mutex<CacheContent<R>>);

#[derive(Debug)]
struct CacheContent<R> {
    records: LruCache<Key, CacheEntry<R>>,
    /// The total length of the documents in bytes.
    bytes: usize,
    max_bytes: usize,
    /// The reads in progress. Each flag is set if the record changes during the read.
    reads: Vec<(Key, Weak<AtomicBool>)>,
    /// The last key that the feed has compared, or `None` to start with the first key.
    compared_until: Option<Key>,
}

impl<R> SharedCache<R> {
    fn with_content<T>(&self, use_it: impl FnOnce(&mut CacheContent<R>) -> T) -> T {
        let mut content = self.0.lock().unwrap_or_else(|poisoned| {
            // A panic may have left the content inconsistent, so all records are dropped and read again.
            let mut content = poisoned.into_inner();
            content.drop_all();
            self.0.clear_poison();
            content
        });
        use_it(&mut content)
    }
}

impl<R> CacheContent<R> {
    /// Registers a read of a record. The returned flag is set if the record changes before the result is stored.
    fn begin_read(&mut self, key: Key) -> Arc<AtomicBool> {
        let is_overtaken = Arc::new(AtomicBool::new(false));
        self.reads.retain(|(_, read)| read.strong_count() > 0);
        self.reads.push((key, Arc::downgrade(&is_overtaken)));
        is_overtaken
    }

    /// Stores the result of a read. If the cache already contains the record at the same generation, the existing entry
    /// stays, so that data derived from this entry can still be used.
    fn keep(&mut self, key: Key, read: CachedRecord<R>, read_at: Instant) -> Arc<CachedRecord<R>> {
        if let Some(CacheEntry::Present(cached)) = self.records.get(&key)
            && cached.generation == read.generation
        {
            cached.checked.set(read_at);
            cached.listening_since.store(read.listening_since.into_inner(), Ordering::Release);
            return Arc::clone(cached);
        }
        let read = Arc::new(read);
        self.put(key, CacheEntry::Present(Arc::clone(&read)));
        read
    }

    /// Adds an entry, or replaces the entry with the same key. The least recently used entries are removed to make
    /// room. The last entry stays, regardless of its length.
    fn put(&mut self, key: Key, entry: CacheEntry<R>) {
        self.bytes = self.bytes.saturating_add(entry.len());
        // `push` returns the entry with the same key or, if the cache is full, the least recently used entry.
        let pushed_out = self.records.push(key, entry);
        self.forget(pushed_out.map(|(_, entry)| entry));
        while self.bytes > self.max_bytes
            && self.records.len() > 1
            && let Some((_, entry)) = self.records.pop_lru()
        {
            self.forget(Some(entry));
        }
    }

    fn remove(&mut self, key: &Key) {
        let removed = self.records.pop(key);
        self.forget(removed);
    }

    /// Marks a removed entry as outdated and subtracts its length.
    fn forget(&mut self, entry: Option<CacheEntry<R>>) {
        if let Some(entry) = entry {
            entry.mark_outdated();
            self.bytes = self.bytes.saturating_sub(entry.len());
        }
    }

    fn drop_changed(&mut self, change: &RecordChange) {
        let key = change.key;
        for (_, read) in self.reads.iter().filter(|(reading, _)| *reading == key) {
            if let Some(is_overtaken) = read.upgrade() {
                is_overtaken.store(true, Ordering::Release);
            }
        }
        match self.records.peek(&key) {
            // The cached record already contains this change.
            Some(CacheEntry::Present(cached))
                if change.kind == ChangeKind::Written && cached.generation == change.generation => {}
            Some(CacheEntry::Present(_)) => {
                self.remove(&key);
                if change.kind == ChangeKind::Removed {
                    self.put(key, CacheEntry::Removed);
                }
            }
            Some(CacheEntry::Removed) if change.kind == ChangeKind::Written => self.remove(&key),
            _ => {}
        }
    }

    fn drop_all(&mut self) {
        for (_, entry) in &self.records {
            entry.mark_outdated();
        }
        for (_, read) in &self.reads {
            if let Some(is_overtaken) = read.upgrade() {
                is_overtaken.store(true, Ordering::Release);
            }
        }
        self.records.clear();
        self.bytes = 0;
    }

    /// Returns the next cached records for the feed to compare with the database, in key order.
    fn next_compared(&mut self) -> Vec<(Key, i64)> {
        let after = self.compared_until;
        let present = self.records.iter().filter_map(|(key, entry)| match entry {
            CacheEntry::Present(cached) => Some((*key, cached.generation)),
            CacheEntry::Removed => None,
        });
        let mut next: Vec<_> = present.filter(|(key, _)| after.is_none_or(|after| *key > after)).collect();
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

impl<R: Record> FeedCache for SharedCache<R> {
    fn cached(&self) -> Vec<(Key, i64)> {
        self.with_content(CacheContent::next_compared)
    }

    fn drop_changed(&self, change: &RecordChange) {
        if change.key.kind == R::KIND {
            self.with_content(|content| content.drop_changed(change));
        }
    }

    fn drop_all(&self) {
        self.with_content(CacheContent::drop_all);
    }
}

impl<R: Record> RecordCache<R> {
    /// Returns a cache of at most `capacity` records, which `feed` keeps current.
    pub(crate) fn on_feed(feed: &Feed, capacity: NonZero<usize>) -> Self {
        Self::with_max_bytes(feed, capacity, MAX_BYTES)
    }

    fn with_max_bytes(feed: &Feed, capacity: NonZero<usize>, max_bytes: usize) -> Self {
        let content = CacheContent {
            records: LruCache::new(capacity),
            bytes: 0,
            max_bytes,
            reads: Vec::new(),
            compared_until: None,
        };
        let shared = Arc::new(SharedCache(Mutex::new(content)));
        let cache: Arc<dyn FeedCache> = Arc::<SharedCache<R>>::clone(&shared);
        feed.add_cache(&cache);
        Self(shared)
    }

    /// Returns the cache entry of a record, which may be outdated.
    pub(crate) fn find(&self, key: Key) -> Option<CacheEntry<R>> {
        self.0.with_content(|content| content.records.get(&key).cloned())
    }

    /// Returns a cached record if it is current.
    pub(crate) fn current(&self, key: Key, feed: &Feed) -> Option<Arc<CachedRecord<R>>> {
        match self.find(key) {
            Some(CacheEntry::Present(cached)) if cached.is_current(feed, Duration::ZERO) => Some(cached),
            _ => None,
        }
    }

    /// Reads a record from the database and stores it in the cache.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails or contains an invalid record.
    pub(crate) async fn read(
        &self,
        records: &Records,
        key: Key,
    ) -> Result<Option<Arc<CachedRecord<R>>>, StoreError> {
        let feed = records.store().feed();
        let is_overtaken = self.0.with_content(|content| content.begin_read(key));
        let (listening_since, read_at) = (feed.listening_since(), Instant::now());
        let Some((Stored { record, generation, .. }, len)) = records.find_with_len(key).await? else {
            return Ok(None);
        };
        let read = CachedRecord {
            record: Arc::new(record),
            generation,
            len,
            is_outdated: AtomicBool::new(false),
            checked: CheckTime::new(read_at),
            listening_since: AtomicU64::new(listening_since),
        };
        let cached = self.0.with_content(|content| {
            // The check holds the lock, so a later change finds the record in the cache and drops it.
            if is_overtaken.load(Ordering::Acquire) || feed.listening_since() != listening_since {
                read.is_outdated.store(true, Ordering::Release);
                return Arc::new(read);
            }
            content.keep(key, read, read_at)
        });
        Ok(Some(cached))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde::{Deserialize, Serialize};
    use tempfile::TempDir;
    use uuid::Uuid;

    use super::*;
    use crate::store::{Change, Kind, ReadSet, Reader as _, SqlStore};

    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct Counter {
        id: Uuid,
        count: u32,
    }

    impl Record for Counter {
        const KIND: Kind = Kind::OsImage;

        fn id(&self) -> Uuid {
            self.id
        }
    }

    fn key_of(number: u128) -> Key {
        Key { kind: Kind::OsImage, parent: None, id: Uuid::from_u128(number) }
    }

    struct Fixture {
        records: Records,
        cache: RecordCache<Counter>,
        _directory: TempDir,
    }

    impl Fixture {
        async fn new(capacity: usize) -> Self {
            Self::with_max_bytes(capacity, MAX_BYTES).await
        }

        async fn with_max_bytes(capacity: usize, max_bytes: usize) -> Self {
            let directory = TempDir::new().unwrap();
            let url = format!("sqlite:{}", directory.path().join("kindling.db").display());
            let records = Records::new(Arc::new(SqlStore::open(&url).await.unwrap()));
            let capacity = NonZero::new(capacity).unwrap();
            let cache = RecordCache::with_max_bytes(records.store().feed(), capacity, max_bytes);
            Self { records, cache, _directory: directory }
        }

        async fn add(&self) -> Counter {
            let counter = Counter { id: Uuid::new_v4(), count: 0 };
            let mut change = Change::new();
            change.insert(&counter).unwrap();
            self.make(change).await;
            counter
        }

        async fn make(&self, change: Change) {
            let change = Mutex::new(Some(change));
            let plan = |_: ReadSet| {
                let change = change.lock().unwrap().take().unwrap();
                async { Ok((change, ())) }
            };
            self.records.change(plan).await.unwrap();
        }

        async fn set_count(&self, counter: &Counter, count: u32) {
            let plan = |reads: ReadSet| async move {
                let mut stored = reads.find::<Counter>(None, counter.id).await?.unwrap();
                stored.record.count = count;
                let mut change = Change::new();
                change.replace(&stored.record, stored.generation)?;
                Ok((change, ()))
            };
            self.records.change(plan).await.unwrap();
        }

        async fn read(&self, counter: &Counter) -> Arc<CachedRecord<Counter>> {
            self.cache.read(&self.records, counter.key()).await.unwrap().unwrap()
        }

        fn current(&self, counter: &Counter) -> Option<Arc<CachedRecord<Counter>>> {
            self.cache.current(counter.key(), self.records.store().feed())
        }
    }

    #[tokio::test]
    async fn record_is_current_until_it_changes() {
        let fixture = Fixture::new(10).await;
        let (one, other) = (fixture.add().await, fixture.add().await);
        assert!(fixture.current(&one).is_none());
        let (read, unchanged) = (fixture.read(&one).await, fixture.read(&other).await);
        assert!(Arc::ptr_eq(&fixture.current(&one).unwrap(), &read));
        assert!(Arc::ptr_eq(&fixture.read(&one).await, &read), "the same generation stays");
        fixture.set_count(&one, 1).await;
        assert!(read.is_outdated() && fixture.current(&one).is_none());
        assert_eq!(fixture.read(&one).await.record().count, 1);
        assert!(Arc::ptr_eq(&fixture.current(&other).unwrap(), &unchanged));
        fixture.cache.0.drop_all();
        assert!(unchanged.is_outdated() && fixture.current(&other).is_none());
    }

    #[tokio::test]
    async fn removed_record_is_remembered_as_removed() {
        let fixture = Fixture::new(10).await;
        let counter = fixture.add().await;
        fixture.read(&counter).await;
        let stored = fixture.records.find::<Counter>(None, counter.id).await.unwrap().unwrap();
        let mut change = Change::new();
        change.remove(&stored);
        fixture.make(change).await;
        assert!(matches!(fixture.cache.find(counter.key()), Some(CacheEntry::Removed)));
        assert!(fixture.cache.read(&fixture.records, counter.key()).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn documents_are_limited_in_bytes() {
        let len = serde_json::to_string(&Counter { id: Uuid::nil(), count: 0 }).unwrap().len();
        let fixture = Fixture::with_max_bytes(10, 3 * len).await;
        let mut counters = Vec::new();
        for _ in 0..5 {
            counters.push(fixture.add().await);
        }
        let bytes = || fixture.cache.0.with_content(|content| content.bytes);
        // `current` counts as a use, so the first cached record becomes the least recently used one.
        let cached = || counters.iter().map(|counter| fixture.current(counter).is_some()).collect::<Vec<_>>();
        for counter in &counters[..4] {
            fixture.read(counter).await;
        }
        assert_eq!((cached(), bytes()), (vec![false, true, true, true, false], 3 * len));
        // A slightly longer record takes the space of two others.
        fixture.set_count(&counters[4], 10).await;
        fixture.read(&counters[4]).await;
        assert_eq!((cached(), bytes()), (vec![false, false, false, true, true], 2 * len + 1));
        fixture.set_count(&counters[4], 11).await;
        assert_eq!(bytes(), len, "a changed record leaves the cache");
        fixture.read(&counters[3]).await;
        assert_eq!(bytes(), len, "a record counts once even if it is read again");
        let stored = fixture.records.find::<Counter>(None, counters[3].id).await.unwrap().unwrap();
        let mut change = Change::new();
        change.remove(&stored);
        fixture.make(change).await;
        assert_eq!(bytes(), 0, "a removed record has no document");
        fixture.read(&counters[0]).await;
        fixture.cache.0.drop_all();
        assert_eq!(bytes(), 0);
    }

    #[tokio::test]
    async fn replaced_records_count_no_bytes() {
        let fixture = Fixture::new(2).await;
        let mut len = 0;
        for _ in 0..3 {
            let counter = fixture.add().await;
            fixture.read(&counter).await;
            len = serde_json::to_string(&counter).unwrap().len();
        }
        assert_eq!(fixture.cache.0.with_content(|content| content.bytes), 2 * len);
    }

    #[tokio::test]
    async fn record_above_the_limit_is_cached_alone() {
        let fixture = Fixture::with_max_bytes(10, 1).await;
        let (one, other) = (fixture.add().await, fixture.add().await);
        for counter in [&one, &other, &one] {
            let read = fixture.read(counter).await;
            assert!(!read.is_outdated() && fixture.current(counter).is_some());
        }
        assert!(fixture.current(&other).is_none());
    }

    /// An image generator keeps the record that it started with. After the record leaves the cache, the feed reports no
    /// changes to the record, so the record must count as outdated.
    #[tokio::test]
    async fn record_that_leaves_the_cache_is_outdated() {
        for fixture in [Fixture::new(1).await, Fixture::with_max_bytes(10, 1).await] {
            let (one, other) = (fixture.add().await, fixture.add().await);
            let first = fixture.read(&one).await;
            assert!(first.is_current(fixture.records.store().feed(), Duration::ZERO));
            let next = fixture.read(&other).await;
            assert!(first.is_outdated() && !next.is_outdated());
            fixture.set_count(&one, 1).await;
            assert!(!first.is_current(fixture.records.store().feed(), Duration::ZERO));
            assert_eq!(fixture.read(&one).await.record().count, 1);
            assert!(next.is_outdated());
        }
    }

    #[tokio::test]
    async fn change_during_a_read_is_not_hidden_by_its_result() {
        let fixture = Fixture::new(10).await;
        let counter = fixture.add().await;
        let is_overtaken = fixture.cache.0.with_content(|content| content.begin_read(counter.key()));
        let other = fixture.cache.0.with_content(|content| content.begin_read(key_of(0)));
        fixture.set_count(&counter, 1).await;
        assert!(is_overtaken.load(Ordering::Acquire) && !other.load(Ordering::Acquire));
    }

    #[tokio::test]
    async fn checks_of_the_feed_compare_all_records_in_turn() {
        let count = MAX_COMPARED + 10;
        let fixture = Fixture::new(count).await;
        let feed = fixture.records.store().feed();
        fixture.cache.0.with_content(|content| {
            for number in 1..=count {
                let key = key_of(number as u128);
                let now = Instant::now();
                let record = CachedRecord {
                    record: Arc::new(Counter { id: key.id, count: 0 }),
                    generation: 1,
                    len: 0,
                    is_outdated: AtomicBool::new(false),
                    checked: CheckTime::new(now),
                    listening_since: AtomicU64::new(feed.listening_since()),
                };
                content.keep(key, record, now);
            }
        });
        let mut all = BTreeSet::new();
        for expected in [MAX_COMPARED, 10] {
            let compared = fixture.cache.0.cached();
            assert_eq!(compared.len(), expected);
            all.extend(compared);
        }
        assert_eq!(all.len(), count);
        assert_eq!(fixture.cache.0.cached().len(), MAX_COMPARED);
    }
}
