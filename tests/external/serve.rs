//! `kindling serve` with the environment variables of the Go image service, as its replacement.

use serde_json::{Value, json};

use crate::go_service::GoService;
use crate::peer_service::{InjectedFault, PeerService, ServiceCall, ServiceReply};
use crate::process::ServerProcess;
use crate::server::{ID, assert_refused, base_images};
use crate::support::Scratch;

/// Starts a server of base images that requires an `Authorization` header, and has no file with `missing` in its name.
async fn start_mirror(scratch: &Scratch) -> PeerService {
    base_images(scratch.folder());
    let bytes = scratch.read("x86_64.iso");
    PeerService::new(move |call: &ServiceCall| {
        match call.header("authorization") == Some("Bearer s3cret-header") {
            true if !call.target.contains("missing") => ServiceReply::new(200, bytes.clone()),
            true => ServiceReply::new(404, ""),
            false => ServiceReply::new(401, ""),
        }
    })
    .await
}

fn os_images_list(mirror: &PeerService, names: &[&str]) -> String {
    let image = |(number, name): (usize, &&str)| {
        json!({
            "openshift_version": format!("4.{}", 14 + number), "version": format!("41{number}.1"),
            "cpu_architecture": "x86_64", "url": format!("{}/{name}.iso?signature=s3cret-url", mirror.url()),
        })
    };
    json!(names.iter().enumerate().map(image).collect::<Vec<_>>()).to_string()
}

fn image_state<'a>(report: &'a Value, version: &str) -> &'a Value {
    let images = report["images"].as_array().unwrap();
    &images.iter().find(|image| image["openshift_version"] == version).unwrap()["state"]
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_replaces_the_image_service() {
    let (scratch, go) = (Scratch::new(), GoService::start().await);
    let mirror = start_mirror(&scratch).await;
    let (open, gate) = tokio::sync::watch::channel(false);
    mirror.inject_fault("slow", InjectedFault::Held(gate));
    let list = os_images_list(&mirror, &["fast", "slow"]);
    let host = go.peer.address().to_string();
    let process = ServerProcess::start(
        &scratch,
        "0.0.0.0:0",
        &[
            ("ASSISTED_SERVICE_SCHEME", "http"),
            ("ASSISTED_SERVICE_HOST", &host),
            ("RHCOS_VERSIONS", &list),
            ("OS_IMAGES_REQUEST_HEADERS", r#"{"Authorization": "Bearer s3cret-header"}"#),
            ("OS_IMAGES_REQUEST_QUERY_PARAMS", r#"{"token": "s3cret-query"}"#),
            ("INSECURE_SKIP_VERIFY", "true"),
            ("IMAGE_SERVICE_BASE_URL", "https://images.example"),
            ("DATA_DIR", "cache"),
            ("DATA_TEMP_DIR", "temporary"),
            ("LOGLEVEL", "trace"),
            ("ALLOWED_DOMAINS", "https://ui.example.com"),
            ("AUTH_TYPE", "rhsso"),
        ],
    );
    let report = process.wait_for_health(|_, report| image_state(report, "4.14") == "ready").await;
    let (status, _) = process.health().await;
    assert_eq!((status, &report["ready"]), (503, &json!(false)), "{report}");
    assert_ne!(image_state(&report, "4.15"), "ready");
    // The available image is served.
    process.image(&format!("/byid/{ID}/4.14/x86_64/minimal.iso")).await;
    for path in ["/live", "/ready"] {
        assert_eq!(process.get(path).await.status(), 200, "{path}");
    }
    open.send_replace(true);
    let report = process.wait_for_health(|status, _| status == 200).await;
    assert_eq!((&report["ready"], image_state(&report, "4.15")), (&json!(true), &json!("ready")));
    assert_eq!(report.get("database"), None);
    process.image(&format!("/byid/{ID}/4.15/x86_64/full.iso")).await;
    for call in mirror.take_calls() {
        assert!(call.target.contains("signature=s3cret-url&token=s3cret-query"), "{}", call.target);
    }
    let health = format!("{}/health", process.base);
    let refused = process.client.delete(&health).send().await.unwrap();
    assert_eq!((refused.status().as_u16(), &refused.headers()["allow"]), (405, &"GET,HEAD".parse().unwrap()));
    let page = process.client.get(&health).header("origin", "https://ui.example.com").send().await.unwrap();
    assert_eq!(page.headers()["access-control-allow-origin"], "https://ui.example.com");
    // Later responses have the same cache headers.
    for _ in 0..3 {
        let image = process.get(&format!("/byid/{ID}/4.14/x86_64/minimal.iso")).await;
        assert!(image.headers()["vary"].to_str().unwrap().contains("origin"));
    }
    let api = process.get("/api/assisted-install/v2/infra-envs").await;
    assert_refused(&api, 404, "there is no inventory");
    assert_eq!(
        api.json::<Value>().await.unwrap()["message"],
        "path /api/assisted-install/v2/infra-envs was not found"
    );
    assert!(scratch.names().iter().any(|name| name == "cache/rhcos-full-iso-410.1-x86_64.iso"));
    assert!(scratch.names().iter().all(|name| !name.contains("kindling-data") && !name.ends_with(".db")));
    let log = process.log();
    assert!(log.contains("serving only images") && log.contains("INSECURE_SKIP_VERIFY"), "{log}");
    assert!(!log.contains("s3cret"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn health_explains_why_an_image_is_unavailable() {
    let (scratch, go) = (Scratch::new(), GoService::start().await);
    let mirror = start_mirror(&scratch).await;
    let list = os_images_list(&mirror, &["good", "missing"]);
    let process = ServerProcess::start(
        &scratch,
        "127.0.0.1:0",
        &[
            ("KINDLING_INVENTORY_URL", &go.peer.url()),
            ("OS_IMAGES", &list),
            ("OS_IMAGES_REQUEST_HEADERS", r#"{"Authorization": "Bearer s3cret-header"}"#),
        ],
    );
    let has_both =
        |report: &Value| image_state(report, "4.14") == "ready" && image_state(report, "4.15") == "failed";
    let report = process.wait_for_health(|_, report| has_both(report)).await;
    let failed =
        report["images"].as_array().unwrap().iter().find(|image| image["state"] == "failed").unwrap();
    assert_eq!(failed["name"], "rhcos-full-iso-411.1-x86_64.iso");
    let reason = failed["reason"].as_str().unwrap();
    assert!(reason.contains("/missing.iso") && reason.contains("404"), "{reason}");
    assert!(failed["retry_at"].is_string() && !report.to_string().contains("s3cret"), "{report}");
    assert_eq!(process.health().await.0, 503);
    process.image(&format!("/byid/{ID}/4.14/x86_64/full.iso")).await;
    let refused = process.get(&format!("/byid/{ID}/4.15/x86_64/full.iso")).await;
    assert_refused(&refused, 503, "an image that is not there");
    let seconds: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=300).contains(&seconds), "{seconds}");
    assert!(!process.log().contains("s3cret"), "{}", process.log());
}

/// With the inventory in the same process, base images are downloaded on first use by default.
#[tokio::test(flavor = "multi_thread")]
async fn health_includes_the_built_in_inventory() {
    let scratch = Scratch::new();
    let mirror = start_mirror(&scratch).await;
    let list = os_images_list(&mirror, &["missing"]);
    let headers = ("OS_IMAGES_REQUEST_HEADERS", r#"{"Authorization": "Bearer s3cret-header"}"#);
    let process = ServerProcess::start(&scratch, "127.0.0.1:0", &[("OS_IMAGES", &list), headers]);
    let (status, report) = process.health().await;
    assert_eq!(
        (status, &report["database"], image_state(&report, "4.14")),
        (200, &json!("ready"), &json!("absent"))
    );
    drop(process);
    let eager = ("KINDLING_FETCH_IMAGES", "at-start");
    let process = ServerProcess::start(&scratch, "127.0.0.1:0", &[("OS_IMAGES", &list), headers, eager]);
    let report = process.wait_for_health(|_, report| image_state(report, "4.14") == "failed").await;
    assert_eq!((process.health().await.0, &report["database"]), (503, &json!("ready")));
    let refused = process.get(&format!("/byid/{ID}/4.14/x86_64/disconnected.iso")).await;
    assert_refused(&refused, 404, "disconnected images are made elsewhere");
}

#[test]
fn errors_do_not_contain_secrets() {
    let scratch = Scratch::new();
    let list = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "url": "http://a/b", "version": "1"}]"#;
    let url = ("KINDLING_INVENTORY_URL", "http://127.0.0.1:1");
    let images = ("OS_IMAGES", list);
    for (variables, phrase) in [
        (&[url][..], "OS_IMAGES (--os-images) is not set"),
        (&[images, ("KINDLING_INVENTORY_URL", "http://user:s3cret@host")], "KINDLING_INVENTORY_URL"),
        (&[images, ("ASSISTED_SERVICE_HOST", "http://s3cret@host")], "ASSISTED_SERVICE_HOST"),
        (&[images, url, ("HTTPS_CA_FILE", "missing.pem")], "missing.pem"),
        (&[images, url, ("ASSISTED_SERVICE_API_TRUSTED_CA_FILE", "missing.pem")], "missing.pem"),
        (&[images, url, ("OS_IMAGES_REQUEST_HEADERS", "s3cret")], "OS_IMAGES_REQUEST_HEADERS"),
        (&[images, url, ("OS_IMAGES_REQUEST_HEADERS", r#"{"a b": "s3cret"}"#)], "a b"),
        (
            &[images, url, ("OS_IMAGES_REQUEST_QUERY_PARAMS", r#"["s3cret"]"#)],
            "OS_IMAGES_REQUEST_QUERY_PARAMS",
        ),
    ] {
        let run = scratch.command(["serve", "--listen", "127.0.0.1:0"]);
        let output = variables.iter().fold(run, |run, (name, value)| run.env(name, value)).run();
        output.expect_failure(phrase);
        assert!(!output.stderr.contains("s3cret"), "{}", output.stderr);
    }
    for (name, value) in
        [("ASSISTED_SERVICE_SCHEME", "ftp"), ("LOGLEVEL", "loud"), ("MYAPP_LOGLEVEL", "loud")]
    {
        let output = scratch.command(["serve"]).env(name, value).run();
        output.expect_usage_error(&format!("the value comes from the variable {name}\n"));
    }
    scratch
        .command(["serve"])
        .env("LOGLEVEL", "loud")
        .env("LOG_LEVEL", "info")
        .env("DB_PORT", "x")
        .run()
        .expect_usage_error("DB_PORT");
}
