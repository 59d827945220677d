//! What happens between the reading and the writing of a change.

use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kindling::images::CpuArchitecture;
use kindling::inventory::Inventory;
use kindling::inventory::event::{EventPage, EventQuery};
use kindling::inventory::infra_env::{InfraEnvCreateParams, InfraEnvUpdateParams};
use kindling::inventory::store::{
    Changes, Filter, Key, Kind, Outcome, Position, Row, RowPage, Store, StoreError,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::service::{PULL_SECRET, Service, on_each_database, over};

/// A store in which something happens just before the first change that is written.
struct Interrupted {
    store: Arc<dyn Store>,
    interruption: Mutex<Option<BoxFuture<'static, ()>>>,
}

impl fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

#[async_trait]
impl Store for Interrupted {
    async fn get(&self, key: Key) -> Result<Option<Row>, StoreError> {
        self.store.get(key).await
    }

    async fn list(&self, filter: Filter) -> Result<Vec<Row>, StoreError> {
        self.store.list(filter).await
    }

    async fn page(&self, filter: Filter, after: Position) -> Result<RowPage, StoreError> {
        self.store.page(filter, after).await
    }

    async fn count(&self, filter: Filter) -> Result<u64, StoreError> {
        self.store.count(filter).await
    }

    async fn signed_otherwise(&self, kind: Kind, key: Option<Uuid>) -> Result<Vec<Key>, StoreError> {
        self.store.signed_otherwise(kind, key).await
    }

    async fn deleted(&self, kind: Kind) -> Result<Vec<Key>, StoreError> {
        self.store.deleted(kind).await
    }

    async fn is_there(&self, key: Key) -> Result<bool, StoreError> {
        self.store.is_there(key).await
    }

    async fn has_any(&self, filter: Filter) -> Result<bool, StoreError> {
        self.store.has_any(filter).await
    }

    async fn commit(&self, changes: Changes) -> Result<Outcome, StoreError> {
        let interruption = self.interruption.lock().unwrap().take();
        if let Some(interruption) = interruption {
            interruption.await;
        }
        self.store.commit(changes).await
    }

    async fn events(&self, query: &EventQuery) -> Result<EventPage, StoreError> {
        self.store.events(query).await
    }

    async fn forget_events(&self, before: DateTime<Utc>, most: usize) -> Result<usize, StoreError> {
        self.store.forget_events(before, most).await
    }

    fn is_alone(&self) -> bool {
        self.store.is_alone()
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.store.ping().await
    }

    async fn close(&self) {
        self.store.close().await;
    }
}

/// The inventory of a service, whose next change something comes before.
fn interrupted<F>(service: &Service, interruption: impl FnOnce(Inventory) -> F) -> Inventory
where
    F: Future<Output = ()> + Send + 'static,
{
    let interruption = interruption(service.inventory.clone()).boxed();
    let store = Arc::clone(service.inventory.records().store());
    over(Arc::new(Interrupted { store, interruption: Mutex::new(Some(interruption)) }), service)
}

fn infra_env(more: &Value) -> InfraEnvCreateParams {
    let mut body = json!({"name": "demo", "pull_secret": PULL_SECRET});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(body).unwrap()
}

fn changes(body: Value) -> InfraEnvUpdateParams {
    serde_json::from_value(body).unwrap()
}

async fn add_image(service: &Service) {
    let image = json!({"openshift_version": "4.99", "cpu_architecture": "x86_64", "url": "http://mirror.example/live.iso", "version": "9.9"});
    service.post("/v2/os-images", &image).await.expect(201);
}

async fn remove_image(inventory: Inventory) {
    inventory.remove_os_image("4.99", CpuArchitecture::X86_64).await.unwrap();
}

const NO_IMAGE: &str = "No OS image for Openshift version 4.99 and architecture x86_64: ";

#[test]
fn an_infra_env_of_a_cluster_that_goes_is_refused_as_of_one_that_never_was() {
    on_each_database(async |service| {
        let body = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
        let cluster = service.post("/v2/clusters", &body).await.expect(201)["id"].clone();
        let id = cluster.as_str().unwrap().parse().unwrap();
        let inventory = interrupted(service, async move |one| one.deregister_cluster(id).await.unwrap());
        let made = inventory.register_infra_env(infra_env(&json!({"cluster_id": cluster}))).await;
        let refusal = made.unwrap_err();
        assert_eq!(
            (refusal.status().as_u16(), refusal.reason()),
            (404, &*format!("Cluster ID {id} does not exist"))
        );
    });
}

#[test]
fn an_image_that_goes_is_in_no_infra_env_that_is_made_meanwhile() {
    on_each_database(async |service| {
        add_image(service).await;
        let params = infra_env(&json!({"openshift_version": "4.99"}));
        let refusal =
            interrupted(service, remove_image).register_infra_env(params.clone()).await.unwrap_err();
        assert_eq!(refusal.status().as_u16(), 400);
        assert!(refusal.reason().starts_with(NO_IMAGE), "{refusal}");

        add_image(service).await;
        let remover = interrupted(service, async move |one| {
            one.register_infra_env(params).await.unwrap();
        });
        let refusal = remover.remove_os_image("4.99", CpuArchitecture::X86_64).await.unwrap_err();
        assert_eq!(refusal.status().as_u16(), 409, "{refusal}");
    });
}

#[test]
fn an_image_that_goes_is_in_no_infra_env_that_changes_meanwhile() {
    on_each_database(async |service| {
        add_image(service).await;
        let made = service
            .inventory
            .register_infra_env(infra_env(&json!({"openshift_version": "4.18"})))
            .await
            .unwrap();
        let other = || changes(json!({"openshift_version": "4.99"}));
        let refusal =
            interrupted(service, remove_image).update_infra_env(made.id, other()).await.unwrap_err();
        assert_eq!(refusal.status().as_u16(), 400);
        assert!(refusal.reason().starts_with(NO_IMAGE), "{refusal}");

        add_image(service).await;
        let remover = interrupted(service, async move |one| {
            one.update_infra_env(made.id, other()).await.unwrap();
        });
        let refusal = remover.remove_os_image("4.99", CpuArchitecture::X86_64).await.unwrap_err();
        assert_eq!(refusal.status().as_u16(), 409, "{refusal}");
    });
}

/// The records of an image are changed by whoever begins to use it: many of them at once must all succeed.
#[test]
fn many_infra_envs_take_up_an_image_at_once() {
    on_each_database(async |service| {
        add_image(service).await;
        let made = futures_util::future::join_all((0..12).map(async |_| {
            let params = infra_env(&json!({"openshift_version": "4.99"}));
            service.inventory.register_infra_env(params).await
        }));
        for made in made.await {
            assert_eq!(made.unwrap().openshift_version, "4.99");
        }
    });
}
