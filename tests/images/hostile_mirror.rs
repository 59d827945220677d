//! A mirror that sends bytes other than the `sha256` of the base image allows. No client receives any of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fixtures::{Architecture, Era, Mastered, Recipe};
use isogen::Digest;
use kindling::images::library::BaseImageState;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::image_file_server::{ImageFileServer, ImageReply, ReplyGate};
use super::{API, ImageTestServer, InputsGate, Policy, header, run};

/// Number of changed bytes in the root file system.
const CHANGED_LEN: usize = 4096;
const ROOTFS: &str = "images/pxeboot/rootfs.img";
/// A version that no other base image has.
const VERSION: &str = "499.1";

/// A mirror that first sends a changed image, whose last byte waits for a gate. Later it sends the right image.
struct HostileMirror {
    good: Vec<u8>,
    truth: Mastered,
    is_good: Arc<AtomicBool>,
    gate: ReplyGate,
    server: ImageFileServer,
}

impl HostileMirror {
    async fn start(architecture: Architecture) -> Self {
        let truth = Recipe::new(architecture, Era::E2024_12).master();
        let good = truth.image.to_vec();
        let mut bad = good.clone();
        let rootfs = truth.files[ROOTFS];
        let middle = usize::try_from(rootfs.offset + rootfs.len / 2).unwrap();
        bad[middle..middle + CHANGED_LEN].iter_mut().for_each(|byte| *byte ^= 0xFF);
        let (is_good, gate) = (Arc::new(AtomicBool::new(false)), ReplyGate::new());
        let server = {
            let (good, is_good, gate) = (good.clone(), Arc::clone(&is_good), gate.clone());
            // Both images have the same entity tag, so that the mirror does not reveal the difference.
            ImageFileServer::new(move |request, _| {
                if is_good.load(Ordering::SeqCst) {
                    ImageReply::from_file(request, &good, "\"one\"")
                } else {
                    ImageReply::from_file(request, &bad, "\"one\"").wait_after(bad.len() - 1, &gate)
                }
            })
            .await
        };
        Self { good, truth, is_good, gate, server }
    }

    /// Returns the fields of the base image's catalogue entry.
    fn entry(&self, architecture: &str) -> Value {
        json!({
            "openshift_version": "4.14", "version": VERSION, "cpu_architecture": architecture,
            "url": self.server.url("base.iso"), "sha256": Digest::from_data(&self.good).to_string(),
        })
    }

    fn file(&self, path: &str) -> &[u8] {
        let extent = self.truth.files[path];
        let start = usize::try_from(extent.offset).unwrap();
        &self.good[start..start + usize::try_from(extent.len).unwrap()]
    }
}

/// Waits until the state of the base image fulfils a condition.
async fn wait_for_base(server: &ImageTestServer, is_wanted: impl Fn(&BaseImageState) -> bool) {
    let mut changes = server.live_images.state_changes();
    loop {
        let states = server.live_images.states();
        if states.iter().any(|image| image.image.version == VERSION && is_wanted(&image.state)) {
            return;
        }
        changes.changed().await.unwrap();
    }
}

/// Creates an infra-env. Returns its id and the paths of all of its files.
async fn paths_of_new_infra_env(server: &ImageTestServer, architecture: &str) -> (String, Vec<String>) {
    let body = json!({
        "name": "demo", "openshift_version": "4.14", "cpu_architecture": architecture,
        "pull_secret": r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#,
    });
    let infra_env = server.api(Method::POST, "/infra-envs", &body).await;
    let id = infra_env["id"].as_str().unwrap().to_owned();
    let listing: Value = server.get(&format!("/i/{id}")).await.json().await.unwrap();
    assert_eq!(listing["ready"], false, "{listing}");
    let mut paths = Vec::new();
    for file in listing["files"].as_array().unwrap() {
        assert!(file.get("etag").is_none() && file.get("size").is_none(), "{file}");
        paths.push(format!("/i/{id}/{}", file["name"].as_str().unwrap()));
    }
    let query = format!("version=4.14&arch={architecture}");
    paths.push(format!("/byid/{id}/4.14/{architecture}/full.iso"));
    paths.push(format!("/images/{id}?type=full-iso&{query}"));
    paths.push(format!("/images/{id}/pxe-initrd?{query}"));
    paths.push(format!("/boot-artifacts/kernel?{query}"));
    paths.push(format!("/boot-artifacts/rootfs?{query}"));
    if architecture == "s390x" {
        paths.push(format!("/images/{id}/s390x-initrd-addrsize?{query}"));
        paths.push(format!("/boot-artifacts/ins-file?{query}"));
    }
    (id, paths)
}

/// Asserts that a response contains nothing of an image.
async fn assert_shows_nothing(what: &str, response: Response) {
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE, "{what}");
    for name in ["etag", "last-modified", "content-range", "content-disposition"] {
        assert!(!response.headers().contains_key(name), "{what}: {name}");
    }
    assert_eq!(header(&response, "content-type"), "application/json", "{what}");
    assert!(response.bytes().await.unwrap().len() < 1000, "{what}");
}

/// Sends requests for all files, whole and by ranges, before the last byte of the changed image has arrived. Neither
/// they nor later requests may show a byte of the image.
async fn assert_changed_image_is_not_served(
    (server, inputs): (&ImageTestServer, &InputsGate),
    mirror: &HostileMirror,
    (id, paths): (&str, &[String]),
) {
    let most = mirror.good.len() as u64 - 1;
    wait_for_base(server, |state| matches!(state, BaseImageState::Downloading { have, .. } if *have == most))
        .await;
    let changed = mirror.truth.files[ROOTFS].offset + mirror.truth.files[ROOTFS].len / 2;
    let changed = format!("bytes={changed}-{}", changed + 99);
    let ranges = [None, Some("bytes=0-99"), Some(&changed), Some("bytes=-100"), Some("bytes=1-1,5-6")];
    let send_all = || {
        let mut responses = Vec::new();
        for path in paths {
            for range in ranges {
                let request = server.client.get(format!("{}{path}", server.base));
                let request = range.iter().fold(request, |request, range| request.header("range", *range));
                responses.push((format!("{path} {range:?}"), tokio::spawn(request.send())));
            }
            let head = server.client.head(format!("{}{path}", server.base));
            responses.push((format!("HEAD {path}"), tokio::spawn(head.send())));
        }
        responses
    };
    // The script contains URLs of the files, but no bytes and no entity tag of the image.
    let script = server.get(&format!("/i/{id}/script.ipxe")).await;
    assert!(script.status() == 200 && !script.headers().contains_key("etag"));
    let of_infra_env = paths.iter().filter(|path| path.contains(id)).count() * (ranges.len() + 1);
    let all_asked = inputs.asked() + of_infra_env;
    let early = send_all();
    // Otherwise the download could fail before these requests wait for the image. Requests for boot artifacts do not
    // call the inventory, so they are not counted.
    while inputs.asked() < all_asked {
        tokio::task::yield_now().await;
    }
    mirror.gate.open();
    wait_for_base(server, |state| matches!(state, BaseImageState::Failed { .. })).await;
    for (what, response) in early.into_iter().chain(send_all()) {
        assert_shows_nothing(&what, response.await.unwrap().unwrap()).await;
    }
}

/// Asserts that all files have the right bytes, and that conditional requests for the files get the right responses.
async fn assert_right_image_is_served(
    server: &ImageTestServer,
    mirror: &HostileMirror,
    (id, paths): (&str, &[String]),
) {
    for path in paths {
        let whole = server.get(path).await;
        assert_eq!(whole.status(), 200, "{path}");
        let (etag, bytes) = (header(&whole, "etag"), whole.bytes().await.unwrap());
        let request =
            |name: &str, value: &str| server.client.get(format!("{}{path}", server.base)).header(name, value);
        assert_eq!(request("if-none-match", &etag).send().await.unwrap().status(), 304, "{path}");
        assert_eq!(request("if-none-match", "\"other\"").send().await.unwrap().status(), 200, "{path}");
        let part = request("if-range", &etag).header("range", "bytes=3-").send().await.unwrap();
        assert_eq!((part.status(), header(&part, "etag")), (StatusCode::PARTIAL_CONTENT, etag), "{path}");
        assert!(part.bytes().await.unwrap() == bytes.slice(3..), "{path}");
        if path.starts_with("/i/") {
            let line = String::from_utf8(server.get_bytes(&format!("{path}.sha256")).await).unwrap();
            assert!(line.starts_with(&Digest::from_data(&bytes).to_string()), "{path}");
        }
    }
    for (name, file) in [("kernel", "images/pxeboot/vmlinuz"), ("rootfs", ROOTFS)] {
        if mirror.truth.files.contains_key(file) {
            assert!(server.get_bytes(&format!("/i/{id}/{name}")).await == mirror.file(file), "{name}");
        }
    }
    let rootfs = mirror.truth.files[ROOTFS];
    let range = format!("bytes={}-{}", rootfs.offset, rootfs.offset + rootfs.len - 1);
    let full = server.client.get(format!("{}/i/{id}/full.iso", server.base)).header("range", range);
    assert!(full.send().await.unwrap().bytes().await.unwrap() == mirror.file(ROOTFS));
    let initrd = server.get_bytes(&format!("/i/{id}/initrd")).await;
    assert!(initrd.starts_with(mirror.file("images/pxeboot/initrd.img")));
}

async fn test_mirror(architecture: (Architecture, &str), is_added: bool) {
    let mirror = HostileMirror::start(architecture.0).await;
    let entry = mirror.entry(architecture.1);
    let directory = TempDir::new().unwrap();
    let (access, inputs) = ((Policy::Open, None), InputsGate::with_permits(100));
    let gate = Some(Arc::clone(&inputs));
    let server = if is_added {
        let other = json!({"openshift_version": "4.1", "url": "/none.iso"});
        let server = ImageTestServer::start_in_directory(directory, access, other, gate).await;
        let added = server.client.post(format!("{}{API}/os-images", server.base)).json(&entry).send().await;
        assert_eq!(added.unwrap().status(), 201);
        server
    } else {
        ImageTestServer::start_in_directory(directory, access, entry, gate).await
    };
    let (id, paths) = paths_of_new_infra_env(&server, architecture.1).await;
    assert_changed_image_is_not_served((&server, &inputs), &mirror, (&id, &paths)).await;
    mirror.is_good.store(true, Ordering::SeqCst);
    wait_for_base(&server, BaseImageState::is_ready).await;
    assert_right_image_is_served(&server, &mirror, (&id, &paths)).await;
}

#[test]
fn changed_configured_image_is_never_served() {
    run(async {
        test_mirror((Architecture::X86_64, "x86_64"), false).await;
        test_mirror((Architecture::S390x, "s390x"), false).await;
    });
}

#[test]
fn changed_added_image_is_never_served() {
    run(async {
        test_mirror((Architecture::X86_64, "x86_64"), true).await;
        test_mirror((Architecture::S390x, "s390x"), true).await;
    });
}
