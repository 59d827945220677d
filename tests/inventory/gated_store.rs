//! A store that can stop assessments of clusters at one point.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kindling::inventory::Inventory;
use kindling::inventory::store::{
    Changes, Feed, Filter, Key, Kind, Outcome, PageQuery, Query, Reservation, Row, RowPage, SqlStore, Step,
    Store, StoreError, StoreMetrics,
};
use tempfile::TempDir;
use tokio::sync::watch;

use crate::service::{TestService, inventory_on_store};

/// Maximum time until an assessment arrives at the gate.
const PATIENCE: Duration = Duration::from_secs(60);

/// The point at which assessments are stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// Before the commit.
    Commit,
    /// Before the store reads the record of the cluster. A new replica reads it twice: for its view, and afterwards.
    ClusterRead,
}

/// The effect of the gate on an assessment that arrives at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    Open,
    /// The assessment waits until the gate is open.
    Closed,
    /// The assessment waits, except for the given number of first arrivals.
    ClosedAfter(usize),
    /// The assessment fails.
    Broken,
}

impl Gate {
    /// Returns `true` if the arrival with this number must wait.
    fn stops(self, number: usize) -> bool {
        match self {
            Self::Open | Self::Broken => false,
            Self::Closed => true,
            Self::ClosedAfter(first) => number > first,
        }
    }
}

/// The store of a service, with a gate.
#[derive(Debug)]
pub(crate) struct GatedStore {
    store: Arc<dyn Store>,
    /// The store whose feed reports the changes of this store.
    feed_store: Arc<dyn Store>,
    _directory: Option<TempDir>,
    point: Point,
    gate: watch::Sender<Gate>,
    /// Number of assessments that have arrived at the gate.
    arrivals: watch::Sender<usize>,
}

impl GatedStore {
    /// Creates a store with an open gate, and an inventory on it. The inventory is a second replica of the service,
    /// with the same feed.
    pub(crate) fn new(service: &TestService, point: Point) -> (Arc<Self>, Inventory) {
        let feed_store = Arc::clone(service.inventory.records().store());
        Self::with_feed_of(feed_store, None, service, point)
    }

    /// Opens the inventory of a replica that receives no notifications of changes.
    pub(crate) async fn without_notifications(service: &TestService) -> Inventory {
        let directory = TempDir::new().unwrap();
        let unused = SqlStore::open_file(&directory.path().join("unused.db")).await.unwrap();
        Self::with_feed_of(Arc::new(unused), Some(directory), service, Point::Commit).1
    }

    fn with_feed_of(
        feed_store: Arc<dyn Store>,
        directory: Option<TempDir>,
        service: &TestService,
        point: Point,
    ) -> (Arc<Self>, Inventory) {
        let store = Arc::clone(service.inventory.records().store());
        let (gate, arrivals) = (watch::Sender::new(Gate::Open), watch::Sender::new(0));
        let gated = Arc::new(Self { store, feed_store, _directory: directory, point, gate, arrivals });
        let store: Arc<dyn Store> = Arc::<Self>::clone(&gated);
        (gated, inventory_on_store(store, service))
    }

    pub(crate) fn set(&self, gate: Gate) {
        self.gate.send_replace(gate);
    }

    pub(crate) fn arrivals(&self) -> usize {
        *self.arrivals.borrow()
    }

    /// Waits until this many assessments have arrived at the gate.
    pub(crate) async fn wait_for_arrivals(&self, number: usize) {
        let mut arrivals = self.arrivals.subscribe();
        let arrived = arrivals.wait_for(|arrived| *arrived >= number);
        tokio::time::timeout(PATIENCE, arrived).await.unwrap().unwrap();
    }

    async fn pass(&self, point: Point) -> Result<(), StoreError> {
        if point != self.point {
            return Ok(());
        }
        let mut number = 0;
        self.arrivals.send_modify(|arrivals| {
            *arrivals += 1;
            number = *arrivals;
        });
        let mut gates = self.gate.subscribe();
        let gate = *gates.wait_for(|gate| !gate.stops(number)).await.unwrap();
        if gate == Gate::Broken { Err(StoreError::Contended) } else { Ok(()) }
    }
}

/// Returns `true` if a step writes the assessment of a cluster.
fn writes_assessment(step: &Step) -> bool {
    matches!(step, Step::Insert(row) | Step::Replace(row) if row.key.kind == Kind::Assessment)
}

#[async_trait]
impl Store for GatedStore {
    async fn get(&self, key: Key) -> Result<Option<Row>, StoreError> {
        if key.kind == Kind::Cluster {
            self.pass(Point::ClusterRead).await?;
        }
        self.store.get(key).await
    }

    async fn list(&self, filter: Filter) -> Result<Vec<Row>, StoreError> {
        self.store.list(filter).await
    }

    async fn page(&self, query: PageQuery) -> Result<RowPage, StoreError> {
        self.store.page(query).await
    }

    async fn query(&self, query: Query<'_>) -> Result<(), StoreError> {
        self.store.query(query).await
    }

    async fn commit(&self, changes: Changes) -> Result<Outcome, StoreError> {
        if changes.steps.iter().any(writes_assessment) {
            self.pass(Point::Commit).await?;
        }
        self.store.commit(changes).await
    }

    async fn reserve(&self, keys: &BTreeSet<Key>) -> Result<Option<Box<dyn Reservation>>, StoreError> {
        self.store.reserve(keys).await
    }

    fn metrics(&self) -> &StoreMetrics {
        self.store.metrics()
    }

    fn feed(&self) -> &Feed {
        self.feed_store.feed()
    }

    fn is_alone(&self) -> bool {
        self.store.is_alone()
    }

    async fn check_usable(&self) -> Result<(), StoreError> {
        self.store.check_usable().await
    }

    async fn close(&self) {
        self.store.close().await;
    }
}
