//! Cached data of images: it belongs to one image only, and the caches are limited in size.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use kindling::inventory::auth::Policy;
use kindling::inventory::store::SqlStore;
use reqwest::{Method, Response};
use serde_json::json;
use tempfile::TempDir;

use super::{ImageTestServer, base_image_bytes, base_image_with_nmstatectl, header, run};

/// Maximum time until a base image is available again: far longer than any machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns a program that takes a third of the plan cache with any compression.
fn large_program() -> Vec<u8> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(5 << 20).collect()
}

#[test]
fn recreated_infra_env_gets_new_images() {
    run(async {
        let directory = TempDir::new().unwrap();
        let base = directory.path().join("base.iso");
        std::fs::write(&base, base_image_bytes()).unwrap();
        let store = SqlStore::open_file(&directory.path().join("kindling.db")).await.unwrap();
        let id = "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11";
        let image = json!({"url": format!("file://{}", base.display())});
        let on = (store, None, Some(id.parse().unwrap()));
        let server = ImageTestServer::start_on_store(on, directory, (Policy::Open, None), image, None).await;
        let path = format!("/i/{id}/full.iso");
        let mut tags = Vec::new();
        for arguments in ["one", "other", "one"] {
            let body = json!({
                "name": "demo", "openshift_version": "4.14",
                "pull_secret": r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#,
                "kernel_arguments": [{"operation": "append", "value": arguments}],
            });
            server.api(Method::POST, "/infra-envs", &body).await;
            let answer = server.get(&path).await;
            tags.push(header(&answer, "etag"));
            let bytes = answer.bytes().await.unwrap();
            let image = server.open_image(&bytes);
            assert!(image.kargs().unwrap().current().unwrap().ends_with(&format!(" {arguments}")));
            let url = format!("{}{}/infra-envs/{id}", server.base, super::API);
            assert_eq!(server.client.delete(url).send().await.unwrap().status(), 204);
            assert_eq!(server.get(&path).await.status(), 404);
        }
        assert!(tags[0] == tags[2] && tags[0] != tags[1], "{tags:?}");
    });
}

#[test]
fn images_of_many_infra_envs_share_one_nmstatectl() {
    run(async {
        let directory = TempDir::new().unwrap();
        let base = directory.path().join("base.iso");
        std::fs::write(&base, base_image_with_nmstatectl(&large_program())).unwrap();
        let image = json!({"url": format!("file://{}", base.display()), "openshift_version": "4.18"});
        let server = ImageTestServer::start_in_directory(directory, (Policy::Open, None), image, None).await;
        let mut paths = Vec::new();
        for _ in 0..8 {
            let (_, id) = server.create_infra_env_with_version("4.18").await;
            paths.extend(["minimal.iso", "initrd"].map(|file| format!("/i/{id}/{file}")));
        }
        for path in paths.iter().cycle().take(3 * paths.len()) {
            let answer = server.client.get(format!("{}{path}", server.base)).header("range", "bytes=-100");
            assert_eq!(answer.send().await.unwrap().status(), 206);
        }
        assert!(
            server.get_bytes(&paths[0]).await.len() > large_program().len(),
            "nmstatectl is in the image"
        );
        let text = server.get("/metrics").await.text().await.unwrap();
        let metric = format!(r#"kindling_plans_total{{outcome="made"}} {}"#, paths.len());
        assert!(text.lines().any(|line| line == metric), "{text}");
    });
}

/// Polls until a base image is available again. All responses before that must be refusals.
async fn get_once_ready(server: &ImageTestServer, path: &str) -> Response {
    let start = Instant::now();
    loop {
        let answer = server.get(path).await;
        if answer.status() == 200 {
            return answer;
        }
        assert_eq!(answer.status(), 503, "{path}");
        assert!(answer.headers().contains_key("retry-after"));
        assert!(start.elapsed() < PATIENCE, "{path} does not become available");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn modified_base_image_changes_the_etag_immediately() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (_, id) = server.create_infra_env().await;
        let files = ["full.iso", "minimal.iso", "kernel"].map(|file| format!("/i/{id}/{file}"));
        let mut before = Vec::new();
        for path in &files {
            let answer = server.get(path).await;
            before.push((header(&answer, "etag"), answer.bytes().await.unwrap()));
        }
        let path = server.directory.path().join("base.iso");
        // Changes bytes of the last file of the image, which no check reads.
        let base = OpenOptions::new().write(true).open(&path).unwrap();
        let at = base.metadata().unwrap().len() - 4096;
        base.write_all_at(b"other bytes", at).unwrap();
        assert_eq!(server.get(&files[0]).await.status(), 503, "the image is open for writing");
        drop(base);
        let first = server.get(&files[0]).await;
        assert!([503, 200].contains(&first.status().as_u16()));
        assert_ne!(
            first.headers().get("etag").map(|etag| etag.to_str().unwrap()),
            Some(before[0].0.as_str())
        );
        let answer = get_once_ready(&server, &files[0]).await;
        assert_ne!(header(&answer, "etag"), before[0].0);
        assert!(answer.bytes().await.unwrap() != before[0].1);
        // A truncated image is refused. With its full length, it is served again.
        OpenOptions::new().write(true).open(&path).unwrap().set_len(1_000_000).unwrap();
        assert_eq!(server.get(&files[0]).await.status(), 503);
        let whole = path.with_extension("new");
        std::fs::write(&whole, base_image_bytes()).unwrap();
        std::fs::rename(&whole, &path).unwrap();
        for (path, before) in files.iter().zip(before) {
            let answer = get_once_ready(&server, path).await;
            assert!((header(&answer, "etag"), answer.bytes().await.unwrap()) == before, "{path}");
        }
    });
}
