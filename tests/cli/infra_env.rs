//! `kindling infra-env` against `kindling serve`, and against servers that are not the service.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::thread;

use serde_json::{Value, json};

use crate::serve::ServeProcess;
use crate::support::{CertificateAuthority, ProgramRun, RunOutput, Scratch, write_pair};

const SECRET: &str = r#"{"auths": {"quay.io": {"auth": "dXNlcjpzM2NyZXQ="}}}"#;
/// Parts of the pull secret, which outputs must not contain.
const SECRET_PARTS: [&str; 3] = ["dXNlcjpzM2NyZXQ=", "s3cret", "dXNlcjp"];
const OS_IMAGES: &str = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "1", "url": "http://127.0.0.1:1/x.iso"}]"#;
const HOST: &str = "kind: NMStateConfig
metadata: {name: node-0, namespace: edge, labels: {site: edge}}
spec:
  interfaces: [{name: eth0, macAddress: \"52:54:00:05:00:01\"}]
  config:
    interfaces:
    - {name: eth0, type: ethernet, state: up, ipv4: {enabled: true, dhcp: true}}
";
const SITE: &str = "kind: InfraEnv
metadata: {name: edge, namespace: edge}
spec:
  pullSecretRef: {name: pull-secret}
  osImageVersion: \"4.18\"
  imageType: minimal-iso
  kernelArguments: [{operation: append, value: console=ttyS0}]
  nmStateConfigLabelSelector: {matchLabels: {site: edge}}
";

/// A server, and the files of a user.
struct UserSite {
    scratch: Scratch,
    server: ServeProcess,
    url: String,
}

impl UserSite {
    fn start() -> Self {
        Self::start_with(&[])
    }

    fn start_with(options: &[&str]) -> Self {
        let scratch = Scratch::new();
        scratch.write("pull-secret.json", SECRET);
        scratch.write("host.yaml", HOST);
        let server = ServeProcess::start(&scratch, &[("OS_IMAGES", OS_IMAGES)], options);
        let url = format!("http://{}", server.addresses[0]);
        Self { scratch, server, url }
    }

    fn command(&self, line: &str) -> ProgramRun {
        self.scratch.command(format!("infra-env {line} --url {}", self.url).split(' '))
    }

    /// Runs a command, whose output must not contain any part of the pull secret.
    #[track_caller]
    fn run(&self, line: &str) -> RunOutput {
        let output = self.command(line).run();
        for part in SECRET_PARTS {
            assert!(!output.stdout_text().contains(part) && !output.stderr.contains(part), "{output:?}");
        }
        output
    }

    #[track_caller]
    fn text(&self, line: &str) -> String {
        self.run(line).expect_text()
    }

    #[track_caller]
    fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.text(line)).unwrap()
    }

    /// Creates an infra-env, and returns its id.
    #[track_caller]
    fn create(&self, options: &str) -> String {
        let text = self.text(&format!("create {options} --pull-secret pull-secret.json"));
        let id = text.strip_suffix('\n').unwrap();
        assert!(uuid::Uuid::parse_str(id).is_ok(), "{text}");
        id.to_owned()
    }
}

/// Starts a server whose responses depend on the first line of requests. It stops with the test process.
fn serve_requests(respond: impl Fn(&str, &mut TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let lines: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            respond(lines.first().unwrap(), &mut stream);
        }
    });
    url
}

fn serve_response(head: &'static str, body: impl Fn(&mut TcpStream) + Send + 'static) -> String {
    serve_requests(move |_, stream| {
        let _ = write!(stream, "HTTP/1.1 {head}\r\nConnection: close\r\n\r\n");
        body(stream);
    })
}

pub(crate) fn serve_text(head: &'static str, body: &'static str) -> String {
    serve_response(head, move |stream| {
        let _ = stream.write_all(body.as_bytes());
    })
}

#[test]
fn created_infra_env_is_listed_and_shown() {
    let site = UserSite::start();
    let empty = site.run("list");
    assert!(empty.stderr.starts_with("no infra-envs"), "{}", empty.stderr);
    assert_eq!(empty.expect_text(), "");
    assert_eq!(site.text("list --json"), "[]\n");
    let id =
        site.create("edge --openshift-version 4.18 --karg-append console=ttyS0 --image-type minimal-iso");
    let list = site.text("list");
    let lines: Vec<_> = list.lines().collect();
    assert!(lines[0].starts_with("NAME  ID ") && lines.len() == 2, "{list}");
    assert!(lines[1].starts_with(&format!("edge  {id}  4.18     x86_64  minimal-iso  2")), "{list}");
    let listed = site.json("list --json");
    let resource = site.json("show --json edge");
    assert_eq!(listed[0]["id"], id.as_str());
    assert_eq!(listed[0]["download_url"], resource["download_url"]);
    assert_eq!(resource["pull_secret_set"], true);
    assert_eq!(resource["preflight"]["network"], json!([]));
    let text = site.text(&format!("show {id}"));
    let url = resource["download_url"].as_str().unwrap();
    for line in [
        &format!("Image URL:         {url}"),
        "Kernel argument:   append console=ttyS0",
        "Findings:          1",
    ] {
        assert!(text.lines().any(|text_line| text_line == line), "{line}: {text}");
    }
    // The service listens on a loopback address.
    let finding = format!("other machines cannot reach {}", site.url);
    assert!(text.contains(&format!("\n  warning: {finding}")), "{text}");
    let message = resource["preflight"]["addresses"][0]["message"].as_str().unwrap();
    assert!(message.starts_with(&finding), "{resource}");
}

#[test]
fn reachable_infra_env_has_no_findings() {
    let site = UserSite::start_with(&["--service-base-url", "http://192.0.2.1:8090"]);
    site.create("edge");
    let text = site.text("show edge");
    assert!(text.ends_with("Findings:          none\n"), "{text}");
}

/// As in other messages, hosts are counted from 1.
#[test]
fn finding_names_the_number_of_its_host() {
    let site = UserSite::start_with(&["--service-base-url", "http://192.0.2.1:8090"]);
    let hosts = json!([{
        "network_yaml": "interfaces: [{name: eth0, type: ethernet, state: up}]",
        "mac_interface_map": [
            {"mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0"},
            {"mac_address": "52:54:00:00:00:02", "logical_nic_name": "eth7"},
        ],
    }]);
    site.scratch.write("hosts.json", hosts.to_string());
    site.create("edge --network hosts.json");
    let text = site.text("show edge");
    assert!(text.contains("\n  warning: host 1: mac_interface_map[1]"), "{text}");
    assert!(text.contains("the document has no interface eth7"), "{text}");
}

#[test]
fn json_has_all_fields_of_the_service() {
    const RESOURCE: &str = r#"{"id": "11111111-2222-4333-8444-555566667777", "new_field": [1]}"#;
    let scratch = Scratch::new();
    scratch.write("pull-secret.json", SECRET);
    let url = serve_text("200 OK", RESOURCE);
    let expected: Value = serde_json::from_str(RESOURCE).unwrap();
    let create = "infra-env create edge --pull-secret pull-secret.json --json";
    let created = scratch.run_kindling(&format!("{create} --url {url}")).expect_text();
    assert_eq!(serde_json::from_str::<Value>(&created).unwrap(), expected);
    let show = format!("infra-env show 11111111-2222-4333-8444-555566667777 --json --url {url}");
    let mut resource: Value = serde_json::from_str(&scratch.run_kindling(&show).expect_text()).unwrap();
    assert_eq!(resource.as_object_mut().unwrap().remove("preflight"), Some(expected.clone()));
    assert_eq!(resource, expected);
}

#[test]
fn created_resource_is_printed_as_json() {
    let site = UserSite::start();
    let created = site.json(
        "create edge --json --pull-secret pull-secret.json --cpu-architecture x86_64 --network host.yaml \
         --http-proxy http://192.0.2.1:3128 --ntp-source ntp.example.com",
    );
    assert_eq!(created["name"], "edge");
    assert_eq!(created["cpu_architecture"], "x86_64");
    assert_eq!(created["proxy"]["http_proxy"], "http://192.0.2.1:3128");
    assert_eq!(created["ntp_sources"], "ntp.example.com");
    let networks: Value = serde_json::from_str(created["static_network_config"].as_str().unwrap()).unwrap();
    let map = json!([{"logical_nic_name": "eth0", "mac_address": "52:54:00:05:00:01"}]);
    assert_eq!(networks[0]["mac_interface_map"], map);
    let text = site.text("show edge");
    assert!(text.contains("Static networks:   1 host\n"), "{text}");
}

#[test]
fn manifests_describe_the_infra_env() {
    let site = UserSite::start();
    let secret =
        "kind: Secret\nmetadata: {name: pull-secret, namespace: edge}\nstringData:\n  .dockerconfigjson: '";
    site.scratch.write("site/all.yaml", format!("{SITE}---\n{HOST}---\n{secret}{SECRET}'\n"));
    let id = site.text("create --manifests site").trim().to_owned();
    let resource = site.json(&format!("show --json {id}"));
    assert_eq!(resource["name"], "edge");
    assert_eq!((&resource["openshift_version"], &resource["type"]), (&json!("4.18"), &json!("minimal-iso")));
    assert!(resource["static_network_config"].as_str().unwrap().contains("52:54:00:05:00:01"));
    let kargs: Value = serde_json::from_str(resource["kernel_arguments"].as_str().unwrap()).unwrap();
    assert_eq!(kargs, json!([{"operation": "append", "value": "console=ttyS0"}]));
    // Options override manifests.
    let id = site.text("create other --manifests site --image-type full-iso").trim().to_owned();
    let resource = site.json(&format!("show --json {id}"));
    assert_eq!((&resource["name"], &resource["type"]), (&json!("other"), &json!("full-iso")));
}

#[test]
fn unused_manifest_fields_are_warnings() {
    let site = UserSite::start();
    let fields = "  clusterRef: {name: edge, namespace: edge}\n  agentLabels: {rack: a}\n  ipxeScriptType: BootOrderControl\n";
    site.scratch.write("site/all.yaml", format!("{SITE}{fields}---\n{HOST}"));
    let output = site.run("create --manifests site --pull-secret pull-secret.json");
    for (line, field, reason) in [
        (9, "clusterRef", "the hosts are not bound to a cluster"),
        (10, "agentLabels", "they are labels of Kubernetes Agents"),
        (11, "ipxeScriptType", "the URL of an iPXE script selects its type"),
    ] {
        let finding = format!("site/all.yaml:{line}: spec.{field}: warning: is not sent: {reason}");
        assert!(output.stderr.contains(&finding), "{finding}: {}", output.stderr);
    }
    output.expect_text();
}

#[test]
fn findings_prevent_the_request() {
    let site = UserSite::start();
    site.scratch.write(
        "site/all.yaml",
        format!("{SITE}---\n{}", HOST.replace("eth0, type: ethernet", "eth0, type: warp")),
    );
    let refused = site.run("create --manifests site");
    refused.expect_failure("no infra-env was created");
    assert!(refused.stderr.contains("site/all.yaml:4: spec.pullSecretRef"), "{}", refused.stderr);
    site.scratch.write("plain.yaml", "interfaces: [{name: eth0, type: ethernet, state: up}]\n");
    let refused = site.run("create edge --pull-secret pull-secret.json --network plain.yaml");
    refused.expect_failure("no infra-env was created");
    assert!(refused.stderr.contains("plain.yaml:1: error: has no MAC addresses"), "{}", refused.stderr);
    site.scratch.write("wrong.json", r#"{"auths": "dXNlcjpzM2NyZXQ="}"#);
    site.run("create edge --pull-secret wrong.json").expect_failure("no infra-env was created");
    // The service, not the command, refuses this override.
    let refused = site.run("create edge --pull-secret pull-secret.json --openshift-version 4.12");
    refused.expect_failure("cannot register infra-env: status 400");
    assert_eq!(site.text("list --json"), "[]\n");
    site.run("create --pull-secret pull-secret.json").expect_usage_error("<NAME>");
    site.run("create edge").expect_usage_error("--pull-secret");
}

#[test]
fn infra_env_is_shown_without_findings() {
    const INFRA_ENV: &str = include_str!("../../assisted/tests/recorded/infra_env.json");
    let scratch = Scratch::new();
    for (status, warning) in
        [("404 Not Found", ""), ("500 Error", "Warning: cannot check infra-env: status 500")]
    {
        let url = serve_requests(move |line, stream| {
            let (status, body) =
                if line.contains("/preflight") { (status, "broken") } else { ("200 OK", INFRA_ENV) };
            let _ = write!(stream, "HTTP/1.1 {status}\r\nConnection: close\r\n\r\n{body}");
        });
        let line = format!("infra-env show 11111111-2222-4333-8444-555566667777 --url {url}");
        let output = scratch.run_kindling(&line);
        assert!(output.stderr.starts_with(warning), "{}", output.stderr);
        assert_eq!(output.stderr.is_empty(), warning.is_empty(), "{}", output.stderr);
        let text = output.expect_text();
        assert!(text.contains("Findings:          not available from this service\n"), "{text}");
        let json = scratch.run_kindling(&format!("{line} --json")).expect_text();
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["preflight"], Value::Null);
    }
}

#[test]
fn name_of_several_infra_envs_is_refused() {
    let site = UserSite::start();
    let ids = [site.create("edge"), site.create("edge")];
    let refused = site.run("show edge");
    refused.expect_failure("2 infra-envs have the name \"edge\"");
    assert!(ids.iter().all(|id| refused.stderr.contains(id)), "{}", refused.stderr);
    site.run("hosts core").expect_failure("no infra-env has the name \"core\"");
    site.run("show 00000000-0000-4000-8000-000000000000").expect_failure("not found at http://");
}

#[test]
fn hosts_are_listed() {
    let site = UserSite::start();
    let id = site.create("edge");
    let empty = site.run("hosts edge");
    assert!(empty.stderr.starts_with("no hosts yet"), "{}", empty.stderr);
    assert_eq!(empty.expect_text(), "");
    let body = json!({"host_id": "11111111-2222-4333-8444-555566667777"}).to_string();
    let headers = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
    let line = format!("POST /api/assisted-install/v2/infra-envs/{id}/hosts");
    assert_eq!(site.server.request_with_body(&line, &headers, &body).status, 201);
    let text = site.text("hosts edge");
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("NAME") && lines[0].ends_with("STATUS INFO"), "{text}");
    assert!(
        lines[1].contains("11111111-2222-4333-8444-555566667777  discovering-unbound  auto-assign"),
        "{text}"
    );
    assert_eq!(site.json(&format!("hosts --json {id}"))[0]["status"], "discovering-unbound");
}

#[test]
fn tokens_are_required_and_not_printed() {
    let scratch = Scratch::new();
    scratch.run_kindling("auth keys --out keys").expect_success();
    let key = scratch.path("keys/ec-private-key.pem");
    let key = key.to_str().unwrap();
    let site = UserSite::start_with(&["--auth-type", "local", "--ec-private-key-file", key]);
    site.run("list").expect_failure("requires a token; set KINDLING_TOKEN to one from `kindling auth token");
    let token = scratch.run_kindling(&format!("auth token --user --ec-private-key-file {key}")).expect_text();
    let output = site.command("list --json").env("KINDLING_TOKEN", token.trim()).run();
    assert_eq!(output.expect_text(), "[]\n");
    assert_eq!(site.text(&format!("list --json --token {}", token.trim())), "[]\n");
    let refused = site.command("list").env("KINDLING_TOKEN", "s3cret.token").run();
    refused.expect_failure("refuses the token");
    assert!(!refused.stderr.contains("s3cret"), "{}", refused.stderr);
    let invalid = site.command("list").env("KINDLING_TOKEN", "s3cret\ntoken").run();
    invalid.expect_failure("invalid characters");
    assert!(!invalid.stderr.contains("s3cret"), "{}", invalid.stderr);
}

#[test]
fn errors_name_servers_that_are_not_the_service() {
    let scratch = Scratch::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let page = serve_text("200 OK\r\nContent-Type: text/html", "<html>Welcome</html>");
    let missing = serve_text("404 Not Found\r\nContent-Type: text/html", "<html>Not Found</html>");
    let object = serve_text("200 OK", r#"{"items": []}"#);
    for (url, phrase) in [
        (format!("http://{closed}"), "start the service, or select another with --url"),
        (page, "does not respond as the service does; check --url"),
        (missing, "responds with a web page, so it is not the service; check --url"),
        (object, "does not respond as the service does; check --url"),
    ] {
        for line in ["list", "list --json", "show edge"] {
            let output = scratch.run_kindling(&format!("infra-env {line} --url {url}"));
            output.expect_failure(phrase);
            assert!(output.stderr.contains(&url), "{}", output.stderr);
        }
    }
    let output = scratch.run_kindling("infra-env list --url localhost:8090");
    output.expect_failure("--url is not the URL of a server");
}

#[test]
fn status_of_a_response_decides_the_advice() {
    let scratch = Scratch::new();
    for (status, body, phrase) in [
        ("301 Moved Permanently", "<html>", "redirects to another URL; set --url to that one"),
        ("307 Temporary Redirect", "", "redirects to another URL; set --url to that one"),
        ("401 Unauthorized", "<html>", "requires a token; set KINDLING_TOKEN"),
        ("403 Forbidden", "{}", "requires a token; set KINDLING_TOKEN"),
        ("502 Bad Gateway", "<html>", "is not available; try again later"),
        ("504 Gateway Timeout", "", "is not available; try again later"),
        ("500 Error", "<html>", "responds with a web page, so it is not the service; check --url"),
        ("404 Not Found", "{}", "; check --url, and the id if the command has one"),
    ] {
        let url = serve_text(status, body);
        let output = scratch.run_kindling(&format!("infra-env list --url {url}"));
        output.expect_failure(phrase);
        assert!(output.stderr.contains(&url), "{status}: {}", output.stderr);
    }
}

#[test]
fn invalid_ca_file_is_named_with_its_option() {
    let scratch = Scratch::new();
    scratch.write("empty.pem", "");
    for (file, phrase) in
        [("nope.pem", "--ca: cannot read nope.pem"), ("empty.pem", "--ca: invalid certificates in empty.pem")]
    {
        scratch.run_kindling(&format!("infra-env list --ca {file}")).expect_failure(phrase);
    }
}

#[test]
fn untrusted_certificate_needs_its_ca() {
    let scratch = Scratch::new();
    let authority = CertificateAuthority::new();
    write_pair(&scratch, &authority.issue());
    let options =
        ["--listen-tls", "127.0.0.1:0", "--https-cert-file", "cert.pem", "--https-key-file", "key.pem"];
    let command = scratch.command(["serve"].iter().chain(&options)).env("OS_IMAGES", OS_IMAGES).command();
    let server = ServeProcess::spawn(command, 1);
    let line = format!("infra-env list --json --url https://{}", server.addresses[0]);
    scratch.run_kindling(&line).expect_failure("trust that CA with --ca");
    scratch.write("ca.pem", &authority.pem);
    assert_eq!(scratch.run_kindling(&format!("{line} --ca ca.pem")).expect_text(), "[]\n");
    assert_eq!(scratch.run_kindling(&format!("{line} --insecure")).expect_text(), "[]\n");
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let scratch = Scratch::new();
    let list =
        serve_text("200 OK", r#"[{"id": "1", "name": "a\u001b[31m\nb", "requested_hostname": "\u0007"}]"#);
    let text = scratch.run_kindling(&format!("infra-env list --url {list}")).expect_text();
    assert!(text.contains(r"a\u{1b}[31m\nb  1"), "{text}");
    let id = "11111111-2222-4333-8444-555566667777";
    let text = scratch.run_kindling(&format!("infra-env hosts {id} --url {list}")).expect_text();
    assert!(text.contains(r"\u{7}"), "{text}");
    let refusal =
        serve_text("409 Conflict", "{\"code\": \"409\", \"id\": 409, \"reason\": \"a\\u001b[31mb\"}");
    let output = scratch.run_kindling(&format!("infra-env list --url {refusal}"));
    output.expect_failure("status 409: a");
    assert!(!output.stderr.contains('\u{1b}'), "{:?}", output.stderr);
}

/// Sends hosts with reports of 40 KiB each, 200 MB in total.
fn send_many_hosts(stream: &mut TcpStream) {
    let host = |number: usize| {
        let inventory = "x".repeat(40 << 10);
        json!({"id": format!("host-{number}"), "status": "known", "inventory": inventory}).to_string()
    };
    let _ = stream.write_all(b"[");
    for number in 0..5000 {
        let start = if number == 0 { "" } else { "," };
        if stream.write_all(format!("{start}{}", host(number)).as_bytes()).is_err() {
            return;
        }
    }
    let _ = stream.write_all(b"]");
}

#[test]
fn memory_does_not_depend_on_the_reports_of_hosts() {
    let scratch = Scratch::new();
    let url = serve_response("200 OK", send_many_hosts);
    for (json, end) in [("", "host-4999  known   -     -\n"), (" --json", "\n]\n")] {
        let line = format!(
            "ulimit -d 100000 && exec \"$KINDLING\" infra-env hosts{json} 11111111-2222-4333-8444-555566667777 --url {url}"
        );
        let run = ProgramRun::new("sh", scratch.folder()).args(["-c", &line]);
        let text = run.env("KINDLING", crate::support::KINDLING).run().expect_text();
        assert!(text.ends_with(end), "{}", &text[text.len().saturating_sub(200)..]);
    }
}

#[test]
fn closed_pipe_ends_the_list_quietly() {
    let scratch = Scratch::new();
    let url = serve_response("200 OK", |stream| {
        let _ = stream.write_all(br#"[{"id": "1"}"#);
        // Sends a list without end.
        while stream.write_all(br#", {"id": "2"}"#).is_ok() {}
    });
    let run = scratch.command(["infra-env", "list", "--json", "--url", &url]);
    let mut child = run.command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    drop(stdout);
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""));
}

#[test]
fn truncated_list_is_an_error() {
    let scratch = Scratch::new();
    let url = serve_text("200 OK", r#"[{"id": "1", "name": "a"}, {"id": "#);
    scratch.run_kindling(&format!("infra-env list --url {url}")).expect_failure("the list is incomplete");
    let output = scratch.run_kindling(&format!("infra-env list --json --url {url}"));
    output.expect_failure("the list is incomplete");
    assert_eq!(output.stdout_text(), "[\n{\"id\":\"1\",\"name\":\"a\"}");
}
