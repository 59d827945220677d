//! Base images that users add through the API, which all replicas serve.

use std::time::{Duration, Instant};

use isogen::Digest;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::database::{TestDatabase, postgres_url};
use super::image_file_server::ImageFileServer;
use super::replicas::start_replica;
use super::{API, ImageTestServer, base_image_bytes, run};

/// Maximum time until a base image is ready or has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the catalogue entry of a base image for OpenShift 4.99.
fn os_image(url: &str) -> Value {
    json!({
        "openshift_version": "4.99", "cpu_architecture": "x86_64", "version": "499.1", "url": url,
        "sha256": Digest::from_data(&base_image_bytes()).to_string(),
    })
}

/// Returns the added image in the health of a server.
async fn added_image(server: &ImageTestServer) -> Option<Value> {
    let health: Value = server.get("/health").await.json().await.unwrap();
    health["images"].as_array().unwrap().iter().find(|image| image["added"] == true).cloned()
}

async fn wait_until(mut holds: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !holds().await {
        assert!(start.elapsed() < PATIENCE, "the added image does not get the wanted state");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn remove(server: &ImageTestServer) -> StatusCode {
    let url = format!("{}{API}/os-images/4.99/x86_64", server.base);
    server.client.delete(url).send().await.unwrap().status()
}

/// Adds an image through the server `one`. The server `other`, which may be the same server, serves the image.
async fn add_serve_and_remove(one: &ImageTestServer, other: &ImageTestServer) {
    let source = ImageFileServer::with_file(&base_image_bytes()).await;
    one.api(Method::POST, "/os-images", &os_image(&source.url("live.iso"))).await;
    let is_ready = async || added_image(other).await.is_some_and(|image| image["state"] == "ready");
    wait_until(is_ready).await;
    let (infra_env, id) = other.create_infra_env_with_version("4.99").await;
    assert!(infra_env["download_url"].as_str().unwrap().contains("/4.99/x86_64/"), "{infra_env}");
    let full = other.get_bytes(&format!("/i/{id}/full.iso")).await;
    assert!(one.get_bytes(&format!("/i/{id}/full.iso")).await == full);
    let kernel = "/boot-artifacts/kernel?version=";
    assert!(
        other.get_bytes(&format!("{kernel}499.1")).await == other.get_bytes(&format!("{kernel}4.14")).await
    );
    assert_eq!(remove(one).await, 409, "an infra-env uses it");
    let deleted = one.client.delete(format!("{}{API}/infra-envs/{id}", one.base)).send().await.unwrap();
    assert_eq!(deleted.status(), 204);
    assert_eq!(remove(one).await, 204);
    wait_until(async || added_image(other).await.is_none()).await;
    assert_eq!(other.get(&format!("{kernel}499.1")).await.status(), 400);
}

#[test]
fn added_image_is_served_until_it_is_removed() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        add_serve_and_remove(&server, &server).await;
    });
}

#[test]
fn image_added_at_one_replica_is_served_by_another() {
    run(async {
        let Some(server) = postgres_url() else { return };
        let database = TestDatabase::create(&server).await;
        let (one, other) = (start_replica(&database).await, start_replica(&database).await);
        add_serve_and_remove(&one, &other).await;
        // A replica that starts later serves the image too.
        let source = ImageFileServer::with_file(&base_image_bytes()).await;
        one.api(Method::POST, "/os-images", &os_image(&source.url("live.iso"))).await;
        let late = start_replica(&database).await;
        wait_until(async || added_image(&late).await.is_some_and(|image| image["state"] == "ready")).await;
        drop((one, other, late));
        database.drop().await;
    });
}

#[test]
fn failing_added_image_leaves_the_service_healthy() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let source = ImageFileServer::with_file(b"no image").await;
        server.api(Method::POST, "/os-images", &os_image(&source.url("live.iso"))).await;
        wait_until(async || added_image(&server).await.is_some_and(|image| image["state"] == "failed")).await;
        assert_eq!(server.get("/health").await.status(), 200);
        let (_, id) = server.create_infra_env_with_version("4.99").await;
        let answer = server.get(&format!("/i/{id}/full.iso")).await;
        assert_eq!(answer.status(), 503);
        assert!(answer.headers().contains_key("retry-after"));
    });
}
