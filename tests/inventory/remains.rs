//! What is left of what was deleted, and for how long.

use std::time::Duration;

use kindling::inventory::Settings;
use kindling::inventory::event::{EventPage, EventQuery};
use kindling::inventory::files::FilePath;
use reqwest::Method;
use serde_json::json;

use crate::agent::{Agent, infra_env};
use crate::service::{PULL_SECRET, Service, on_each_database, on_each_database_with, send};

/// Nothing is kept.
fn not_kept(settings: &mut Settings) {
    settings.kept_after_deletion = Duration::ZERO;
}

async fn cluster(service: &Service) -> String {
    let body = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
    service.post("/v2/clusters", &body).await.expect(201)["id"].as_str().unwrap().to_owned()
}

/// The status of the answer for a cluster, deleted or not.
async fn status_of(service: &Service, cluster: &str) -> u16 {
    let request = service.request(Method::GET, &format!("/v2/clusters/{cluster}"));
    send(request.header("get_unregistered_clusters", "true")).await.status
}

async fn events(service: &Service, query: EventQuery) -> EventPage {
    service.inventory.records().store().events(&query).await.unwrap()
}

/// How many events name an infra-env, which may be gone.
async fn events_of(service: &Service, infra_env: &str) -> u64 {
    let query = EventQuery { infra_env: Some(infra_env.parse().unwrap()), ..EventQuery::default() };
    events(service, query).await.count
}

/// The names of the events of a cluster.
async fn events_of_cluster(service: &Service, cluster: &str) -> Vec<String> {
    let query = EventQuery { cluster: Some(cluster.parse().unwrap()), ..EventQuery::default() };
    events(service, query).await.events.into_iter().map(|event| event.name).collect()
}

/// A cluster with a host, both deleted, and a file that was forgotten.
async fn deleted(service: &Service) -> (String, Agent<'_>, FilePath) {
    let cluster = cluster(service).await;
    let agent = Agent::of(service, &infra_env(service, &json!({"cluster_id": cluster})).await);
    agent.register().await.expect(201);
    service.delete(&format!("/v2/clusters/{cluster}")).await.expect(204);
    let file = FilePath::of(["clusters", &cluster, "manifests", "a.yaml"]).unwrap();
    let content = futures_util::stream::iter([Ok::<_, std::io::Error>("x".into())]);
    service.inventory.files().put(&file, content, 1).await.unwrap();
    (cluster, agent, file)
}

#[test]
fn what_was_deleted_long_ago_goes_for_good() {
    on_each_database_with(not_kept, async |service| {
        let (cluster, agent, file) = deleted(service).await;
        let there = Agent::booted(service).await;
        let gone = Agent::of(service, &there.infra_env);
        gone.register().await.expect(201);
        service.delete(&gone.path()).await.expect(204);
        service.post("/v2/infra-envs", &json!({"name": "x", "pull_secret": "x"})).await.refused(400);
        let empty = infra_env(service, &json!({})).await;
        service.delete(&format!("/v2/infra-envs/{empty}")).await.expect(204);
        let kept = events_of(service, &there.infra_env).await;
        assert_eq!(status_of(service, &cluster).await, 200);

        service.inventory.clear_remains().await.unwrap();
        assert_eq!(status_of(service, &cluster).await, 404);
        assert!(service.inventory.files().get(&file).await.unwrap().is_none());
        for id in [&agent.id, &gone.id] {
            let query = format!("/v2/events?host_ids={id}");
            assert_eq!(service.get(&query).await.expect(200), json!([]));
        }
        // Its infra-env is there, and tells what was.
        assert_eq!(events_of(service, &there.infra_env).await, kept);
        assert!(events_of(service, &agent.infra_env).await > 0);
        assert_eq!(events_of(service, &empty).await, 0);
        let named = |page: EventPage| page.events.iter().all(|event| event.infra_env.is_some());
        assert!(named(events(service, EventQuery::default()).await));
        assert_eq!(there.status().await, "discovering-unbound");

        service.delete(&format!("/v2/infra-envs/{}", agent.infra_env)).await.expect(204);
        service.inventory.clear_remains().await.unwrap();
        assert_eq!(events_of(service, &agent.infra_env).await, 0);
        gone.register().await.expect(201);
        service.inventory.clear_remains().await.unwrap();
        assert_eq!(gone.status().await, "discovering-unbound");
    });
}

#[test]
fn events_stay_with_whatever_they_name() {
    on_each_database_with(not_kept, async |service| {
        let cluster = cluster(service).await;
        let agent = Agent::of(service, &infra_env(service, &json!({"cluster_id": cluster})).await);
        agent.register().await.expect(201);
        let told = json!({"severity": "info", "message": "x", "event_time": "2026-08-21T10:00:00Z"});
        let with = |key: &str, id: &str| {
            let mut told = told.clone();
            told[key] = json!(id);
            told
        };
        for told in [with("host_id", &agent.id), with("host_id", &cluster), with("cluster_id", &agent.id)] {
            send(service.request(Method::POST, "/v2/events").json(&told)).await.expect(201);
        }
        let before = events_of_cluster(service, &cluster).await;
        service.inventory.clear_remains().await.unwrap();
        assert_eq!(events_of_cluster(service, &cluster).await, before);
        let query = format!("/v2/events?host_ids={}", agent.id);
        let of_host = service.get(&query).await.expect(200);
        assert_eq!(of_host.as_array().unwrap().len(), 2, "{of_host}");
        let all = events(service, EventQuery::default()).await;
        assert!(all.events.iter().all(|event| event.cluster.is_some() || event.host.is_some()), "{all:?}");
        assert_eq!(all.count, before.len() as u64 + 1);

        service.delete(&agent.path()).await.expect(204);
        service.delete(&format!("/v2/infra-envs/{}", agent.infra_env)).await.expect(204);
        service.inventory.clear_remains().await.unwrap();
        let names = events_of_cluster(service, &cluster).await;
        assert_eq!(names[..before.len()], before);
        assert_eq!(names[before.len()..], ["host_deregistered", "infra_env_deregistered"]);
    });
}

#[test]
fn what_was_deleted_lately_stays() {
    on_each_database(async |service| {
        let (cluster, agent, file) = deleted(service).await;
        let before = events(service, EventQuery::default()).await;
        service.inventory.clear_remains().await.unwrap();
        assert_eq!(status_of(service, &cluster).await, 200);
        assert!(service.inventory.files().get(&file).await.unwrap().is_some());
        assert_eq!(events(service, EventQuery::default()).await, before);
        service.get(&agent.path()).await.refused(404);
    });
}

#[test]
fn many_events_of_what_is_gone_are_forgotten() {
    on_each_database_with(not_kept, async |service| {
        let refused = json!({"name": "x", "pull_secret": "x"});
        service.post("/v2/infra-envs", &refused).await.refused(400);
        let event = events(service, EventQuery::default()).await.events.remove(0);
        let store = service.inventory.records().store();
        let changes = kindling::inventory::store::Changes { steps: Vec::new(), events: vec![event; 2500] };
        let _ = store.commit(changes).await.unwrap();
        service.inventory.clear_remains().await.unwrap();
        assert_eq!(events(service, EventQuery::default()).await.count, 0);
    });
}
