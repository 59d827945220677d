//! Images over a real socket: the response of every URL form, the required access, and the effect of changes to the
//! infra-env.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod added_images;
mod caches;
#[path = "../inventory/database.rs"]
mod database;
mod downloading;
mod fast_path;
mod hostile_mirror;
#[path = "../library/server.rs"]
#[allow(dead_code, reason = "the tests of the library use the rest")]
mod image_file_server;
mod in_place;
mod infra_env_urls;
mod minimal;
mod openapi;
mod outage;
mod own_postgres;
mod replicas;
mod request_slots;
mod revisions;
#[path = "../support/schemathesis.rs"]
mod schemathesis;
#[path = "../support/skip.rs"]
mod skip;
mod unusable;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use fixtures::erofs::Erofs;
use fixtures::{Architecture, Era, Filesystem, Recipe};
use ignition::discovery::HttpUrl;
use isogen::BaseImage;
use kindling::http::App;
use kindling::http::images::{EmbeddedInputs, ImageServer, follow_added_images};
use kindling::images::library::{AddedImageServers, Library, LibrarySettings};
use kindling::inventory::auth::{KeyTexts, LocalKeys, Policy};
use kindling::inventory::catalogue::Catalogue;
use kindling::inventory::files::FileStore;
use kindling::inventory::id::InfraEnvId;
use kindling::inventory::store::SqlStore;
use kindling::inventory::{Inventory, Settings};
use request_slots::{GatedInputs, InputsGate};
use reqwest::{Client, Method, Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

const API: &str = "/api/assisted-install/v2";
const VERSION: &str = "418.94.202501010000-0";

fn base_image_bytes() -> Vec<u8> {
    Recipe::all().find(|recipe| recipe.name() == "2024-12.x86_64").expect("a recipe").build()
}

/// Returns a base image with `nmstatectl` in its root file system.
fn base_image_with_nmstatectl(nmstatectl: &[u8]) -> Vec<u8> {
    let root = Erofs::RELEASE.image([("usr/bin/nmstatectl", nmstatectl)]);
    Recipe::new(Architecture::X86_64, Era::E2024_12).filesystem_contents(Filesystem::Erofs, root).build()
}

struct ImageTestServer {
    base: String,
    client: Client,
    user: Option<String>,
    directory: TempDir,
    live_images: Library,
    inventory: Inventory,
    app: App,
}

impl ImageTestServer {
    async fn start(policy: Policy, user: Option<String>) -> Self {
        Self::start_gated(policy, user, None).await
    }

    /// Starts a server with two request slots. Its infra-env lookups pass a gate.
    async fn start_gated(policy: Policy, user: Option<String>, gate: Option<Arc<InputsGate>>) -> Self {
        let directory = TempDir::new().unwrap();
        let base = directory.path().join("base.iso");
        std::fs::write(&base, base_image_bytes()).unwrap();
        let url = format!("file://{}", base.display());
        Self::start_in_directory(directory, (policy, user), json!({"url": url}), gate).await
    }

    /// Starts a server with a base image, and with additional fields in its catalogue entry.
    async fn start_in_directory(
        directory: TempDir,
        (policy, user): (Policy, Option<String>),
        more: Value,
        gate: Option<Arc<InputsGate>>,
    ) -> Self {
        let store = SqlStore::open_file(&directory.path().join("kindling.db")).await.unwrap();
        Self::start_on_store((store, None, None), directory, (policy, user), more, gate).await
    }

    /// Starts a server on any store with this service URL. The server may be limited to a single infra-env.
    async fn start_on_store(
        on: (SqlStore, Option<&str>, Option<InfraEnvId>),
        directory: TempDir,
        access: (Policy, Option<String>),
        more: Value,
        gate: Option<Arc<InputsGate>>,
    ) -> Self {
        Self::start_with_grace((on, Settings::DATABASE_OUTAGE_GRACE), directory, access, more, gate).await
    }

    /// Starts a server that serves cached images for a while after its database is lost.
    async fn start_with_grace(
        ((store, url, infra_env_id), grace): ((SqlStore, Option<&str>, Option<InfraEnvId>), Duration),
        directory: TempDir,
        (policy, user): (Policy, Option<String>),
        more: Value,
        gate: Option<Arc<InputsGate>>,
    ) -> Self {
        let path = directory.path();
        let mut image =
            json!({"openshift_version": "4.14", "cpu_architecture": "x86_64", "version": VERSION});
        image.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let images = json!([image]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let url = HttpUrl::parse("base", url.unwrap_or(&base)).unwrap();
        let catalogue = Catalogue::parse(&images.to_string()).unwrap();
        let os_images = catalogue.os_images().to_vec();
        let mut settings = LibrarySettings::new(path.join("images"));
        settings.added_from = AddedImageServers::Listed([String::from("127.0.0.1")].into());
        let library = Library::open(settings, os_images.clone()).unwrap();
        let files = FileStore::in_directory(&path.join("files")).unwrap();
        let settings = Settings {
            infra_env_id,
            database_outage_grace: grace,
            ..Settings::new(url.clone(), url.clone())
        };
        let inventory = Inventory::new(Arc::new(store), files, catalogue, settings, policy);
        let embedded = EmbeddedInputs::new(inventory.clone());
        let server = match gate {
            None => ImageServer::new(os_images, library.clone(), Arc::new(embedded), url),
            Some(gate) => {
                let inputs = Arc::new(GatedInputs { gate, embedded });
                ImageServer::new(os_images, library.clone(), inputs, url).with_request_slots(2)
            }
        };
        tokio::spawn(follow_added_images(inventory.clone(), server.clone()));
        let app = kindling::http::app(&inventory, Some(&server));
        tokio::spawn(kindling::http::serve(listener, app.clone(), std::future::pending()));
        Self { base, client: Client::new(), user, directory, live_images: library, inventory, app }
    }

    async fn start_without_tokens() -> Self {
        Self::start(Policy::Open, None).await
    }

    async fn api(&self, method: Method, path: &str, body: &Value) -> Value {
        let mut request = self.client.request(method, format!("{}{API}{path}", self.base)).json(body);
        if let Some(token) = &self.user {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert!(status.is_success(), "{status}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Creates an infra-env with a host and a kernel argument. Returns the infra-env and its id.
    async fn create_infra_env(&self) -> (Value, String) {
        self.create_infra_env_with_version("4.14").await
    }

    async fn create_infra_env_with_version(&self, openshift_version: &str) -> (Value, String) {
        let body = json!({
            "name": "demo", "openshift_version": openshift_version,
            "pull_secret": r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#,
            "kernel_arguments": [{"operation": "append", "value": "quiet"}],
            "static_network_config": [{
                "network_yaml": "interfaces: [{name: eth0, type: ethernet, state: up}]\n",
                "mac_interface_map": [{"mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0"}],
            }],
        });
        let infra_env = self.api(Method::POST, "/infra-envs", &body).await;
        let id = infra_env["id"].as_str().unwrap().to_owned();
        (infra_env, id)
    }

    async fn get(&self, path: &str) -> Response {
        self.client.get(format!("{}{path}", self.base)).send().await.unwrap()
    }

    /// Returns the value of a metric. `name` includes its labels.
    async fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").await.text().await.unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }

    async fn get_bytes(&self, path: &str) -> Vec<u8> {
        let response = self.get(path).await;
        assert_eq!(response.status(), 200, "{path}");
        response.bytes().await.unwrap().to_vec()
    }

    fn open_image(&self, bytes: &[u8]) -> BaseImage {
        let path = self.directory.path().join("downloaded.iso");
        std::fs::write(&path, bytes).unwrap();
        BaseImage::open(&path).unwrap()
    }
}

fn header(response: &Response, name: &str) -> String {
    response.headers().get(name).unwrap_or_else(|| panic!("no {name}")).to_str().unwrap().to_owned()
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .worker_threads(2)
        .build()
        .unwrap()
        .block_on(test);
}

#[test]
fn every_url_returns_its_image() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (infra_env, id) = server.create_infra_env().await;
        let full = server.get_bytes(&format!("/byid/{id}/4.14/x86_64/full.iso")).await;
        let url = infra_env["download_url"].as_str().unwrap();
        assert_eq!(server.get_bytes(url.strip_prefix(&server.base).unwrap()).await, full);
        for same in [
            format!("/byid/{id}/{VERSION}/x86_64/full.iso"),
            format!("/byid/{id}/4.14/amd64/full.iso"),
            format!("/images/{id}?arch=x86_64&type=full-iso&version=4.14"),
            format!("/images/{id}?type=full-iso&version={VERSION}"),
        ] {
            assert!(server.get_bytes(&same).await == full, "{same}");
        }
        let image = server.open_image(&full);
        let config =
            server.get_bytes(&format!("{API}/infra-envs/{id}/downloads/files?file_name=discovery.ign")).await;
        assert_eq!(image.archive().unwrap().get("config.ign").unwrap(), &config);
        assert!(image.kargs().unwrap().current().unwrap().ends_with(" quiet"));

        let minimal =
            server.open_image(&server.get_bytes(&format!("/byid/{id}/4.14/x86_64/minimal.iso")).await);
        let rootfs = format!("{}/boot-artifacts/rootfs?arch=x86_64&version={VERSION}", server.base);
        assert!(minimal.kargs().unwrap().current().unwrap().contains(&rootfs));
        assert!(minimal.file("images/assisted_installer_custom.img").is_ok());

        let base = BaseImage::open(server.directory.path().join("base.iso")).unwrap();
        let initrd = server.get_bytes(&format!("/images/{id}/pxe-initrd?version=4.14")).await;
        assert!(
            initrd.starts_with(&base.file("images/pxeboot/initrd.img").unwrap().read_all(1 << 30).unwrap())
        );
        for (name, plan) in [("kernel", base.kernel().unwrap()), ("rootfs", base.rootfs().unwrap())] {
            let body = server.get_bytes(&format!("/boot-artifacts/{name}?version=4.14")).await;
            assert!(body == plan.read_all(1 << 30).unwrap(), "{name}");
        }
    });
}

/// Boot files are the same for all hosts of a version and contain no secrets. Images contain secrets.
#[test]
fn shared_caches_may_store_boot_files_but_no_images() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (_, id) = server.create_infra_env().await;
        for (path, expected) in [
            ("/boot-artifacts/kernel?version=4.14".to_owned(), "public, no-cache"),
            ("/boot-artifacts/rootfs?version=4.14".to_owned(), "public, no-cache"),
            (format!("/i/{id}/kernel"), "public, no-cache"),
            (format!("/i/{id}/initrd"), "private, no-cache"),
            (format!("/i/{id}/minimal.iso"), "private, no-cache"),
            (format!("/images/{id}/pxe-initrd?version=4.14"), "private, no-cache"),
            (format!("/byid/{id}/4.14/x86_64/full.iso"), "private, no-cache"),
        ] {
            let answer = server.get(&path).await;
            assert_eq!(answer.headers()["cache-control"], expected, "{path}");
            let etag = answer.headers()["etag"].clone();
            let request = server.client.get(format!("{}{path}", server.base)).header("if-none-match", etag);
            let revalidation = request.send().await.unwrap();
            assert_eq!(
                (revalidation.status().as_u16(), &revalidation.headers()["cache-control"]),
                (304, &expected.parse().unwrap())
            );
        }
    });
}

#[test]
fn digests_match_the_bytes() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (_, id) = server.create_infra_env().await;
        for path in ["full.iso", "minimal.iso"] {
            let path = format!("/byid/{id}/4.14/x86_64/{path}");
            let line = String::from_utf8(server.get_bytes(&format!("{path}.sha256")).await).unwrap();
            let digest = isogen::Digest::from_data(&server.get_bytes(&path).await);
            assert_eq!(line, format!("{digest}  {id}-discovery.iso\n"));
        }
        let line =
            String::from_utf8(server.get_bytes("/boot-artifacts/kernel.sha256?version=4.14").await).unwrap();
        let digest =
            isogen::Digest::from_data(&server.get_bytes("/boot-artifacts/kernel?version=4.14").await);
        assert_eq!(line, format!("{digest}  vmlinuz\n"));
    });
}

/// A client that resumes a download after a change gets the whole new image.
#[test]
fn download_never_mixes_two_images() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (_, id) = server.create_infra_env().await;
        let path = format!("/byid/{id}/4.14/x86_64/full.iso");
        let before = server.get(&path).await;
        let (etag, changed_at) = (header(&before, "etag"), header(&before, "last-modified"));
        let bytes = before.bytes().await.unwrap();
        let go_on = async |etag: &str| {
            let request = server.client.get(format!("{}{path}", server.base));
            request.header("range", "bytes=1000000-").header("if-range", etag).send().await.unwrap()
        };
        let rest = go_on(&etag).await;
        assert_eq!(rest.status(), 206);
        assert_eq!(rest.bytes().await.unwrap(), bytes.slice(1_000_000..));
        let change = json!({"kernel_arguments": [{"operation": "append", "value": "loud"}]});
        server.api(Method::PATCH, &format!("/infra-envs/{id}"), &change).await;
        let whole = go_on(&etag).await;
        assert_eq!(whole.status(), 200);
        assert_ne!(header(&whole, "etag"), etag);
        let changed = whole.bytes().await.unwrap();
        assert_eq!(changed.len(), bytes.len());
        assert_ne!(changed, bytes);
        assert!(!changed_at.is_empty());
        // Another change, back to the first image, restores the same bytes and the same tag.
        let change = json!({"kernel_arguments": [{"operation": "append", "value": "quiet"}]});
        server.api(Method::PATCH, &format!("/infra-envs/{id}"), &change).await;
        let again = server.get(&path).await;
        assert_eq!(header(&again, "etag"), etag);
        assert_eq!(again.bytes().await.unwrap(), bytes);
    });
}

#[test]
fn unknown_path_never_returns_an_image() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (_, id) = server.create_infra_env().await;
        let missing_id = "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11";
        for (path, status) in [
            (format!("/byid/{missing_id}/4.14/x86_64/full.iso"), 404),
            (format!("/byid/{}/4.14/x86_64/full.iso", id.to_uppercase()), 404),
            (format!("/byid/{id}/4.99/x86_64/full.iso"), 404),
            (format!("/byid/{id}/4.14/riscv/full.iso"), 404),
            (format!("/byid/{id}/4.14/x86_64/other.iso"), 404),
            ("/byapikey/nonsense/4.14/x86_64/full.iso".to_owned(), 404),
            (format!("/images/{id}?type=full-iso"), 400),
            (format!("/images/{id}?version=4.14"), 400),
            (format!("/images/{id}?version=4.14&type=iso"), 400),
            (format!("/images/{id}/pxe-initrd"), 400),
            ("/boot-artifacts/kernel".to_owned(), 400),
            ("/boot-artifacts/other?version=4.14".to_owned(), 404),
            ("/boot-artifacts/ins-file?version=4.14".to_owned(), 404),
            (format!("/i/{id}/initrd.addrsize"), 404),
            (format!("/i/{id}/ins-file"), 404),
            (format!("/i/{id}/other"), 404),
            (format!("/i/{missing_id}"), 404),
            (format!("/i/{id}/52:54:00:00:00:02/full.iso"), 404),
            (format!("/i/{id}/52:54/full.iso"), 404),
            (format!("/i/{id}/52:54:00:00:00:01/kernel"), 404),
        ] {
            let response = server.get(&path).await;
            assert_eq!(response.status(), status, "{path}");
            assert_eq!(header(&response, "content-type"), "application/json", "{path}");
            assert!(response.content_length().unwrap() < 1000, "{path}");
        }
        let url = format!("{}/i/{id}/full.iso", server.base);
        let answer = server.client.delete(&url).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), header(&answer, "allow").as_str()), (405, "GET,HEAD"));
        assert_eq!(answer.json::<Value>().await.unwrap()["code"], 405);
        server.get(&format!("/i/{id}/full.iso")).await;
        let behind = server.client.get(&url).header("range", "bytes=99999999-").send().await.unwrap();
        assert_eq!(behind.status(), 416);
        assert_eq!(behind.json::<Value>().await.unwrap()["code"], 416);
    });
}

#[test]
fn image_requires_a_token() {
    run(async {
        let keys = LocalKeys::parse(KeyTexts::generate().unwrap().private.reveal(), None).unwrap();
        let user = keys.user_token(Utc::now(), None).unwrap().reveal().to_owned();
        let server = ImageTestServer::start(Policy::local(keys), Some(user.clone())).await;
        let (infra_env, id) = server.create_infra_env().await;
        let (_, other) = server.create_infra_env().await;
        let url = infra_env["download_url"].as_str().unwrap().strip_prefix(&server.base).unwrap();
        assert!(url.starts_with("/byapikey/"), "{url}");
        let token = url.split('/').nth(2).unwrap();
        assert_eq!(server.get(url).await.status(), 200);
        let long = |id: &str| format!("/images/{id}?type=full-iso&version=4.14&api_key={token}");
        assert_eq!(server.get(&long(&id)).await.status(), 200);
        assert_eq!(server.get(&long(&other)).await.status(), 401);
        assert_eq!(server.get(&format!("/byid/{id}/4.14/x86_64/full.iso")).await.status(), 401);
        let tampered = url.replace(token, &format!("{}x", &token[..token.len() - 1]));
        assert_eq!(server.get(&tampered).await.status(), 401);
        let with_user =
            server.client.get(format!("{}/byid/{id}/4.14/x86_64/full.iso", server.base)).bearer_auth(&user);
        assert_eq!(with_user.send().await.unwrap().status(), 200);
        assert_eq!(
            server.get("/boot-artifacts/kernel?version=4.14").await.status(),
            200,
            "these need no token"
        );
    });
}

#[test]
fn serving_an_image_writes_no_file() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (_, id) = server.create_infra_env().await;
        server.get("/boot-artifacts/kernel?version=4.14").await;
        let files = |directory: &Path| -> u64 {
            let lengths =
                std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
            lengths.sum()
        };
        let before = files(&server.directory.path().join("images"));
        for file in ["full.iso", "minimal.iso"] {
            server.get_bytes(&format!("/byid/{id}/4.14/x86_64/{file}")).await;
        }
        assert_eq!(files(&server.directory.path().join("images")), before);
    });
}
