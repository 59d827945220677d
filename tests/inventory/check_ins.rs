//! Check-ins of agents: they are cached in memory, stored in batches, and never change the host.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use kindling::inventory::Settings;
use kindling::inventory::auth::{KeyTexts, LocalKeys, Policy};
use kindling::inventory::store::{Columns, Key, Kind, Operation, Record as _, SqlStore, Store};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agent::{FakeAgent, events_of_infra_env, inventory_report};
use crate::database::{TestDatabase, postgres_url};
use crate::service::{
    PULL_SECRET, TestService, inventory_on_store, on_each_database, on_each_database_with, send_request,
};
use crate::store::{block_on, process_task, run_sql, test_process};

/// Maximum time for which a check-in may be only in memory, with a reserve for a busy machine.
const MAX_LOST: TimeDelta = TimeDelta::seconds(5);

fn key(agent: &FakeAgent) -> Key {
    Key { kind: Kind::Host, parent: Some(agent.infra_env.parse().unwrap()), id: agent.id.parse().unwrap() }
}

/// The values that a write of a host changes.
#[derive(Debug, PartialEq)]
struct Written {
    generation: i64,
    commits: u64,
    events: usize,
}

async fn written(service: &TestService, agent: &FakeAgent<'_>) -> Written {
    let store = service.inventory.records().store();
    Written {
        generation: store.get(key(agent)).await.unwrap().unwrap().generation,
        commits: store.metrics().durations(Operation::Commit).count(),
        events: events_of_infra_env(service, &agent.infra_env).await.len(),
    }
}

/// Returns the columns of a host in the database.
async fn stored_columns(service: &TestService, agent: &FakeAgent<'_>) -> Columns {
    service.inventory.records().store().get(key(agent)).await.unwrap().unwrap().columns
}

fn time(host: &Value, name: &str) -> DateTime<Utc> {
    host[name].as_str().unwrap().parse().unwrap()
}

/// Runs a test on each database, with its URL.
fn on_each_url(change: impl Fn(&mut Settings), test: impl AsyncFn(&TestService, &str)) {
    let run = async |url: &str| {
        let store = SqlStore::open(url).await.unwrap();
        let service = TestService::start_on_store(store, None, Policy::Open, &change).await;
        test(&service, url).await;
        service.stop().await;
    };
    let on_sqlite = async {
        let directory = TempDir::new().unwrap();
        run(&format!("sqlite://{}", directory.path().join("kindling.db").display())).await;
    };
    let on_postgres = async {
        let Some(server) = postgres_url() else { return };
        let database = TestDatabase::create(&server).await;
        run(&database.url).await;
        database.drop().await;
    };
    block_on(async {
        tokio::join!(on_sqlite, on_postgres);
    });
}

#[test]
fn check_in_takes_effect_immediately_and_changes_no_record() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        // The first check-in stores the difference between the two clocks.
        agent.request_steps().await.json_with_status(200);
        let before = written(service, &agent).await;
        let first = agent.get_host().await;
        let metrics = service.inventory.records().store().metrics();
        let check_ins = metrics.check_ins();
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let asked_at = Utc::now();
            agent.request_steps().await.json_with_status(200);
            let host = agent.get_host().await;
            assert!(time(&host, "checked_in_at") > asked_at - TimeDelta::milliseconds(2), "{host}");
            assert_eq!(host["timestamp"], 1_700_000_000);
            assert_eq!(host["updated_at"], first["updated_at"]);
            let list = service.get(&format!("/v2/infra-envs/{}/hosts", agent.infra_env)).await;
            assert_eq!(list.json_with_status(200)[0]["checked_in_at"], host["checked_in_at"]);
        }
        // A timestamp of 0 means that the agent's clock is unknown.
        service.get(&format!("{}/instructions?timestamp=0", agent.path())).await.json_with_status(200);
        service.get(&format!("{}/instructions", agent.path())).await.json_with_status(200);
        assert_eq!(agent.get_host().await["timestamp"], 1_700_000_000);
        assert_eq!(metrics.check_ins() - check_ins, 5);
        assert_eq!(written(service, &agent).await, before);
    });
}

#[test]
fn check_ins_are_stored_in_one_batch_after_a_few_seconds() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        let other = FakeAgent::register_in_new_infra_env(service).await;
        for agent in [&agent, &other] {
            agent.request_steps().await.json_with_status(200);
        }
        service.inventory.records().store_check_ins().await.unwrap();
        let before = written(service, &agent).await;
        let metrics = service.inventory.records().store().metrics();
        let stored = metrics.stored_check_ins();
        for agent in [&agent, &other, &agent] {
            agent.request_steps().await.json_with_status(200);
        }
        let host = agent.get_host().await;
        let began = Instant::now();
        while metrics.stored_check_ins() == stored {
            assert!(began.elapsed() < Duration::from_secs(20));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!((metrics.stored_check_ins(), metrics.durations(Operation::CheckIns).count()), (4, 2));
        let columns = stored_columns(service, &agent).await;
        let at = DateTime::from_timestamp_micros(columns.checked_in_at.unwrap()).unwrap();
        assert_eq!(at.timestamp_millis(), time(&host, "checked_in_at").timestamp_millis());
        assert_eq!(columns.clock, Some(1_700_000_000));
        assert_eq!(agent.get_host().await, host);
        assert_eq!(written(service, &agent).await, before);
    });
}

#[test]
fn check_ins_are_stored_when_the_service_stops() {
    block_on(async {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("kindling.db");
        let store = SqlStore::open_file(&path).await.unwrap();
        let service = TestService::start_on_store(store, None, Policy::Open, |_| {}).await;
        let agent = FakeAgent::register_in_new_infra_env(&service).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        agent.request_steps().await.json_with_status(200);
        let (host, checked_in_at) = (key(&agent), time(&agent.get_host().await, "checked_in_at"));
        service.stop().await;
        let store = SqlStore::open_file(&path).await.unwrap();
        let stored = store.get(host).await.unwrap().unwrap().columns.checked_in_at.unwrap();
        assert_eq!(stored / 1000, checked_in_at.timestamp_millis());
        store.close().await;
    });
}

#[test]
fn changed_agent_version_changes_the_host_immediately() {
    on_each_database_with(
        |settings| settings.upgrade_agents = false,
        async |service| {
            let mut agent = FakeAgent::register_in_new_infra_env(service).await;
            let before = written(service, &agent).await;
            agent.version = "quay.io/example/agent:other".to_owned();
            for _ in 0..3 {
                agent.request_steps().await.json_with_status(200);
                let after = written(service, &agent).await;
                assert_eq!(after.generation, before.generation + 1);
                assert_eq!((after.commits, after.events), (before.commits + 1, before.events));
            }
            assert_eq!(agent.get_host().await["discovery_agent_version"], "quay.io/example/agent:other");
        },
    );
}

/// Sends a reply with a unique step id.
async fn reply(agent: &FakeAgent<'_>, kind: &str, output: &Value) {
    let id = format!("{kind}-{:08x}", uuid::Uuid::new_v4().as_fields().0);
    let reply =
        json!({"step_type": kind, "step_id": id, "exit_code": 0, "output": output.to_string(), "error": ""});
    agent.send_reply(&reply).await.json_with_status(204);
}

#[test]
fn repeated_replies_write_nothing() {
    let sources = json!({"ntp_sources": [{"source_name": "a", "source_state": "synced"}]});
    let speed = json!({"path": "/dev/sda", "io_sync_duration": 5});
    let images = json!({"images": [{"name": "quay.io/a", "result": "success"}]});
    let report = inventory_report("node-1");
    let replies = [
        ("inventory", &report),
        ("ntp-synchronizer", &sources),
        ("installation-disk-speed-check", &speed),
        ("container-image-availability", &images),
    ];
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        for (kind, output) in replies {
            reply(&agent, kind, output).await;
        }
        let before = written(service, &agent).await;
        let host = agent.get_host().await;
        let reads = || service.inventory.records().store().metrics().durations(Operation::Read).count();
        // The first round parses all replies again, because the host has changed since the last ones.
        for round in 0..3 {
            let reads_before = reads();
            for (kind, output) in replies {
                reply(&agent, kind, output).await;
            }
            // Only the last two replies read the host and a stored report.
            assert!(round == 0 || reads() - reads_before == 4);
        }
        assert_eq!(written(service, &agent).await, before);
        assert_eq!(agent.get_host().await, host);
        // A user's change to the host is not lost, and the next replies are compared with the stored reports.
        service.patch(&agent.path(), &json!({"host_name": "chosen"})).await.json_with_status(201);
        let before = written(service, &agent).await;
        for (kind, output) in replies {
            reply(&agent, kind, output).await;
        }
        assert_eq!(written(service, &agent).await, before);
        reply(&agent, "inventory", &inventory_report("node-2")).await;
        assert_eq!(written(service, &agent).await.generation, before.generation + 1);
        reply(&agent, "inventory", &report).await;
        assert_eq!(written(service, &agent).await.generation, before.generation + 2);
    });
}

#[test]
fn reply_that_reports_readable_media_again_is_stored() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        for _ in 0..2 {
            reply(&agent, "inventory", &inventory_report("node-1")).await;
            assert_eq!(agent.host_status().await, "known-unbound");
            agent
                .send_reply(&json!({"step_type": "inventory", "exit_code": 256}))
                .await
                .json_with_status(204);
            assert_eq!(agent.host_status().await, "disconnected-unbound");
        }
    });
}

#[test]
fn reply_of_a_recreated_host_is_stored() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        reply(&agent, "inventory", &inventory_report("node-1")).await;
        service.delete(&agent.path()).await.json_with_status(204);
        agent.send_reply(&json!({"step_type": "inventory", "exit_code": 0})).await.refusal_reason(404);
        agent.register().await.json_with_status(201);
        service.patch(&agent.path(), &json!({"host_name": "chosen"})).await.json_with_status(201);
        assert_eq!(agent.host_status().await, "discovering-unbound");
        reply(&agent, "inventory", &inventory_report("node-1")).await;
        assert_eq!(agent.host_status().await, "known-unbound");
    });
}

#[test]
fn reply_after_a_change_of_another_replica_is_stored() {
    let Some(server) = postgres_url() else { return };
    block_on(async {
        let database = TestDatabase::create(&server).await;
        let open = async || SqlStore::open(&database.url).await.unwrap();
        let start = async || TestService::start_on_store(open().await, None, Policy::Open, |_| {}).await;
        let (one, two) = (start().await, start().await);
        let agent = FakeAgent::register_in_new_infra_env(&one).await;
        let at_two =
            FakeAgent { service: &two, id: agent.id.clone(), ..FakeAgent::new(&two, &agent.infra_env) };
        reply(&agent, "inventory", &inventory_report("node-1")).await;
        reply(&at_two, "inventory", &inventory_report("node-2")).await;
        reply(&agent, "inventory", &inventory_report("node-1")).await;
        assert_eq!(agent.get_host().await["requested_hostname"], "node-1");
        assert_eq!(at_two.get_host().await["requested_hostname"], "node-1");
        for service in [one, two] {
            service.stop().await;
        }
        database.drop().await;
    });
}

#[test]
fn replicas_agree_on_check_ins() {
    let Some(server) = postgres_url() else { return };
    block_on(async {
        let database = TestDatabase::create(&server).await;
        let start = async || {
            let store = SqlStore::open(&database.url).await.unwrap();
            let limit = |settings: &mut Settings| settings.max_silence = Duration::from_secs(5);
            TestService::start_on_store(store, None, Policy::Open, limit).await
        };
        let (one, two) = (start().await, start().await);
        let agent = FakeAgent::register_with_report(&one, "node-1").await;
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(10) {
            agent.request_steps().await.json_with_status(200);
            assert_eq!(two.inventory.disconnect_silent_hosts().await.unwrap(), 0);
            let host = two.get(&agent.path()).await.json_with_status(200);
            assert_eq!(host["status"], "known-unbound");
            assert!(Utc::now() - time(&host, "checked_in_at") < MAX_LOST, "{host}");
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        let events = events_of_infra_env(&two, &agent.infra_env).await;
        assert!(!events.iter().any(|(_, message)| message.contains("disconnected")), "{events:?}");
        for service in [one, two] {
            service.stop().await;
        }
        database.drop().await;
    });
}

#[test]
fn check_ins_wait_while_the_database_fails() {
    on_each_url(
        |_| {},
        async |service, url| {
            let agent = FakeAgent::register_in_new_infra_env(service).await;
            let records = service.inventory.records();
            agent.request_steps().await.json_with_status(200);
            records.store_check_ins().await.unwrap();
            let before = stored_columns(service, &agent).await.checked_in_at;
            let fail = if url.starts_with("sqlite:") {
                "CREATE TRIGGER fail BEFORE UPDATE OF checked_in_at ON records \
                 BEGIN SELECT RAISE(ABORT, 'failed on purpose'); END"
            } else {
                "CREATE FUNCTION fail() RETURNS trigger AS $$ BEGIN RAISE 'failed on purpose'; END $$ LANGUAGE plpgsql; \
                 CREATE TRIGGER fail BEFORE UPDATE OF checked_in_at ON records FOR EACH ROW EXECUTE FUNCTION fail()"
            };
            run_sql(url, fail).await;
            for _ in 0..3 {
                agent.request_steps().await.json_with_status(200);
                records.store_check_ins().await.unwrap_err();
            }
            assert!(records.store().metrics().failures(Operation::CheckIns) >= 3);
            assert_eq!(stored_columns(service, &agent).await.checked_in_at, before);
            let checked_in_at = time(&agent.get_host().await, "checked_in_at");
            assert!(before < Some(checked_in_at.timestamp_micros()));
            let drop =
                if url.starts_with("sqlite:") { "DROP TRIGGER fail" } else { "DROP TRIGGER fail ON records" };
            run_sql(url, drop).await;
            // The task that stores check-ins tries again.
            let began = Instant::now();
            while stored_columns(service, &agent).await.checked_in_at == before {
                assert!(began.elapsed() < Duration::from_secs(20));
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let stored = stored_columns(service, &agent).await.checked_in_at.unwrap();
            assert_eq!(stored / 1000, checked_in_at.timestamp_millis());
        },
    );
}

#[test]
fn check_in_before_a_deletion_or_registration_changes_nothing() {
    on_each_database(async |service| {
        let records = service.inventory.records();
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        agent.request_steps().await.json_with_status(200);
        service.delete(&agent.path()).await.json_with_status(204);
        let deleted = stored_columns(service, &agent).await;
        records.store_check_ins().await.unwrap();
        assert_eq!(stored_columns(service, &agent).await, deleted);
        agent.request_steps().await.refusal_reason(404);

        agent.register().await.json_with_status(201);
        agent.request_steps().await.json_with_status(200);
        service.delete(&agent.path()).await.json_with_status(204);
        agent.register().await.json_with_status(201);
        let registered = agent.get_host().await;
        assert_eq!(
            (&registered["timestamp"], &registered["status"]),
            (&Value::Null, &json!("discovering-unbound"))
        );
        records.store_check_ins().await.unwrap();
        assert_eq!(agent.get_host().await, registered);
        // Repeat the test without a deletion.
        agent.request_steps().await.json_with_status(200);
        let before = agent.get_host().await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        agent.register().await.json_with_status(201);
        records.store_check_ins().await.unwrap();
        let host = agent.get_host().await;
        assert!(time(&host, "checked_in_at") > time(&before, "checked_in_at"));
        assert_eq!(host["timestamp"], before["timestamp"]);
    });
}

#[test]
fn check_in_of_a_cached_host_reads_nothing() {
    let texts = KeyTexts::generate().unwrap();
    for policy in [Policy::Open, Policy::local(LocalKeys::parse(texts.private.reveal(), None).unwrap())] {
        on_each_database_with_policy_and_token(&policy, async |service, agent, token| {
            let ask = async || {
                let path = format!("{}/instructions?timestamp=1700000000", agent.path());
                let request = service.request(Method::GET, &path);
                let request = request.header("discovery_agent_version", &agent.version);
                send_request(request.header("X-Secret-Key", token)).await.json_with_status(200)
            };
            // The first check-in stores the difference between the clocks of the agent and the service. The second
            // check-in reads the host.
            ask().await;
            ask().await;
            let reads = || service.inventory.records().store().metrics().durations(Operation::Read).count();
            let before = reads();
            ask().await;
            assert_eq!(reads() - before, 0);
        });
    }
}

fn on_each_database_with_policy_and_token(
    policy: &Policy,
    test: impl AsyncFn(&TestService, &FakeAgent<'_>, &str),
) {
    crate::service::on_each_database_with_policy(policy.clone(), async |service| {
        let infra_env = service
            .inventory
            .register_infra_env(
                serde_json::from_value(json!({"name": "demo", "pull_secret": PULL_SECRET})).unwrap(),
                None,
            )
            .await
            .unwrap();
        let token = policy.url_token(infra_env.id).unwrap();
        let agent = FakeAgent::new(service, &infra_env.id.to_string());
        let body = json!({"host_id": agent.id, "discovery_agent_version": agent.version});
        let request = service.request(Method::POST, &format!("/v2/infra-envs/{}/hosts", agent.infra_env));
        let request = request.header("X-Secret-Key", token.reveal()).json(&body);
        send_request(request).await.json_with_status(201);
        test(service, &agent, token.reveal()).await;
    });
}

/// Serves a database until the process is killed, and prints its URL.
#[test]
#[ignore = "the process that others kill"]
fn process_that_serves() {
    let url = process_task();
    block_on(async {
        let store = SqlStore::open(&url).await.unwrap();
        let service = TestService::start_on_store(store, None, Policy::Open, |_| {}).await;
        println!("\nserving {}", service.url(""));
        std::future::pending::<()>().await;
    });
}

/// A service in another process.
struct ServingProcess {
    child: Child,
    base: String,
}

impl ServingProcess {
    fn start(database: &str) -> Self {
        let mut command = test_process("check_ins::process_that_serves", database);
        let mut child = command.stderr(Stdio::inherit()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let base = lines.filter_map(|line| line.strip_prefix("serving ").map(str::to_owned)).next().unwrap();
        Self { child, base }
    }

    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let request = reqwest::Client::new().request(method, format!("{}{}{path}", self.base, Settings::API));
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let answer = send_request(request).await;
        assert!(answer.status < 300, "{}", answer.text);
        if answer.text.is_empty() { Value::Null } else { answer.json() }
    }
}

impl Drop for ServingProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Removes the last check-in, and the values that follow from it.
fn without_check_in(mut host: Value) -> Value {
    for name in ["checked_in_at", "timestamp"] {
        host.as_object_mut().unwrap().remove(name).unwrap();
    }
    host
}

async fn kill_and_compare(database: &str) {
    let process = ServingProcess::start(database);
    let env = json!({"name": "demo", "pull_secret": PULL_SECRET});
    let env = process.ask(Method::POST, "/v2/infra-envs", Some(&env)).await;
    let hosts = format!("/v2/infra-envs/{}/hosts", env["id"].as_str().unwrap());
    let id = uuid::Uuid::new_v4().to_string();
    process.ask(Method::POST, &hosts, Some(&json!({"host_id": id}))).await;
    let host = format!("{hosts}/{id}");
    let instructions = format!("{host}/instructions");
    let poll = async || {
        let asked_at = Utc::now();
        let path = format!("{instructions}?timestamp={}", asked_at.timestamp());
        process.ask(Method::GET, &path, None).await;
        asked_at
    };
    let began = Instant::now();
    let mut asked_at = poll().await;
    while began.elapsed() < Duration::from_secs(7) {
        tokio::time::sleep(Duration::from_millis(100)).await;
        asked_at = poll().await;
    }
    // Everything else is stored immediately.
    let report = inventory_report("node-1").to_string();
    let reply = json!({"step_type": "inventory", "step_id": "inventory-00000001", "output": report});
    process.ask(Method::POST, &instructions, Some(&reply)).await;
    let before = process.ask(Method::GET, &host, None).await;
    drop(process);

    let store = SqlStore::open(database).await.unwrap();
    let service = TestService::start_on_store(store, None, Policy::Open, |_| {}).await;
    let after = service.get(&host).await.json_with_status(200);
    let checked_in_at = time(&after, "checked_in_at");
    assert!(asked_at - checked_in_at < MAX_LOST, "{asked_at} {checked_in_at}");
    assert_eq!(without_check_in(after.clone()), without_check_in(before.clone()));
    assert_eq!(after["status"], "known-unbound");
    service.stop().await;
}

#[test]
fn killed_process_loses_only_the_last_seconds_of_check_ins() {
    block_on(async {
        let directory = TempDir::new().unwrap();
        let path: &Path = directory.path();
        kill_and_compare(&format!("sqlite://{}", path.join("kindling.db").display())).await;
        let Some(server) = postgres_url() else { return };
        let database = TestDatabase::create(&server).await;
        kill_and_compare(&database.url).await;
        database.drop().await;
    });
}

/// A release before the check-in columns stores the time and the clock only in the document.
#[test]
fn check_in_of_an_older_release_is_in_the_document() {
    on_each_url(
        |_| {},
        async |service, url| {
            let agent = FakeAgent::register_in_new_infra_env(service).await;
            agent.request_steps().await.json_with_status(200);
            // A write of the document also stores the last check-in in the document.
            service.patch(&agent.path(), &json!({"host_name": "chosen"})).await.json_with_status(201);
            service.inventory.records().store_check_ins().await.unwrap();
            let host = agent.get_host().await;
            run_sql(url, "UPDATE records SET clock = NULL, checked_in_at = NULL WHERE kind = 'host'").await;
            assert_eq!(agent.get_host().await, host);
            // Another replica reads the check-in in the same way.
            let store = Arc::clone(service.inventory.records().store()) as Arc<dyn Store>;
            let other = inventory_on_store(store, service);
            let host = key(&agent);
            let loaded =
                other.records().find::<kindling::inventory::host::HostRecord>(host.parent, host.id).await;
            let record = loaded.unwrap().unwrap().record;
            assert_eq!((record.clock, record.key()), (1_700_000_000, host));
            // An earlier time in the columns takes precedence: the clock was set back after the document was written.
            run_sql(url, "UPDATE records SET checked_in_at = 5000000, clock = 6 WHERE kind = 'host'").await;
            assert_eq!(agent.get_host().await["checked_in_at"], "1970-01-01T00:00:05.000Z");
        },
    );
}
