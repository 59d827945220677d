//! Tests the minimal ISOs of base images with a wrong `miniso.dat`.

use isogen::BaseImage;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::image_file_server::ImageFileServer;
use super::{ImageTestServer, Policy, base_image_bytes, run};

const REASON: &str = "the image's description of its minimal form is wrong";

/// Changes one byte of the base image's initrd, which is also part of the minimal ISO.
fn base_with_wrong_description() -> Vec<u8> {
    let mut bytes = base_image_bytes();
    let base = BaseImage::from_source(isogen::Source::from_bytes("base", bytes.clone())).unwrap();
    let offset = base.volume().file("images/pxeboot/initrd.img").unwrap().extent.offset();
    bytes[usize::try_from(offset).unwrap() + 200] ^= 1;
    bytes
}

/// Returns the path of the minimal ISO of an infra-env without static networks, which needs no re-layout.
async fn minimal_iso_path(server: &ImageTestServer) -> String {
    let pull_secret = r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#;
    let body = json!({"name": "demo", "openshift_version": "4.14", "pull_secret": pull_secret});
    let infra_env: Value = server.api(Method::POST, "/infra-envs", &body).await;
    format!("/i/{}/minimal.iso", infra_env["id"].as_str().unwrap())
}

fn layout_reason(server: &ImageTestServer, iso: &[u8]) -> Option<String> {
    server.open_image(iso).inspect().unwrap().relayout_reason
}

#[test]
fn minimal_iso_with_a_wrong_description_is_re_laid_out() {
    run(async {
        for (base, reason) in [(base_image_bytes(), None), (base_with_wrong_description(), Some(REASON))] {
            let mirror = ImageFileServer::with_file(&base).await;
            let more = json!({"url": mirror.url("base.iso")});
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
