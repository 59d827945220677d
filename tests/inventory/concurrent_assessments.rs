//! Assessments that run concurrently with other changes, and assessments of several replicas.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use futures_util::future::join_all;
use kindling::inventory::background;
use kindling::inventory::event::Event;
use kindling::inventory::store::{Row, SqlStore, Step, Store};
use kindling::inventory::{Inventory, Settings};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tower::ServiceExt as _;

use crate::agent::{FakeAgent, create_infra_env};
use crate::clusters::create_cluster;
use crate::database::{TestDatabase, postgres_url};
use crate::fleet::{Fleet, HostIdentity, commit_step, report_of, start, stored_host};
use crate::gated_store::{Gate, GatedStore, Point};
use crate::ready_cluster::{ReadyCluster, poor_report_of, stale_clusters, validation_status, writes};
use crate::service::{TestService, inventory_on_store, on_each_database, on_each_database_by_url};
use crate::store::block_on;

/// Maximum time until a background task has done its work.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends a request with a JSON body to another replica, and returns the body of the response, which must be a success.
async fn send(inventory: &Inventory, method: &str, path: &str, body: &Value) -> Value {
    let request = Request::builder().method(method).uri(format!("{}{path}", Settings::API));
    let request =
        request.header("Content-Type", "application/json").body(Body::from(body.to_string())).unwrap();
    let response = kindling::http::app(inventory, None).oneshot(request).await.unwrap();
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
    if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() }
}

/// Assesses the clusters in another task.
fn spawn_assessment(inventory: &Inventory) -> JoinHandle<u64> {
    let inventory = inventory.clone();
    tokio::spawn(async move { inventory.assess_clusters().await.unwrap() })
}

/// Waits until a condition holds.
async fn wait_until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{what}"));
}

/// Changes a cluster and its hosts through a replica whose assessments do not end. Each response shows the state before
/// the assessment, and the next assessment updates it.
async fn check_changes_without_assessment(service: &TestService, gate: Gate) {
    let cluster = ReadyCluster::assemble(service).await;
    let (store, inventory) = GatedStore::new(service, Point::Commit);
    store.set(gate);
    let agent = &cluster.agents()[0];

    let response =
        send(&inventory, "PATCH", &cluster.path(), &json!({"api_vips": [], "ingress_vips": []})).await;
    assert_eq!((&response["status"], &response["api_vips"]), (&json!("ready"), &json!([])), "{gate:?}");
    assert!(cluster.is_stale().await);
    cluster.assess().await;
    assert_eq!(cluster.status().await, "pending-for-input");
    service.patch(&cluster.path(), &with_both_vips()).await.json_with_status(201);
    assert_eq!(cluster.status().await, "ready");

    let response = send(&inventory, "PATCH", &agent.path(), &json!({"host_name": "node-1"})).await;
    assert_eq!((&response["status"], &response["requested_hostname"]), (&json!("known"), &json!("node-1")));
    cluster.assess().await;
    assert_eq!(
        (agent.stored_status().await, cluster.status().await),
        ("insufficient".into(), "insufficient".into())
    );

    let before = store.arrivals();
    send(&inventory, "DELETE", &agent.path(), &Value::Null).await;
    assert!(store.arrivals() > before);
    let masters = async || validation_status(&cluster.get().await, "sufficient-masters-count");
    assert_eq!((cluster.is_stale().await, masters().await), (true, json!("success")));
    cluster.assess().await;
    assert_eq!((cluster.is_stale().await, masters().await), (false, json!("failure")));
}

/// Returns the virtual addresses of [`ReadyCluster`].
fn with_both_vips() -> Value {
    let vips = crate::fleet::with_vips();
    json!({"api_vips": vips["api_vips"], "ingress_vips": vips["ingress_vips"]})
}

#[test]
fn slow_assessment_does_not_delay_a_response_until_its_end() {
    on_each_database(async |service| check_changes_without_assessment(service, Gate::Closed).await);
}

#[test]
fn failed_assessment_does_not_fail_the_change() {
    on_each_database(async |service| check_changes_without_assessment(service, Gate::Broken).await);
}

#[test]
fn report_of_an_unwritten_host_does_not_restart_the_assessment() {
    on_each_database(async |service| {
        let cluster = ReadyCluster::assemble(service).await;
        let (store, inventory) = GatedStore::new(service, Point::Commit);
        store.set(Gate::Closed);
        cluster.report_poor(0).await;
        let assessment = spawn_assessment(&inventory);
        store.wait_for_arrivals(1).await;
        let before = stored_host(&cluster.agents()[1]).await.generation;
        cluster.report_other_memory(1).await;
        let generation = stored_host(&cluster.agents()[1]).await.generation;
        assert_eq!(generation, before + 1);
        store.set(Gate::Open);

        assert_eq!(assessment.await.unwrap(), 1);
        assert_eq!(store.arrivals(), 1, "the first attempt was committed");
        assert_eq!(cluster.host_statuses().await, ["insufficient", "known", "known"]);
        assert_eq!(cluster.status().await, "insufficient");
        assert_eq!(stored_host(&cluster.agents()[1]).await.generation, generation);
        assert!(cluster.is_stale().await, "it has not seen the report");
        cluster.assess().await;
        assert!(!cluster.is_stale().await);
    });
}

#[test]
fn host_that_changes_during_an_assessment_keeps_its_status() {
    on_each_database(async |service| {
        let cluster = ReadyCluster::assemble(service).await;
        let (store, inventory) = GatedStore::new(service, Point::ClusterRead);
        cluster.report_poor(2).await;
        cluster.assess().await;
        cluster.report_good(2).await;
        cluster.report_poor(0).await;
        let events = cluster.event_count().await;
        // Stop the assessment at its second read of the cluster, after it has read the view of the cluster.
        store.set(Gate::ClosedAfter(1));
        let assessment = spawn_assessment(&inventory);
        store.wait_for_arrivals(2).await;
        cluster.report_good(0).await;
        let generation = stored_host(&cluster.agents()[0]).await.generation;
        store.set(Gate::Open);

        assert_eq!(assessment.await.unwrap(), 1, "only the host that returns is written");
        assert_eq!(stored_host(&cluster.agents()[0]).await.generation, generation);
        assert_eq!(cluster.host_statuses().await, ["known"; ReadyCluster::HOSTS]);
        let events_of = async |name| {
            let (id, all) = (&cluster.agents()[0].id, cluster.events(name).await);
            all.into_iter().filter(|event| event.host.is_some_and(|host| host.to_string() == *id)).count()
        };
        let validations = events_of("host_validation_failed").await;
        assert!(cluster.event_count().await > events);
        assert!(cluster.is_stale().await);
        cluster.assess().await;
        assert_eq!(
            (cluster.status().await, events_of("host_validation_failed").await),
            ("ready".into(), validations)
        );
        assert!(!cluster.is_stale().await);
    });
}

#[test]
fn host_that_joins_or_leaves_restarts_the_assessment() {
    on_each_database(async |service| {
        let cluster = ReadyCluster::assemble(service).await;
        let (store, inventory) = GatedStore::new(service, Point::Commit);
        let joining = FakeAgent::new(service, &cluster.agents()[0].infra_env);
        for joins in [true, false] {
            cluster.report_poor(0).await;
            let arrivals = store.arrivals();
            store.set(Gate::Closed);
            let assessment = spawn_assessment(&inventory);
            store.wait_for_arrivals(arrivals + 1).await;
            let membership = service.inventory.records().membership_changes(cluster.id()).await.unwrap();
            if joins {
                joining.register().await.json_with_status(201);
            } else {
                send(&inventory, "DELETE", &joining.path(), &Value::Null).await;
            }
            let after = service.inventory.records().membership_changes(cluster.id()).await.unwrap();
            assert_eq!(after, membership + 1);
            let arrivals = store.arrivals();
            store.set(Gate::Open);
            assert!(assessment.await.unwrap() >= 1);
            assert!(store.arrivals() > arrivals, "joins: {joins}");
            assert!(!cluster.is_stale().await);
            let hosts = cluster.get().await["hosts"].as_array().unwrap().len();
            assert_eq!(hosts, ReadyCluster::HOSTS + usize::from(joins));
            cluster.report_good(0).await;
            cluster.assess().await;
        }
        assert_eq!(cluster.status().await, "ready");
    });
}

/// Opens a second inventory of the same database. On SQLite, which supports a single store, both inventories use the
/// same store.
async fn second_inventory(service: &TestService, url: Option<&str>) -> Inventory {
    let store: Arc<dyn Store> = match url {
        Some(url) => Arc::new(SqlStore::open(url).await.unwrap()),
        None => Arc::clone(service.inventory.records().store()),
    };
    inventory_on_store(store, service)
}

/// Asserts that each status event of a host begins with the status of the previous event. Returns the number of events.
fn count_statuses(events: &[Event], agent: &FakeAgent<'_>) -> usize {
    let (mut before, mut count) = (None::<String>, 0);
    for event in events.iter().filter(|event| event.host.is_some_and(|host| host.to_string() == agent.id)) {
        let (_, change) = event.message.split_once("updated status from ").unwrap();
        let (from, to) = change.split_once(" to ").unwrap();
        let to = to.split_once(" (").unwrap().0;
        assert!(before.as_deref().is_none_or(|before| before == from), "{before:?}: {}", event.message);
        assert_ne!(from, to);
        before = Some(to.to_owned());
        count += 1;
    }
    count
}

/// Asserts that each validation of a host alternates between failing and being fixed.
fn check_validations(events: &[Event]) {
    let mut states = BTreeMap::new();
    for event in events {
        let id = event.message.split('\'').nth(1).unwrap().to_owned();
        let key = (event.host, event.cluster, id);
        let is_failure = event.name.ends_with("_failed");
        assert_ne!(states.insert(key, is_failure), Some(is_failure), "{}", event.message);
    }
}

#[test]
fn two_assessors_report_each_change_once() {
    const ROUNDS: usize = 8;
    on_each_database_by_url(async |service, url| {
        let cluster = ReadyCluster::assemble(service).await;
        let (one, other) = (&service.inventory, second_inventory(service, url).await);
        let agents = cluster.agents();
        let statuses = async || {
            let events = cluster.events("host_status_updated").await;
            agents.iter().map(|agent| count_statuses(&events, agent)).collect::<Vec<_>>()
        };
        let mut expected = statuses().await;
        let mut is_poor = [false; ReadyCluster::HOSTS];
        for round in 0..ROUNDS {
            for (number, is_poor) in is_poor.iter_mut().enumerate() {
                let is_poor_now = round + 1 < ROUNDS && (round / 2 + number) % 2 == 0;
                expected[number] += usize::from(*is_poor != is_poor_now);
                *is_poor = is_poor_now;
            }
            let report =
                join_all(agents.iter().zip(is_poor).enumerate().map(async |(number, (agent, is_poor))| {
                    let report = if is_poor { poor_report_of(number) } else { report_of(number) };
                    agent.reply_to_step("inventory", &report).await.json_with_status(204);
                }));
            tokio::join!(report, assess_often(one), assess_often(&other), assess_often(one));
            wait_until("the cluster stays stale", async || {
                let (one, other) = tokio::join!(one.assess_clusters(), other.assess_clusters());
                one.unwrap();
                other.unwrap();
                !cluster.is_stale().await
            })
            .await;
            assert_eq!(statuses().await, expected, "{round}");
        }

        let mut of_cluster = messages(&cluster.events("cluster_status_updated").await);
        assert_eq!(of_cluster.last().map(String::as_str), Some("Updated status of the cluster to ready"));
        let count = of_cluster.len();
        of_cluster.dedup();
        assert_eq!(of_cluster.len(), count, "{of_cluster:?}");
        for subject in ["host", "cluster"] {
            let mut events = cluster.events(&format!("{subject}_validation_failed")).await;
            events.extend(cluster.events(&format!("{subject}_validation_fixed")).await);
            events.sort_by_key(|event| event.time);
            check_validations(&events);
        }
        if url.is_some() {
            other.close().await;
        }
    });
}

async fn assess_often(inventory: &Inventory) {
    for _ in 0..4 {
        inventory.assess_clusters().await.unwrap();
    }
}

fn messages(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| event.message.clone()).collect()
}

#[test]
fn replica_without_notifications_detects_changes_in_the_database() {
    on_each_database(async |service| {
        let cluster = ReadyCluster::assemble(service).await;
        let deaf = GatedStore::without_notifications(service).await;
        // From now on, the replica has the cluster in memory.
        cluster.report_other_memory(1).await;
        deaf.assess_clusters().await.unwrap();
        cluster.report_poor(0).await;
        assert_eq!(deaf.assess_clusters().await.unwrap(), 1);
        assert_eq!(
            (cluster.host_statuses().await[0].as_str(), cluster.is_stale().await),
            ("insufficient", false)
        );
        let joining = FakeAgent::new(service, &cluster.agents()[0].infra_env);
        joining.register().await.json_with_status(201);
        deaf.assess_clusters().await.unwrap();
        assert!(!cluster.is_stale().await);
        assert_eq!(validation_status(&joining.get_host().await, "has-inventory"), "failure");
    });
}

#[test]
fn replica_without_notifications_does_not_overwrite_a_newer_assessment() {
    on_each_database(async |service| {
        let cluster = ReadyCluster::assemble(service).await;
        let deaf = GatedStore::without_notifications(service).await;
        cluster.report_other_memory(1).await;
        deaf.assess_clusters().await.unwrap();
        let events = cluster.events("host_status_updated").await.len();
        cluster.report_poor(0).await;
        assert_eq!(cluster.assess().await, 1);
        // The replica's copy of the cluster is from a time when this host could be installed.
        cluster.report_poor(1).await;
        assert_eq!(deaf.assess_clusters().await.unwrap(), 1);
        assert_eq!(cluster.host_statuses().await, ["insufficient", "insufficient", "known"]);
        assert_eq!(cluster.status().await, "insufficient");
        assert_eq!(cluster.events("host_status_updated").await.len(), events + 2);
        assert!(!cluster.is_stale().await);
    });
}

#[test]
fn paused_assessment_does_not_overwrite_a_newer_one() {
    on_each_database(async |service| {
        let cluster = ReadyCluster::assemble(service).await;
        let (store, inventory) = GatedStore::new(service, Point::Commit);
        store.set(Gate::Closed);
        cluster.report_poor(0).await;
        let paused = spawn_assessment(&inventory);
        store.wait_for_arrivals(1).await;
        cluster.report_good(0).await;
        cluster.assess().await;
        let state = async || (writes(service).await.generations, cluster.event_count().await);
        let before = state().await;
        store.set(Gate::Open);
        assert_eq!(paused.await.unwrap(), 0);
        assert_eq!(state().await, before);
        assert_eq!(
            (cluster.host_statuses().await, cluster.status().await),
            (vec!["known".to_owned(); 3], "ready".into())
        );
    });
}

/// Replaces the stored assessment by one that has seen later changes, as if another replica had written it before this
/// replica was notified of the changes.
async fn store_newer_assessment(cluster: &ReadyCluster<'_>, part: &str) {
    let row = cluster.assessment().await;
    let mut document: Value = serde_json::from_str(&row.document).unwrap();
    document[part] = json!(document[part].as_i64().unwrap() + 1);
    let mut columns = row.columns.clone();
    columns.seen_hosts = Some(0);
    let row = Row { generation: row.generation + 1, document: document.to_string(), columns, ..row };
    commit_step(cluster.service(), Step::Replace(row)).await;
}

#[test]
fn replica_with_an_outdated_view_writes_nothing() {
    on_each_database(async |service| {
        for part in ["seen_cluster", "seen_membership", "seen_progress"] {
            let cluster = ReadyCluster::assemble(service).await;
            store_newer_assessment(&cluster, part).await;
            assert!(cluster.is_stale().await);
            let before = (cluster.assessment().await, writes(service).await);
            assert_eq!(cluster.assess().await, 0, "{part}");
            assert_eq!((cluster.assessment().await, writes(service).await), before, "{part}");
            // The user's change succeeds, and the response contains the stored status.
            let response = service.patch(&cluster.agents()[0].path(), &json!({"host_role": "master"})).await;
            assert_eq!(response.json_with_status(201)["status"], "known", "{part}");
            service.delete(&cluster.path()).await.json_with_status(204);
        }
    });
}

#[test]
fn concurrent_registrations_do_not_fail_changes_of_their_cluster() {
    const HOSTS: usize = 500;
    const CHANGES: usize = 20;
    on_each_database(async |service| {
        let cluster = create_cluster(service, &json!({})).await["id"].as_str().unwrap().to_owned();
        let infra_env = create_infra_env(service, &json!({"cluster_id": cluster})).await;
        let agents: Vec<_> = (0..HOSTS).map(|_| FakeAgent::new(service, &infra_env)).collect();
        let path = format!("/v2/clusters/{cluster}");
        let register = join_all(agents.iter().map(async |agent| {
            agent.register().await.json_with_status(201);
        }));
        let change = async {
            for number in 0..CHANGES {
                let body = json!({"name": format!("name-{number}")});
                let response = service.patch(&path, &body).await.json_with_status(201);
                assert_eq!(response["name"], body["name"]);
            }
        };
        tokio::join!(register, change);
        let id = cluster.parse().unwrap();
        let membership = service.inventory.records().membership_changes(id).await.unwrap();
        assert_eq!(usize::try_from(membership).unwrap(), HOSTS);
        service.inventory.assess_clusters().await.unwrap();
        assert!(stale_clusters(service).await.is_empty());
        let response = service.get(&path).await.json_with_status(200);
        assert_eq!(
            (response["hosts"].as_array().unwrap().len(), &response["name"]),
            (HOSTS, &json!(format!("name-{}", CHANGES - 1)))
        );
    });
}

/// Starts the background tasks of a service. Aborting the task has the same effect on them as killing the process.
fn start_tasks(service: &TestService) -> JoinHandle<()> {
    tokio::spawn(background::run(service.inventory.clone(), std::future::pending()))
}

#[test]
fn reply_to_one_replica_changes_the_status_on_both() {
    let Some(server) = postgres_url() else { return };
    block_on(async {
        let database = TestDatabase::create(&server).await;
        let (one, two) = (start(&database.url, |_| {}).await, start(&database.url, |_| {}).await);
        let cluster = ReadyCluster::assemble(&one).await;
        let host = HostIdentity::of(&cluster.agents()[0]).agent(&two);
        let status_at = async |service: &TestService| {
            service.get(&cluster.path()).await.json_with_status(200)["status"].as_str().unwrap().to_owned()
        };
        let leader = start_tasks(&one);
        wait_until("no replica becomes the leader", async || one.inventory.tasks().is_leader()).await;
        let standby = start_tasks(&two);
        for (report, of_host, of_cluster) in
            [(poor_report_of(0), "insufficient", "insufficient"), (report_of(0), "known", "ready")]
        {
            host.reply_to_step("inventory", &report).await.json_with_status(204);
            wait_until("the reply has no effect", async || {
                let hosts = [cluster.agents()[0].stored_status().await, host.stored_status().await];
                hosts == [of_host; 2] && [status_at(&one).await, status_at(&two).await] == [of_cluster; 2]
            })
            .await;
        }
        assert_eq!(two.inventory.tasks().assessed_clusters(), 0, "only the leader assesses");

        // The leader dies before the host reports poor hardware, and the next leader gets no notification of this
        // report.
        leader.abort();
        standby.abort();
        let _ = (leader.await, standby.await);
        host.reply_to_step("inventory", &poor_report_of(0)).await.json_with_status(204);
        assert_eq!(status_at(&two).await, "ready");
        assert_eq!(stale_clusters(&two).await, [cluster.id()]);
        let next = start_tasks(&two);
        wait_until("the change is not found", async || {
            status_at(&two).await == "insufficient" && status_at(&one).await == "insufficient"
        })
        .await;
        assert!(two.inventory.tasks().is_leader() && two.inventory.tasks().assessed_clusters() > 0);
        assert!(stale_clusters(&one).await.is_empty());
        next.abort();
        drop((cluster, host));
        for service in [one, two] {
            service.stop().await;
        }
        database.drop().await;
    });
}

/// The leader of a single process assesses the cluster, too.
#[test]
fn leader_assesses_a_cluster_after_a_reply() {
    on_each_database(async |service| {
        let fleet = Fleet::register(service, 1, &json!({})).await;
        let tasks = start_tasks(service);
        let agent = &fleet.agents[0];
        for (report, cores) in [(report_of(0), "success"), (poor_report_of(0), "failure")] {
            agent.reply_to_step("inventory", &report).await.json_with_status(204);
            wait_until("the reply has no effect", async || {
                validation_status(&agent.get_host().await, "has-min-cpu-cores") == cores
            })
            .await;
        }
        tasks.abort();
    });
}
