//! A separate service for each test and database.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use chrono::Utc;
use ignition::discovery::HttpUrl;
use kindling::inventory::auth::Policy;
use kindling::inventory::catalogue::Catalogue;
use kindling::inventory::files::FileStore;
use kindling::inventory::store::{Record, SqlStore, Store};
use kindling::inventory::{Inventory, ManualClock, Settings};
use reqwest::{Client, Method, RequestBuilder};
use rules::validation::{DisabledValidations, HostValidationId};
use serde::Serialize;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::database::{TestDatabase, postgres_url};

/// The OS images of all services.
pub(crate) const OS_IMAGES: &str = r#"[
    {"openshift_version": "4.14", "cpu_architecture": "x86_64", "url": "http://127.0.0.1:1/414.iso", "version": "414.92.1"},
    {"openshift_version": "4.18", "cpu_architecture": "x86_64", "url": "http://127.0.0.1:1/418.iso", "version": "418.94.1"},
    {"openshift_version": "4.18", "cpu_architecture": "aarch64", "url": "http://127.0.0.1:1/418a.iso", "version": "418.94.1"},
    {"openshift_version": "4.18", "cpu_architecture": "s390x", "url": "http://127.0.0.1:1/418s.iso", "version": "418.94.1"}
]"#;

/// The releases of all services.
pub(crate) const RELEASE_IMAGES: &str = r#"[
    {"openshift_version": "4.14", "cpu_architecture": "x86_64", "version": "4.14.71",
     "url": "quay.io/openshift-release-dev/ocp-release:4.14.71-x86_64"},
    {"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "4.18.3", "default": true,
     "url": "quay.io/openshift-release-dev/ocp-release:4.18.3-x86_64"},
    {"openshift_version": "4.18", "cpu_architecture": "s390x", "version": "4.18.3",
     "url": "quay.io/openshift-release-dev/ocp-release:4.18.3-s390x"},
    {"openshift_version": "4.18-multi", "cpu_architecture": "multi", "version": "4.18.3-multi",
     "cpu_architectures": ["x86_64", "aarch64", "s390x", "ppc64le"],
     "url": "quay.io/openshift-release-dev/ocp-release:4.18.3-multi"}
]"#;

/// The base URL of images.
pub(crate) const IMAGE_SERVICE: &str = "http://images.example.com:8888";

/// A pull secret for registries that are not public.
pub(crate) const PULL_SECRET: &str = r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}"#;

/// A service on its own port, with its own database.
pub(crate) struct TestService {
    base: String,
    client: Client,
    pub(crate) inventory: Inventory,
    end: Option<oneshot::Sender<()>>,
    server: Option<JoinHandle<()>>,
    _directory: Option<TempDir>,
    _files: TempDir,
}

#[derive(Debug)]
pub(crate) struct ServiceAnswer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl ServiceAnswer {
    /// Parses the body, which must be JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error} in {:?}", self.text))
    }

    /// Returns the body of a response that must have this status.
    #[track_caller]
    pub(crate) fn json_with_status(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        if self.text.is_empty() { Value::Null } else { self.json() }
    }

    /// Returns the reason of a refusal in either format. The refusal must have this status.
    #[track_caller]
    pub(crate) fn refusal_reason(&self, status: u16) -> String {
        let body = self.json_with_status(status);
        // A 401 response must name the authentication scheme.
        assert_eq!(self.header("www-authenticate").is_some(), status == 401);
        let reason = body.get("reason").or_else(|| body.get("message"));
        reason.and_then(Value::as_str).unwrap_or_else(|| panic!("not a refusal: {body}")).to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

impl TestService {
    pub(crate) async fn start_on_store(
        store: SqlStore,
        directory: Option<TempDir>,
        policy: Policy,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let mut settings = Settings::new(
            HttpUrl::parse("service", &base).unwrap(),
            HttpUrl::parse("images", IMAGE_SERVICE).unwrap(),
        );
        // Requires pull secrets to cover every registry.
        settings.public_registries = Vec::new();
        change(&mut settings);
        let catalogue = Catalogue::parse(OS_IMAGES).unwrap().with_release_images(RELEASE_IMAGES).unwrap();
        let files = TempDir::new().unwrap();
        let place = FileStore::in_directory(files.path()).unwrap();
        let inventory = Inventory::new(Arc::new(store), place, catalogue, settings, policy);
        let (end, ended) = oneshot::channel::<()>();
        let router = kindling::http::app(&inventory, None);
        let server = tokio::spawn(async move {
            let ended = async {
                let _ = ended.await;
            };
            kindling::http::serve(listener, router, ended).await.unwrap();
        });
        let (end, server) = (Some(end), Some(server));
        Self { base, client: Client::new(), inventory, end, server, _directory: directory, _files: files }
    }

    /// Starts a service on a new SQLite file.
    async fn start_on_sqlite(policy: Policy, change: impl FnOnce(&mut Settings)) -> Self {
        let directory = TempDir::new().unwrap();
        let store = SqlStore::open_file(&directory.path().join("kindling.db")).await.unwrap();
        Self::start_on_store(store, Some(directory), policy, change).await
    }

    /// Returns a request with a path relative to the API.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{}{path}", self.base, Settings::API))
    }

    /// Returns a request with a path relative to the root.
    pub(crate) fn request_at_root(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base))
    }

    /// Returns a URL of the service with a path relative to the root.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub(crate) async fn get(&self, path: &str) -> ServiceAnswer {
        send_request(self.request(Method::GET, path)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> ServiceAnswer {
        send_request(self.request(Method::DELETE, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> ServiceAnswer {
        send_request(self.request(Method::POST, path).json(body)).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> ServiceAnswer {
        send_request(self.request(Method::PATCH, path).json(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> ServiceAnswer {
        send_request(self.request(Method::PUT, path).json(body)).await
    }

    pub(crate) async fn stop(mut self) {
        drop(self.client);
        let _ = self.end.take().unwrap().send(());
        self.server.take().unwrap().await.unwrap();
        self.inventory.close().await;
    }
}

/// Opens the inventory of a service on another store.
pub(crate) fn inventory_on_store(store: Arc<dyn Store>, service: &TestService) -> Inventory {
    let inventory = &service.inventory;
    Inventory::new(
        store,
        inventory.files().clone(),
        inventory.catalogue().clone(),
        inventory.settings().clone(),
        inventory.policy().clone(),
    )
}

pub(crate) async fn send_request(request: RequestBuilder) -> ServiceAnswer {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    ServiceAnswer { status, headers, text: response.text().await.unwrap() }
}

/// Runs a test on all databases concurrently.
pub(crate) fn on_each_database(test: impl AsyncFn(&TestService)) {
    on_each_database_with(|_| {}, test);
}

/// Disables the validations of hosts that depend on their cluster and on its other hosts.
pub(crate) fn only_own_validations(settings: &mut Settings) {
    let of_clusters =
        "machine-cidr-defined,belongs-to-machine-cidr,belongs-to-majority-group,hostname-unique";
    settings.validations.disabled_host = DisabledValidations::parse::<HostValidationId>(of_clusters).unwrap();
}

/// Runs a test on each database, with other settings.
pub(crate) fn on_each_database_with(change: impl Fn(&mut Settings), test: impl AsyncFn(&TestService)) {
    run_on_each_database(Policy::Open, change, async |service, _| test(service).await);
}

/// Runs a test on each database, with other settings and a clock that the test moves.
pub(crate) fn on_each_database_with_clock(
    change: impl Fn(&mut Settings),
    test: impl AsyncFn(&TestService, &ManualClock),
) {
    // Clocks by the base URL of the service.
    let clocks: Mutex<BTreeMap<String, Arc<ManualClock>>> = Mutex::default();
    let change = |settings: &mut Settings| {
        change(settings);
        let clock = Arc::new(ManualClock::new(Utc::now()));
        clocks.lock().unwrap().insert(settings.service_base_url.as_str().to_owned(), Arc::clone(&clock));
        settings.clock = clock;
    };
    run_on_each_database(Policy::Open, change, async |service, _| {
        let clock =
            Arc::clone(&clocks.lock().unwrap()[service.inventory.settings().service_base_url.as_str()]);
        test(service, &clock).await;
    });
}

/// Runs a test on each database, with another policy.
pub(crate) fn on_each_database_with_policy(policy: Policy, test: impl AsyncFn(&TestService)) {
    run_on_each_database(policy, |_| {}, async |service, _| test(service).await);
}

/// Runs a test on each database. Several replicas can share it by its URL.
pub(crate) fn on_each_database_by_url(test: impl AsyncFn(&TestService, Option<&str>)) {
    run_on_each_database(Policy::Open, |_| {}, test);
}

fn run_on_each_database(
    policy: Policy,
    change: impl Fn(&mut Settings),
    test: impl AsyncFn(&TestService, Option<&str>),
) {
    let on_sqlite = async {
        let service = TestService::start_on_sqlite(policy.clone(), &change).await;
        test(&service, None).await;
        service.stop().await;
    };
    let on_postgres = async {
        let Some(server) = postgres_url() else { return };
        let database = TestDatabase::create(&server).await;
        let store = SqlStore::open(&database.url).await.unwrap();
        let service = TestService::start_on_store(store, None, policy.clone(), &change).await;
        test(&service, Some(&database.url)).await;
        service.stop().await;
        database.drop().await;
    };
    crate::store::block_on(async {
        tokio::join!(on_sqlite, on_postgres);
    });
}

/// Returns a copy of a record with the given status, which no request can set.
pub(crate) fn with_status<R: Record>(record: &R, status: impl Serialize) -> R {
    let mut document = serde_json::to_value(record).unwrap();
    document["status"] = serde_json::to_value(status).unwrap();
    serde_json::from_value(document).unwrap()
}
