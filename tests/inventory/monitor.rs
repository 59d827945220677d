//! The monitor: silent hosts become disconnected, and only once, whichever replica detects their silence.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use kindling::inventory::auth::Policy;
use kindling::inventory::background::{self, SILENCE};
use kindling::inventory::service::MonitorHealth;
use kindling::inventory::store::{Operation, SqlStore};
use kindling::inventory::{ManualClock, Settings};
use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::agent::{FakeAgent, create_infra_env, events_of_infra_env};
use crate::database::{TestDatabase, postgres_url};
use crate::service::{TestService, on_each_database_with, on_each_database_with_clock, send_request};
use crate::store::{block_on, run_sql};

/// Maximum time until another replica takes over.
const MAX_TAKEOVER: Duration = Duration::from_secs(15);

/// Returns a change to the settings that sets the maximum silence.
fn limits(max_silence: Duration) -> impl Fn(&mut Settings) {
    move |settings| {
        settings.max_silence = max_silence;
        settings.host_monitor_interval = Duration::from_millis(100);
    }
}

fn commits(service: &TestService) -> u64 {
    service.inventory.records().store().metrics().durations(Operation::Commit).count()
}

fn reads(service: &TestService) -> u64 {
    service.inventory.records().store().metrics().durations(Operation::Read).count()
}

fn health(service: &TestService) -> Option<MonitorHealth> {
    service.inventory.tasks().monitor_health(Duration::MAX)
}

fn start_tasks(service: &TestService) -> JoinHandle<()> {
    tokio::spawn(background::run(service.inventory.clone(), std::future::pending()))
}

/// Returns the number of disconnections in the events of an infra-env.
async fn disconnections(service: &TestService, infra_env: &str) -> usize {
    let events = events_of_infra_env(service, infra_env).await;
    events.iter().filter(|(_, message)| message.contains("to disconnected-unbound")).count()
}

/// Waits until a condition holds.
async fn wait_for(limit: Duration, what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < limit, "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn silent_hosts_are_disconnected_in_few_changes_and_reading_them_writes_nothing() {
    const HOSTS: usize = 150;
    on_each_database_with_clock(limits(Duration::from_secs(60)), async |service, clock| {
        let env = create_infra_env(service, &json!({})).await;
        let agents: Vec<_> = (0..HOSTS).map(|_| FakeAgent::new(service, &env)).collect();
        futures_util::future::join_all(agents.iter().map(async |agent| {
            agent.register().await.json_with_status(201);
        }))
        .await;
        clock.advance(Duration::from_secs(61));
        // One of the silent hosts checks in.
        let returning = &agents[HOSTS / 2];
        returning.request_steps().await.json_with_status(200);
        let list = format!("/v2/infra-envs/{env}/hosts");
        let before = commits(service);
        for host in service.get(&list).await.json_with_status(200).as_array().unwrap() {
            assert_eq!(host["status"], "discovering-unbound", "{host}");
        }
        agents[0].get_host().await;
        assert_eq!(commits(service), before);

        assert_eq!(service.inventory.disconnect_silent_hosts().await.unwrap(), HOSTS - 1);
        assert_eq!(commits(service) - before, 2);
        for host in service.get(&list).await.json_with_status(200).as_array().unwrap() {
            let is_silent = host["id"] != returning.id.as_str();
            let status = if is_silent { "disconnected-unbound" } else { "discovering-unbound" };
            assert_eq!(host["status"], status, "{host}");
        }
        assert_eq!(disconnections(service, &env).await, HOSTS - 1);
        assert_eq!(service.inventory.disconnect_silent_hosts().await.unwrap(), 0);
        assert_eq!(commits(service) - before, 2);
    });
}

#[test]
fn monitor_disconnects_hosts_that_had_time_to_check_in() {
    on_each_database_with(limits(Duration::from_secs(5)), async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        // Has the same effect as stopping the service for this time.
        tokio::time::sleep(Duration::from_millis(5100)).await;
        let monitor = start_tasks(service);
        let tasks = service.inventory.tasks();
        let passes = || tasks.find(SILENCE).map_or(0, |task| task.durations().count());
        wait_for(Duration::from_secs(4), "no passes", async || passes() >= 2).await;
        assert_eq!(agent.host_status().await, "discovering-unbound");
        let is_disconnected = async || agent.host_status().await == "disconnected-unbound";
        wait_for(Duration::from_secs(30), "the host stays connected", is_disconnected).await;
        assert_eq!(service.inventory.tasks().disconnected_hosts(), 1);
        agent.request_steps().await.json_with_status(200);
        assert_eq!(agent.host_status().await, "discovering-unbound");
        monitor.abort();
    });
}

#[test]
fn damaged_host_record_does_not_stop_the_monitor() {
    block_on(async {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("kindling.db");
        let start = async || {
            let store = SqlStore::open_file(&path).await.unwrap();
            TestService::start_on_store(store, None, Policy::Open, limits(Duration::ZERO)).await
        };
        let service = start().await;
        let env = create_infra_env(&service, &json!({})).await;
        let agents: Vec<_> = (0..4).map(|_| FakeAgent::new(&service, &env)).collect();
        for agent in &agents {
            agent.register().await.json_with_status(201);
        }
        let damaged = agents[1].id.clone();
        service.inventory.records().store_check_ins().await.unwrap();
        drop(agents);
        service.stop().await;
        let url = format!("sqlite:{}", path.display());
        run_sql(&url, format!("UPDATE records SET document = '{{}}' WHERE id = '{damaged}'")).await;
        let service = start().await;
        assert_eq!(service.inventory.disconnect_silent_hosts().await.unwrap(), 3);
        assert_eq!(service.inventory.disconnect_silent_hosts().await.unwrap(), 0);
        service.stop().await;
    });
}

#[test]
fn ten_thousand_hosts_fall_silent_at_the_same_time() {
    const HOSTS: usize = 10_000;
    block_on(async {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("kindling.db");
        let clock = Arc::new(ManualClock::new(Utc::now()));
        let start = async || {
            let store = SqlStore::open_file(&path).await.unwrap();
            let limits = |settings: &mut Settings| {
                limits(Duration::from_secs(60))(settings);
                settings.clock = clock.clone();
            };
            TestService::start_on_store(store, None, Policy::Open, limits).await
        };
        let service = start().await;
        let agent = FakeAgent::register_in_new_infra_env(&service).await;
        let (env, host) = (agent.infra_env.clone(), agent.id.clone());
        service.stop().await;
        let copies: Vec<_> = (1..HOSTS).map(|_| format!("('{}')", Uuid::new_v4())).collect();
        let copy = format!(
            "WITH copies (copy) AS (VALUES {}) \
             INSERT INTO records (kind, parent, id, cluster_id, deleted, record_generation, made_at, document, token_key, \
             size, schema_version, status, role, checked_in_at, clock) \
             SELECT kind, parent, copy, cluster_id, deleted, record_generation, made_at, \
             replace(document, '{host}', copy), token_key, size, schema_version, status, role, checked_in_at, \
             clock FROM records, copies WHERE id = '{host}'; \
             UPDATE totals SET records = records * {HOSTS}, bytes = bytes * {HOSTS}",
            copies.join(",")
        );
        run_sql(&format!("sqlite:{}", path.display()), copy).await;
        clock.advance(Duration::from_secs(61));

        let service = start().await;
        assert_eq!(service.inventory.disconnect_silent_hosts().await.unwrap(), HOSTS);
        assert_eq!(commits(&service), HOSTS as u64 / 100);
        let (before, commits_before) = (reads(&service), commits(&service));
        assert_eq!(service.inventory.disconnect_silent_hosts().await.unwrap(), 0);
        // One read for each earlier status of a host, and one for check-ins in the future.
        assert_eq!((reads(&service) - before, commits(&service) - commits_before), (10, 0));
        assert!(disconnections(&service, &env).await > 0);
        service.stop().await;
    });
}

#[test]
fn one_replica_monitors_and_another_takes_over() {
    const HOSTS: usize = 20;
    let Some(server) = postgres_url() else { return };
    block_on(async {
        let database = TestDatabase::create(&server).await;
        let start = async || {
            let store = SqlStore::open(&database.url).await.unwrap();
            TestService::start_on_store(store, None, Policy::Open, limits(Duration::from_secs(2))).await
        };
        let (one, two) = (start().await, start().await);
        let first = start_tasks(&one);
        wait_for(MAX_TAKEOVER, "no monitor", async || health(&one) == Some(MonitorHealth::Active)).await;
        let second = start_tasks(&two);
        let env = create_infra_env(&one, &json!({})).await;
        for _ in 0..HOSTS {
            FakeAgent::new(&one, &env).register().await.json_with_status(201);
        }
        let all = async || disconnections(&two, &env).await == HOSTS;
        wait_for(Duration::from_secs(30), "hosts stay connected", all).await;
        assert_eq!(health(&two), Some(MonitorHealth::Standby));
        assert_eq!(two.inventory.tasks().disconnected_hosts(), 0);

        // Aborting the first replica has the effect of killing it: its lease remains.
        first.abort();
        wait_for(MAX_TAKEOVER, "no takeover", async || health(&two) == Some(MonitorHealth::Active)).await;
        FakeAgent::new(&two, &env).register().await.json_with_status(201);
        let all = async || disconnections(&two, &env).await == HOSTS + 1;
        wait_for(Duration::from_secs(30), "a host stays connected", all).await;
        assert_eq!(two.inventory.tasks().disconnected_hosts(), 1);

        // The second replica stops normally and releases its lease, so the restarted first replica need not wait for
        // the end of the lease.
        second.abort();
        two.stop().await;
        let third = start_tasks(&one);
        wait_for(Duration::from_secs(2), "no takeover", async || health(&one) == Some(MonitorHealth::Active))
            .await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(disconnections(&one, &env).await, HOSTS + 1, "no host is disconnected twice");
        third.abort();
        one.stop().await;
        database.drop().await;
    });
}

#[test]
fn health_fails_while_the_monitor_is_stuck() {
    let timeout = Duration::from_secs(2);
    on_each_database_with(
        |settings| settings.monitor_timeout = timeout,
        async |service| {
            let ask = async || send_request(service.request_at_root(Method::GET, "/health")).await;
            assert!(ask().await.json_with_status(200).get("monitor").is_none());
            let monitor = start_tasks(service);
            let is_active = async || ask().await.json()["monitor"] == "active";
            wait_for(Duration::from_secs(10), "no monitor", is_active).await;
            assert_eq!(ask().await.status, 200);
            monitor.abort();
            let is_stuck = async || ask().await.json()["monitor"] == "stuck";
            wait_for(Duration::from_secs(30), "the monitor is not stuck", is_stuck).await;
            assert_eq!(ask().await.status, 503);
        },
    );
}
