//! Minimal ISOs of base images whose `miniso.dat` is wrong.

use std::sync::Arc;

use axum::body::Bytes;
use isogen::{BaseImage, Digest};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;

use super::arriving::mirror;
use super::{Policy, Server, base_bytes, run};

const REASON: &str = "the image's description of its minimal form is wrong";

/// The base image with one byte of its initrd changed, which is in the minimal ISO as well.
fn wrong_base() -> Bytes {
    let mut bytes = base_bytes();
    let base = BaseImage::from_source(isogen::Source::from_bytes("base", bytes.clone())).unwrap();
    let offset = base.volume().file("images/pxeboot/initrd.img").unwrap().extent.offset();
    bytes[usize::try_from(offset).unwrap() + 200] ^= 1;
    bytes.into()
}

/// The path of the minimal ISO of an infra-env whose hosts have no static network, which takes no new layout.
async fn minimal_iso(server: &Server) -> String {
    let pull_secret = r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#;
    let body = json!({"name": "demo", "openshift_version": "4.14", "pull_secret": pull_secret});
    let made: Value = server.api(Method::POST, "/infra-envs", &body).await;
    format!("/i/{}/minimal.iso", made["id"].as_str().unwrap())
}

fn layout_reason(server: &Server, iso: &[u8]) -> Option<String> {
    server.opened(iso).layout_reason().unwrap()
}

#[test]
fn minimal_iso_of_a_wrong_description_gets_a_new_layout() {
    run(async {
        for (base, reason) in [(base_bytes().into(), None), (wrong_base(), Some(REASON))] {
            let gate = Arc::new(Notify::new());
            gate.notify_one();
            let more = json!({"url": mirror(base, gate).await});
            let server = Server::start_in(TempDir::new().unwrap(), (Policy::Open, None), more, None).await;
            let iso = server.bytes(&minimal_iso(&server).await).await;
            assert_eq!(layout_reason(&server, &iso).as_deref(), reason);
        }
    });
}

#[test]
fn minimal_iso_waits_until_the_description_is_verified() {
    run(async {
        for (base, reason) in [(base_bytes().into(), None), (wrong_base(), Some(REASON))] {
            let gate = Arc::new(Notify::new());
            let sha256 = Digest::of(&base).to_string();
            let more = json!({"url": mirror(base, Arc::clone(&gate)).await, "sha256": sha256});
            let server = Server::start_in(TempDir::new().unwrap(), (Policy::Open, None), more, None).await;
            let path = minimal_iso(&server).await;
            let early = tokio::spawn(server.client.get(format!("{}{path}", server.base)).send());
            // The full ISO is served while its base image is being downloaded.
            let full = format!("{}{}", server.base, path.replace("minimal", "full"));
            let range = server.client.get(full).header("range", "bytes=0-99999").send().await.unwrap();
            assert_eq!(range.bytes().await.unwrap().len(), 100_000);
            assert!(!server.live_images.is_ready() && !early.is_finished());
            gate.notify_one();
            let early = early.await.unwrap().unwrap().bytes().await.unwrap();
            assert_eq!(layout_reason(&server, &early).as_deref(), reason);
            server.live_images.ready().await;
            assert!(server.bytes(&path).await == early, "another ISO after the download");
        }
    });
}
