//! The image server under test.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fixtures::erofs::Erofs;
use fixtures::{Architecture, Era, Filesystem, Recipe};
use ignition::discovery::HttpUrl;
use kindling::http::images::{External, ExternalSettings, ImageServer};
use kindling::images::Catalogue;
use kindling::images::library::{Library, LibrarySettings};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// Where machines would reach images: the same for both servers, since it is in minimal ones.
pub(crate) const IMAGES_URL: &str = "http://images.example:8080/prefix";
pub(crate) const ID: &str = "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11";

/// Live images in a directory, as a catalogue.
pub(crate) fn live_images(directory: &Path) -> Value {
    let program = Erofs::RELEASE
        .image([("ostree/deploy/fedora-coreos/deploy/4a2b.0/usr/bin/nmstatectl", &[7_u8; 5000][..])]);
    let x86 =
        Recipe::new(Architecture::X86_64, Era::E2024_12).filesystem_contents(Filesystem::Erofs, program);
    let mainframe = Recipe::new(Architecture::S390x, Era::E2024_12);
    std::fs::write(directory.join("x86_64.iso"), x86.build()).unwrap();
    std::fs::write(directory.join("s390x.iso"), mainframe.build()).unwrap();
    let image = |openshift: &str, version: &str, architecture: &str, kind: &str| {
        json!({
            "openshift_version": openshift, "cpu_architecture": architecture, "version": version, "type": kind,
            "url": format!("file://{}", directory.join(format!("{architecture}.iso")).display()),
        })
    };
    json!([
        image("4.14", "414.92.1", "x86_64", "full-iso"),
        image("4.18", "418.94.1", "x86_64", "full-iso"),
        image("4.19", "419.96.1", "x86_64", "disconnected-iso"),
        image("4.14", "414.92.1", "s390x", "full-iso"),
    ])
}

pub(crate) struct Server {
    pub(crate) base: String,
    pub(crate) client: Client,
    _directory: TempDir,
}

/// Each request is checked, and a change counts as past when its second is.
pub(crate) fn strict(url: &str) -> ExternalSettings {
    let url = HttpUrl::parse("url", url).unwrap();
    ExternalSettings { trust: Duration::ZERO, quiet: Duration::ZERO, ..ExternalSettings::new(url) }
}

impl Server {
    pub(crate) async fn start(settings: &ExternalSettings) -> Self {
        let directory = TempDir::new().unwrap();
        let catalogue = Catalogue::parse(&live_images(directory.path()).to_string()).unwrap();
        let known = catalogue.os_images().to_vec();
        let library =
            Library::open(LibrarySettings::new(directory.path().join("images")), known.clone()).unwrap();
        let inputs = Arc::new(External::new(settings).unwrap());
        let url = HttpUrl::parse("images", IMAGES_URL).unwrap();
        let server = ImageServer::new(known, library, inputs, url);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let app = kindling::http::image_app(&server, &[]);
        tokio::spawn(kindling::http::serve(listener, app, std::future::pending()));
        Self { base, client: Client::new(), _directory: directory }
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.get_with(path, &[]).await
    }

    pub(crate) async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        get(&self.client, &format!("{}{path}", self.base), headers).await
    }

    /// An image, and its tag.
    #[track_caller]
    pub(crate) fn image(&self, path: &str) -> impl Future<Output = (Vec<u8>, String)> {
        let (client, url) = (self.client.clone(), format!("{}{path}", self.base));
        async move { image(&client, &url).await }
    }
}

pub(crate) async fn get(client: &Client, url: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = client.get(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

pub(crate) async fn image(client: &Client, url: &str) -> (Vec<u8>, String) {
    let response = get(client, url, &[]).await;
    assert_eq!(response.status(), 200, "{url}");
    let etag = header(&response, "etag");
    (response.bytes().await.unwrap().to_vec(), etag)
}

pub(crate) fn header(response: &Response, name: &str) -> String {
    response.headers().get(name).unwrap_or_else(|| panic!("no {name}")).to_str().unwrap().to_owned()
}

/// Asserts that an answer is an error that nobody takes for an image.
#[track_caller]
pub(crate) fn assert_refused(response: &Response, status: u16, what: &str) {
    assert_eq!(response.status(), status, "{what}");
    assert_eq!(header(response, "content-type"), "application/json", "{what}");
    assert!(response.content_length().unwrap() < 1000, "{what}");
    assert!(response.headers().get("etag").is_none(), "{what}");
}
