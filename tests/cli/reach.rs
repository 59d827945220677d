//! The URL in an image must be reachable from another machine. A second machine, in its own network namespace,
//! downloads an image from `kindling serve`, reads the URL of the service in it, and registers a host there.
//!
//! If that URL is a loopback address, the machine cannot reach it, and the server, the API and the commands report
//! this.

use std::process::{self, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fixtures::{Architecture, Era};
use serde_json::{Value, json};

use crate::serve::{PATIENCE, ServeProcess, make_keys, make_token};
use crate::support::{KINDLING, Scratch, fixture, report_missing, require_tool};

const SERVICE: &str = "http://192.0.2.1:8090";
const LOOPBACK: &str = "http://127.0.0.1:8090";
const PULL_SECRET: &str = r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#;

/// Two machines on one network cable: two network namespaces with a pair of virtual interfaces.
struct Machines {
    server: String,
    client: String,
}

impl Machines {
    /// Returns `None`, with a notice, if this process may not create network namespaces.
    fn connect() -> Option<Self> {
        require_tool("ip")?;
        require_tool("curl")?;
        let name = |role| format!("kindling-{}-{role}-{:?}", process::id(), thread::current().id());
        let name = |role| name(role).replace(|it: char| !it.is_ascii_alphanumeric() && it != '-', "");
        let machines = Self { server: name("server"), client: name("client") };
        let Self { server, client } = &machines;
        if !ip(&format!("netns add {server}")) || !ip(&format!("netns add {client}")) {
            report_missing("permission to create network namespaces is not available");
            return None;
        }
        for line in [
            format!("-n {server} link add cable type veth peer name cable netns {client}"),
            format!("-n {server} address add 192.0.2.1/24 dev cable"),
            format!("-n {client} address add 192.0.2.2/24 dev cable"),
        ] {
            assert!(ip(&line), "{line}");
        }
        for machine in [server, client] {
            assert!(
                ip(&format!("-n {machine} link set lo up")) && ip(&format!("-n {machine} link set cable up"))
            );
        }
        Some(machines)
    }

    fn start_server(&self, scratch: &Scratch, options: &str) -> ServeProcess {
        let images = json!([{
            "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.94.1",
            "url": format!("file://{}", scratch.path("base.iso").display()),
        }]);
        let mut command = command_in(&self.server, scratch, KINDLING);
        command.args(["serve", "--auth-type", "local", "--ec-private-key-file", "keys/ec-private-key.pem"]);
        command.args(options.split(' ')).env("OS_IMAGES", images.to_string());
        ServeProcess::spawn(command, 1)
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        ip(&format!("netns delete {}", self.server));
        ip(&format!("netns delete {}", self.client));
    }
}

/// Runs `ip`. Returns `true` if it succeeds.
fn ip(line: &str) -> bool {
    Command::new("ip").args(line.split(' ')).stderr(Stdio::null()).status().unwrap().success()
}

fn command_in(namespace: &str, scratch: &Scratch, program: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, program]).current_dir(scratch.folder());
    command
}

/// The second machine, with the credentials of a user.
struct SecondMachine<'a> {
    namespace: &'a str,
    scratch: &'a Scratch,
    token: String,
}

impl SecondMachine<'_> {
    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        command_in(self.namespace, self.scratch, program).args(arguments).output().unwrap()
    }

    /// Runs curl. Returns its exit code and the body.
    fn curl(&self, arguments: &[&str]) -> (Option<i32>, Vec<u8>) {
        let authorization = format!("Authorization: Bearer {}", self.token);
        let always = ["--silent", "--fail", "--noproxy", "*", "--header", &authorization];
        let output = self.run("curl", &[&always[..], arguments].concat());
        (output.status.code(), output.stdout)
    }

    fn api(&self, path: &str, more: &[&str]) -> Value {
        let url = format!("{SERVICE}/api/assisted-install/v2{path}");
        let (code, body) = self.curl(&[&[url.as_str()], more].concat());
        assert_eq!(code, Some(0), "{path}");
        serde_json::from_slice(&body).unwrap()
    }

    fn create_infra_env(&self) -> Value {
        let body = json!({"name": "rack", "pull_secret": PULL_SECRET, "openshift_version": "4.18"});
        self.api("/infra-envs", &["--json", &body.to_string()])
    }

    /// Downloads the image of an infra-env. Returns the URL of the service in the image.
    fn service_url_in_image(&self, infra_env: &Value) -> String {
        let url = infra_env["download_url"].as_str().unwrap();
        let (code, _) = self.curl(&["--output", "full.iso", url]);
        assert_eq!(code, Some(0), "{url}");
        let report = self.scratch.run_kindling("iso inspect --json full.iso").expect_text();
        let report: Value = serde_json::from_str(&report).unwrap();
        let service_url = report["service_url"].as_str().unwrap().to_owned();
        let text = self.scratch.run_kindling("iso inspect full.iso").expect_text();
        assert!(text.contains(&format!("\nService:       {service_url}\n")), "{text}");
        service_url
    }

    /// Returns the finding of `kindling doctor` about the URL of the service, and the exit code.
    fn doctor_finding(&self, infra_env: &Value) -> (Value, Option<i32>) {
        let url = infra_env["download_url"].as_str().unwrap();
        let output = self.run(KINDLING, &["doctor", "--client", "download", "--json", url]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut findings = report["findings"].as_array().unwrap().iter();
        let finding = findings.find(|finding| finding["check"] == "service-url");
        (finding.unwrap_or(&Value::Null).clone(), output.status.code())
    }

    fn simulation(&self, url: &str, infra_env: &Value) -> Command {
        let id = infra_env["id"].as_str().unwrap();
        let token = make_token(self.scratch, &format!("--infra-env {id}"));
        let mut command = command_in(self.namespace, self.scratch, KINDLING);
        command.args(["simulate", "--url", url, "--infra-env", id, "--token", &token, "--hosts", "1"]);
        command.args(["--poll-interval", "200ms"]).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

/// Creates a folder with a base image and the keys of the service.
fn scratch_with_keys() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("base.iso", &fixture(Architecture::X86_64, Era::E2024_12).bytes);
    make_keys(&scratch);
    scratch
}

#[test]
fn second_machine_registers_at_the_url_in_its_image() {
    let Some(machines) = Machines::connect() else { return };
    let scratch = scratch_with_keys();
    let server = machines.start_server(&scratch, "--listen 192.0.2.1:8090");
    let token = make_token(&scratch, "--user");
    let machine = SecondMachine { namespace: &machines.client, scratch: &scratch, token };
    let infra_env = machine.create_infra_env();
    let url = machine.service_url_in_image(&infra_env);
    assert_eq!(url, SERVICE);
    let mut simulation = machine.simulation(&url, &infra_env).spawn().unwrap();
    let hosts = format!("/infra-envs/{}/hosts", infra_env["id"].as_str().unwrap());
    let start = Instant::now();
    while machine.api(&hosts, &[]).as_array().unwrap().is_empty() {
        assert!(start.elapsed() < PATIENCE, "the host does not register");
        thread::sleep(Duration::from_millis(100));
    }
    simulation.kill().unwrap();
    simulation.wait().unwrap();
    let preflight = machine.api(&format!("/infra-envs/{}/preflight", infra_env["id"].as_str().unwrap()), &[]);
    assert_eq!(preflight["addresses"], json!([]));
    let (finding, code) = machine.doctor_finding(&infra_env);
    assert_eq!((&finding["outcome"], &finding["detail"], code), (&json!("holds"), &json!(SERVICE), Some(0)));
    let log = server.stop();
    assert!(
        !log.contains("other machines cannot reach")
            && log.contains("base URL is the URL of the first listener"),
        "{log}"
    );
}

#[test]
fn loopback_url_in_an_image_is_reported_everywhere() {
    let Some(machines) = Machines::connect() else { return };
    let scratch = scratch_with_keys();
    let options =
        format!("--listen 192.0.2.1:8090 --service-base-url {LOOPBACK} --image-service-base-url {SERVICE}");
    let server = machines.start_server(&scratch, &options);
    let token = make_token(&scratch, "--user");
    let machine = SecondMachine { namespace: &machines.client, scratch: &scratch, token };
    let infra_env = machine.create_infra_env();
    let url = machine.service_url_in_image(&infra_env);
    assert_eq!(url, LOOPBACK);
    // The second machine connects to its own loopback address, where nothing listens.
    const CONNECTION_REFUSED: i32 = 7;
    assert_eq!(machine.curl(&[&format!("{url}/live")]).0, Some(CONNECTION_REFUSED));
    let simulation = machine.simulation(&url, &infra_env).args(["--duration", "1s"]).status().unwrap();
    assert_eq!(simulation.code(), Some(1));

    let reason =
        format!("other machines cannot reach {LOOPBACK}: its host is a loopback or unspecified address");
    let preflight = machine.api(&format!("/infra-envs/{}/preflight", infra_env["id"].as_str().unwrap()), &[]);
    let finding = &preflight["addresses"][0];
    assert_eq!((&finding["severity"], &finding["url"]), (&json!("warning"), &json!(LOOPBACK)), "{preflight}");
    assert!(finding["message"].as_str().unwrap().starts_with(&reason), "{preflight}");
    let health: Value = serde_json::from_slice(&machine.curl(&[&format!("{SERVICE}/health")]).1).unwrap();
    assert_eq!(health["addresses"], preflight["addresses"]);
    let (finding, code) = machine.doctor_finding(&infra_env);
    assert_eq!((&finding["outcome"], code), (&json!("fails"), Some(0)), "{finding}");
    assert!(finding["detail"].as_str().unwrap().starts_with(&reason), "{finding}");
    let log = server.stop();
    assert_eq!(log.matches("other machines cannot reach").count(), 1, "{log}");
    assert!(log.contains(&reason) && log.contains("set --service-base-url (SERVICE_BASE_URL)"), "{log}");
}

/// Returns the warning of a server at its start.
fn warning(options: &[&str]) -> String {
    let scratch = Scratch::new();
    let open = ["serve", "--auth-type", "none", "--allow-open-access"];
    let server = ServeProcess::spawn(scratch.command(open.iter().chain(options)).command(), 1);
    let log = server.stop();
    log.lines().filter(|line| line.contains("other machines cannot reach")).collect::<Vec<_>>().join("\n")
}

#[test]
fn server_warns_about_unreachable_base_urls() {
    let own = |options: &[&str]| warning(&[&["--listen", "127.0.0.1:0"], options].concat());
    let derived = own(&[]);
    assert!(derived.contains("http://127.0.0.1:") && derived.contains("--service-base-url"), "{derived}");
    assert!(derived.contains("--listen (KINDLING_LISTEN)"), "{derived}");
    assert_eq!(derived.lines().count(), 1, "{derived}");
    let wildcard = warning(&["--listen", "0.0.0.0:0"]);
    assert!(wildcard.contains("http://0.0.0.0:") && !wildcard.contains("KINDLING_LISTEN"), "{wildcard}");
    let socket = warning(&["--listen", "unix:socket"]);
    assert!(socket.contains("reach http://localhost: its host"), "{socket}");
    let good = "http://192.0.2.1:8090";
    assert_eq!(own(&["--service-base-url", good]), "");
    let images = own(&["--service-base-url", good, "--image-service-base-url", "http://LOCALHOST./images"]);
    assert!(images.contains("reach http://LOCALHOST./images: its host"), "{images}");
    assert!(images.contains("set --image-service-base-url (IMAGE_SERVICE_BASE_URL)"), "{images}");
    let secret = own(&["--service-base-url", "http://user:hunter2@[::ffff:127.0.0.1]:8090"]);
    assert!(
        secret.contains("reach http://*****@[::ffff:127.0.0.1]:8090: its host")
            && !secret.contains("hunter2"),
        "{secret}"
    );
}
