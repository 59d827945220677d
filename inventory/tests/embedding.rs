//! A program that embeds the inventory: all operations work without HTTP, and have the same results as over HTTP.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use futures_util::TryStreamExt as _;
use inventory::api::ShownHosts;
use inventory::assisted::cluster::{ClusterCreateParams, ClusterUpdateParams};
use inventory::assisted::event::ListedEvent;
use inventory::assisted::host::HostUpdateParams;
use inventory::assisted::infra_env::InfraEnvCreateParams;
use inventory::auth::Policy;
use inventory::catalogue::Catalogue;
use inventory::event::Severity;
use inventory::files::FileStore;
use inventory::id::{ClusterId, HostId, HostKey, InfraEnvId};
use inventory::service::{ClusterQuery, EventListQuery, EventSubject, HostQuery, InfraEnvQuery};
use inventory::store::{ListRange, SqlStore};
use inventory::{ErrorKind, HttpUrl, Inventory, Secret, Settings};
use serde::Serialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt as _;

const PULL_SECRET: &str = r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}"#;

struct Site {
    inventory: Inventory,
    router: Router,
    _directory: TempDir,
}

impl Site {
    async fn open() -> Self {
        let directory = TempDir::new().unwrap();
        let store = SqlStore::open_file(&directory.path().join("inventory.db")).await.unwrap();
        let files = FileStore::in_directory(&directory.path().join("files")).unwrap();
        let url = HttpUrl::parse("url", "http://192.0.2.1").unwrap();
        let images = json!([{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.1",
            "url": "http://192.0.2.1/b.iso"}]);
        let releases = json!([{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "4.18.3",
            "url": "quay.io/releases:4.18.3"}]);
        let catalogue = Catalogue::parse(&images.to_string()).unwrap();
        let catalogue = catalogue.with_release_images(&releases.to_string()).unwrap();
        let settings = Settings::new(url.clone(), url);
        let inventory = Inventory::new(Arc::new(store), files, catalogue, settings, Policy::Open);
        Self { router: inventory.router(), inventory, _directory: directory }
    }

    async fn send(&self, method: Method, path: &str, body: Body) -> (StatusCode, Value) {
        let uri = format!("{}/v2/{path}", Settings::API);
        let request = Request::builder().method(method).uri(uri).header("Content-Type", "application/json");
        let response = self.router.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let status = response.status();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.send(Method::GET, path, Body::empty()).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body
    }

    /// Registers a host as its agent does.
    async fn register_host(&self, infra_env: InfraEnvId) -> HostKey {
        let host_id = HostId::fresh();
        let body = Body::from(json!({"host_id": host_id}).to_string());
        let (status, host) = self.send(Method::POST, &format!("infra-envs/{infra_env}/hosts"), body).await;
        assert_eq!(status, StatusCode::CREATED, "{host}");
        HostKey { infra_env_id: infra_env, host_id }
    }

    async fn register_infra_env(&self, cluster_id: Option<ClusterId>) -> InfraEnvId {
        let params = InfraEnvCreateParams::new("rack-1", Secret::new(PULL_SECRET));
        let params = InfraEnvCreateParams { cluster_id, ..params };
        self.inventory.register_infra_env(params, None).await.unwrap().id
    }

    async fn register_cluster(&self, name: &str) -> ClusterId {
        let params = json!({"name": name, "openshift_version": "4.18", "pull_secret": PULL_SECRET});
        let params: ClusterCreateParams = serde_json::from_value(params).unwrap();
        self.inventory.register_cluster(params, None).await.unwrap().id
    }
}

#[track_caller]
fn assert_same(record: impl Serialize, response: &Value) {
    assert_eq!(serde_json::to_value(record).unwrap(), *response);
}

#[tokio::test]
async fn embedded_records_equal_api_responses() {
    let site = Site::open().await;
    let inventory = &site.inventory;
    let cluster = site.register_cluster("one").await;
    let infra_env = site.register_infra_env(Some(cluster)).await;
    let host = site.register_host(infra_env).await;

    let record = inventory.infra_env(infra_env).await.unwrap();
    let response = site.get(&format!("infra-envs/{infra_env}")).await;
    assert_same(inventory.to_api_infra_env(&record).await.unwrap(), &response);

    let record = inventory.host(host).await.unwrap();
    let response = site.get(&format!("infra-envs/{infra_env}/hosts/{}", host.host_id)).await;
    assert_same(inventory.to_api_host(&record).await.unwrap(), &response);
    let hosts: Vec<_> =
        inventory.to_api_hosts(HostQuery::of_infra_env(infra_env)).try_collect().await.unwrap();
    assert_same(hosts, &site.get(&format!("infra-envs/{infra_env}/hosts")).await);

    let record = inventory.cluster(cluster).await.unwrap();
    for (shown_hosts, query) in [(ShownHosts::InFull, ""), (ShownHosts::Counted, "?exclude-hosts=true")] {
        let response = site.get(&format!("clusters/{cluster}{query}")).await;
        assert_same(inventory.to_api_cluster(&record, shown_hosts).await.unwrap(), &response);
    }

    let findings = inventory.preflight(infra_env).await.unwrap();
    let response = site.get(&format!("infra-envs/{infra_env}/preflight")).await;
    assert_same(inventory.to_api_preflight(&findings).unwrap(), &response);

    let events = inventory.events(EventListQuery::for_infra_env(infra_env)).await.unwrap();
    let events: Vec<ListedEvent> = events.events.map_ok(ListedEvent::from).try_collect().await.unwrap();
    assert!(events.len() > 2, "{events:?}");
    assert_same(events, &site.get(&format!("events?infra_env_id={infra_env}")).await);
}

#[tokio::test]
async fn hosts_are_listed_changed_and_deleted() {
    let site = Site::open().await;
    let inventory = &site.inventory;
    let cluster = site.register_cluster("one").await;
    let (infra_env, other) =
        (site.register_infra_env(Some(cluster)).await, site.register_infra_env(None).await);
    let (host, stranger) = (site.register_host(infra_env).await, site.register_host(other).await);
    let list = async |query| -> Vec<HostId> {
        inventory.hosts(query).map_ok(|host| host.id).try_collect().await.unwrap()
    };
    assert_eq!(list(HostQuery::default()).await, [host.host_id, stranger.host_id]);
    assert_eq!(list(HostQuery::of_infra_env(infra_env)).await, [host.host_id]);
    let range = ListRange { offset: 1, limit: Some(1) };
    assert_eq!(list(HostQuery { range, ..HostQuery::default() }).await, [stranger.host_id]);
    assert_eq!(list(HostQuery::of_cluster(cluster)).await, [host.host_id]);

    let params = HostUpdateParams { host_name: Some("node-1".to_owned()), ..HostUpdateParams::default() };
    assert_eq!(inventory.update_host(host, params, None).await.unwrap().name(), "node-1");
    let bound = inventory.bind_host(host, cluster, None).await.unwrap_err();
    let unbound = inventory.unbind_host(stranger, None).await.unwrap_err();
    for refusal in [bound, unbound] {
        assert_eq!(refusal.kind(), ErrorKind::Conflict, "{refusal}");
    }

    inventory.deregister_host(stranger, None).await.unwrap();
    assert_eq!(inventory.host(stranger).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(list(HostQuery::default()).await, [host.host_id]);
    let with_deleted = HostQuery { deleted: true, ..HostQuery::default() };
    assert_eq!(list(with_deleted).await, [host.host_id, stranger.host_id]);

    let unknown = inventory.hosts(HostQuery::of_infra_env(InfraEnvId::fresh())).try_next().await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn clusters_and_infra_envs_are_listed_changed_and_deleted() {
    let site = Site::open().await;
    let inventory = &site.inventory;
    let (one, two) = (site.register_cluster("one").await, site.register_cluster("two").await);
    let list = async |query| -> Vec<ClusterId> {
        inventory.clusters(query).map_ok(|cluster| cluster.id).try_collect().await.unwrap()
    };
    assert_eq!(list(ClusterQuery::default()).await, [one, two]);
    let params = ClusterUpdateParams { name: Some("three".to_owned()), ..ClusterUpdateParams::default() };
    assert_eq!(inventory.update_cluster(two, params, None).await.unwrap().spec.name, "three");
    inventory.deregister_cluster(one, None).await.unwrap();
    assert_eq!(list(ClusterQuery::default()).await, [two]);
    assert_eq!(list(ClusterQuery { deleted: true, ..ClusterQuery::default() }).await, [one, two]);
    assert_eq!(inventory.cluster(one).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert!(inventory.cluster_or_deleted(one).await.unwrap().is_deleted());

    let infra_env = site.register_infra_env(None).await;
    let query = InfraEnvQuery { owner: Some("admin".to_owned()), ..InfraEnvQuery::default() };
    let records: Vec<_> = inventory.infra_envs(query).try_collect().await.unwrap();
    assert_eq!(records.iter().map(|record| record.id).collect::<Vec<_>>(), [infra_env]);
    let of_cluster = InfraEnvQuery { cluster: Some(two), ..InfraEnvQuery::default() };
    assert!(inventory.infra_envs(of_cluster).try_next().await.unwrap().is_none());
    inventory.deregister_infra_env(infra_env, None).await.unwrap();
    assert_eq!(inventory.infra_env(infra_env).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn events_are_selected_by_subject_and_severity() {
    let site = Site::open().await;
    let inventory = &site.inventory;
    let cluster = site.register_cluster("one").await;
    let infra_env = site.register_infra_env(Some(cluster)).await;
    let host = site.register_host(infra_env).await;
    inventory.bind_host(host, cluster, None).await.unwrap_err();
    let names = async |filter: EventListQuery| -> Vec<String> {
        let list = inventory.events(filter).await.unwrap();
        list.events.map_ok(|event| event.name).try_collect().await.unwrap()
    };
    let of_host = EventListQuery::for_hosts([host.host_id]);
    assert!(names(of_host.clone()).await.contains(&"host_registration_succeeded".to_owned()));
    let errors = EventListQuery { severities: vec![Severity::Error], ..of_host.clone() };
    assert_eq!(names(errors.clone()).await, ["host_bind_failed"]);
    assert_eq!(names(EventListQuery { infra_env: Some(InfraEnvId::fresh()), ..errors }).await, [""; 0]);
    assert_eq!(
        names(EventListQuery { message: Some("ALREADY BOUND".to_owned()), ..of_host }).await,
        ["host_bind_failed"]
    );
    assert_eq!(names(EventListQuery::for_hosts([])).await, [""; 0]);
    assert_eq!(names(EventListQuery::for_infra_env(InfraEnvId::fresh())).await, [""; 0]);
    let about_no_host =
        EventSubject::Cluster { id: cluster, hosts: Vec::new(), deleted_hosts: false, cluster_level: true };
    let about_no_host = EventListQuery { subject: about_no_host, ..EventListQuery::default() };
    let expected = ["cluster_registration_succeeded", "infra_env_registered", "image_info_updated"];
    assert_eq!(names(about_no_host).await, expected);
    let all = names(EventListQuery::default()).await;
    let newest = EventListQuery {
        descending: true,
        range: ListRange { offset: 0, limit: Some(1) },
        ..EventListQuery::default()
    };
    let list = inventory.events(newest.clone()).await.unwrap();
    assert_eq!(list.count, u64::try_from(all.len()).unwrap());
    assert_eq!(list.by_severity.iter().sum::<u64>(), list.count);
    assert_eq!(names(newest).await, ["host_bind_failed"]);
}

/// The compiler checks that the futures of operations can be spawned.
#[test]
fn futures_of_operations_are_send() {
    fn require_send(_: impl Send) {}
    fn check(inventory: &Inventory, id: InfraEnvId, key: HostKey) {
        require_send(SqlStore::open("sqlite:x.db"));
        require_send(inventory.infra_env(id));
        require_send(inventory.hosts(HostQuery::default()));
        require_send(inventory.deregister_host(key, None));
        require_send(inventory.watch(inventory::service::WatchQuery::default()));
        require_send(inventory::background::run(inventory.clone(), std::future::pending()));
    }
    let _ = check;
}
