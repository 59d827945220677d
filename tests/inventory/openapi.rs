//! The API document: it matches the committed file, and the service behaves as documented.

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::{Value, json};

use crate::agent::{FakeAgent, inventory_report};
use crate::schemathesis::check_responses;
use crate::service::{PULL_SECRET, TestService, on_each_database};

fn golden_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/openapi.json")
}

#[test]
fn api_document_matches_the_committed_file() {
    let document = format!("{}\n", kindling::http::openapi().to_pretty_json().unwrap());
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(golden_path(), &document).unwrap();
    }
    let committed = fs::read_to_string(golden_path()).unwrap();
    assert!(document == committed, "docs/openapi.json differs; UPDATE_GOLDEN=1 rewrites it");
}

#[test]
fn api_document_is_served_at_all_its_paths() {
    on_each_database(async |service| {
        let document =
            crate::service::send_request(service.request_at_root(reqwest::Method::GET, "/openapi.json"))
                .await;
        let document = document.json_with_status(200);
        assert_eq!(document["openapi"], "3.1.0");
        for path in ["/openapi", "/v2/openapi"] {
            assert_eq!(service.get(path).await.json_with_status(200), document);
        }
    });
}

/// Every reference in the document has a target.
#[test]
fn api_document_is_complete() {
    let document = serde_json::to_value(kindling::http::openapi()).unwrap();
    let mut pending = vec![&document];
    let mut references = 0;
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(map) => {
                if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
                    let pointer = reference.strip_prefix('#').unwrap();
                    assert!(document.pointer(pointer).is_some(), "{reference} has no target");
                    references += 1;
                }
                pending.extend(map.values());
            }
            _ => {}
        }
    }
    assert!(references > 50, "{references} references were checked");
}

/// Every body has an example that the service accepts: no error is about the body.
#[test]
fn body_examples_are_accepted() {
    let document = serde_json::to_value(kindling::http::openapi()).unwrap();
    assert_eq!(document["servers"][0]["url"], "/api/assisted-install");
    on_each_database(async |service| {
        let (infra_env, cluster, host) = create_resources(service).await;
        let mut request_count = 0;
        for (path, operations) in document["paths"].as_object().unwrap() {
            let path = path.replace("{infra_env_id}", &infra_env).replace("{cluster_id}", &cluster);
            let path = path.replace("{host_id}", &host);
            for (method, operation) in operations.as_object().unwrap() {
                let bodies = operation.pointer("/requestBody/content").and_then(Value::as_object);
                for (media_type, content) in bodies.into_iter().flatten() {
                    assert!(content.get("example").is_some(), "{method} {path}: no example of {media_type}");
                }
                let Some(example) = operation.pointer("/requestBody/content/application~1json/example")
                else {
                    continue;
                };
                let method = method.to_uppercase().parse().unwrap();
                let response =
                    crate::service::send_request(service.request(method, &path).json(example)).await;
                // The state of a resource may forbid the change, which the service detects after it has read the body.
                let states = ["does not exist", "belongs to no cluster"];
                let is_read = ![400, 422].contains(&response.status)
                    || states.iter().any(|state| response.text.contains(state));
                assert!(is_read, "{path} {example}: {response:?}");
                request_count += 1;
            }
        }
        assert!(request_count > 15, "{request_count}");
    });
}

/// `tests/images/openapi.rs` checks the routes outside of the API.
#[test]
fn responses_match_the_api_document() {
    on_each_database(async |service| {
        let selection = [
            ["--include-path-regex", "^/v2/"],
            // These operations return a documented server error.
            ["--exclude-tag", "not implemented"],
            // The response of this operation has no end.
            ["--exclude-operation-id", "v2StreamChanges"],
        ];
        let (document, base) = (service.url("/openapi.json"), service.url("/api/assisted-install"));
        check_responses(&document, &base, &known_ids(service).await, selection.as_flattened()).await;
    });
}

/// Ids of existing resources, so that requests reach the operations.
async fn known_ids(service: &TestService) -> String {
    let (infra_env, cluster, host) = create_resources(service).await;
    format!("[parameters]\ninfra_env_id = {infra_env:?}\ncluster_id = {cluster:?}\nhost_id = {host:?}\n")
}

/// Creates an infra-env, a cluster and a host, and returns their ids.
async fn create_resources(service: &TestService) -> (String, String, String) {
    let body = json!({"name": "schemathesis", "pull_secret": PULL_SECRET, "openshift_version": "4.18"});
    let infra_env = service.post("/v2/infra-envs", &body).await.json_with_status(201);
    let cluster = service.post("/v2/clusters", &body).await.json_with_status(201);
    let agent = FakeAgent::new(service, infra_env["id"].as_str().unwrap());
    agent.register().await.json_with_status(201);
    agent.reply_to_step("inventory", &inventory_report("schemathesis")).await.json_with_status(204);
    let id = |record: &Value| record["id"].as_str().unwrap().to_owned();
    (id(&infra_env), id(&cluster), agent.id)
}
