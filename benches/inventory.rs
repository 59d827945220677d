//! Cost of the inventory store on SQLite: reading one of 10,000 infra-envs, writing changes to disk one by one and
//! concurrently, and the start of a server.
//!
//! `cargo bench -p kindling --bench inventory` takes half a minute, with `-- --quick` a few seconds.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench over its own database"
)]

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures_util::future::join_all;
use kindling::inventory::event::{Event, Severity};
use kindling::inventory::id::InfraEnvId;
use kindling::inventory::store::{Changes, Key, Kind, Outcome, Row, SqlStore, Step, Store};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use uuid::Uuid;

const INFRA_ENVS: usize = 10_000;
/// About as long as an infra-env with a pull secret and a key.
const DOCUMENT_LEN: usize = 4 << 10;
const WRITERS: [usize; 2] = [1, 64];

/// A database in a temporary directory on the disk of `target`, not in memory.
struct Bench {
    runtime: Runtime,
    directory: TempDir,
    keys: Vec<Key>,
}

impl Bench {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let directory = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let keys = (0..INFRA_ENVS).map(|_| infra_env()).collect();
        let bench = Self { runtime, directory, keys };
        bench.runtime.block_on(async {
            let store = bench.open().await;
            for keys in bench.keys.chunks(100) {
                let steps = keys.iter().map(|key| Step::Insert(row(*key, 1))).collect();
                commit(&store, Changes { steps, events: Vec::new() }).await;
            }
            store.close().await;
        });
        bench
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("kindling.db")
    }

    async fn open(&self) -> SqlStore {
        SqlStore::open_file(&self.path()).await.unwrap()
    }
}

fn infra_env() -> Key {
    Key { kind: Kind::InfraEnv, parent: None, id: Uuid::new_v4() }
}

fn row(key: Key, generation: i64) -> Row {
    let document = format!("{{\"pull_secret\":\"{}\"}}", "x".repeat(DOCUMENT_LEN));
    Row { generation, ..Row::new(key, document) }
}

async fn commit(store: &SqlStore, changes: Changes) {
    assert_eq!(store.commit(changes).await.unwrap(), Outcome::Done);
}

/// Updates a record and inserts its event, like an operation of the API.
async fn update(store: &SqlStore, key: Key, generation: i64) {
    let event =
        Event::new("updated", Severity::Info, "updated", chrono::Utc::now()).of_infra_env(InfraEnvId(key.id));
    commit(store, Changes { steps: vec![Step::Replace(row(key, generation))], events: vec![event] }).await;
}

/// Measures the work of a starting server: it opens the records and searches for tokens of another key.
fn start(c: &mut Criterion, bench: &Bench) {
    c.bench_function("start, 10000 records", |b| {
        b.iter_custom(|rounds| {
            bench.runtime.block_on(async {
                let mut total = Duration::ZERO;
                for _ in 0..rounds {
                    let start = Instant::now();
                    let store = bench.open().await;
                    let store: &dyn Store = &store;
                    let outdated = store.with_other_token_key(Kind::InfraEnv, None).await.unwrap();
                    assert!(outdated.is_empty());
                    total += start.elapsed();
                    store.close().await;
                }
                total
            })
        });
    });
}

fn get(c: &mut Criterion, bench: &Bench) {
    let store = bench.runtime.block_on(bench.open());
    let mut group = c.benchmark_group("get by key");
    // Visits all records in an order that no cache predicts.
    let mut keys = (0..).map(|number: usize| bench.keys[number.wrapping_mul(7919) % INFRA_ENVS]);
    for readers in [1_usize, 8] {
        group.throughput(Throughput::Elements(readers as u64));
        group.bench_function(BenchmarkId::from_parameter(readers), |b| {
            b.iter(|| {
                let rows = join_all(keys.by_ref().take(readers).map(|key| store.get(key)));
                let rows = bench.runtime.block_on(rows);
                assert!(rows.iter().all(|row| row.as_ref().unwrap().is_some()));
                black_box(rows);
            });
        });
    }
    group.finish();
    bench.runtime.block_on(store.close());
}

fn commits(c: &mut Criterion, bench: &Bench) {
    let store = bench.runtime.block_on(bench.open());
    let mut group = c.benchmark_group("durable commit");
    for writers in WRITERS {
        let keys: Vec<_> = (0..writers).map(|_| infra_env()).collect();
        let mut generation = 1;
        let steps = keys.iter().map(|key| Step::Insert(row(*key, 1))).collect();
        bench.runtime.block_on(commit(&store, Changes { steps, events: Vec::new() }));
        group.throughput(Throughput::Elements(writers as u64));
        group.bench_function(BenchmarkId::from_parameter(writers), |b| {
            b.iter(|| {
                generation += 1;
                bench.runtime.block_on(join_all(keys.iter().map(|key| update(&store, *key, generation))));
            });
        });
    }
    group.finish();
    bench.runtime.block_on(store.close());
}

fn all(c: &mut Criterion) {
    let bench = Bench::new();
    start(c, &bench);
    get(c, &bench);
    commits(c, &bench);
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(5)).sample_size(20);
    targets = all
}
criterion_main!(benches);
