//! The change feed of a store, and the subscriptions to it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::broadcast;
use uuid::Uuid;

use super::cache::FeedCache;
use super::contact::{Contact, ContactState};
use super::event::{FeedEvent, RecordChange};
use super::metrics::FeedMetrics;
use super::recent::{FeedPosition, RecentEvents, Subscription};
use super::undecided::UndecidedChanges;
use crate::store::StoreError;

/// The change feed of a store. Clones share the same feed.
#[derive(Clone, Debug)]
pub struct Feed(pub(super) Arc<FeedParts>);

#[derive(Debug)]
pub(super) struct FeedParts {
    /// A random number that identifies this store among all replicas.
    pub(super) origin: u64,
    /// Whether other processes can change the database.
    is_shared: bool,
    started: Instant,
    last_sequence: AtomicU64,
    undecided: Mutex<UndecidedChanges>,
    recent: Mutex<RecentEvents>,
    caches: Mutex<Vec<Weak<dyn FeedCache>>>,
    pub(super) contact: ContactState,
    pub(super) metrics: FeedMetrics,
}

impl Feed {
    pub(in crate::store) fn of_own_database() -> Self {
        Self::new(false, Contact::Connected)
    }

    pub(in crate::store) fn of_shared_database() -> Self {
        Self::new(true, Contact::Polling)
    }

    fn new(is_shared: bool, contact: Contact) -> Self {
        let started = Instant::now();
        Self(Arc::new(FeedParts {
            origin: Uuid::new_v4().as_u64_pair().0,
            is_shared,
            started,
            last_sequence: AtomicU64::new(0),
            undecided: Mutex::default(),
            recent: Mutex::new(RecentEvents::new()),
            caches: Mutex::default(),
            contact: ContactState::new(contact, started),
            metrics: FeedMetrics::default(),
        }))
    }

    /// Returns a subscription to all events from now on.
    #[must_use]
    pub fn subscribe(&self) -> FeedReader {
        self.reader(self.with_recent(|recent| recent.subscribe()))
    }

    /// Returns a subscription to all events after a position. Returns `None` if the position is from another process,
    /// or if the feed no longer has all events after it.
    #[must_use]
    pub fn subscribe_after(&self, position: FeedPosition) -> Option<FeedReader> {
        if position.origin != self.0.origin {
            return None;
        }
        self.with_recent(|recent| recent.subscribe_after(position.number))
            .map(|subscription| self.reader(subscription))
    }

    fn reader(&self, subscription: Subscription) -> FeedReader {
        let Subscription { receiver, missed, count } = subscription;
        FeedReader { receiver, missed, position: FeedPosition { origin: self.0.origin, number: count } }
    }

    /// Adds a cache. The feed holds no strong reference, and forgets the cache when it is dropped.
    pub fn add_cache(&self, cache: &Arc<dyn FeedCache>) {
        let mut caches = self.0.caches.lock().unwrap_or_else(PoisonError::into_inner);
        caches.retain(|cache| cache.strong_count() > 0);
        caches.push(Arc::downgrade(cache));
    }

    /// Returns the current contact with the database.
    #[must_use]
    pub fn contact(&self) -> Contact {
        self.0.contact.get()
    }

    /// Returns the contact with the database. If the feed is reconnecting, waits until the reconnection succeeds,
    /// fails, or has taken `patience`.
    pub async fn settled_contact(&self, patience: Duration) -> Contact {
        self.0.contact.wait_until_settled(patience).await
    }

    /// Returns the time since cached records were last confirmed to be current. Always zero if no other process can
    /// change the database.
    #[must_use]
    pub fn silence(&self) -> Duration {
        if self.0.is_shared { self.0.contact.silence() } else { Duration::ZERO }
    }

    /// Returns `true` if other processes can change the database.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.0.is_shared
    }

    /// Returns how many times the feed has begun to listen. If the number changes while a cache reads a record, the
    /// cache must not keep the record, because notifications may have been lost in between.
    #[must_use]
    pub fn listening_since(&self) -> u64 {
        self.0.contact.times_listening()
    }

    /// Waits for the result of an operation. Fails immediately if the database is unreachable, or as soon as it becomes
    /// unreachable.
    pub(in crate::store) async fn while_reachable<T>(
        &self,
        doing: &'static str,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        tokio::select! {
            biased;
            () = self.0.contact.unreachable() => Err(StoreError::Outage { doing }),
            result = work => result,
        }
    }

    /// Returns the measurements of the feed.
    #[must_use]
    pub fn metrics(&self) -> &FeedMetrics {
        &self.0.metrics
    }

    pub(super) fn caches(&self) -> Vec<Arc<dyn FeedCache>> {
        let caches = self.0.caches.lock().unwrap_or_else(PoisonError::into_inner);
        caches.iter().filter_map(Weak::upgrade).collect()
    }

    /// Publishes committed changes, and changes whose commit may have succeeded.
    pub(in crate::store) fn publish(&self, changes: &[RecordChange]) {
        if changes.is_empty() {
            return;
        }
        let caches = self.caches();
        for change in changes {
            caches.iter().for_each(|cache| cache.drop_changed(change));
            self.with_recent(|recent| recent.send(FeedEvent::Changed(*change)));
        }
    }

    /// Publishes that events were lost. Unlike [`publish`](Self::publish), this does not notify the caches, which are
    /// compared with the database instead.
    pub(super) fn publish_resync(&self) {
        self.0.metrics.add_resync();
        self.with_recent(|recent| recent.send(FeedEvent::Resync));
    }

    /// Returns the sequence number for this process's next message.
    pub(super) fn next_sequence(&self) -> u64 {
        self.0.last_sequence.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Returns the time for a message header, in microseconds since the feed was created. Other replicas ignore this
    /// time.
    pub(super) fn clock_micros(&self) -> u64 {
        u64::try_from(self.0.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn with_recent<T>(&self, use_it: impl FnOnce(&mut RecentEvents) -> T) -> T {
        // After a panic, some subscribers may miss an event, as if its notification had been lost.
        use_it(&mut self.0.recent.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn with_undecided<T>(&self, use_it: impl FnOnce(&mut UndecidedChanges) -> T) -> T {
        // A panic leaves the changes consistent: at worst, an event is reported twice.
        use_it(&mut self.0.undecided.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A subscription to the feed.
#[derive(Debug)]
pub struct FeedReader {
    pub(super) receiver: broadcast::Receiver<FeedEvent>,
    /// Events from before the receiver was created.
    missed: VecDeque<FeedEvent>,
    position: FeedPosition,
}

impl FeedReader {
    /// Waits for the next event. Returns `None` after the store has been dropped. This method is cancel safe.
    pub async fn next(&mut self) -> Option<FeedEvent> {
        let event = match self.missed.pop_front() {
            Some(missed) => Ok(missed),
            None => self.receiver.recv().await,
        };
        let (event, read) = match event {
            Ok(event) => (event, 1),
            Err(broadcast::error::RecvError::Lagged(lost)) => (FeedEvent::Resync, lost),
            Err(broadcast::error::RecvError::Closed) => return None,
        };
        self.position.number = self.position.number.wrapping_add(read);
        Some(event)
    }

    /// Returns the position after the last event returned by [`next`](Self::next).
    #[must_use]
    pub fn position(&self) -> FeedPosition {
        self.position
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::ChangeKind;
    use super::super::recent::MAX_BEHIND;
    use super::*;
    use crate::store::{Key, Kind, Row, Step};

    fn key() -> Key {
        Key { kind: Kind::InfraEnv, parent: None, id: Uuid::new_v4() }
    }

    fn written(generation: i64) -> RecordChange {
        RecordChange { key: key(), generation, kind: ChangeKind::Written }
    }

    #[derive(Debug, Default)]
    struct Recorder(Mutex<Vec<RecordChange>>);

    impl FeedCache for Recorder {
        fn cached(&self) -> Vec<(Key, i64)> {
            Vec::new()
        }

        fn drop_changed(&self, change: &RecordChange) {
            self.0.lock().unwrap().push(*change);
        }

        fn drop_all(&self) {}
    }

    #[test]
    fn only_writes_of_records_are_changes() {
        let key = key();
        let row = Row { generation: 7, ..Row::new(key, String::new()) };
        let changes = |step: &Step| RecordChange::from_step(step, 99).collect::<Vec<_>>();
        let change = |generation, kind| [RecordChange { key, generation, kind }];
        assert_eq!(changes(&Step::Insert(row.clone())), change(7, ChangeKind::Written));
        assert_eq!(changes(&Step::Replace(row)), change(7, ChangeKind::Written));
        assert_eq!(changes(&Step::Remove(key, 7)), change(7, ChangeKind::Removed));
        for read in [Step::Require(key), Step::RequireAt(key, 3)] {
            assert_eq!(changes(&read), []);
        }
    }

    #[tokio::test]
    async fn subscriber_gets_changes_in_order_and_resync_if_it_falls_behind() {
        let feed = Feed::of_own_database();
        let mut reader = feed.subscribe();
        let changes = [written(1), written(2)];
        feed.publish(&changes);
        for change in changes {
            assert_eq!(reader.next().await, Some(FeedEvent::Changed(change)));
        }
        for _ in 0..=MAX_BEHIND {
            feed.publish(&changes[..1]);
        }
        assert_eq!(reader.next().await, Some(FeedEvent::Resync));
        assert_eq!(reader.next().await, Some(FeedEvent::Changed(changes[0])));
        drop(feed);
        let mut last = None;
        while let Some(event) = reader.next().await {
            last = Some(event);
        }
        assert_eq!(last, Some(FeedEvent::Changed(changes[0])));
    }

    #[tokio::test]
    async fn subscriber_continues_where_it_stopped() {
        let feed = Feed::of_own_database();
        let changes: Vec<_> = (1..=5).map(written).collect();
        feed.publish(&changes[..1]);
        let mut reader = feed.subscribe();
        feed.publish(&changes[1..3]);
        assert_eq!(reader.next().await, Some(FeedEvent::Changed(changes[1])));
        let position = FeedPosition::parse(&reader.position().to_string()).unwrap();
        assert_eq!(position, reader.position());
        drop(reader);
        feed.publish(&changes[3..4]);
        let mut reader = feed.subscribe_after(position).unwrap();
        feed.publish(&changes[4..]);
        for change in &changes[2..] {
            assert_eq!(reader.next().await, Some(FeedEvent::Changed(*change)));
        }
        assert_eq!(reader.position().number, 5);
        // The feed retains only the latest `MAX_BEHIND` events.
        let of_number = |number| FeedPosition { number, ..position };
        for _ in 0..MAX_BEHIND {
            feed.publish(&changes[..1]);
        }
        let mut oldest = feed.subscribe_after(of_number(5)).unwrap();
        assert_eq!(oldest.next().await, Some(FeedEvent::Changed(changes[0])));
        assert!(feed.subscribe_after(of_number(4)).is_none());
        let last = u64::try_from(MAX_BEHIND).unwrap() + 5;
        assert!(feed.subscribe_after(of_number(last)).is_some());
        // Positions in the future and positions of another process are invalid.
        assert!(feed.subscribe_after(of_number(last + 1)).is_none());
        assert!(Feed::of_own_database().subscribe_after(position).is_none());
        // A subscriber that falls behind gets a resync and continues after it.
        feed.publish(&changes[..1]);
        let mut behind = feed.subscribe_after(of_number(6)).unwrap();
        for _ in 0..=MAX_BEHIND {
            feed.publish(&changes[..1]);
        }
        while behind.next().await != Some(FeedEvent::Resync) {}
        assert_eq!(behind.next().await, Some(FeedEvent::Changed(changes[0])));
        let place = behind.position();
        feed.publish(&changes[1..2]);
        let mut again = feed.subscribe_after(place).unwrap();
        for reader in [&mut behind, &mut again] {
            let mut last = None;
            while reader.position().number < 2 * last_number() + 8 {
                last = reader.next().await;
            }
            assert_eq!(last, Some(FeedEvent::Changed(changes[1])));
        }
    }

    fn last_number() -> u64 {
        u64::try_from(MAX_BEHIND).unwrap()
    }

    #[test]
    fn rejects_invalid_positions() {
        for text in ["", "1", "-", "1-", "-1", "x-1", "1-x", "1-1-1", "10000000000000000-1", "1--1"] {
            assert_eq!(FeedPosition::parse(text), None, "{text}");
        }
    }

    #[test]
    fn caches_are_called_until_they_are_dropped() {
        let feed = Feed::of_own_database();
        let recorder = Arc::new(Recorder::default());
        let cache: Arc<dyn FeedCache> = Arc::<Recorder>::clone(&recorder);
        feed.add_cache(&cache);
        let change = written(1);
        feed.publish(&[change]);
        assert_eq!(*recorder.0.lock().unwrap(), [change]);
        drop((cache, recorder));
        assert!(feed.caches().is_empty());
    }
}
