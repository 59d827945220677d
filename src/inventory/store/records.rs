//! Records as values: read, changed and written with the generation that they were read at.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::RwLock;
use uuid::Uuid;

use super::{
    Bound, Changes, Filter, Key, Kind, Outcome, Position, Row, Step, Store, StoreError, counted_size,
};
use crate::api_error::ApiError;
use crate::inventory::event::Event;

/// A value that is kept as a record.
pub trait Record: Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static {
    /// Its kind.
    const KIND: Kind;

    /// Its id.
    fn id(&self) -> Uuid;

    /// The record that it is part of.
    fn parent(&self) -> Option<Uuid> {
        None
    }

    /// The cluster that it belongs to.
    fn cluster(&self) -> Option<Uuid> {
        None
    }

    /// The key that the token in its URLs is signed with.
    fn token_key(&self) -> Option<Uuid> {
        None
    }

    /// Whether it is deleted, and kept for a while.
    fn is_deleted(&self) -> bool {
        false
    }

    /// What names it.
    fn key(&self) -> Key {
        Key { kind: Self::KIND, parent: self.parent(), id: self.id() }
    }
}

/// A record, and how often it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored<R> {
    /// The record.
    pub record: R,
    /// Its generation.
    pub generation: i64,
    /// What it counts against a [`Bound`].
    pub size: u64,
}

/// The records of a store.
#[derive(Clone, Debug)]
pub struct Records {
    store: Arc<dyn Store>,
    changes: Arc<AtomicU64>,
    /// Held by changes beside each other, or by one that goes alone.
    road: Arc<RwLock<()>>,
}

/// How often a change meets others before it goes alone.
const ATTEMPTS_AMONG_OTHERS: u64 = 2;

/// How often a change starts anew before it gives up. Only other processes can overtake one that goes alone.
const MOST_ATTEMPTS: u64 = 100;

impl Records {
    /// Over a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, changes: Arc::default(), road: Arc::default() }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// One record, also if it is deleted.
    ///
    /// # Errors
    ///
    /// When the database fails, or holds something that is no such record.
    pub async fn find<R: Record>(
        &self,
        parent: Option<Uuid>,
        id: Uuid,
    ) -> Result<Option<Stored<R>>, StoreError> {
        let row = self.store.get(Key { kind: R::KIND, parent, id }).await?;
        row.map(decode).transpose()
    }

    /// The records that a filter names, in the order of their making.
    ///
    /// # Errors
    ///
    /// When the database fails, or holds something that is no such record.
    pub async fn list<R: Record>(&self, filter: Filter) -> Result<Vec<Stored<R>>, StoreError> {
        self.store.list(filter).await?.into_iter().map(decode).collect()
    }

    /// Those records one after the other, in the same order. They are read page by page as the stream is polled: one that is
    /// added or removed meanwhile may or may not be among them.
    pub fn stream<R: Record>(&self, filter: Filter) -> BoxStream<'static, Result<Stored<R>, StoreError>> {
        let store = Arc::clone(&self.store);
        let pages = stream::try_unfold(Some(Position::START), move |position| {
            let store = Arc::clone(&store);
            async move {
                let Some(after) = position else { return Ok(None) };
                let page = store.page(filter, after).await?;
                Ok(Some((stream::iter(page.rows.into_iter().map(decode)), page.next)))
            }
        });
        pages.try_flatten().boxed()
    }

    /// Does what `plan` says, and gives what it gives beside the change. The plan reads what it needs and is asked anew
    /// whenever another change was faster; it must not do anything else.
    ///
    /// # Errors
    ///
    /// When the plan refuses, or the database fails.
    pub async fn change<T, F>(&self, plan: impl Fn() -> F) -> Result<T, ApiError>
    where
        F: Future<Output = Result<(Change, T), ApiError>>,
    {
        for attempt in 0..MOST_ATTEMPTS {
            // Otherwise those who are never overtaken could be faster than the same other one for ever.
            let (_among_others, _alone);
            if attempt < ATTEMPTS_AMONG_OTHERS {
                _among_others = self.road.read().await;
            } else {
                _alone = self.road.write().await;
            }
            let (change, value) = plan().await?;
            if change.is_empty() {
                return Ok(value);
            }
            match (self.commit(change.changes).await?, change.out_of_bounds) {
                (Outcome::Done, _) => return Ok(value),
                (Outcome::OutOfBounds, Some(refusal)) => return Err(refusal),
                (Outcome::Overtaken | Outcome::OutOfBounds, _) => {}
            }
        }
        Err(StoreError::Contended.into())
    }

    /// How many changes went through these records. One that is done is counted before anybody hears of it.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    async fn commit(&self, changes: Changes) -> Result<Outcome, StoreError> {
        let has_steps = !changes.steps.is_empty();
        let outcome = self.store.commit(changes).await;
        // Also one that failed: it may be on the disk all the same.
        if has_steps {
            self.changes.fetch_add(1, Ordering::Release);
        }
        outcome
    }

    /// Tells something that goes with no change of a record.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn tell(&self, event: Event) -> Result<(), StoreError> {
        let changes = Changes { steps: Vec::new(), events: vec![event] };
        match self.commit(changes).await? {
            Outcome::Done => Ok(()),
            Outcome::Overtaken | Outcome::OutOfBounds => Err(StoreError::Contended),
        }
    }
}

/// What an operation is about to do.
#[derive(Debug, Default)]
pub struct Change {
    changes: Changes,
    /// Why it is refused if it exceeds a bound.
    out_of_bounds: Option<ApiError>,
}

impl Change {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn is_empty(&self) -> bool {
        self.changes.steps.is_empty() && self.changes.events.is_empty()
    }

    /// A record that is new.
    pub fn insert<R: Record>(&mut self, record: &R) {
        self.changes.steps.push(Step::Insert(encode(record, 1)));
    }

    /// A record takes the place of what was read. Returns what it counts against a [`Bound`].
    pub fn replace<R: Record>(&mut self, record: &R, read_at: i64) -> u64 {
        let row = encode(record, read_at.saturating_add(1));
        let size = counted_size(&row.document);
        self.changes.steps.push(Step::Replace(row));
        size
    }

    /// A record goes.
    pub fn remove<R: Record>(&mut self, stored: &Stored<R>) {
        self.changes.steps.push(Step::Remove(stored.record.key(), stored.generation));
    }

    /// A record has to be there when the change happens.
    pub fn require<R: Record>(&mut self, record: &R) {
        self.changes.steps.push(Step::Require(record.key()));
    }

    /// No such record may be there when the change happens.
    pub fn require_none(&mut self, filter: Filter) {
        self.changes.steps.push(Step::RequireNone(filter));
    }

    /// The change is refused if the parts of a record are not within a bound afterwards.
    pub fn require_within(&mut self, bound: Bound, refusal: ApiError) {
        self.changes.steps.push(Step::RequireWithin(bound));
        self.out_of_bounds = Some(refusal);
    }

    /// Tells something.
    pub fn tell(&mut self, event: Event) {
        self.changes.events.push(event);
    }
}

fn encode<R: Record>(record: &R, generation: i64) -> Row {
    // Records are made of texts, numbers, lists and maps with texts as keys: these always have a JSON form.
    let document = serde_json::to_string(record).unwrap_or_default();
    Row {
        key: record.key(),
        cluster: record.cluster(),
        token_key: record.token_key(),
        deleted: record.is_deleted(),
        generation,
        document,
    }
}

fn decode<R: Record>(row: Row) -> Result<Stored<R>, StoreError> {
    let record =
        serde_json::from_str(&row.document).map_err(|source| StoreError::Damaged { key: row.key, source })?;
    Ok(Stored { record, generation: row.generation, size: counted_size(&row.document) })
}
