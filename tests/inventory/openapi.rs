//! The document that describes the API: it is the one that is committed, and the service does what it says.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use kindling::inventory::Inventory;
use serde_json::{Value, json};

use crate::agent::{Agent, machine};
use crate::service::{PULL_SECRET, Service, on_each_database};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/openapi.json")
}

#[test]
fn the_document_is_the_committed_one() {
    let document = format!("{}\n", Inventory::openapi().to_pretty_json().unwrap());
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(golden(), &document).unwrap();
    }
    let committed = fs::read_to_string(golden()).unwrap();
    assert!(document == committed, "docs/openapi.json is another document; UPDATE_GOLDEN=1 writes it anew");
}

#[test]
fn the_document_is_served_at_all_its_places() {
    on_each_database(async |service| {
        let document =
            crate::service::send(service.request_at_root(reqwest::Method::GET, "/openapi.json")).await;
        let document = document.expect(200);
        assert_eq!(document["openapi"], "3.1.0");
        for path in ["/openapi", "/v2/openapi"] {
            assert_eq!(service.get(path).await.expect(200), document);
        }
    });
}

/// Every reference of the document leads to something.
#[test]
fn the_document_is_whole() {
    let document = serde_json::to_value(Inventory::openapi()).unwrap();
    let mut pending = vec![&document];
    let mut references = 0;
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(map) => {
                if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
                    let pointer = reference.strip_prefix('#').unwrap();
                    assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
                    references += 1;
                }
                pending.extend(map.values());
            }
            _ => {}
        }
    }
    assert!(references > 50, "{references} references were looked at");
}

/// Every body has an example, and the service takes it: no refusal is about the body itself.
#[test]
fn examples_of_bodies_are_accepted() {
    let document = serde_json::to_value(Inventory::openapi()).unwrap();
    assert_eq!(document["servers"][0]["url"], "/api/assisted-install");
    on_each_database(async |service| {
        let (infra_env, cluster, host) = resources(service).await;
        let mut sent = 0;
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
                let answer = crate::service::send(service.request(method, &path).json(example)).await;
                // The state of what is there may not allow it; that is found when the body has been read.
                let states = ["does not exist", "belongs to no cluster"];
                let is_read = ![400, 422].contains(&answer.status)
                    || states.iter().any(|state| answer.text.contains(state));
                assert!(is_read, "{path} {example}: {answer:?}");
                sent += 1;
            }
        }
        assert!(sent > 15, "{sent}");
    });
}

/// Schemathesis makes requests of the document and holds the answers against it: no status 5xx, no status and no body that
/// it does not say.
#[test]
fn answers_are_those_of_the_document() {
    let Some(program) = schemathesis() else { return };
    on_each_database(async |service| {
        let configuration = tempfile::TempDir::new().unwrap();
        let file = configuration.path().join("schemathesis.toml");
        fs::write(&file, parameters(service).await).unwrap();
        let mut command = Command::new(&program);
        command
            .arg("--config-file")
            .arg(&file)
            .args(["run", &service.url("/openapi.json")])
            .args(["--url", &service.url("/api/assisted-install")])
            // These answer as the document says, which is with an error of the server.
            .args(["--exclude-tag", "not implemented"])
            .args(["--max-examples", "25", "--seed", "7", "--workers", "1", "--no-color"])
            .args(["--checks", "not_a_server_error,status_code_conformance,content_type_conformance"])
            .args(["--checks", "response_schema_conformance,unsupported_method"])
            .current_dir(configuration.path());
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    });
}

/// Ids of what is there, so that requests come as far as the operations.
async fn parameters(service: &Service) -> String {
    let (infra_env, cluster, host) = resources(service).await;
    format!("[parameters]\ninfra_env_id = {infra_env:?}\ncluster_id = {cluster:?}\nhost_id = {host:?}\n")
}

/// Makes an infra-env, a cluster and a host, and returns their ids.
async fn resources(service: &Service) -> (String, String, String) {
    let body = json!({"name": "schemathesis", "pull_secret": PULL_SECRET, "openshift_version": "4.18"});
    let infra_env = service.post("/v2/infra-envs", &body).await.expect(201);
    let cluster = service.post("/v2/clusters", &body).await.expect(201);
    let agent = Agent::of(service, infra_env["id"].as_str().unwrap());
    agent.register().await.expect(201);
    agent.reply("inventory", &machine("schemathesis")).await.expect(204);
    let id = |record: &Value| record["id"].as_str().unwrap().to_owned();
    (id(&infra_env), id(&cluster), agent.id)
}

fn schemathesis() -> Option<PathBuf> {
    let found = env::split_paths(&env::var_os("PATH").unwrap_or_default())
        .map(|directory| directory.join("schemathesis"))
        .find(|path| path.is_file());
    if found.is_none() {
        assert!(env::var_os("KINDLING_REQUIRE_TOOLS").is_none(), "schemathesis is missing");
        eprintln!("NOTICE: schemathesis is missing; answers are not compared with the document");
    }
    found
}
