//! Many at once: none is lost, none is half there.

use std::sync::Arc;

use futures_util::future::join_all;
use kindling::inventory::event::{Event, EventQuery, Severity};
use kindling::inventory::store::{
    Changes, Filter, Key, Kind, Outcome, Records, Row, SqlStore, Step, Store, StoreError,
};
use sqlx::{AnyConnection, Connection, Executor};
use uuid::Uuid;

use super::{
    Counter, Fixture, block_on, cluster, host_of, infra_env, on_each_store, on_postgres, on_sqlite, process,
    row, task,
};

const EACH: u64 = 200;

#[test]
fn no_increment_is_lost() {
    on_each_store(async |fixture| {
        let records = fixture.records();
        let id = Counter::new(&records).await.id;
        let tasks = (0..2).map(|_| {
            let records = records.clone();
            tokio::spawn(async move {
                for _ in 0..EACH {
                    Counter::increment(id, &records).await;
                }
            })
        });
        join_all(tasks).await.into_iter().for_each(Result::unwrap);
        assert_eq!(Counter::count(id, &records).await, 2 * EACH);
        assert_eq!(records.find::<Counter>(None, id).await.unwrap().unwrap().generation, 401);
    });
}

#[test]
fn many_that_change_one_record_all_succeed() {
    on_each_store(async |fixture| {
        let records = fixture.records();
        let id = Counter::new(&records).await.id;
        join_all((0..150).map(|_| Counter::increment(id, &records))).await;
        assert_eq!(Counter::count(id, &records).await, 150);
    });
}

#[test]
fn two_processes_on_one_server_lose_no_increment() {
    on_postgres(async |fixture| {
        let records = fixture.records();
        let id = Counter::new(&records).await.id;
        let task = format!("{} {id}", fixture.url);
        let children: Vec<_> = (0..2)
            .map(|_| process("store::concurrent::process_that_increments", &task).spawn().unwrap())
            .collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
        assert_eq!(Counter::count(id, &records).await, 2 * EACH);
    });
}

#[test]
#[ignore = "a process of two_processes_on_one_server_lose_no_increment"]
fn process_that_increments() {
    let task = task();
    let (url, id) = task.split_once(' ').unwrap();
    block_on(async {
        let records = Records::new(Arc::new(SqlStore::open(url).await.unwrap()));
        for _ in 0..EACH {
            Counter::increment(id.parse().unwrap(), &records).await;
        }
    });
}

/// Whoever deletes an infra-env and whoever adds a host to it at the same time cannot both succeed, whichever order the
/// steps are in, and whether the infra-env goes or is kept as deleted.
#[test]
fn no_host_is_left_without_its_infra_env() {
    on_each_store(async |fixture| {
        let mut both_ways = [0, 0];
        for round in 0..120 {
            let env = infra_env();
            let host = host_of(env);
            fixture.done([Step::Insert(row(env))]).await;
            let none = Step::RequireNone(Filter::all(Kind::Host).within(env.id));
            let gone = if round % 2 == 0 {
                Step::Remove(env, 1)
            } else {
                Step::Replace(Row { deleted: true, generation: 2, ..row(env) })
            };
            let delete = if round % 4 < 2 { [none, gone] } else { [gone, none] };
            let add = [Step::Insert(row(host)), Step::Require(env)];
            let (deleted, added) = if round % 3 == 0 {
                tokio::join!(fixture.commit(delete), fixture.commit(add))
            } else {
                let (added, deleted) = tokio::join!(fixture.commit(add), fixture.commit(delete));
                (deleted, added)
            };
            assert_ne!(deleted, added, "round {round}");
            let env_is_there = fixture.get(env).await.is_some_and(|row| !row.deleted);
            assert_eq!(env_is_there, fixture.get(host).await.is_some(), "round {round}");
            both_ways[usize::from(env_is_there)] += 1;
        }
        assert!(both_ways.iter().all(|&count| count > 0), "one was always faster: {both_ways:?}");
    });
}

/// Changes that name the same records in opposite orders do not wait for each other: a database that has to find that out
/// takes a second for it, each time.
#[test]
fn opposite_orders_do_not_block_each_other() {
    on_each_store(async |fixture| {
        let (one, other) = (cluster(), infra_env());
        fixture.done([Step::Insert(row(one)), Step::Insert(row(other))]).await;
        let start = std::time::Instant::now();
        let work = async |keys: [Key; 2]| {
            let mut done = 0;
            while done < 50 {
                let mut steps = vec![Step::Require(keys[1]), Step::Require(keys[0])];
                for key in keys {
                    let generation = fixture.get(key).await.unwrap().generation + 1;
                    steps.push(Step::Replace(Row { generation, ..row(key) }));
                }
                done += u64::from(fixture.commit(steps).await == Outcome::Done);
            }
        };
        tokio::join!(work([one, other]), work([other, one]), work([one, other]), work([other, one]));
        assert_eq!(fixture.get(one).await.unwrap().generation, 201);
        assert_eq!(fixture.get(other).await.unwrap().generation, 201);
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    });
}

/// Others may lock what they like in any order. Who is given up for them starts anew.
#[test]
fn a_change_that_the_server_gives_up_is_overtaken() {
    on_postgres(async |fixture| {
        let (one, other) = (cluster(), infra_env());
        fixture.done([Step::Insert(row(one)), Step::Insert(row(other))]).await;
        let lock = async |connection: &mut AnyConnection, key: Key| {
            let statement = format!("SELECT 1 FROM records WHERE id = '{}' FOR UPDATE", key.id);
            connection.execute(sqlx::AssertSqlSafe(statement)).await.map(drop)
        };
        let mut connection = AnyConnection::connect(&fixture.url).await.unwrap();
        connection.execute("BEGIN; SET LOCAL deadlock_timeout = '1min'").await.unwrap();
        lock(&mut connection, other).await.unwrap();
        let next = |key| Step::Replace(Row { generation: 2, ..row(key) });
        let outside = async {
            // The change has the first record by then, and waits for the second.
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            lock(&mut connection, one).await.unwrap();
            connection.execute("COMMIT").await.unwrap();
        };
        let (outcome, ()) = tokio::join!(fixture.commit([next(one), next(other)]), outside);
        assert_eq!(outcome, Outcome::Overtaken);
        fixture.done([next(one), next(other)]).await;
        connection.close().await.unwrap();
    });
}

#[test]
fn changes_of_one_commit_succeed_and_are_overtaken_alone() {
    on_each_store(async |fixture| {
        let wanted = cluster();
        let changes = (0..200_i32).map(|number| {
            let key = if number % 2 == 0 { wanted } else { cluster() };
            async move {
                (key, fixture.commit([Step::Insert(row(host_of(infra_env()))), Step::Insert(row(key))]).await)
            }
        });
        let outcomes = join_all(changes).await;
        let done = |name: bool| {
            outcomes
                .iter()
                .filter(|(key, outcome)| (*key == wanted) == name && *outcome == Outcome::Done)
                .count()
        };
        assert_eq!((done(true), done(false)), (1, 100));
        assert_eq!(fixture.keys(Filter::all(Kind::Host)).await.len(), 101);
        assert_eq!(fixture.keys(Filter::all(Kind::Cluster)).await.len(), 101);
    });
}

/// Makes statements on some documents fail. `how` is what SQLite does then: give up the statement, or all of the transaction.
async fn fail_on(fixture: &Fixture, how: &'static str) {
    let mut connection = AnyConnection::connect(&fixture.url).await.unwrap();
    let statement = format!(
        "CREATE TRIGGER {how} BEFORE INSERT ON records WHEN NEW.document = '{how}' \
         BEGIN SELECT RAISE({how}, 'failed on purpose'); END"
    );
    connection.execute(sqlx::AssertSqlSafe(statement)).await.unwrap();
    connection.close().await.unwrap();
}

async fn insert_with(fixture: &Fixture, document: &str) -> (Key, Result<Outcome, StoreError>) {
    let key = cluster();
    let steps = vec![
        Step::Insert(row(host_of(infra_env()))),
        Step::Insert(Row { document: document.to_owned(), ..row(key) }),
    ];
    let events = vec![Event::now("inserted", Severity::Info, document)];
    (key, fixture.store.commit(Changes { steps, events }).await)
}

#[test]
fn a_change_that_fails_fails_alone() {
    on_sqlite(async |fixture| {
        fail_on(fixture, "ABORT").await;
        let documents = ["ABORT", "good", "good", "ABORT", "good"];
        let results = join_all(documents.map(|document| insert_with(fixture, document))).await;
        for (document, (key, result)) in documents.iter().zip(results) {
            assert_eq!(result.is_ok(), *document == "good", "{result:?}");
            assert_eq!(fixture.get(key).await.is_some(), *document == "good");
        }
        assert_eq!(fixture.keys(Filter::all(Kind::Cluster)).await.len(), 3);
        assert_eq!(fixture.keys(Filter::all(Kind::Host)).await.len(), 3);
        assert_eq!(fixture.store.events(&EventQuery::default()).await.unwrap().count, 3);
    });
}

#[test]
fn whoever_is_told_of_success_succeeded_even_if_all_of_a_transaction_fails() {
    on_sqlite(async |fixture| {
        fail_on(fixture, "ROLLBACK").await;
        let mut failed = 0;
        for _ in 0..5 {
            let documents: [_; 40] =
                std::array::from_fn(|number| if number == 17 { "ROLLBACK" } else { "good" });
            let results = join_all(documents.map(|document| insert_with(fixture, document))).await;
            for (key, result) in results {
                assert_eq!(result.is_ok(), fixture.get(key).await.is_some());
                failed += usize::from(result.is_err());
            }
        }
        assert!((5..=200).contains(&failed), "{failed}");
        let (key, result) = insert_with(fixture, "good").await;
        assert_eq!(result.unwrap(), Outcome::Done);
        assert!(fixture.get(key).await.is_some());
    });
}

#[test]
fn closing_waits_for_what_was_taken() {
    on_sqlite(async |fixture| {
        let tasks: Vec<_> = (0..300)
            .map(|_| {
                let store = Arc::clone(&fixture.store);
                tokio::spawn(async move {
                    let key = cluster();
                    let changes = Changes { steps: vec![Step::Insert(row(key))], events: Vec::new() };
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
fn a_change_happens_even_if_nobody_waits_for_it_any_more() {
    on_sqlite(async |fixture| {
        let mut given_up = 0;
        // On a busy machine the writer may be done before anybody gives up.
        for _ in 0..100 {
            let key = Key { id: Uuid::new_v4(), ..cluster() };
            let changes = Changes { steps: vec![Step::Insert(row(key))], events: Vec::new() };
            let outcome =
                tokio::time::timeout(std::time::Duration::ZERO, fixture.store.commit(changes)).await;
            given_up += usize::from(outcome.is_err());
            fixture.done([Step::Insert(row(Key { id: Uuid::new_v4(), ..key }))]).await;
            assert_eq!(fixture.get(key).await, Some(row(key)));
        }
        assert!(given_up > 0);
    });
}
