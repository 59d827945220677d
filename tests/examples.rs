//! Runs the programs in `examples/`, which are starting points for users.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
#![allow(dead_code, reason = "their main functions are for those who run them alone")]

#[path = "../examples/embed_inventory.rs"]
mod embed_inventory;
#[path = "../examples/inspect.rs"]
mod inspect;
#[path = "../ignition/examples/keyfiles.rs"]
mod keyfiles;
#[path = "../ignition/examples/merge.rs"]
mod merge;
#[path = "../examples/offline_iso.rs"]
mod offline_iso;
#[path = "../examples/operator_images.rs"]
mod operator_images;
#[path = "../examples/s3_bases.rs"]
mod s3_bases;
#[path = "../examples/serve_from_hyper.rs"]
mod serve_from_hyper;
#[path = "support/skip.rs"]
mod skip;

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use fixtures::{Architecture, Era, Recipe};
use ignition::discovery::{HttpUrl, ImageReference, InventoryService};
use isogen::{BaseImage, Source};
use serde_json::{Value, json};
use skip::report_missing;
use tempfile::TempDir;
use tokio::net::TcpListener;
use uuid::Uuid;

const CONFIG: &str = r#"{"ignition": {"version": "3.3.0"}}"#;

/// Creates a directory with a base image.
fn directory_with_base_image() -> (TempDir, String) {
    let place = TempDir::new().unwrap();
    let base = place.path().join("base.iso");
    fs::write(&base, Recipe::new(Architecture::X86_64, Era::E2024_12).with_program().build()).unwrap();
    let base = base.to_str().unwrap().to_owned();
    (place, base)
}

fn site_manifests() -> String {
    format!("{}/tests/offline/manifests/bonded", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn iso_is_created_offline_and_inspected() {
    let (place, base) = directory_with_base_image();
    let output = place.path().join("discovery.iso");
    let output = output.to_str().unwrap();
    let report = offline_iso::make(&base, &site_manifests(), "http://192.0.2.1:8090", output).unwrap();
    assert_eq!(report, "");
    let text = inspect::describe(output).unwrap();
    assert!(text.contains("layout: as it was mastered") && text.contains("agent.service"), "{text}");
    let before = inspect::describe(&base).unwrap();
    assert!(!before.contains("config:"), "{before}");
    let error = offline_iso::make(&base, &site_manifests(), "no url", "unused").unwrap_err().to_string();
    assert!(error.contains("no url"), "{error}");
}

#[test]
fn configs_are_merged_and_keyfiles_generated() {
    let child = r#"{"ignition": {"version": "3.4.0"}, "storage": {"files": [{"path": "/a"}]}}"#;
    let merged = merge::merged(("parent", CONFIG.as_bytes()), ("child", child.as_bytes())).unwrap();
    let document = "interfaces: [{name: eth0, type: ethernet, state: up}]";
    let (files, _) = keyfiles::keyfiles(document, "52:54:00:AA:BB:01=eth0\n").unwrap();
    assert!(files.contains("eth0.nmconnection"), "{files}");
    assert!(merged.config.contains("\"/a\"") && merged.config.contains("3.4.0"), "{}", merged.config);
}

#[tokio::test]
async fn hyper_server_serves_ranges_of_an_image() {
    let (_place, base) = directory_with_base_image();
    let content = serve_from_hyper::content(&base, CONFIG.into()).unwrap();
    let bytes = content.plan().read_all(1 << 30).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = tokio::spawn(serve_from_hyper::serve(listener, content));
    let part = reqwest::Client::new().get(&url).header("range", "bytes=32768-34815").send().await.unwrap();
    assert_eq!(part.status(), 206);
    assert_eq!(part.bytes().await.unwrap(), bytes[32_768..34_816]);
    let whole = reqwest::get(&url).await.unwrap().bytes().await.unwrap();
    assert!(whole == bytes);
    server.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn application_embeds_the_service() {
    let (place, base) = directory_with_base_image();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let application = embed_inventory::application(&base, place.path(), &origin).await.unwrap();
    let server = tokio::spawn(kindling::http::serve(listener, application, std::future::pending()));
    let about = reqwest::get(format!("{origin}/about")).await.unwrap().text().await.unwrap();
    assert_eq!(about, "an application");
    let secret = r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#;
    let body = json!({"name": "a", "openshift_version": "4.18", "pull_secret": secret});
    let created = reqwest::Client::new()
        .post(format!("{origin}/api/assisted-install/v2/infra-envs"))
        .json(&body)
        .send()
        .await
        .unwrap();
    assert_eq!(created.status(), 201);
    let created: Value = created.json().await.unwrap();
    let url = format!("{origin}/i/{}/full.iso", created["id"].as_str().unwrap());
    let image = reqwest::get(&url).await.unwrap();
    assert_eq!(image.status(), 200);
    let len = image.content_length().unwrap();
    assert_eq!(image.bytes().await.unwrap().len() as u64, len);
    server.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_serves_images_of_watched_objects() {
    let (place, base) = directory_with_base_image();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let url = HttpUrl::parse("service", &origin).unwrap();
    let agent = ImageReference::parse("agent", "quay.io/example/agent:v1").unwrap();
    let operator = operator_images::Operator::new(InventoryService::new(url, agent));
    let uid = "0f2a5d3c-1111-4222-8333-444455556666";
    let mut objects = operator_images::watched_objects(uid);
    operator.apply(&objects).unwrap();
    let application = operator_images::application(operator.clone(), &base, place.path(), &origin).unwrap();
    let server = tokio::spawn(kindling::http::serve(listener, application, std::future::pending()));
    let get = async |path: &str| reqwest::get(format!("{origin}/i/{uid}/{path}")).await.unwrap();

    let image = get("full.iso").await;
    assert_eq!(image.status(), 200);
    let before = image.headers()["etag"].clone();
    let bytes = image.bytes().await.unwrap();
    let config = BaseImage::from_source(Source::from_bytes("image", bytes)).unwrap();
    let config = String::from_utf8(config.archive().unwrap().get("config.ign").unwrap().to_vec()).unwrap();
    assert!(config.contains(uid) && config.contains("/etc/assisted/network/host0/"), "{config}");
    let script = get("script.ipxe").await.text().await.unwrap();
    assert!(script.contains(&format!("{origin}/images/{uid}/pxe-initrd")), "{script}");
    for (path, status) in [
        ("52-54-00-00-00-01/minimal.iso", 200),
        ("52-54-00-00-00-02/minimal.iso", 404),
        ("initrd", 200),
        ("kernel", 200),
    ] {
        assert_eq!(get(path).await.status(), status, "{path}");
    }
    let unknown = reqwest::get(format!("{origin}/i/{}/full.iso", Uuid::new_v4())).await.unwrap();
    assert_eq!(unknown.status(), 404);

    // An accepted change to the object changes the image; a refused change does not.
    objects[0]["spec"]["kernelArguments"] = json!([{"operation": "append", "value": "quiet"}]);
    objects[0]["metadata"]["resourceVersion"] = "8".into();
    operator.apply(&objects).unwrap();
    let after = get("full.iso").await.headers()["etag"].clone();
    assert_ne!(before, after);
    objects[2]["spec"]["interfaces"][0]["macAddress"] = "zz".into();
    let refused = operator.apply(&objects).unwrap_err().to_string();
    assert!(
        refused.contains("NMStateConfig site/node-0: spec.interfaces[0].macAddress: error:"),
        "{refused}"
    );
    assert_eq!(get("full.iso").await.headers()["etag"], after);
    server.abort();
}

/// The endpoint and the credentials are in environment variables, so the test needs its own process.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the process that another test starts"]
async fn process_with_a_bucket() {
    let (url, directory) = (env::var("EXAMPLE_URL").unwrap(), env::var("EXAMPLE_DIRECTORY").unwrap());
    let base = s3_bases::base(&url, Path::new(&directory)).await.unwrap();
    println!("digest {}", base.digest());
}

#[tokio::test(flavor = "multi_thread")]
async fn base_image_is_fetched_from_a_bucket() {
    let Ok(endpoint) = env::var("KINDLING_TEST_S3") else {
        report_missing("KINDLING_TEST_S3 is not set");
        return;
    };
    let (place, base) = directory_with_base_image();
    let bytes = fs::read(&base).unwrap();
    let digest = isogen::Digest::from_data(&bytes);
    let bucket = format!("{endpoint}/examples-{}", std::process::id());
    let client = reqwest::Client::new();
    for request in [client.put(&bucket), client.put(format!("{bucket}/base.iso")).body(bytes)] {
        let response = request.send().await.unwrap();
        assert!(response.status().is_success(), "{}", response.status());
    }
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", "process_with_a_bucket", "--ignored", "--nocapture"])
        .env("EXAMPLE_URL", format!("s3://examples-{}/base.iso", std::process::id()))
        .env("EXAMPLE_DIRECTORY", place.path().join("kept"))
        .env("S3_ENDPOINT_URL", &endpoint)
        .envs([("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"), ("AWS_REGION", "us-east-1")])
        .output();
    let text = String::from_utf8_lossy(&output.unwrap().stdout).into_owned();
    assert!(text.contains(&format!("digest {digest}")), "{text}");
}
