//! Tests the options of `serve` that limit hosts and their reports.

use serde_json::json;

use crate::serve::{RawAnswer, ServeProcess};
use crate::support::Scratch;

const INFRA_ENVS: &str = "/api/assisted-install/v2/infra-envs";
const IMAGES: &str = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "1", "url": "file:///base.iso"}]"#;

/// A server with one infra-env.
struct LimitedServer {
    server: ServeProcess,
    hosts: String,
    _scratch: Scratch,
}

impl LimitedServer {
    fn start(options: &[&str]) -> Self {
        let scratch = Scratch::new();
        let server = ServeProcess::start(&scratch, &[("OS_IMAGES", IMAGES)], options);
        let body = r#"{"name":"demo","pull_secret":"{\"auths\":{\"quay.io\":{\"auth\":\"dXNlcjpwYXNz\"}}}"}"#;
        let created = post_json(&server, INFRA_ENVS, body);
        assert_eq!(created.status, 201, "{created:?}");
        let hosts = format!("{INFRA_ENVS}/{}/hosts", created.json()["id"].as_str().unwrap());
        Self { server, hosts, _scratch: scratch }
    }

    /// Registers host `number`, and returns the status of the response.
    fn register(&self, number: u32) -> u16 {
        let body = json!({"host_id": id(number), "discovery_agent_version": "1"}).to_string();
        post_json(&self.server, &self.hosts, &body).status
    }

    /// Sends an inventory report that contains a text of `len` bytes, and returns the status of the response.
    fn report(&self, number: u32, len: usize) -> u16 {
        let report = json!({"hostname": "a", "system_vendor": {"manufacturer": "x".repeat(len)}}).to_string();
        let body =
            json!({"step_type": "inventory", "step_id": "inventory-1", "exit_code": 0, "output": report});
        let path = format!("{}/{}/instructions", self.hosts, id(number));
        post_json(&self.server, &path, &body.to_string()).status
    }
}

fn post_json(server: &ServeProcess, path: &str, body: &str) -> RawAnswer {
    let headers = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
    server.request_with_body(&format!("POST {path}"), &headers, body)
}

fn id(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

#[test]
fn rejects_more_hosts_and_longer_reports_than_the_options_allow() {
    let limited = LimitedServer::start(&["--max-infra-env-hosts", "1", "--max-report-bytes", "65536"]);
    assert_eq!(limited.register(1), 201);
    assert_eq!(limited.register(1), 201, "the same host");
    assert_eq!(limited.register(2), 413);
    assert_eq!(limited.report(1, 60_000), 204);
    assert_eq!(limited.report(1, 70_000), 413);
}

#[test]
fn rejects_more_reports_than_the_options_allow() {
    const LEN: usize = 60_000;
    let limited = LimitedServer::start(&["--max-infra-env-bytes", "1048576"]);
    let stored =
        (1..100).take_while(|number| limited.register(*number) == 201 && limited.report(*number, LEN) == 204);
    let stored = stored.count();
    assert!((10..=(1 << 20) / LEN).contains(&stored), "{stored}");
}
