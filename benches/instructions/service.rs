//! Whole requests: to the service as a library, and over a connection to our own server.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, Request, header};
use http_body_util::BodyExt;
use ignition::discovery::HttpUrl;
use kindling::http::images::{EmbeddedInputs, ImageServer};
use kindling::http::{App, Listener, Server, ServerLimits};
use kindling::images::library::{Library, LibrarySettings};
use kindling::inventory::auth::Policy;
use kindling::inventory::catalogue::Catalogue;
use kindling::inventory::files::FileStore;
use kindling::inventory::store::{SqlStore, Store};
use kindling::inventory::{Inventory, Settings};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

use super::operations::{Ready, image_path};

const DATABASE: &str = "kindling.db";
pub(crate) const INFRA_ENVS: &str = "/api/assisted-install/v2/infra-envs";
/// Number of infra-envs. Operations list one of them, then all.
const COUNT: usize = 100;
const ORIGIN: &str = "http://192.0.2.1";
/// A range in the root file system, after all edits.
const RANGE: &str = "bytes=4194304-4196351";
const RANGE_LEN: usize = 2048;

/// The service with its background tasks.
pub(crate) struct Service {
    runtime: Runtime,
    store: Arc<SqlStore>,
    app: App,
}

impl Service {
    /// Opens the service on the data of a folder, on the caller's thread.
    pub(crate) fn open(folder: &Path) -> Self {
        Self::open_on(Builder::new_current_thread(), folder, &own_database(folder))
    }

    fn open_on(mut runtime: Builder, folder: &Path, database: &Path) -> Self {
        let runtime = runtime.enable_all().build().unwrap();
        let store = Arc::new(runtime.block_on(SqlStore::open_file(database)).unwrap());
        let app = runtime.block_on(async { app(folder, Arc::clone(&store)) });
        Self { runtime, store, app }
    }

    /// Sends a request and returns the body of the response.
    pub(crate) fn ask(&self, method: Method, path: &str, body: Option<&str>, status: u16) -> Vec<u8> {
        let request = Request::builder().method(method).uri(path).header(header::RANGE, RANGE);
        let request = match body {
            Some(body) => {
                request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body.to_owned()))
            }
            None => request.body(Body::empty()),
        };
        self.runtime.block_on(async {
            let response = self.app.clone().oneshot(request.unwrap()).await.unwrap();
            let answered = response.status().as_u16();
            let bytes = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(answered, status, "{path}: {}", String::from_utf8_lossy(&bytes));
            bytes.into()
        })
    }

    pub(crate) fn get(&self, path: &str, status: u16) -> Vec<u8> {
        self.ask(Method::GET, path, None, status)
    }
}

/// Copies the prepared database, because a database belongs to one process.
fn own_database(folder: &Path) -> PathBuf {
    let copy = folder.join(format!("{}.db", std::process::id()));
    std::fs::copy(folder.join(DATABASE), &copy).unwrap();
    copy
}

fn app(folder: &Path, store: Arc<SqlStore>) -> App {
    let url = HttpUrl::parse("origin", ORIGIN).unwrap();
    let images = json!([{
        "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.1",
        "url": format!("file://{}", image_path(folder).display()),
    }]);
    let catalogue = Catalogue::parse(&images.to_string()).unwrap();
    let os_images = catalogue.os_images().to_vec();
    let library = Library::open(LibrarySettings::new(folder.join("images")), os_images.clone()).unwrap();
    let files = FileStore::in_directory(&folder.join("files")).unwrap();
    let settings = Settings::new(url.clone(), url.clone());
    let inventory = Inventory::new(store, files, catalogue, settings, Policy::Open);
    let images = ImageServer::new(os_images, library, Arc::new(EmbeddedInputs::new(inventory.clone())), url);
    kindling::http::app(&inventory, Some(&images))
}

/// Creates infra-envs and hashes the base image.
pub(crate) fn prepare(folder: &Path) {
    let service = Service::open_on(Builder::new_current_thread(), folder, &folder.join(DATABASE));
    for number in 0..COUNT {
        let body = json!({
            "name": format!("infra-env-{number}"), "openshift_version": "4.18",
            "pull_secret": r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#,
            "kernel_arguments": [{"operation": "append", "value": "console=ttyS0"}],
        });
        let created = service.ask(Method::POST, INFRA_ENVS, Some(&body.to_string()), 201);
        if number == 0 {
            let created: Value = serde_json::from_slice(&created).unwrap();
            std::fs::write(folder.join("infra-env"), created["id"].as_str().unwrap()).unwrap();
        }
    }
    service.get(&image_url(folder), 206);
    service.runtime.block_on(service.store.close());
}

pub(crate) fn id(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("infra-env")).unwrap()
}

fn image_url(folder: &Path) -> String {
    format!("/i/{}/full.iso", id(folder))
}

/// Prepares a range request. Only the first repetition plans the image, and its cost does not count.
pub(crate) fn image_range(folder: &Path) -> Ready {
    let (service, path) = (Service::open(folder), image_url(folder));
    Box::new(move || assert_eq!(service.get(&path, 206).len(), RANGE_LEN))
}

pub(crate) fn infra_env(folder: &Path) -> Ready {
    let (service, path) = (Service::open(folder), format!("{INFRA_ENVS}/{}", id(folder)));
    Box::new(move || assert!(!service.get(&path, 200).is_empty()))
}

pub(crate) fn infra_envs(folder: &Path) -> Ready {
    let service = Service::open(folder);
    let listed: Vec<Value> = serde_json::from_slice(&service.get(INFRA_ENVS, 200)).unwrap();
    assert_eq!(listed.len(), COUNT);
    Box::new(move || assert!(!service.get(INFRA_ENVS, 200).is_empty()))
}

/// Prepares the same range request over a keep-alive connection. The instructions of the client count too, but it only
/// writes and reads.
pub(crate) fn connection_range(folder: &Path) -> Ready {
    over_a_connection(folder, Server::new(ServerLimits::default()))
}

/// Prepares the same range request with `--fast-path off`, where hyper handles every request.
pub(crate) fn connection_range_without_fast_path(folder: &Path) -> Ready {
    over_a_connection(folder, Server::new(ServerLimits::default()).without_fast_path())
}

fn over_a_connection(folder: &Path, server: Server) -> Ready {
    let mut threads = Builder::new_multi_thread();
    threads.worker_threads(1);
    let Service { runtime, app, .. } = Service::open_on(threads, folder, &own_database(folder));
    let path = image_url(folder);
    let request = format!("GET {path} HTTP/1.1\r\nHost: 192.0.2.1\r\nRange: {RANGE}\r\n\r\n").into_bytes();
    let mut answer = vec![0; 64 << 10];
    let (stream, len) = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let listener: Listener = listener.try_into().unwrap();
        tokio::spawn(async move { server.serve(listener, app, std::future::pending()).await });
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&request).await.unwrap();
        let mut len = 0;
        while !is_whole(&answer[..len]) {
            len += stream.read(&mut answer[len..]).await.unwrap();
        }
        (stream, len)
    });
    let mut stream = stream.into_std().unwrap();
    stream.set_nonblocking(false).unwrap();
    Box::new(move || {
        let _kept = &runtime;
        stream.write_all(&request).unwrap();
        stream.read_exact(&mut answer[..len]).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 206"));
    })
}

/// Returns `true` if the response is complete.
fn is_whole(answer: &[u8]) -> bool {
    answer.windows(4).position(|end| end == b"\r\n\r\n").is_some_and(|at| answer.len() == at + 4 + RANGE_LEN)
}
