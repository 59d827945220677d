//! Concurrent changes: no change is lost or applied partially.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use kindling::inventory::event::{Event, EventQuery, Severity};
use kindling::inventory::store::{
    Change, Changes, Filter, Key, Kind, Outcome, Reader as _, Record as _, Records, Row, SqlStore, Step,
    Store, StoreError, Stored,
};
use sqlx::{Connection, Executor, PgConnection};
use uuid::Uuid;

use super::{
    CounterRecord, StoreFixture, block_on, deleted_row, new_cluster_key, new_host_key, new_infra_env_key,
    new_row, on_each_store, on_postgres, on_sqlite, process_task, run_sql, test_process,
};

const EACH: u64 = 200;

#[test]
fn concurrent_increments_are_not_lost() {
    on_each_store(async |fixture| {
        let records = fixture.records();
        let id = CounterRecord::new(&records).await.id;
        let first = records.find::<CounterRecord>(None, id).await.unwrap().unwrap().generation;
        let tasks = (0..2).map(|_| {
            let records = records.clone();
            tokio::spawn(async move {
                for _ in 0..EACH {
                    CounterRecord::increment(id, &records).await;
                }
            })
        });
        join_all(tasks).await.into_iter().for_each(Result::unwrap);
        assert_eq!(CounterRecord::count(id, &records).await, 2 * EACH);
        let last = records.find::<CounterRecord>(None, id).await.unwrap().unwrap().generation;
        assert_eq!(last, first + 400);
    });
}

#[test]
fn many_writers_of_one_record_all_succeed() {
    on_each_store(async |fixture| {
        let records = fixture.records();
        let id = CounterRecord::new(&records).await.id;
        join_all((0..150).map(|_| CounterRecord::increment(id, &records))).await;
        assert_eq!(CounterRecord::count(id, &records).await, 150);
    });
}

#[test]
fn two_processes_lose_no_increment() {
    on_postgres(async |fixture| {
        let records = fixture.records();
        let id = CounterRecord::new(&records).await.id;
        let task = format!("{} {id}", fixture.url);
        let children: Vec<_> = (0..2)
            .map(|_| test_process("store::concurrent::process_that_increments", &task).spawn().unwrap())
            .collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
        assert_eq!(CounterRecord::count(id, &records).await, 2 * EACH);
    });
}

#[test]
#[ignore = "a process of two_processes_on_one_server_lose_no_increment"]
fn process_that_increments() {
    let task = process_task();
    let (url, id) = task.split_once(' ').unwrap();
    block_on(async {
        let records = Records::new(Arc::new(SqlStore::open(url).await.unwrap()));
        for _ in 0..EACH {
            CounterRecord::increment(id.parse().unwrap(), &records).await;
        }
    });
}

/// Opens the records of one database in two replicas. On SQLite, which supports a single store, both replicas use the
/// same store.
async fn two_replicas(fixture: &StoreFixture) -> [Records; 2] {
    if fixture.store.is_alone() {
        let records = fixture.records();
        return [records.clone(), records];
    }
    let other = SqlStore::open(&fixture.url).await.unwrap();
    [fixture.records(), Records::new(Arc::new(other))]
}

/// Sets a counter to 1 unless one of the others is set.
async fn set_unless(records: &Records, id: Uuid, others: &[Uuid]) {
    let changed = records.change(|reads| async move {
        let mut change = Change::new();
        for other in others {
            let other: Stored<CounterRecord> = reads.find(None, *other).await?.unwrap();
            if other.record.count > 0 {
                return Ok((change, ()));
            }
        }
        let mut own: Stored<CounterRecord> = reads.find(None, id).await?.unwrap();
        own.record.count = 1;
        change.replace(&own.record, own.generation)?;
        Ok((change, ()))
    });
    changed.await.unwrap();
}

/// At most one of several records may be set. Each change reads all records and writes one, so no two changes write the
/// same record.
#[test]
fn decision_on_several_records_holds_at_the_commit() {
    on_each_store(async |fixture| {
        let replicas = two_replicas(fixture).await;
        for round in 0..60 {
            let mut ids = Vec::new();
            for _ in 0..2 + round % 3 {
                ids.push(CounterRecord::new(&replicas[0]).await.id);
            }
            let changes = ids.iter().enumerate().map(|(number, id)| {
                let others: Vec<_> = ids.iter().copied().filter(|other| other != id).collect();
                let records = replicas[(number + round) % 2].clone();
                async move { set_unless(&records, *id, &others).await }
            });
            join_all(changes).await;
            let mut set = 0;
            for id in ids {
                set += CounterRecord::count(id, &replicas[0]).await;
            }
            assert_eq!(set, 1, "round {round}");
        }
        replicas[1].store().close().await;
    });
}

/// Inserts a counter unless another one exists.
async fn insert_unless_exists(records: &Records, own: &CounterRecord, other: Uuid) {
    let created = records.change(|reads| async move {
        let mut change = Change::new();
        if reads.find::<CounterRecord>(None, other).await?.is_none() {
            change.insert(own)?;
        }
        Ok((change, ()))
    });
    created.await.unwrap();
}

/// A decision depends on the absence of a record: only one of two records is created.
#[test]
fn absent_record_is_still_absent_at_the_commit() {
    on_each_store(async |fixture| {
        let replicas = two_replicas(fixture).await;
        for round in 0..60 {
            let counters = [0, 1].map(|count| CounterRecord { id: Uuid::new_v4(), count });
            tokio::join!(
                insert_unless_exists(&replicas[0], &counters[0], counters[1].id),
                insert_unless_exists(&replicas[1], &counters[1], counters[0].id)
            );
            let mut created = 0;
            for counter in &counters {
                let stored = fixture.records().find::<CounterRecord>(None, counter.id).await.unwrap();
                created += usize::from(stored.is_some());
            }
            assert_eq!(created, 1, "round {round}");
        }
        replicas[1].store().close().await;
    });
}

async fn delete_counter(id: Uuid, records: &Records) {
    let deleted = records.change(|reads| async move {
        let mut change = Change::new();
        let stored: Stored<CounterRecord> = reads.find(None, id).await?.unwrap();
        change.remove(&stored);
        Ok((change, ()))
    });
    deleted.await.unwrap();
}

async fn insert_counter(counter: &CounterRecord, records: &Records) {
    let inserted = records.change(|_| async {
        let mut change = Change::new();
        change.insert(counter)?;
        Ok((change, ()))
    });
    inserted.await.unwrap();
}

/// The record that a plan read was removed, and created again with the same id.
#[test]
fn plan_for_a_removed_record_does_not_change_its_successor() {
    on_each_store(async |fixture| {
        let records = fixture.records();
        let id = CounterRecord::new(&records).await.id;
        let attempts = AtomicU64::new(0);
        let (records, attempts) = (&records, &attempts);
        let changed = records.change(|reads| async move {
            let mut change = Change::new();
            let mut stored: Stored<CounterRecord> = reads.find(None, id).await?.unwrap();
            stored.record.count += 1;
            change.replace(&stored.record, stored.generation)?;
            if attempts.fetch_add(1, Ordering::Relaxed) == 0 {
                delete_counter(id, records).await;
                insert_counter(&CounterRecord { id, count: 100 }, records).await;
            }
            Ok((change, ()))
        });
        changed.await.unwrap();
        assert_eq!(attempts.load(Ordering::Relaxed), 2);
        assert_eq!(CounterRecord::count(id, records).await, 101);
    });
}

/// The generation of the new record is larger, even if the clock was ahead when the old record was written.
#[test]
fn replaced_record_has_a_larger_generation() {
    on_each_store(async |fixture| {
        let records = fixture.records();
        let counter = CounterRecord { id: Uuid::new_v4(), count: 1 };
        let key = counter.key();
        let document = serde_json::to_string(&counter).unwrap();
        let generation = i64::MAX / 2;
        fixture.commit_steps([Step::Insert(Row { generation, ..Row::new(key, document) })]).await;
        let replaced = records.change(|reads| async move {
            let mut change = Change::new();
            let stored: Stored<CounterRecord> = reads.find(None, key.id).await?.unwrap();
            change.remove(&stored);
            change.insert(&stored.record)?;
            Ok((change, ()))
        });
        replaced.await.unwrap();
        assert_eq!(fixture.get_row(key).await.unwrap().generation, generation + 1);
    });
}

/// If a plan reads two states of a record, the change is neither committed nor reported as successful.
#[test]
fn plan_with_two_states_of_a_record_is_made_again() {
    on_each_store(async |fixture| {
        let records = fixture.records();
        let id = CounterRecord::new(&records).await.id;
        for is_refused in [false, true] {
            let before = CounterRecord::count(id, &records).await;
            let attempts = AtomicU64::new(0);
            let (records, attempts) = (&records, &attempts);
            let changed = records.change(|reads| async move {
                let mut change = Change::new();
                let one: Stored<CounterRecord> = reads.find(None, id).await?.unwrap();
                if attempts.fetch_add(1, Ordering::Relaxed) == 0 {
                    CounterRecord::increment(id, records).await;
                }
                let mut other: Stored<CounterRecord> = reads.find(None, id).await?.unwrap();
                if is_refused && one.record != other.record {
                    return Err(StoreError::Closed.into());
                }
                other.record.count = 10 * one.record.count;
                // The second read returned the current generation, so the replacement alone would not conflict.
                change.replace(&other.record, other.generation)?;
                Ok((change, ()))
            });
            changed.await.unwrap();
            assert_eq!(attempts.load(Ordering::Relaxed), 2);
            assert_eq!(CounterRecord::count(id, records).await, 10 * (before + 1));
        }
    });
}

/// A slow change to several records succeeds, although fast changes in another replica conflict with it.
#[test]
fn slow_change_succeeds_despite_conflicting_fast_ones() {
    on_each_store(async |fixture| {
        let replicas = two_replicas(fixture).await;
        let (one, other) =
            (CounterRecord::new(&replicas[0]).await.id, CounterRecord::new(&replicas[0]).await.id);
        let attempts = AtomicU64::new(0);
        let slow = replicas[0].change(|reads| {
            attempts.fetch_add(1, Ordering::Relaxed);
            async move {
                let mut change = Change::new();
                for id in [one, other] {
                    let mut stored: Stored<CounterRecord> = reads.find(None, id).await?.unwrap();
                    stored.record.count += 1_000_000;
                    change.replace(&stored.record, stored.generation)?;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                Ok((change, ()))
            }
        });
        let fast = async || loop {
            CounterRecord::increment(one, &replicas[1]).await;
        };
        tokio::select! {
            changed = slow => changed.unwrap(),
            () = async { join_all([fast(), fast()]).await; } => {}
        }
        assert!(attempts.load(Ordering::Relaxed) <= 10, "{attempts:?}");
        assert_eq!(CounterRecord::count(other, &replicas[0]).await, 1_000_000);
        replicas[1].store().close().await;
    });
}

/// A concurrent deletion of an infra-env and creation of a host in it cannot both succeed, in any order of steps,
/// whether the infra-env is removed or marked as deleted.
#[test]
fn host_is_never_left_without_its_infra_env() {
    on_each_store(async |fixture| {
        let mut both_ways = [0, 0];
        for round in 0..120 {
            let env = new_infra_env_key();
            let host = new_host_key(env);
            fixture.commit_steps([Step::Insert(new_row(env))]).await;
            let none = Step::RequireNone(Filter::all(Kind::Host).within(env.id));
            let deletion =
                if round % 2 == 0 { Step::Remove(env, 1) } else { Step::Replace(deleted_row(env, 2)) };
            let delete = if round % 4 < 2 { [none, deletion] } else { [deletion, none] };
            let add = [Step::Insert(new_row(host)), Step::Require(env)];
            let (deleted, added) = if round % 3 == 0 {
                tokio::join!(fixture.commit(delete), fixture.commit(add))
            } else {
                let (added, deleted) = tokio::join!(fixture.commit(add), fixture.commit(delete));
                (deleted, added)
            };
            assert_ne!(deleted, added, "round {round}");
            let env_is_there = fixture.get_row(env).await.is_some_and(|row| !row.columns.deleted);
            assert_eq!(env_is_there, fixture.get_row(host).await.is_some(), "round {round}");
            both_ways[usize::from(env_is_there)] += 1;
        }
        assert!(both_ways.iter().all(|&count| count > 0), "one side always won: {both_ways:?}");
    });
}

/// Changes that name the same records in opposite orders do not wait for each other. A database needs one second to
/// detect such a deadlock.
#[test]
fn opposite_lock_orders_do_not_deadlock() {
    on_each_store(async |fixture| {
        let (one, other) = (new_cluster_key(), new_infra_env_key());
        fixture.commit_steps([Step::Insert(new_row(one)), Step::Insert(new_row(other))]).await;
        let start = std::time::Instant::now();
        let work = async |keys: [Key; 2]| {
            let mut done = 0;
            while done < 50 {
                let mut steps = vec![Step::Require(keys[1]), Step::Require(keys[0])];
                for key in keys {
                    let generation = fixture.get_row(key).await.unwrap().generation + 1;
                    steps.push(Step::Replace(Row { generation, ..new_row(key) }));
                }
                done += u64::from(fixture.commit(steps).await == Outcome::Done);
            }
        };
        tokio::join!(work([one, other]), work([other, one]), work([one, other]), work([other, one]));
        assert_eq!(fixture.get_row(one).await.unwrap().generation, 201);
        assert_eq!(fixture.get_row(other).await.unwrap().generation, 201);
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    });
}

/// Other clients of the database may lock in any order. If the database ends a change because of a deadlock, the change
/// is retried.
#[test]
fn deadlock_victim_is_retried() {
    on_postgres(async |fixture| {
        let (one, other) = (new_cluster_key(), new_infra_env_key());
        fixture.commit_steps([Step::Insert(new_row(one)), Step::Insert(new_row(other))]).await;
        let lock = async |connection: &mut PgConnection, key: Key| {
            let statement = format!("SELECT 1 FROM records WHERE id = '{}' FOR UPDATE", key.id);
            connection.execute(sqlx::AssertSqlSafe(statement)).await.map(drop)
        };
        let mut connection = PgConnection::connect(&fixture.url).await.unwrap();
        connection.execute("BEGIN; SET LOCAL deadlock_timeout = '1min'").await.unwrap();
        lock(&mut connection, other).await.unwrap();
        let next = |key| Step::Replace(Row { generation: 2, ..new_row(key) });
        let outside = async {
            // Wait until the change has locked the first record and waits for the second record.
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            lock(&mut connection, one).await.unwrap();
            connection.execute("COMMIT").await.unwrap();
        };
        let (outcome, ()) = tokio::join!(fixture.commit([next(one), next(other)]), outside);
        assert_eq!(outcome, Outcome::Overtaken);
        fixture.commit_steps([next(one), next(other)]).await;
        connection.close().await.unwrap();
    });
}

#[test]
fn changes_of_one_commit_succeed_or_conflict_independently() {
    on_each_store(async |fixture| {
        let shared_key = new_cluster_key();
        let changes = (0..200_i32).map(|number| {
            let key = if number % 2 == 0 { shared_key } else { new_cluster_key() };
            async move {
                (
                    key,
                    fixture
                        .commit([
                            Step::Insert(new_row(new_host_key(new_infra_env_key()))),
                            Step::Insert(new_row(key)),
                        ])
                        .await,
                )
            }
        });
        let outcomes = join_all(changes).await;
        let done = |name: bool| {
            outcomes
                .iter()
                .filter(|(key, outcome)| (*key == shared_key) == name && *outcome == Outcome::Done)
                .count()
        };
        assert_eq!((done(true), done(false)), (1, 100));
        assert_eq!(fixture.list_keys(Filter::all(Kind::Host)).await.len(), 101);
        assert_eq!(fixture.list_keys(Filter::all(Kind::Cluster)).await.len(), 101);
    });
}

/// Makes statements on some documents fail. `how` is SQLite's reaction: it rolls back either the statement or the whole
/// transaction.
async fn fail_on_marked_documents(fixture: &StoreFixture, how: &'static str) {
    let statement = format!(
        "CREATE TRIGGER {how} BEFORE INSERT ON records WHEN NEW.document = '{how}' \
         BEGIN SELECT RAISE({how}, 'failed on purpose'); END"
    );
    run_sql(&fixture.url, statement).await;
}

async fn insert_document(fixture: &StoreFixture, document: &str) -> (Key, Result<Outcome, StoreError>) {
    let key = new_cluster_key();
    let steps = vec![
        Step::Insert(new_row(new_host_key(new_infra_env_key()))),
        Step::Insert(Row { document: document.to_owned(), ..new_row(key) }),
    ];
    let events = vec![Event::new("inserted", Severity::Info, document, chrono::Utc::now())];
    (key, fixture.store.commit(Changes { steps, events }).await)
}

#[test]
fn failing_change_does_not_affect_others() {
    on_sqlite(async |fixture| {
        fail_on_marked_documents(fixture, "ABORT").await;
        let documents = ["ABORT", "good", "good", "ABORT", "good"];
        let results = join_all(documents.map(|document| insert_document(fixture, document))).await;
        for (document, (key, result)) in documents.iter().zip(results) {
            assert_eq!(result.is_ok(), *document == "good", "{result:?}");
            assert_eq!(fixture.get_row(key).await.is_some(), *document == "good");
        }
        assert_eq!(fixture.list_keys(Filter::all(Kind::Cluster)).await.len(), 3);
        assert_eq!(fixture.list_keys(Filter::all(Kind::Host)).await.len(), 3);
        assert_eq!(fixture.store.events(&EventQuery::default()).await.unwrap().count, 3);
    });
}

#[test]
fn reported_success_survives_a_failed_transaction() {
    on_sqlite(async |fixture| {
        fail_on_marked_documents(fixture, "ROLLBACK").await;
        let mut failed = 0;
        for _ in 0..5 {
            let documents: [_; 40] =
                std::array::from_fn(|number| if number == 17 { "ROLLBACK" } else { "good" });
            let results = join_all(documents.map(|document| insert_document(fixture, document))).await;
            for (key, result) in results {
                assert_eq!(result.is_ok(), fixture.get_row(key).await.is_some());
                failed += usize::from(result.is_err());
            }
        }
        assert!((5..=200).contains(&failed), "{failed}");
        let (key, result) = insert_document(fixture, "good").await;
        assert_eq!(result.unwrap(), Outcome::Done);
        assert!(fixture.get_row(key).await.is_some());
    });
}

#[test]
fn close_waits_for_accepted_changes() {
    on_sqlite(async |fixture| {
        let tasks: Vec<_> = (0..300)
            .map(|_| {
                let store = Arc::clone(&fixture.store);
                tokio::spawn(async move {
                    let key = new_cluster_key();
                    let changes = Changes { steps: vec![Step::Insert(new_row(key))], events: Vec::new() };
                    (key, store.commit(changes).await)
                })
            })
            .collect();
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        fixture.store.close().await;
        let results = join_all(tasks).await;
        let store = SqlStore::open(&fixture.url).await.unwrap();
        for result in results {
            let (key, result) = result.unwrap();
            let is_there = store.get(key).await.unwrap().is_some();
            match result {
                Ok(outcome) => assert!(outcome == Outcome::Done && is_there),
                Err(error) => assert!(matches!(error, StoreError::Closed) && !is_there, "{error}"),
            }
        }
        store.close().await;
    });
}

#[test]
fn change_completes_after_its_caller_is_dropped() {
    on_sqlite(async |fixture| {
        let mut given_up = 0;
        // On a busy machine, the writer may finish before the caller is dropped.
        for _ in 0..100 {
            let key = Key { id: Uuid::new_v4(), ..new_cluster_key() };
            let changes = Changes { steps: vec![Step::Insert(new_row(key))], events: Vec::new() };
            let outcome =
                tokio::time::timeout(std::time::Duration::ZERO, fixture.store.commit(changes)).await;
            given_up += usize::from(outcome.is_err());
            fixture.commit_steps([Step::Insert(new_row(Key { id: Uuid::new_v4(), ..key }))]).await;
            assert_eq!(fixture.get_row(key).await, Some(new_row(key)));
        }
        assert!(given_up > 0);
    });
}
