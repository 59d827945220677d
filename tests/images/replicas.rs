//! Several servers on one PostgreSQL, each with a live image of its own: one image, whoever sends it.

use std::time::{Duration, Instant};

use kindling::inventory::auth::Policy;
use kindling::inventory::store::SqlStore;
use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;

use super::database::{Database, postgres};
use super::{Server, base_bytes, run};

/// What stands before all of them.
const URL: &str = "http://images.example.com";
/// How long a replica may go without hearing of a change: half a second, on any machine.
const PATIENCE: Duration = Duration::from_secs(10);
const FILES: [&str; 6] = ["full.iso", "minimal.iso", "initrd", "kernel", "rootfs", "script.ipxe"];

async fn replica(database: &Database) -> Server {
    let directory = TempDir::new().unwrap();
    let base = directory.path().join("base.iso");
    std::fs::write(&base, base_bytes()).unwrap();
    let image = json!({"url": format!("file://{}", base.display())});
    let store = SqlStore::open(&database.url).await.unwrap();
    Server::start_on((store, Some(URL), None), directory, (Policy::Open, None), image, None).await
}

/// The entity tag of a file and its bytes.
async fn file(server: &Server, id: &str, name: &str) -> (String, Vec<u8>) {
    let answer = server.get(&format!("/i/{id}/{name}")).await;
    assert_eq!(answer.status(), 200, "{name}");
    let etag = answer.headers().get("etag").map_or("", |etag| etag.to_str().unwrap()).to_owned();
    (etag, answer.bytes().await.unwrap().to_vec())
}

#[test]
fn replicas_serve_the_same_images() {
    run(async {
        let Some(server) = postgres() else { return };
        let database = Database::create(&server).await;
        let (one, other) = (replica(&database).await, replica(&database).await);
        let (_, id) = one.infra_env().await;
        for name in FILES {
            assert!(file(&one, &id, name).await == file(&other, &id, name).await, "{name} differs");
        }
        let before = file(&one, &id, "full.iso").await;
        let change = json!({"kernel_arguments": [{"operation": "append", "value": "loud"}]});
        other.api(Method::PATCH, &format!("/infra-envs/{id}"), &change).await;
        let after = file(&other, &id, "full.iso").await;
        assert!(after.0 != before.0 && after.1 != before.1);
        // What was answered a moment ago is answered again for another one.
        let begun = Instant::now();
        let heard = loop {
            match file(&one, &id, "full.iso").await {
                known if known == before => assert!(begun.elapsed() < PATIENCE, "a change is not heard of"),
                heard => break heard,
            }
        };
        assert!(heard == after);
        // A download goes on with whoever answers.
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
