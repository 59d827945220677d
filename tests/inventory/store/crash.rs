//! A killed process loses nothing that it has reported as written.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use futures_util::future::join_all;
use kindling::inventory::event::{Event, EventQuery, Severity};
use kindling::inventory::id::ClusterId;
use kindling::inventory::store::{Changes, Key, Kind, Outcome, SqlStore, Step, Store};
use sqlx::{Connection, Row as _, SqliteConnection};
use uuid::Uuid;

use super::{
    block_on, new_host_key, new_infra_env_key, new_row, on_postgres, on_sqlite, process_task, test_process,
};

const WRITERS: usize = 8;

/// Writes infra-envs with one host and one event each, and prints the id of each written infra-env.
#[test]
#[ignore = "the process that others kill"]
fn process_that_writes() {
    let url = process_task();
    block_on(async {
        let store = SqlStore::open(&url).await.unwrap();
        let write = async || loop {
            let env = new_infra_env_key();
            let event = Event::new("made", Severity::Info, "made", chrono::Utc::now())
                .of_cluster(Some(ClusterId(env.id)));
            let steps = vec![
                Step::Insert(new_row(env)),
                Step::Require(env),
                Step::Insert(new_row(new_host_key(env))),
            ];
            let outcome = store.commit(Changes { steps, events: vec![event] }).await.unwrap();
            assert_eq!(outcome, Outcome::Done);
            println!("written {}", env.id);
        };
        join_all((0..WRITERS).map(|_| write())).await;
    });
}

/// Returns the number of kills. `.ci/full` requests more.
fn kills(usual: usize) -> usize {
    std::env::var("KINDLING_KILLS").map_or(usual, |kills| kills.parse().unwrap())
}

/// Runs a process until it has reported enough records, kills it, and returns the reported ids.
fn write_and_kill(url: &str, lines: usize) -> Vec<Uuid> {
    let mut child =
        test_process("store::crash::process_that_writes", url).stderr(Stdio::inherit()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut ids = Vec::new();
    // The last line may be incomplete, so only complete lines count.
    for line in output.lines().map_while(Result::ok) {
        let id = line.split_once("written ").and_then(|(_, id)| id.parse::<Uuid>().ok());
        ids.extend(id);
        if ids.len() == lines {
            // The loop still reads the output from before the kill.
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(ids.len() >= lines, "{} of {lines}", ids.len());
    ids
}

/// Checks that all reported records exist, and that every other record exists completely or not at all. At each kill,
/// each writer may have written one record without reporting it.
async fn check_written_records(store: &dyn Store, reported: &[Uuid], kills: usize) {
    for &id in reported {
        let key = Key { kind: Kind::InfraEnv, parent: None, id };
        assert!(store.get(key).await.unwrap().is_some(), "{id} is lost");
    }
    let all = |kind| kindling::inventory::store::Filter::all(kind);
    let envs = store.list(all(Kind::InfraEnv)).await.unwrap();
    let hosts = store.list(all(Kind::Host)).await.unwrap();
    let mut parents: Vec<_> = hosts.iter().map(|host| host.key.parent.unwrap()).collect();
    let mut ids: Vec<_> = envs.iter().map(|env| env.key.id).collect();
    let events = store.events(&EventQuery::default()).await.unwrap().events;
    let mut event_ids: Vec<_> = events.iter().map(|event| event.cluster.unwrap().0).collect();
    for list in [&mut parents, &mut ids, &mut event_ids] {
        list.sort();
    }
    assert!(parents == ids && event_ids == ids, "{} {} {}", ids.len(), parents.len(), event_ids.len());
    assert!(ids.len() <= reported.len() + kills * WRITERS, "{} of {}", ids.len(), reported.len());
}

#[test]
fn sqlite_keeps_records_written_before_a_kill() {
    on_sqlite(async |fixture| {
        let mut reported = Vec::new();
        for kill in 1..=kills(6) {
            fixture.store.close().await;
            reported.extend(write_and_kill(&fixture.url, 1 + 97 * (kill - 1) % 491));
            let mut connection = SqliteConnection::connect(&fixture.url).await.unwrap();
            let integrity = sqlx::query("PRAGMA integrity_check").fetch_all(&mut connection).await.unwrap();
            let integrity: Vec<String> = integrity.iter().map(|row| row.get(0)).collect();
            assert_eq!(integrity, ["ok"]);
            connection.close().await.unwrap();
            let store = SqlStore::open(&fixture.url).await.unwrap();
            check_written_records(&store, &reported, kill).await;
            store.close().await;
        }
    });
}

#[test]
fn postgres_keeps_records_written_before_a_kill() {
    on_postgres(async |fixture| {
        let mut reported = Vec::new();
        for kill in 1..=kills(4) {
            reported.extend(write_and_kill(&fixture.url, 1 + 97 * (kill - 1) % 491));
            check_written_records(fixture.store.as_ref(), &reported, kill).await;
        }
    });
}
