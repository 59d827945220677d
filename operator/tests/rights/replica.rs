//! An operator with webhooks, together with its inventory.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use inventory::auth::Policy;
use inventory::background;
use inventory::catalogue::Catalogue;
use inventory::files::FileStore;
use inventory::store::SqlStore;
use inventory::{HttpUrl, Inventory, Settings as InventorySettings};
use kube::Client;
use operator::{Operator, Settings, WebhookEndpoint, WebhookSettings};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::hub::Hub;

/// A service account, and the namespaces in which it is used.
pub(crate) struct Place {
    pub(crate) hub: &'static Hub,
    /// User name of the service account.
    pub(crate) user: String,
    pub(crate) token: String,
    /// The reconciled namespaces. Empty means all namespaces.
    pub(crate) namespaces: Vec<String>,
    /// The namespace for the objects of the test.
    pub(crate) namespace: String,
    pub(crate) lease_namespace: String,
    /// Suffix of the names of ValidatingWebhookConfigurations.
    pub(crate) suffix: String,
}

impl Place {
    /// Returns a client for the service account.
    pub(crate) fn client(&self) -> Client {
        self.hub.client_to(&self.hub.url(), &self.token)
    }
}

/// A running operator with an empty database.
pub(crate) struct Replica {
    pub(crate) inventory: Inventory,
    end: Option<oneshot::Sender<()>>,
    operator: JoinHandle<()>,
    background: JoinHandle<()>,
    _directory: TempDir,
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.operator.abort();
        self.background.abort();
    }
}

impl Replica {
    /// Starts an operator whose webhooks listen on a loopback address.
    pub(crate) async fn start(place: &Place, address: Ipv4Addr) -> Self {
        let directory = TempDir::new().unwrap();
        let inventory = open_inventory(&directory).await;
        let background = tokio::spawn(background::run(inventory.clone(), std::future::pending()));
        let mut settings = Settings::new(&place.lease_namespace, "replica");
        settings.namespaces.clone_from(&place.namespaces);
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let endpoint = WebhookEndpoint::Address { host: address.to_string(), port };
        let mut webhooks = WebhookSettings::new(listener, endpoint);
        webhooks.name_suffix.clone_from(&place.suffix);
        webhooks.interval = Duration::from_millis(200);
        let operator = Operator::new(place.client(), inventory.clone(), settings).with_webhooks(webhooks);
        let (end, ended) = oneshot::channel();
        let operator = tokio::spawn(operator.run(async {
            // To end the operator, its sender is dropped.
            let _: Result<(), _> = ended.await;
        }));
        Self { inventory, end: Some(end), operator, background, _directory: directory }
    }

    /// Ends the operator, which then releases its lease.
    pub(crate) async fn stop(mut self) {
        drop(self.end.take());
        (&mut self.operator).await.unwrap();
    }
}

async fn open_inventory(directory: &TempDir) -> Inventory {
    let store = SqlStore::open_file(&directory.path().join("inventory.db")).await.unwrap();
    let files = FileStore::in_directory(&directory.path().join("files")).unwrap();
    let url = HttpUrl::parse("url", "http://192.0.2.1").unwrap();
    let images = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.1",
        "url": "http://192.0.2.1/a.iso"}]"#;
    let catalogue = Catalogue::parse(images).unwrap();
    let settings = InventorySettings::new(url.clone(), url);
    Inventory::new(Arc::new(store), files, catalogue, settings, Policy::Open)
}
