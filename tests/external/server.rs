//! The image server under test.

use std::path::Path;
use std::sync::Arc;

use fixtures::erofs::Erofs;
use fixtures::{Architecture, Era, Filesystem, Recipe};
use ignition::discovery::HttpUrl;
use isogen::Digest;
use kindling::http::images::{ExternalInputs, ExternalSettings, ImageServer};
use kindling::images::library::{Library, LibrarySettings};
use kindling::inventory::catalogue::Catalogue;
use reqwest::{Client, Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// The service URL. It is part of minimal images, so two servers need the same URL to send the same images.
pub(crate) const IMAGES_URL: &str = "http://images.example:8080/prefix";
pub(crate) const ID: &str = "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11";

/// Writes base images to a directory, and returns them as a catalogue.
pub(crate) fn base_images(directory: &Path) -> Value {
    let program = Erofs::RELEASE
        .image([("ostree/deploy/fedora-coreos/deploy/4a2b.0/usr/bin/nmstatectl", &[7_u8; 5000][..])]);
    let x86 =
        Recipe::new(Architecture::X86_64, Era::E2024_12).filesystem_contents(Filesystem::Erofs, program);
    let mainframe = Recipe::new(Architecture::S390x, Era::E2024_12);
    let digests = [("x86_64", x86), ("s390x", mainframe)].map(|(architecture, recipe)| {
        let bytes = recipe.build();
        std::fs::write(directory.join(format!("{architecture}.iso")), &bytes).unwrap();
        (architecture, Digest::from_data(&bytes).to_string())
    });
    let image = |openshift: &str, version: &str, architecture: &str, kind: &str| {
        let digest = digests.iter().find(|(of, _)| *of == architecture).map(|(_, digest)| digest);
        json!({
            "openshift_version": openshift, "cpu_architecture": architecture, "version": version, "type": kind,
            "url": format!("file://{}", directory.join(format!("{architecture}.iso")).display()),
            // With the digests, images of both servers have the same revisions.
            "sha256": digest,
        })
    };
    json!([
        image("4.14", "414.92.1", "x86_64", "full-iso"),
        image("4.18", "418.94.1", "x86_64", "full-iso"),
        image("4.19", "419.96.1", "x86_64", "disconnected-iso"),
        image("4.14", "414.92.1", "s390x", "full-iso"),
    ])
}

pub(crate) struct ExternalImageServer {
    pub(crate) base: String,
    pub(crate) client: Client,
    _directory: TempDir,
}

/// Settings with which the server checks each request, also after a failed call, and treats a change as settled after
/// one second.
pub(crate) fn strict_settings(url: &str) -> ExternalSettings {
    let url = HttpUrl::parse("url", url).unwrap();
    let (trust, quiet, retry) = Default::default();
    ExternalSettings { trust, quiet, retry, ..ExternalSettings::new(url) }
}

impl ExternalImageServer {
    pub(crate) async fn start(settings: &ExternalSettings) -> Self {
        let directory = TempDir::new().unwrap();
        let catalogue = Catalogue::parse(&base_images(directory.path()).to_string()).unwrap();
        let os_images = catalogue.os_images().to_vec();
        let library =
            Library::open(LibrarySettings::new(directory.path().join("images")), os_images.clone()).unwrap();
        let inputs = Arc::new(ExternalInputs::new(settings).unwrap());
        let url = HttpUrl::parse("images", IMAGES_URL).unwrap();
        let server = ImageServer::new(os_images, library, inputs, url);
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
        get_response(&self.client, &format!("{}{path}", self.base), headers).await
    }

    /// Returns an image and its entity tag.
    #[track_caller]
    pub(crate) fn image(&self, path: &str) -> impl Future<Output = (Vec<u8>, String)> {
        let (client, url) = (self.client.clone(), format!("{}{path}", self.base));
        async move { get_image(&client, &url).await }
    }
}

pub(crate) async fn get_response(client: &Client, url: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = client.get(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

pub(crate) async fn get_image(client: &Client, url: &str) -> (Vec<u8>, String) {
    let response = get_response(client, url, &[]).await;
    assert_eq!(response.status(), 200, "{url}");
    let etag = header_text(&response, "etag");
    (response.bytes().await.unwrap().to_vec(), etag)
}

pub(crate) fn header_text(response: &Response, name: &str) -> String {
    response.headers().get(name).unwrap_or_else(|| panic!("no {name}")).to_str().unwrap().to_owned()
}

/// Asserts that a response is an error that no client mistakes for an image.
#[track_caller]
pub(crate) fn assert_refused(response: &Response, status: u16, what: &str) {
    assert_eq!(response.status(), status, "{what}");
    assert_eq!(header_text(response, "content-type"), "application/json", "{what}");
    assert!(response.content_length().unwrap() < 1000, "{what}");
    assert!(response.headers().get("etag").is_none(), "{what}");
}
