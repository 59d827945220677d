//! Several servers on one PostgreSQL database, each with its own copy of the base image. All send the same image.

use std::time::{Duration, Instant};

use kindling::inventory::auth::Policy;
use kindling::inventory::store::SqlStore;
use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;

use super::database::{TestDatabase, postgres_url};
use super::{ImageTestServer, base_image_bytes, run};

/// The URL of the load balancer.
const URL: &str = "http://images.example.com";
/// Maximum time until a replica notices a change. A replica needs half a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(10);
const FILES: [&str; 6] = ["full.iso", "minimal.iso", "initrd", "kernel", "rootfs", "script.ipxe"];

pub(crate) async fn start_replica(database: &TestDatabase) -> ImageTestServer {
    let directory = TempDir::new().unwrap();
    let base = directory.path().join("base.iso");
    std::fs::write(&base, base_image_bytes()).unwrap();
    let image = json!({"url": format!("file://{}", base.display())});
    let store = SqlStore::open(&database.url).await.unwrap();
    ImageTestServer::start_on_store((store, Some(URL), None), directory, (Policy::Open, None), image, None)
        .await
}

/// Returns the entity tag and the bytes of a file.
async fn tag_and_bytes(server: &ImageTestServer, id: &str, name: &str) -> (String, Vec<u8>) {
    let answer = server.get(&format!("/i/{id}/{name}")).await;
    assert_eq!(answer.status(), 200, "{name}");
    let etag = answer.headers().get("etag").map_or("", |etag| etag.to_str().unwrap()).to_owned();
    (etag, answer.bytes().await.unwrap().to_vec())
}

#[test]
fn replicas_serve_the_same_images() {
    run(async {
        let Some(server) = postgres_url() else { return };
        let database = TestDatabase::create(&server).await;
        let (one, other) = (start_replica(&database).await, start_replica(&database).await);
        let (_, id) = one.create_infra_env().await;
        for name in FILES {
            assert!(
                tag_and_bytes(&one, &id, name).await == tag_and_bytes(&other, &id, name).await,
                "{name} differs"
            );
        }
        let before = tag_and_bytes(&one, &id, "full.iso").await;
        let change = json!({"kernel_arguments": [{"operation": "append", "value": "loud"}]});
        other.api(Method::PATCH, &format!("/infra-envs/{id}"), &change).await;
        let after = tag_and_bytes(&other, &id, "full.iso").await;
        assert!(after.0 != before.0 && after.1 != before.1);
        // The other replica may send the old image for a moment, and then sends the same new image.
        let start = Instant::now();
        let current = loop {
            match tag_and_bytes(&one, &id, "full.iso").await {
                known if known == before => {
                    assert!(start.elapsed() < PATIENCE, "a replica does not notice the change")
                }
                current => break current,
            }
        };
        assert!(current == after);
        // A download continues on any replica.
        let url = format!("{}/i/{id}/full.iso", other.base);
        let rest =
            |etag: &str| other.client.get(&url).header("range", "bytes=1000000-").header("if-range", etag);
        let answer = rest(&after.0).send().await.unwrap();
        assert_eq!(answer.status(), 206);
        assert!(answer.bytes().await.unwrap() == after.1[1_000_000..]);
        assert_eq!(rest(&before.0).send().await.unwrap().status(), 200);
        drop((one, other));
        database.drop().await;
    });
}
