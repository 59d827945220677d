//! The remains of deleted records, and their retention.

use std::time::Duration;

use kindling::inventory::event::{EventPage, EventQuery};
use kindling::inventory::files::FilePath;
use kindling::inventory::store::{Changes, Key, Kind, Outcome, Row, Step};
use kindling::inventory::{ErrorKind, Settings};
use reqwest::Method;
use serde_json::json;

use crate::agent::{FakeAgent, create_infra_env};
use crate::service::{PULL_SECRET, TestService, on_each_database, on_each_database_with, send_request};

/// Sets the retention of deleted records to zero.
fn retain_nothing(settings: &mut Settings) {
    settings.kept_after_deletion = Duration::ZERO;
}

async fn create_cluster(service: &TestService) -> String {
    let body = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
    service.post("/v2/clusters", &body).await.json_with_status(201)["id"].as_str().unwrap().to_owned()
}

/// Returns the status of a request for a cluster, deleted or not.
async fn get_status(service: &TestService, cluster: &str) -> u16 {
    let request = service.request(Method::GET, &format!("/v2/clusters/{cluster}"));
    send_request(request.header("get_unregistered_clusters", "true")).await.status
}

async fn query_events(service: &TestService, query: EventQuery) -> EventPage {
    service.inventory.records().store().events(&query).await.unwrap()
}

/// Returns the number of events of an infra-env, which may be deleted.
async fn event_count_of_infra_env(service: &TestService, infra_env: &str) -> u64 {
    let query = EventQuery { infra_env: Some(infra_env.parse().unwrap()), ..EventQuery::default() };
    query_events(service, query).await.count
}

/// Returns the names of the events of a cluster.
async fn event_names_of_cluster(service: &TestService, cluster: &str) -> Vec<String> {
    let query = EventQuery { cluster: Some(cluster.parse().unwrap()), ..EventQuery::default() };
    query_events(service, query).await.events.into_iter().map(|event| event.name).collect()
}

/// Creates a cluster with a host and a file, and deletes both the cluster and the host. The file remains.
async fn deleted_cluster_with_host(service: &TestService) -> (String, FakeAgent<'_>, FilePath) {
    let cluster = create_cluster(service).await;
    let agent = FakeAgent::new(service, &create_infra_env(service, &json!({"cluster_id": cluster})).await);
    agent.register().await.json_with_status(201);
    service.delete(&format!("/v2/clusters/{cluster}")).await.json_with_status(204);
    let file = FilePath::from_names(["clusters", &cluster, "manifests", "a.yaml"]).unwrap();
    let content = futures_util::stream::iter([Ok::<_, std::io::Error>("x".into())]);
    service.inventory.files().put(&file, content, 1).await.unwrap();
    (cluster, agent, file)
}

#[test]
fn old_deleted_records_are_purged() {
    on_each_database_with(retain_nothing, async |service| {
        let (cluster, agent, file) = deleted_cluster_with_host(service).await;
        let there = FakeAgent::register_in_new_infra_env(service).await;
        let deleted_agent = FakeAgent::new(service, &there.infra_env);
        deleted_agent.register().await.json_with_status(201);
        service.delete(&deleted_agent.path()).await.json_with_status(204);
        service.post("/v2/infra-envs", &json!({"name": "x", "pull_secret": "x"})).await.refusal_reason(400);
        let empty = create_infra_env(service, &json!({})).await;
        service.delete(&format!("/v2/infra-envs/{empty}")).await.json_with_status(204);
        let event_count = event_count_of_infra_env(service, &there.infra_env).await;
        assert_eq!(get_status(service, &cluster).await, 200);

        service.inventory.clear_remains().await.unwrap();
        assert_eq!(get_status(service, &cluster).await, 404);
        assert!(service.inventory.files().get(&file).await.unwrap().is_none());
        for id in [&agent.id, &deleted_agent.id] {
            let query = format!("/v2/events?host_ids={id}");
            assert_eq!(service.get(&query).await.json_with_status(200), json!([]));
        }
        // The host's infra-env exists, and still has the event.
        assert_eq!(event_count_of_infra_env(service, &there.infra_env).await, event_count);
        assert!(event_count_of_infra_env(service, &agent.infra_env).await > 0);
        assert_eq!(event_count_of_infra_env(service, &empty).await, 0);
        let have_infra_envs = |page: EventPage| page.events.iter().all(|event| event.infra_env.is_some());
        assert!(have_infra_envs(query_events(service, EventQuery::default()).await));
        assert_eq!(there.host_status().await, "discovering-unbound");

        service.delete(&format!("/v2/infra-envs/{}", agent.infra_env)).await.json_with_status(204);
        service.inventory.clear_remains().await.unwrap();
        assert_eq!(event_count_of_infra_env(service, &agent.infra_env).await, 0);
        deleted_agent.register().await.json_with_status(201);
        service.inventory.clear_remains().await.unwrap();
        assert_eq!(deleted_agent.host_status().await, "discovering-unbound");
    });
}

#[test]
fn events_are_kept_while_any_of_their_resources_exists() {
    on_each_database_with(retain_nothing, async |service| {
        let cluster = create_cluster(service).await;
        let agent =
            FakeAgent::new(service, &create_infra_env(service, &json!({"cluster_id": cluster})).await);
        agent.register().await.json_with_status(201);
        let event = json!({"severity": "info", "message": "x", "event_time": "2026-08-21T10:00:00Z"});
        let with = |key: &str, id: &str| {
            let mut event = event.clone();
            event[key] = json!(id);
            event
        };
        for event in [with("host_id", &agent.id), with("host_id", &cluster), with("cluster_id", &agent.id)] {
            send_request(service.request(Method::POST, "/v2/events").json(&event))
                .await
                .json_with_status(201);
        }
        service.inventory.assess_clusters().await.unwrap();
        let before = event_names_of_cluster(service, &cluster).await;
        service.inventory.clear_remains().await.unwrap();
        assert_eq!(event_names_of_cluster(service, &cluster).await, before);
        let query = format!("/v2/events?host_ids={}", agent.id);
        let of_host = service.get(&query).await.json_with_status(200);
        assert_eq!(of_host.as_array().unwrap().len(), 2, "{of_host}");
        let all = query_events(service, EventQuery::default()).await;
        assert!(all.events.iter().all(|event| event.cluster.is_some() || event.host.is_some()), "{all:?}");
        assert_eq!(all.count, before.len() as u64 + 1);

        service.delete(&agent.path()).await.json_with_status(204);
        service.delete(&format!("/v2/infra-envs/{}", agent.infra_env)).await.json_with_status(204);
        service.inventory.clear_remains().await.unwrap();
        let names = event_names_of_cluster(service, &cluster).await;
        assert_eq!(names[..before.len()], before);
        // The assessment of the cluster without the host adds later events.
        let later: Vec<_> =
            names[before.len()..].iter().filter(|name| !name.starts_with("cluster_")).collect();
        assert_eq!(later, ["host_deregistered", "infra_env_deregistered"]);
    });
}

#[test]
fn recently_deleted_records_are_kept() {
    on_each_database(async |service| {
        let (cluster, agent, file) = deleted_cluster_with_host(service).await;
        let before = query_events(service, EventQuery::default()).await;
        service.inventory.clear_remains().await.unwrap();
        assert_eq!(get_status(service, &cluster).await, 200);
        assert!(service.inventory.files().get(&file).await.unwrap().is_some());
        assert_eq!(query_events(service, EventQuery::default()).await, before);
        service.get(&agent.path()).await.refusal_reason(404);
    });
}

#[test]
fn many_events_of_purged_records_are_purged() {
    on_each_database_with(retain_nothing, async |service| {
        let refused = json!({"name": "x", "pull_secret": "x"});
        service.post("/v2/infra-envs", &refused).await.refusal_reason(400);
        let event = query_events(service, EventQuery::default()).await.events.remove(0);
        let store = service.inventory.records().store();
        let changes = Changes { steps: Vec::new(), events: vec![event; 2500] };
        let _ = store.commit(changes).await.unwrap();
        service.inventory.clear_remains().await.unwrap();
        assert_eq!(query_events(service, EventQuery::default()).await.count, 0);
    });
}

/// An unreadable deleted record does not prevent the purge of other records and of events.
#[test]
fn damaged_deleted_record_does_not_stop_the_purge() {
    on_each_database_with(retain_nothing, async |service| {
        let there = FakeAgent::register_in_new_infra_env(service).await;
        let hosts = [0, 1].map(|_| FakeAgent::new(service, &there.infra_env));
        for host in &hosts {
            host.register().await.json_with_status(201);
            service.delete(&host.path()).await.json_with_status(204);
        }
        let clusters = [create_cluster(service).await, create_cluster(service).await];
        for cluster in &clusters {
            service.delete(&format!("/v2/clusters/{cluster}")).await.json_with_status(204);
        }
        let store = service.inventory.records().store();
        let damage = async |key: Key| {
            let row = store.get(key).await.unwrap().unwrap();
            let row = Row { generation: row.generation + 1, document: "{".to_owned(), ..row };
            let changes = Changes { steps: vec![Step::Replace(row)], events: Vec::new() };
            assert_eq!(store.commit(changes).await.unwrap(), Outcome::Done);
        };
        let host = |agent: &FakeAgent<'_>| Key {
            kind: Kind::Host,
            parent: Some(agent.infra_env.parse().unwrap()),
            id: agent.id.parse().unwrap(),
        };
        // The purge begins with the records with the smaller keys.
        let (damaged, other) = if hosts[0].id < hosts[1].id { (0, 1) } else { (1, 0) };
        damage(host(&hosts[damaged])).await;
        let (damaged_cluster, other_cluster) = if clusters[0] < clusters[1] { (0, 1) } else { (1, 0) };
        let id = clusters[damaged_cluster].parse().unwrap();
        damage(Key { kind: Kind::Cluster, parent: None, id }).await;

        assert_eq!(service.inventory.clear_remains().await.unwrap_err().kind(), ErrorKind::Internal);
        assert!(store.get(host(&hosts[damaged])).await.unwrap().is_some());
        assert_eq!(store.get(host(&hosts[other])).await.unwrap(), None);
        assert_eq!(get_status(service, &clusters[other_cluster]).await, 404);
        assert_eq!(event_names_of_cluster(service, &clusters[other_cluster]).await, Vec::<String>::new());
        assert!(!event_names_of_cluster(service, &clusters[damaged_cluster]).await.is_empty());
    });
}
