//! What happens between the reading and the writing of a change.

use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kindling::inventory::Inventory;
use kindling::inventory::event::{EventPage, EventQuery};
use kindling::inventory::infra_env::InfraEnvCreateParams;
use kindling::inventory::store::{Changes, Filter, Key, Kind, Outcome, Row, Store, StoreError};
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

    async fn signed_otherwise(&self, kind: Kind, key: Option<Uuid>) -> Result<Vec<Key>, StoreError> {
        self.store.signed_otherwise(kind, key).await
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
