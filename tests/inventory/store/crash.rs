//! A process that is killed while it writes loses nothing that it reported as written.

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

/// Writes infra-envs with one host and one event each, and prints the id of each that is written.
#[test]
#[ignore = "the process that others kill"]
fn process_that_writes() {
    let url = process_task();
    block_on(async {
        let store = SqlStore::open(&url).await.unwrap();
        let write = async || loop {
            let env = new_infra_env_key();
            let told = Event::new("made", Severity::Info, "made", chrono::Utc::now())
                .of_cluster(Some(ClusterId(env.id)));
            let steps = vec![
                Step::Insert(new_row(env)),
                Step::Require(env),
                Step::Insert(new_row(new_host_key(env))),
            ];
            let outcome = store.commit(Changes { steps, events: vec![told] }).await.unwrap();
            assert_eq!(outcome, Outcome::Done);
            println!("written {}", env.id);
        };
        join_all((0..WRITERS).map(|_| write())).await;
    });
}

/// The number of kills. `.ci/full` asks for more.
fn kills(usual: usize) -> usize {
    std::env::var("KINDLING_KILLS").map_or(usual, |kills| kills.parse().unwrap())
}

/// Lets a process write until it has reported enough records, kills it, and returns the reported ids.
fn write_and_kill(url: &str, lines: usize) -> Vec<Uuid> {
    let mut child =
        test_process("store::crash::process_that_writes", url).stderr(Stdio::inherit()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut written = Vec::new();
    // The last line may be torn: only complete lines count.
    for line in output.lines().map_while(Result::ok) {
        let id = line.split_once("written ").and_then(|(_, id)| id.parse::<Uuid>().ok());
        written.extend(id);
        if written.len() == lines {
            // Reads what was printed before the kill.
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(written.len() >= lines, "{} of {lines}", written.len());
    written
}

/// All reported records exist, and every other one exists completely or not at all. Each kill may have left one record
/// of each writer that was written but not reported.
async fn check_written_records(store: &dyn Store, written: &[Uuid], kills: usize) {
    for &id in written {
        let key = Key { kind: Kind::InfraEnv, parent: None, id };
        assert!(store.get(key).await.unwrap().is_some(), "{id} is lost");
    }
    let all = |kind| kindling::inventory::store::Filter::all(kind);
    let envs = store.list(all(Kind::InfraEnv)).await.unwrap();
    let hosts = store.list(all(Kind::Host)).await.unwrap();
    let mut parents: Vec<_> = hosts.iter().map(|host| host.key.parent.unwrap()).collect();
    let mut ids: Vec<_> = envs.iter().map(|env| env.key.id).collect();
    let told = store.events(&EventQuery::default()).await.unwrap().events;
    let mut told: Vec<_> = told.iter().map(|event| event.cluster.unwrap().0).collect();
    for list in [&mut parents, &mut ids, &mut told] {
        list.sort();
    }
    assert!(parents == ids && told == ids, "{} {} {}", ids.len(), parents.len(), told.len());
    assert!(ids.len() <= written.len() + kills * WRITERS, "{} of {}", ids.len(), written.len());
}

#[test]
fn sqlite_keeps_records_written_before_a_kill() {
    on_sqlite(async |fixture| {
        let mut written = Vec::new();
        for kill in 1..=kills(6) {
            fixture.store.close().await;
            written.extend(write_and_kill(&fixture.url, 1 + 97 * (kill - 1) % 491));
            let mut connection = SqliteConnection::connect(&fixture.url).await.unwrap();
            let found = sqlx::query("PRAGMA integrity_check").fetch_all(&mut connection).await.unwrap();
            let found: Vec<String> = found.iter().map(|row| row.get(0)).collect();
            assert_eq!(found, ["ok"]);
            connection.close().await.unwrap();
            let store = SqlStore::open(&fixture.url).await.unwrap();
            check_written_records(&store, &written, kill).await;
            store.close().await;
        }
    });
}

#[test]
fn postgres_keeps_records_written_before_a_kill() {
    on_postgres(async |fixture| {
        let mut written = Vec::new();
        for kill in 1..=kills(4) {
            written.extend(write_and_kill(&fixture.url, 1 + 97 * (kill - 1) % 491));
            check_written_records(fixture.store.as_ref(), &written, kill).await;
        }
    });
}
