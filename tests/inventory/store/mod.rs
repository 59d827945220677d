//! The guarantees of a store, tested on each database.

mod assessments;
mod check_ins;
mod concurrent;
mod connections;
mod crash;
mod events;
mod hosts;
mod model;
mod opening;
mod paging;
mod records;
mod tls;

use std::env;
use std::process::{Command, Stdio};
use std::sync::Arc;

use kindling::inventory::store::{
    Change, Changes, Columns, FeedEvent, Filter, Key, Kind, Outcome, PageQuery, Position, Record,
    RecordChange, Records, Row, SqlStore, Step, Store,
};
use serde::{Deserialize, Serialize};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqliteConnection};
use tempfile::TempDir;
use uuid::Uuid;

use crate::database::{TestDatabase, postgres_url};

/// A database for a test, and its URL for other clients.
struct StoreFixture {
    store: Arc<dyn Store>,
    url: String,
}

/// Runs a test on a new SQLite file.
fn on_sqlite(test: impl AsyncFn(&StoreFixture)) {
    block_on(test_on_sqlite(test));
}

async fn test_on_sqlite(test: impl AsyncFn(&StoreFixture)) {
    let directory = TempDir::new().unwrap();
    let url = format!("sqlite://{}", directory.path().join("kindling.db").display());
    let fixture = StoreFixture { store: Arc::new(SqlStore::open(&url).await.unwrap()), url };
    test(&fixture).await;
    fixture.store.close().await;
}

/// Runs a test on a new PostgreSQL database, if a server is available.
fn on_postgres(test: impl AsyncFn(&StoreFixture)) {
    block_on(test_on_postgres(test));
}

async fn test_on_postgres(test: impl AsyncFn(&StoreFixture)) {
    let Some(server) = postgres_url() else { return };
    let database = TestDatabase::create(&server).await;
    let url = database.url.clone();
    let fixture = StoreFixture { store: Arc::new(SqlStore::open(&url).await.unwrap()), url };
    test(&fixture).await;
    fixture.store.close().await;
    database.drop().await;
}

/// Runs a test on all databases concurrently.
fn on_each_store(test: impl AsyncFn(&StoreFixture)) {
    block_on(async {
        tokio::join!(test_on_sqlite(&test), test_on_postgres(&test));
    });
}

pub(crate) fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(test);
}

impl StoreFixture {
    fn records(&self) -> Records {
        Records::new(Arc::clone(&self.store))
    }

    async fn commit(&self, steps: impl IntoIterator<Item = Step>) -> Outcome {
        let changes = Changes { steps: steps.into_iter().collect(), events: Vec::new() };
        self.store.commit(changes).await.unwrap()
    }

    async fn commit_steps(&self, steps: impl IntoIterator<Item = Step>) {
        assert_eq!(self.commit(steps).await, Outcome::Done);
    }

    async fn get_row(&self, key: Key) -> Option<Row> {
        self.store.get(key).await.unwrap()
    }

    /// Returns a list, read page by page.
    async fn list_pages(&self, filter: Filter) -> Vec<Vec<Row>> {
        let (mut pages, mut next) = (Vec::new(), Some(Position::START));
        while let Some(after) = next {
            let page = self.store.page(PageQuery::first(filter).after(after)).await.unwrap();
            pages.push(page.rows);
            next = page.next;
        }
        pages
    }

    async fn list_keys(&self, filter: Filter) -> Vec<Key> {
        self.store.list(filter).await.unwrap().into_iter().map(|row| row.key).collect()
    }
}

/// Commits steps, and returns the changes that the feed reports.
async fn reported_changes(
    fixture: &StoreFixture,
    steps: impl IntoIterator<Item = Step>,
) -> Vec<RecordChange> {
    let mut reader = fixture.store.feed().subscribe();
    // A last change, so that the reader does not wait for more.
    let last = new_cluster_key();
    fixture.commit_steps(steps).await;
    fixture.commit_steps([Step::Insert(new_row(last))]).await;
    let mut changes = Vec::new();
    while let Some(event) = reader.next().await {
        match event {
            FeedEvent::Changed(change) if change.key == last => break,
            FeedEvent::Changed(change) => changes.push(change),
            FeedEvent::Resync => panic!("resync"),
        }
    }
    changes
}

fn new_cluster_key() -> Key {
    Key { kind: Kind::Cluster, parent: None, id: Uuid::new_v4() }
}

fn new_infra_env_key() -> Key {
    Key { kind: Kind::InfraEnv, parent: None, id: Uuid::new_v4() }
}

fn new_host_key(infra_env: Key) -> Key {
    Key { kind: Kind::Host, parent: Some(infra_env.id), id: Uuid::new_v4() }
}

fn new_assessment_key() -> Key {
    Key::of_assessment(Uuid::new_v4())
}

/// Returns a newly inserted record.
fn new_row(key: Key) -> Row {
    Row::new(key, r#"{"a":1}"#.to_owned())
}

/// Returns a newly inserted record with searchable columns.
fn row_with(key: Key, columns: Columns) -> Row {
    Row { columns, ..new_row(key) }
}

fn deleted_row(key: Key, generation: i64) -> Row {
    Row { generation, ..row_with(key, Columns { deleted: true, ..Columns::default() }) }
}

/// A record with a counter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CounterRecord {
    id: Uuid,
    count: u64,
}

impl Record for CounterRecord {
    const KIND: Kind = Kind::Cluster;

    fn id(&self) -> Uuid {
        self.id
    }
}

impl CounterRecord {
    async fn new(records: &Records) -> Self {
        let counter = Self { id: Uuid::new_v4(), count: 0 };
        let insertion = records.change(|_| async {
            let mut change = Change::new();
            change.insert(&counter)?;
            Ok((change, ()))
        });
        insertion.await.unwrap();
        counter
    }

    async fn increment(id: Uuid, records: &Records) {
        let changed = records.change(|_| async {
            let mut change = Change::new();
            let mut stored = records.find::<Self>(None, id).await?.unwrap();
            stored.record.count += 1;
            change.replace(&stored.record, stored.generation)?;
            Ok((change, ()))
        });
        changed.await.unwrap();
    }

    async fn count(id: Uuid, records: &Records) -> u64 {
        records.find::<Self>(None, id).await.unwrap().unwrap().record.count
    }
}

/// The variable with the task of a child process.
const TASK: &str = "KINDLING_TEST_TASK";

/// Prepares a process that runs one ignored test of this program. The test gets its task from [`process_task`].
pub(crate) fn test_process(test: &str, task: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "--nocapture", test]).env(TASK, task);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

pub(crate) fn process_task() -> String {
    env::var(TASK).expect("run only as a child process of other tests")
}

/// Runs statements on a database, from outside its store.
pub(crate) async fn run_sql(url: &str, statements: impl Into<String>) {
    let statements = AssertSqlSafe(statements.into());
    if url.starts_with("sqlite:") {
        let mut connection = SqliteConnection::connect(url).await.unwrap();
        connection.execute(statements).await.unwrap();
        connection.close().await.unwrap();
    } else {
        let mut connection = PgConnection::connect(url).await.unwrap();
        connection.execute(statements).await.unwrap();
        connection.close().await.unwrap();
    }
}
