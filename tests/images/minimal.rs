//! Minimal ISOs of base images whose `miniso.dat` is wrong.

use std::sync::Arc;

use axum::body::Bytes;
use isogen::{BaseImage, Digest};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;

use super::downloading::start_mirror;
use super::{ImageTestServer, Policy, base_image_bytes, run};

const REASON: &str = "the image's description of its minimal form is wrong";

/// The base image with one changed byte in its initrd, which is also part of the minimal ISO.
fn base_with_wrong_description() -> Bytes {
    let mut bytes = base_image_bytes();
    let base = BaseImage::from_source(isogen::Source::from_bytes("base", bytes.clone())).unwrap();
    let offset = base.volume().file("images/pxeboot/initrd.img").unwrap().extent.offset();
    bytes[usize::try_from(offset).unwrap() + 200] ^= 1;
    bytes.into()
}

/// The path of the minimal ISO of an infra-env without static networks, which needs no re-layout.
async fn minimal_iso_path(server: &ImageTestServer) -> String {
    let pull_secret = r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#;
    let body = json!({"name": "demo", "openshift_version": "4.14", "pull_secret": pull_secret});
    let made: Value = server.api(Method::POST, "/infra-envs", &body).await;
    format!("/i/{}/minimal.iso", made["id"].as_str().unwrap())
}

fn layout_reason(server: &ImageTestServer, iso: &[u8]) -> Option<String> {
    server.open_image(iso).inspect().unwrap().relayout_reason
}

#[test]
fn minimal_iso_with_a_wrong_description_is_re_laid_out() {
    run(async {
        for (base, reason) in
            [(base_image_bytes().into(), None), (base_with_wrong_description(), Some(REASON))]
        {
            let gate = Arc::new(Notify::new());
            gate.notify_one();
            let more = json!({"url": start_mirror(base, gate).await});
            let server = ImageTestServer::start_in_directory(
                TempDir::new().unwrap(),
                (Policy::Open, None),
                more,
                None,
            )
            .await;
            let iso = server.get_bytes(&minimal_iso_path(&server).await).await;
            assert_eq!(layout_reason(&server, &iso).as_deref(), reason);
        }
    });
}

#[test]
fn minimal_iso_waits_until_the_description_is_verified() {
    run(async {
        for (base, reason) in
            [(base_image_bytes().into(), None), (base_with_wrong_description(), Some(REASON))]
        {
            let gate = Arc::new(Notify::new());
            let sha256 = Digest::from_data(&base).to_string();
            let more = json!({"url": start_mirror(base, Arc::clone(&gate)).await, "sha256": sha256});
            let server = ImageTestServer::start_in_directory(
                TempDir::new().unwrap(),
                (Policy::Open, None),
                more,
                None,
            )
            .await;
            let path = minimal_iso_path(&server).await;
            let early = tokio::spawn(server.client.get(format!("{}{path}", server.base)).send());
            // The full ISO is served while its base image is being downloaded.
            let full = format!("{}{}", server.base, path.replace("minimal", "full"));
            let range = server.client.get(full).header("range", "bytes=0-99999").send().await.unwrap();
            assert_eq!(range.bytes().await.unwrap().len(), 100_000);
            assert!(!server.live_images.is_ready() && !early.is_finished());
            gate.notify_one();
            let early = early.await.unwrap().unwrap().bytes().await.unwrap();
            assert_eq!(layout_reason(&server, &early).as_deref(), reason);
            server.live_images.wait_all_ready().await;
            assert!(server.get_bytes(&path).await == early, "the ISO differs after the download");
        }
    });
}
