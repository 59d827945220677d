//! What a store promises, tried on each database.

mod concurrent;
mod crash;
mod events;
mod model;
mod opening;
mod paging;
mod records;
mod tls;

use std::env;
use std::process::{Command, Stdio};
use std::sync::Arc;

use kindling::inventory::store::{
    Change, Changes, Filter, Key, Kind, Outcome, Position, Record, Records, Row, SqlStore, Step, Store,
};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use uuid::Uuid;

use crate::database::{Database, postgres};

/// A database for a test, and how to reach it from elsewhere.
struct Fixture {
    store: Arc<SqlStore>,
    url: String,
}

/// Runs a test on a new SQLite file.
fn on_sqlite(test: impl AsyncFn(&Fixture)) {
    block_on(async {
        let directory = TempDir::new().unwrap();
        let url = format!("sqlite://{}", directory.path().join("kindling.db").display());
        let fixture = Fixture { store: Arc::new(SqlStore::open(&url).await.unwrap()), url };
        test(&fixture).await;
        fixture.store.close().await;
    });
}

/// Runs a test on a new PostgreSQL database, if there is a server.
fn on_postgres(test: impl AsyncFn(&Fixture)) {
    let Some(server) = postgres() else { return };
    block_on(async {
        let database = Database::create(&server).await;
        let url = database.url.clone();
        let fixture = Fixture { store: Arc::new(SqlStore::open(&url).await.unwrap()), url };
        test(&fixture).await;
        fixture.store.close().await;
        database.drop().await;
    });
}

/// Runs a test on each database.
fn on_each_store(test: impl AsyncFn(&Fixture)) {
    on_sqlite(&test);
    on_postgres(&test);
}

pub(crate) fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(test);
}

impl Fixture {
    fn records(&self) -> Records {
        Records::new(Arc::<SqlStore>::clone(&self.store))
    }

    async fn commit(&self, steps: impl IntoIterator<Item = Step>) -> Outcome {
        let changes = Changes { steps: steps.into_iter().collect(), events: Vec::new() };
        self.store.commit(changes).await.unwrap()
    }

    async fn done(&self, steps: impl IntoIterator<Item = Step>) {
        assert_eq!(self.commit(steps).await, Outcome::Done);
    }

    async fn get(&self, key: Key) -> Option<Row> {
        self.store.get(key).await.unwrap()
    }

    /// A list, page by page.
    async fn pages(&self, filter: Filter) -> Vec<Vec<Row>> {
        let (mut pages, mut next) = (Vec::new(), Some(Position::START));
        while let Some(after) = next {
            let page = self.store.page(filter, after).await.unwrap();
            pages.push(page.rows);
            next = page.next;
        }
        pages
    }

    async fn keys(&self, filter: Filter) -> Vec<Key> {
        self.store.list(filter).await.unwrap().into_iter().map(|row| row.key).collect()
    }
}

fn cluster() -> Key {
    Key { kind: Kind::Cluster, parent: None, id: Uuid::new_v4() }
}

fn infra_env() -> Key {
    Key { kind: Kind::InfraEnv, parent: None, id: Uuid::new_v4() }
}

fn host_of(infra_env: Key) -> Key {
    Key { kind: Kind::Host, parent: Some(infra_env.id), id: Uuid::new_v4() }
}

/// A record as it is when it was just inserted.
fn row(key: Key) -> Row {
    Row {
        key,
        cluster: None,
        token_key: None,
        deleted: false,
        generation: 1,
        document: r#"{"a":1}"#.to_owned(),
    }
}

fn deleted(key: Key, generation: i64) -> Row {
    Row { deleted: true, generation, ..row(key) }
}

/// A record that counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Counter {
    id: Uuid,
    count: u64,
}

impl Record for Counter {
    const KIND: Kind = Kind::Cluster;

    fn id(&self) -> Uuid {
        self.id
    }
}

impl Counter {
    async fn new(records: &Records) -> Self {
        let counter = Self { id: Uuid::new_v4(), count: 0 };
        let made = records.change(|| async {
            let mut change = Change::new();
            change.insert(&counter);
            Ok((change, ()))
        });
        made.await.unwrap();
        counter
    }

    async fn increment(id: Uuid, records: &Records) {
        let changed = records.change(|| async {
            let mut change = Change::new();
            let mut stored = records.find::<Self>(None, id).await?.unwrap();
            stored.record.count += 1;
            change.replace(&stored.record, stored.generation);
            Ok((change, ()))
        });
        changed.await.unwrap();
    }

    async fn count(id: Uuid, records: &Records) -> u64 {
        records.find::<Self>(None, id).await.unwrap().unwrap().record.count
    }
}

/// What a test tells a process of its own.
const TASK: &str = "KINDLING_TEST_TASK";

/// A process that runs one ignored test of this program, which finds its task with [`task`].
pub(crate) fn process(test: &str, task: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "--nocapture", test]).env(TASK, task);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

pub(crate) fn task() -> String {
    env::var(TASK).expect("this is no test but a part of others, which run it")
}
