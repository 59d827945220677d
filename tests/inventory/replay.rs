//! A transcript of requests with the minimal responses that clients need, which is replayed on each database.
//!
//! A path and a body may contain `{name}` for a value of an earlier response. A response must have the values of its
//! row. `<text>`, `<number>` and `<time>` match any such value. `<name>` matches any text, and stores it under this
//! name.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{PULL_SECRET, TestService, on_each_database, send_request};

struct TranscriptRow {
    description: &'static str,
    method: Method,
    path: &'static str,
    body: Value,
    status: u16,
    expected: Value,
}

#[expect(clippy::too_many_arguments, reason = "the columns of a table")]
fn transcript_row(
    description: &'static str,
    method: Method,
    path: &'static str,
    body: Value,
    status: u16,
    expected: Value,
) -> TranscriptRow {
    TranscriptRow { description, method, path, body, status, expected }
}

const HOST: &str = "7c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11";

fn cluster_rows() -> Vec<TranscriptRow> {
    vec![
        transcript_row(
            "a cluster is made with what it must have, and gets the defaults",
            Method::POST,
            "/v2/clusters",
            json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET, "base_dns_domain": "example.com"}),
            201,
            json!({
                "kind": "Cluster", "id": "<cluster>", "href": "<text>", "name": "demo", "status": "insufficient",
                "status_info": "Cluster is not ready for install", "high_availability_mode": "Full", "hyperthreading": "all",
                "cpu_architecture": "x86_64", "image_info": {"created_at": "0001-01-01T00:00:00Z"},
                "cluster_networks": [{"cidr": "10.128.0.0/14", "host_prefix": 23}],
                "service_networks": [{"cidr": "172.30.0.0/16"}], "pull_secret_set": true, "deleted_at": null,
            }),
        ),
        transcript_row(
            "it is shown",
            Method::GET,
            "/v2/clusters/{cluster}",
            Value::Null,
            200,
            json!({"id": "{cluster}", "hosts": []}),
        ),
        transcript_row(
            "it is listed",
            Method::GET,
            "/v2/clusters",
            Value::Null,
            200,
            json!([{"id": "{cluster}"}]),
        ),
        transcript_row(
            "a change returns 201",
            Method::PATCH,
            "/v2/clusters/{cluster}",
            json!({"additional_ntp_source": "ntp.example.com"}),
            201,
            json!({"additional_ntp_source": "ntp.example.com"}),
        ),
        transcript_row(
            "the defaults are listed",
            Method::GET,
            "/v2/clusters/default-config",
            Value::Null,
            200,
            json!({"cluster_network_cidr": "10.128.0.0/14", "cluster_network_host_prefix": 23, "ntp_source": "", "inactive_deletion_hours": 480}),
        ),
        transcript_row(
            "versions are listed",
            Method::GET,
            "/v2/openshift-versions",
            Value::Null,
            200,
            json!({}),
        ),
        transcript_row(
            "component versions are listed",
            Method::GET,
            "/v2/component-versions",
            Value::Null,
            200,
            json!({"versions": {"discovery-agent": "<text>"}}),
        ),
    ]
}

fn infra_env_rows() -> Vec<TranscriptRow> {
    let infra_env = json!({
        "kind": "InfraEnv", "id": "<infra_env>", "href": "<text>", "name": "demo", "type": "full-iso",
        "openshift_version": "4.18", "cluster_id": "{cluster}", "pull_secret_set": true, "proxy": {},
        "user_name": "admin", "email_domain": "Unknown", "expires_at": "0001-01-01T00:00:00.000Z",
        "created_at": "<time>", "updated_at": "<time>", "download_url": "<text>", "cpu_architecture": "x86_64",
    });
    let body = json!({"name": "demo", "pull_secret": PULL_SECRET, "openshift_version": "4.18", "cluster_id": "{cluster}"});
    vec![
        transcript_row("an infra-env is made", Method::POST, "/v2/infra-envs", body, 201, infra_env),
        transcript_row(
            "it is shown",
            Method::GET,
            "/v2/infra-envs/{infra_env}",
            Value::Null,
            200,
            json!({"id": "{infra_env}"}),
        ),
        transcript_row(
            "the infra-envs of a cluster are listed",
            Method::GET,
            "/v2/infra-envs?cluster_id={cluster}",
            Value::Null,
            200,
            json!([{"id": "{infra_env}"}]),
        ),
        transcript_row(
            "a change returns 201, and `image_type`",
            Method::PATCH,
            "/v2/infra-envs/{infra_env}",
            json!({"image_type": "minimal-iso", "kernel_arguments": [{"operation": "append", "value": "quiet"}]}),
            201,
            json!({"type": "minimal-iso", "download_url": "<image_url>", "kernel_arguments": r#"[{"operation":"append","value":"quiet"}]"#}),
        ),
        transcript_row(
            "its image has a URL",
            Method::GET,
            "/v2/infra-envs/{infra_env}/downloads/image-url",
            Value::Null,
            200,
            json!({"url": "{image_url}", "expires_at": "0001-01-01T00:00:00.000Z"}),
        ),
        transcript_row(
            "its config is downloaded",
            Method::GET,
            "/v2/infra-envs/{infra_env}/downloads/files?file_name=discovery.ign",
            Value::Null,
            200,
            json!({"ignition": {"version": "3.1.0"}}),
        ),
        transcript_row(
            "its files have URLs",
            Method::GET,
            "/v2/infra-envs/{infra_env}/downloads/files-presigned?file_name=discovery.ign",
            Value::Null,
            200,
            json!({"url": "<text>", "expires_at": "0001-01-01T00:00:00.000Z"}),
        ),
        transcript_row(
            "an unknown key is refused in the short shape",
            Method::PATCH,
            "/v2/infra-envs/{infra_env}",
            json!({"unheard": 1}),
            400,
            json!({"code": 400, "message": "<text>"}),
        ),
        transcript_row(
            "an operation refuses in the long shape",
            Method::GET,
            "/v2/infra-envs/00000000-0000-4000-8000-000000000000",
            Value::Null,
            404,
            json!({"code": "404", "href": "", "id": 404, "kind": "Error", "reason": "record not found"}),
        ),
    ]
}

#[expect(clippy::too_many_lines, reason = "the rows are a table")]
fn agent_rows() -> Vec<TranscriptRow> {
    let inventory = json!({
        "hostname": "node-1",
        "interfaces": [{"name": "eth0", "mac_address": "52:54:00:00:00:01", "ipv4_addresses": ["192.0.2.10/24"], "ipv6_addresses": []}],
        "cpu": {"count": 8, "architecture": "x86_64"},
        "memory": {"physical_bytes": 34_359_738_368_u64, "usable_bytes": 34_359_738_368_u64},
        "disks": [],
    });
    let path = "/v2/infra-envs/{infra_env}/hosts/{host}/instructions";
    vec![
        transcript_row(
            "a host registers, and gets its first steps",
            Method::POST,
            "/v2/infra-envs/{infra_env}/hosts",
            json!({"host_id": HOST, "discovery_agent_version": "quay.io/edge-infrastructure/assisted-installer-agent:latest"}),
            201,
            json!({
                "kind": "Host", "id": "<host>", "infra_env_id": "{infra_env}", "cluster_id": "{cluster}", "status": "discovering",
                "status_info": "Waiting for host to send hardware details",
                "next_step_runner_command": {"args": ["<text>"]}, "role": "auto-assign",
            }),
        ),
        transcript_row(
            "it asks what to do",
            Method::GET,
            path,
            Value::Null,
            200,
            json!({"next_instruction_seconds": 60, "instructions": [{"step_type": "inventory", "step_id": "<text>"}]}),
        ),
        transcript_row(
            "it tells what it is",
            Method::POST,
            path,
            json!({"step_type": "inventory", "step_id": "inventory-00000001", "exit_code": 0, "output": inventory.to_string(), "error": ""}),
            204,
            Value::Null,
        ),
        transcript_row(
            "it is shown",
            Method::GET,
            "/v2/infra-envs/{infra_env}/hosts/{host}",
            Value::Null,
            200,
            json!({"requested_hostname": "node-1", "checked_in_at": "<time>"}),
        ),
        transcript_row(
            "it is listed",
            Method::GET,
            "/v2/infra-envs/{infra_env}/hosts",
            Value::Null,
            200,
            json!([{"id": "{host}"}]),
        ),
        transcript_row(
            "events are listed",
            Method::GET,
            "/v2/events?infra_env_id={infra_env}",
            Value::Null,
            200,
            json!([{"name": "infra_env_registered", "severity": "info", "event_time": "<time>"}]),
        ),
        transcript_row(
            "with a machine, the infra-env stays",
            Method::DELETE,
            "/v2/infra-envs/{infra_env}",
            Value::Null,
            400,
            json!({"kind": "Error"}),
        ),
        transcript_row(
            "the machine goes",
            Method::DELETE,
            "/v2/infra-envs/{infra_env}/hosts/{host}",
            Value::Null,
            204,
            Value::Null,
        ),
        transcript_row(
            "then the infra-env",
            Method::DELETE,
            "/v2/infra-envs/{infra_env}",
            Value::Null,
            204,
            Value::Null,
        ),
        transcript_row(
            "then the cluster",
            Method::DELETE,
            "/v2/clusters/{cluster}",
            Value::Null,
            204,
            Value::Null,
        ),
    ]
}

/// Values of earlier responses, by name.
type SavedValues = BTreeMap<String, String>;

fn fill_in_values(text: &str, names: &SavedValues) -> String {
    names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

/// Compares a response with the expected values of its row, and stores the values that the row names. Returns an error
/// if the response differs.
fn compare_and_save(
    expected: &Value,
    actual: &Value,
    at: &str,
    names: &mut SavedValues,
) -> Result<(), String> {
    match (expected, actual) {
        (Value::Object(keys), Value::Object(_)) => keys.iter().try_for_each(|(key, expected)| {
            compare_and_save(expected, &actual[key], &format!("{at}.{key}"), names)
        }),
        (Value::Array(items), Value::Array(all))
            if items.len() <= all.len() && (!items.is_empty() || all.is_empty()) =>
        {
            items
                .iter()
                .zip(all)
                .try_for_each(|(expected, actual)| compare_and_save(expected, actual, at, names))
        }
        (Value::String(kind), actual) if kind.starts_with('<') => {
            match (kind.trim_matches(['<', '>']), actual) {
                ("number", Value::Number(_)) => Ok(()),
                ("text" | "time", Value::String(text)) if !text.is_empty() => Ok(()),
                (name, Value::String(text)) if !["text", "time", "number"].contains(&name) => {
                    names.insert(name.to_owned(), text.clone());
                    Ok(())
                }
                _ => Err(format!("{at} is {actual}, not a {kind}")),
            }
        }
        (Value::String(text), Value::String(actual)) if fill_in_values(text, names) == *actual => Ok(()),
        (expected, actual) if expected == actual => Ok(()),
        (expected, actual) => Err(format!("{at} is {actual}, not {expected}")),
    }
}

async fn replay_rows(service: &TestService, rows: Vec<TranscriptRow>, names: &mut SavedValues) {
    for row in rows {
        let mut request = service.request(row.method, &fill_in_values(row.path, names));
        if !row.body.is_null() {
            request = request
                .header("content-type", "application/json")
                .body(fill_in_values(&row.body.to_string(), names));
        }
        let answer = send_request(request).await;
        assert_eq!(answer.status, row.status, "{}: {}", row.description, answer.text);
        let actual = if answer.text.is_empty() { Value::Null } else { answer.json() };
        if let Err(difference) = compare_and_save(&row.expected, &actual, "the response", names) {
            panic!("{}: {difference}\n{actual:#}", row.description);
        }
    }
}

#[test]
fn responses_match_the_transcript() {
    on_each_database(async |service| {
        let mut names = SavedValues::from([("host".to_owned(), HOST.to_owned())]);
        for rows in [cluster_rows(), infra_env_rows(), agent_rows()] {
            replay_rows(service, rows, &mut names).await;
        }
    });
}
