//! Changes between the reads and the writes of another change.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use chrono::Utc;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kindling::assisted::infra_env::{InfraEnvCreateParams, InfraEnvUpdateParams};
use kindling::inventory::auth::{KeyTexts, LocalKeys, Policy};
use kindling::inventory::catalogue::CpuArchitecture;
use kindling::inventory::host::HostRecord;
use kindling::inventory::store::{
    Change, Changes, Feed, Filter, Key, Kind, Outcome, PageQuery, Query, Reader as _, Record as _, Records,
    ReportKind, ReportKinds, Reports, Reservation, Row, RowPage, SqlStore, Store, StoreError, StoreMetrics,
    Stored,
};
use kindling::inventory::{ErrorKind, Inventory, Settings};
use reqwest::Method;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use uuid::Uuid;

use crate::agent::{FakeAgent, create_infra_env};
use crate::service::{
    PULL_SECRET, TestService, inventory_on_store, on_each_database, on_each_database_by_url,
    on_each_database_with_policy, send_request,
};

/// A store that runs an action before the first write of a change, or before the first read of a document, list, page
/// or report.
struct InterruptedStore {
    store: Arc<dyn Store>,
    point: Point,
    interruption: Mutex<Option<BoxFuture<'static, ()>>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Point {
    Commit,
    Get,
    List,
    Page,
    Reports,
}

impl InterruptedStore {
    async fn interrupt(&self, point: Point) {
        if self.point == point {
            let interruption = self.interruption.lock().unwrap().take();
            if let Some(interruption) = interruption {
                interruption.await;
            }
        }
    }
}

impl fmt::Debug for InterruptedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

#[async_trait]
impl Store for InterruptedStore {
    async fn get(&self, key: Key) -> Result<Option<Row>, StoreError> {
        self.interrupt(Point::Get).await;
        self.store.get(key).await
    }

    async fn list(&self, filter: Filter) -> Result<Vec<Row>, StoreError> {
        self.interrupt(Point::List).await;
        self.store.list(filter).await
    }

    async fn page(&self, query: PageQuery) -> Result<RowPage, StoreError> {
        self.interrupt(Point::Page).await;
        self.store.page(query).await
    }

    async fn query(&self, query: Query<'_>) -> Result<(), StoreError> {
        if query.doing() == "reading reports" {
            self.interrupt(Point::Reports).await;
        }
        self.store.query(query).await
    }

    async fn commit(&self, changes: Changes) -> Result<Outcome, StoreError> {
        self.interrupt(Point::Commit).await;
        self.store.commit(changes).await
    }

    async fn reserve(&self, keys: &BTreeSet<Key>) -> Result<Option<Box<dyn Reservation>>, StoreError> {
        self.store.reserve(keys).await
    }

    fn metrics(&self) -> &StoreMetrics {
        self.store.metrics()
    }

    fn feed(&self) -> &Feed {
        self.store.feed()
    }

    fn is_alone(&self) -> bool {
        self.store.is_alone()
    }

    async fn check_usable(&self) -> Result<(), StoreError> {
        self.store.check_usable().await
    }

    async fn close(&self) {
        self.store.close().await;
    }
}

/// Opens the inventory of a service whose next change is preceded by an action.
fn inventory_with_interruption<F>(
    service: &TestService,
    interruption: impl FnOnce(Inventory) -> F,
) -> Inventory
where
    F: Future<Output = ()> + Send + 'static,
{
    let interruption = interruption(service.inventory.clone()).boxed();
    let store = Arc::clone(service.inventory.records().store());
    inventory_on_store(
        Arc::new(InterruptedStore {
            store,
            point: Point::Commit,
            interruption: Mutex::new(Some(interruption)),
        }),
        service,
    )
}

fn create_params(more: &Value) -> InfraEnvCreateParams {
    let mut body = json!({"name": "demo", "pull_secret": PULL_SECRET});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(body).unwrap()
}

fn update_params(body: Value) -> InfraEnvUpdateParams {
    serde_json::from_value(body).unwrap()
}

async fn add_os_image(service: &TestService) {
    let image = json!({"openshift_version": "4.99", "cpu_architecture": "x86_64", "url": "http://mirror.example/live.iso", "version": "9.9"});
    service.post("/v2/os-images", &image).await.json_with_status(201);
}

async fn remove_os_image(inventory: Inventory) {
    inventory.remove_os_image("4.99", CpuArchitecture::X86_64).await.unwrap();
}

const NO_IMAGE: &str = "No OS image for Openshift version 4.99 and architecture x86_64: ";

#[test]
fn infra_env_of_a_cluster_being_deleted_is_not_found() {
    on_each_database(async |service| {
        let body = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
        let cluster = service.post("/v2/clusters", &body).await.json_with_status(201)["id"].clone();
        let id = cluster.as_str().unwrap().parse().unwrap();
        let inventory = inventory_with_interruption(service, async move |one| {
            one.deregister_cluster(id, None).await.unwrap()
        });
        let outcome =
            inventory.register_infra_env(create_params(&json!({"cluster_id": cluster})), None).await;
        let refusal = outcome.unwrap_err();
        assert_eq!(
            (refusal.kind(), refusal.reason()),
            (ErrorKind::NotFound, &*format!("Cluster ID {id} does not exist"))
        );
    });
}

#[test]
fn rejects_removal_of_an_image_of_a_concurrently_created_infra_env() {
    on_each_database(async |service| {
        add_os_image(service).await;
        let params = create_params(&json!({"openshift_version": "4.99"}));
        let refusal = inventory_with_interruption(service, remove_os_image)
            .register_infra_env(params.clone(), None)
            .await
            .unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::Invalid);
        assert!(refusal.reason().starts_with(NO_IMAGE), "{refusal}");

        add_os_image(service).await;
        let remover = inventory_with_interruption(service, async move |one| {
            one.register_infra_env(params, None).await.unwrap();
        });
        let refusal = remover.remove_os_image("4.99", CpuArchitecture::X86_64).await.unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::Conflict, "{refusal}");
    });
}

#[test]
fn rejects_infra_env_update_to_a_concurrently_removed_image() {
    on_each_database(async |service| {
        add_os_image(service).await;
        let infra_env = service
            .inventory
            .register_infra_env(create_params(&json!({"openshift_version": "4.18"})), None)
            .await
            .unwrap();
        let other = || update_params(json!({"openshift_version": "4.99"}));
        let refusal = inventory_with_interruption(service, remove_os_image)
            .update_infra_env(infra_env.id, other(), None)
            .await
            .unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::Invalid);
        assert!(refusal.reason().starts_with(NO_IMAGE), "{refusal}");

        add_os_image(service).await;
        let remover = inventory_with_interruption(service, async move |one| {
            one.update_infra_env(infra_env.id, other(), None).await.unwrap();
        });
        let refusal = remover.remove_os_image("4.99", CpuArchitecture::X86_64).await.unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::Conflict, "{refusal}");
    });
}

/// Every new infra-env for an image changes the image's record. Many concurrent creations must all succeed.
#[test]
fn many_infra_envs_select_an_image_concurrently() {
    on_each_database(async |service| {
        add_os_image(service).await;
        let outcomes = futures_util::future::join_all((0..12).map(async |_| {
            let params = create_params(&json!({"openshift_version": "4.99"}));
            service.inventory.register_infra_env(params, None).await
        }));
        for outcome in outcomes.await {
            assert_eq!(outcome.unwrap().image.openshift_version, "4.99");
        }
    });
}

/// Returns the catalogue entry of an image with its own URL.
fn os_image_with_versions(openshift_version: &str, version: &str) -> Value {
    json!({"openshift_version": openshift_version, "cpu_architecture": "x86_64", "version": version,
           "url": format!("http://mirror.example/{openshift_version}.iso")})
}

/// Sends a request to add an image to one replica. Returns the status and the text of the response.
async fn send_os_image(inventory: &Inventory, image: &Value) -> (u16, String) {
    send_os_image_to_app(kindling::http::app(inventory, None), image).await
}

/// Sends a request to add an image to an app. Building an app takes longer than a request, so many requests share one
/// app.
async fn send_os_image_to_app(app: kindling::http::App, image: &Value) -> (u16, String) {
    let request = axum::http::Request::post(format!("{}/v2/os-images", Settings::API))
        .header("Content-Type", "application/json")
        .body(axum::body::Body::from(image.to_string()))
        .unwrap();
    let answer = app.oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let text = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8(text.into()).unwrap())
}

#[test]
fn rejects_image_with_the_version_of_a_concurrently_added_image() {
    on_each_database(async |service| {
        let inventory = inventory_with_interruption(service, async move |one| {
            assert_eq!(send_os_image(&one, &os_image_with_versions("4.98", "9.9")).await.0, 201);
        });
        let (status, text) = send_os_image(&inventory, &os_image_with_versions("4.99", "9.9")).await;
        assert_eq!(status, 409, "{text}");
        assert!(text.contains("has the version 9.9 too, but another url or sha256"), "{text}");
    });
}

#[test]
fn concurrent_additions_of_images_in_two_replicas_keep_the_rules() {
    on_each_database_by_url(async |service, url| {
        let replicas = [service.inventory.clone(), second_replica(service, url).await];
        let apps = replicas.each_ref().map(|replica| kindling::http::app(replica, None));
        let add_all = async |images: Vec<Value>| {
            let images = images.iter().enumerate();
            let requests =
                images.map(|(number, image)| send_os_image_to_app(apps[number % 2].clone(), image));
            let mut answers = [0, 0];
            for (status, text) in futures_util::future::join_all(requests).await {
                assert!(matches!(status, 201 | 409), "{text}");
                answers[usize::from(status == 409)] += 1;
            }
            answers
        };
        for round in 0..20 {
            let version = format!("9.{round}");
            let images =
                (0..4).map(|number| os_image_with_versions(&format!("4.{round}.{number}"), &version));
            assert_eq!(add_all(images.collect()).await, [1, 3], "round {round}");
        }
        // The service has 20 images, and the maximum number of added images is 100.
        let image = |number: usize| os_image_with_versions(&format!("5.0.{number}"), &format!("8.{number}"));
        assert_eq!(add_all((0..78).map(image).collect()).await, [78, 0]);
        assert_eq!(add_all((78..88).map(image).collect()).await, [2, 8]);
        assert_eq!(service.inventory.added_images().await.unwrap().len(), 100);
        if url.is_some() {
            replicas[1].records().store().close().await;
        }
    });
}

/// Opens the inventory of a second replica. On SQLite, which supports a single store, both replicas use the same store.
async fn second_replica(service: &TestService, url: Option<&str>) -> Inventory {
    match url {
        Some(url) => inventory_on_store(Arc::new(SqlStore::open(url).await.unwrap()), service),
        None => service.inventory.clone(),
    }
}

/// Adds a label to a host.
async fn add_label(inventory: &Inventory, host: Key, label: &str) {
    let changed = inventory.records().change(|reads| async move {
        let mut change = Change::new();
        let mut stored: Stored<HostRecord> = reads.find(host.parent, host.id).await?.unwrap();
        stored.record.choices.node_labels.insert(label.to_owned(), String::new());
        change.replace(&stored.record, stored.generation)?;
        Ok((change, ()))
    });
    changed.await.unwrap();
}

/// Makes a host the bootstrap host of its cluster, unless another host already is.
async fn elect(inventory: &Inventory, cluster: Uuid, host: Key) {
    let changed = inventory.records().change(|reads| async move {
        let mut change = Change::new();
        let hosts: Vec<Stored<HostRecord>> = reads.list(Filter::all(Kind::Host).of_cluster(cluster)).await?;
        if !hosts.iter().any(|host| host.record.bootstrap) {
            let mut stored = hosts.into_iter().find(|stored| stored.record.key() == host).unwrap();
            stored.record.bootstrap = true;
            change.replace(&stored.record, stored.generation)?;
        }
        Ok((change, ()))
    });
    changed.await.unwrap();
}

/// Two replicas make 200 concurrent changes to the hosts of a cluster. No change is lost, and the cluster gets one
/// bootstrap host although each change writes another record.
#[test]
fn concurrent_changes_to_hosts_of_a_cluster_are_all_stored() {
    on_each_database_by_url(async |service, url| {
        let body = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
        let cluster = service.post("/v2/clusters", &body).await.json_with_status(201)["id"].clone();
        let env = create_infra_env(service, &json!({"cluster_id": cluster})).await;
        let cluster = cluster.as_str().unwrap().parse().unwrap();
        let mut hosts = Vec::new();
        for _ in 0..10 {
            let agent = FakeAgent::new(service, &env);
            agent.register().await.json_with_status(201);
            let (parent, id) = (Some(env.parse().unwrap()), agent.id.parse().unwrap());
            hosts.push(Key { kind: Kind::Host, parent, id });
        }
        let replicas = [service.inventory.clone(), second_replica(service, url).await];
        let changes = (0..200_usize).map(|number| {
            let (inventory, host) = (&replicas[number % 2], hosts[number / 2 % 10]);
            async move {
                if number % 4 == 0 {
                    elect(inventory, cluster, host).await;
                } else {
                    add_label(inventory, host, &format!("l{number}")).await;
                }
            }
        });
        futures_util::future::join_all(changes).await;
        let filter = Filter::all(Kind::Host).of_cluster(cluster);
        let hosts: Vec<Stored<HostRecord>> = service.inventory.records().list(filter).await.unwrap();
        let labels: usize = hosts.iter().map(|host| host.record.choices.node_labels.len()).sum();
        assert_eq!(labels, 150);
        assert_eq!(hosts.iter().filter(|host| host.record.bootstrap).count(), 1);
        if url.is_some() {
            replicas[1].records().store().close().await;
        }
    });
}

/// Removes all reports of a host, like a new registration.
async fn remove_reports(inventory: Inventory, key: Key) {
    let changed = inventory.records().change(|reads| async move {
        let mut change = Change::new();
        let Stored { record: mut host, generation, .. } =
            reads.find::<HostRecord>(key.parent, key.id).await?.unwrap();
        host.findings.reports.clear();
        change.replace(&host, generation)?;
        change.remove_report(&host, ReportKind::Inventory);
        Ok((change, ()))
    });
    changed.await.unwrap();
}

#[test]
fn reports_may_be_removed_while_their_host_is_read() {
    on_each_database(async |service| {
        const KINDS: ReportKinds = ReportKinds::new(&[ReportKind::Inventory]);
        for is_change in [false, true] {
            let agent = FakeAgent::register_with_report(service, "node-1").await;
            let (parent, id) = (Some(agent.infra_env.parse().unwrap()), agent.id.parse().unwrap());
            let key = Key { kind: Kind::Host, parent, id };
            let records = Records::new(Arc::new(InterruptedStore {
                store: Arc::clone(service.inventory.records().store()),
                point: Point::Reports,
                interruption: Mutex::new(Some(remove_reports(service.inventory.clone(), key).boxed())),
            }));
            let (host, reports) = if is_change {
                let changed = records.change(|reads| async move {
                    let stored: Stored<HostRecord> = reads.find(key.parent, key.id).await?.unwrap();
                    let reports = reads.reports(&stored, KINDS).await?;
                    Ok((Change::new(), (stored.record, reports)))
                });
                changed.await.unwrap()
            } else {
                let stored: Stored<HostRecord> = records.find(key.parent, key.id).await.unwrap().unwrap();
                records.with_reports(stored.record, KINDS).await.unwrap()
            };
            assert!(!host.findings.has_report(ReportKind::Inventory));
            assert_eq!(reports, Reports::default());
        }
    });
}

/// Opens an inventory in which the operation `point` fails the test.
fn inventory_without(service: &TestService, point: Point) -> Inventory {
    inventory_on_store(
        Arc::new(InterruptedStore {
            store: Arc::clone(service.inventory.records().store()),
            point,
            interruption: Mutex::new(Some(async { panic!("reads documents") }.boxed())),
        }),
        service,
    )
}

#[test]
fn removal_of_an_image_reads_infra_envs_page_by_page() {
    on_each_database(async |service| {
        add_os_image(service).await;
        let params = create_params(&json!({"openshift_version": "4.99"}));
        let infra_env = service.inventory.register_infra_env(params, None).await.unwrap();
        let inventory = inventory_without(service, Point::List);
        let refusal = inventory.remove_os_image("4.99", CpuArchitecture::X86_64).await.unwrap_err();
        assert_eq!(refusal.reason(), format!("infra-env {} uses the OS image", infra_env.id));
        service.delete(&format!("/v2/infra-envs/{}", infra_env.id)).await.json_with_status(204);
        remove_os_image(inventory).await;
    });
}

#[test]
fn logs_of_a_host_are_found_without_the_other_hosts() {
    on_each_database(async |service| {
        let body = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
        let cluster = service.post("/v2/clusters", &body).await.json_with_status(201)["id"].clone();
        let env = create_infra_env(service, &json!({"cluster_id": cluster})).await;
        let agent = FakeAgent::new(service, &env);
        agent.register().await.json_with_status(201);
        let cluster = cluster.as_str().unwrap();
        for (host, status) in [(agent.id.clone(), 409), (Uuid::new_v4().to_string(), 404)] {
            let path = format!("{}/v2/clusters/{cluster}/logs?logs_type=host&host_id={host}", Settings::API);
            let request = axum::http::Request::get(path).body(axum::body::Body::empty()).unwrap();
            let inventory = inventory_without(service, Point::Page);
            let answer = kindling::http::app(&inventory, None).oneshot(request).await.unwrap();
            assert_eq!(answer.status().as_u16(), status, "{host}");
        }
    });
}

/// A cluster may have 20,000 hosts with 60 MB of documents.
#[test]
fn check_of_a_named_host_reads_no_document() {
    let keys = LocalKeys::parse(KeyTexts::generate().unwrap().private.reveal(), None).unwrap();
    let user = keys.user_token(Utc::now(), None).unwrap().reveal().to_owned();
    on_each_database_with_policy(Policy::local(keys), async |service| {
        let create = async |path: &str, more: Value| {
            let mut body = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let request = service.request(Method::POST, path).bearer_auth(&user);
            send_request(request.json(&body)).await.json_with_status(201)
        };
        let cluster = create("/v2/clusters", json!({})).await["id"].as_str().unwrap().to_owned();
        let env = create("/v2/infra-envs", json!({"cluster_id": cluster})).await;
        let url = env["download_url"].as_str().unwrap();
        let token = url.split("/byapikey/").nth(1).unwrap().split('/').next().unwrap();
        let host = Uuid::new_v4();
        let hosts = format!("/v2/infra-envs/{}/hosts", env["id"].as_str().unwrap());
        let request = service.request(Method::POST, &hosts).header("X-Secret-Key", token);
        send_request(request.json(&json!({"host_id": host}))).await.json_with_status(201);
        let requests = [(host, 201), (Uuid::new_v4(), 404)];
        for (point, (host, status)) in
            [Point::Get, Point::List].into_iter().flat_map(|point| requests.map(|request| (point, request)))
        {
            let inventory = inventory_without(service, point);
            let event = json!({"severity": "info", "message": "told", "event_time": "2026-08-21T10:00:00Z",
                               "cluster_id": cluster, "host_id": host});
            let request = axum::http::Request::post(format!("{}/v2/events", Settings::API))
                .header("X-Secret-Key", token)
                .header("Content-Type", "application/json")
                .body(axum::body::Body::from(event.to_string()))
                .unwrap();
            let answer = kindling::http::app(&inventory, None).oneshot(request).await.unwrap();
            assert_eq!(answer.status().as_u16(), status, "{event}");
        }
    });
}
