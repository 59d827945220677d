//! Published clients of the Assisted Installer against `kindling serve`: `aicli`, and the client generated from the
//! Assisted Service's own API document. The folder `KINDLING_CLIENTS` contains both clients and their Python.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod simulate;
#[path = "../support/mod.rs"]
mod support;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use fixtures::{Architecture, Era};
use serde_json::{Value, json};

use support::{ProgramRun, RunOutput, Scratch, fixture, require_path};

/// The verbs of `aicli` that fail because the service does not implement their operation. Remove a verb from this list
/// once it works.
const NOT_IMPLEMENTED: [&str; 11] = [
    "info service",
    "start cluster edge",
    "stop cluster edge",
    "list manifests edge",
    "create manifests --dir man edge",
    "update installconfig -P networking={} edge",
    "download ignition edge",
    "download installconfig edge",
    "download manifests edge",
    "download kubeconfig edge",
    "download kubeadmin-password edge",
];

/// More than ten times the duration of any request to a local server.
const PATIENCE: Duration = Duration::from_secs(30);
const HOST: &str = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";

/// A server with one base image and one release, and the working directory of the clients.
struct ClientSite {
    clients: PathBuf,
    scratch: Scratch,
    server: Child,
    url: String,
}

impl ClientSite {
    fn start() -> Option<Self> {
        let clients = require_path("KINDLING_CLIENTS")?;
        let scratch = Scratch::new();
        let base = scratch.write("base.iso", &fixture(Architecture::X86_64, Era::E2024_12).bytes);
        let images = json!([{
            "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.94.1",
            "url": format!("file://{}", base.display()),
        }]);
        let releases = json!([{
            "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "4.18.3",
            "url": "quay.io/openshift-release-dev/ocp-release:4.18.3-x86_64",
        }]);
        let mut command = scratch
            .command(["serve", "--listen", "127.0.0.1:0"])
            .env("OS_IMAGES", images.to_string())
            .env("RELEASE_IMAGES", releases.to_string())
            .env("LOG_LEVEL", "warn")
            .command();
        let mut server = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        scratch.write("pull-secret.json", r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#);
        // The default path of `aicli`. Some verbs need a key and do not accept it as an argument.
        std::fs::create_dir(scratch.path(".ssh")).unwrap();
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZ8SSEeQFGsUW8F0Xk3NxGWr0Y6nWn2oPkBQvIdVhjJ admin";
        scratch.write(".ssh/id_rsa.pub", key);
        Some(Self { clients, scratch, server, url })
    }

    fn run(&self, program: &str, arguments: &[&str]) -> RunOutput {
        ProgramRun::new(self.clients.join(program), self.scratch.folder())
            .env("HOME", self.scratch.folder())
            .env("KINDLING_URL", &self.url)
            .args(arguments)
            .run()
    }

    /// Runs a verb of `aicli`.
    fn run_aicli(&self, line: &str) -> RunOutput {
        let arguments: Vec<_> = ["-U", &self.url].into_iter().chain(line.split(' ')).collect();
        self.run("aicli", &arguments)
    }

    /// Runs a verb, which must succeed, and returns its output.
    #[track_caller]
    fn expect_aicli(&self, line: &str) -> String {
        let output = self.run_aicli(line);
        assert!(output.status.success(), "aicli {line}: {}{}", output.stdout_text(), output.stderr);
        output.stdout_text().to_owned()
    }

    /// Returns the status of the host in the list of hosts, which may not contain the host's name yet.
    #[track_caller]
    fn host_status(&self) -> String {
        let list = self.expect_aicli("list hosts");
        let rows: Vec<Vec<&str>> = list.lines().map(|row| row.split('|').map(str::trim).collect()).collect();
        let column = rows.iter().find_map(|row| row.iter().position(|cell| *cell == "Status")).unwrap();
        let row = rows.iter().find(|row| row.contains(&HOST)).unwrap_or_else(|| panic!("{list}"));
        row[column].to_owned()
    }

    /// Waits until the host has a status, which the service computes after reports.
    #[track_caller]
    fn wait_for_host_status(&self, expected: &str) {
        let start = Instant::now();
        while self.host_status() != expected {
            assert!(start.elapsed() < PATIENCE, "{}", self.host_status());
        }
    }

    fn infra_env_id(&self, name: &str) -> String {
        let output = self.expect_aicli(&format!("info infraenv --full {name}"));
        output
            .lines()
            .find_map(|line| line.strip_prefix("id: "))
            .unwrap_or_else(|| panic!("{output}"))
            .to_owned()
    }

    /// Starts the simulated hosts of a compact cluster.
    fn simulate(&self, infra_env: &str) -> Child {
        let line =
            format!("simulate --url {} --infra-env {infra_env} --poll-interval 200ms --json", self.url);
        let mut command = self.scratch.command(line.split(' ')).command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
    }

    /// Acts as the agent of a host: registers the host in an infra-env, and sends its inventory.
    fn boot_host(&self, infra_env: &str) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/agent.py");
        let output = self.run("python3", &[script, infra_env, HOST]);
        assert!(output.status.success(), "{}{}", output.stdout_text(), output.stderr);
    }
}

impl Drop for ClientSite {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn aicli_manages_clusters_infra_envs_and_hosts() {
    let Some(site) = ClientSite::start() else { return };
    let parameters = "-P pull_secret=pull-secret.json -P openshift_version=4.18";

    site.expect_aicli(&format!("create cluster {parameters} -P base_dns_domain=example.com edge"));
    assert!(site.expect_aicli("list clusters").contains("| pending-for-input | example.com |"));
    assert!(site.expect_aicli("list infraenvs").contains("edge_infra-env"));
    site.expect_aicli("update cluster edge -P additional_ntp_source=ntp.example.com");
    let output = site.expect_aicli("info cluster edge --full");
    assert!(output.contains("additional_ntp_source: ntp.example.com"), "{output}");
    assert!(output.contains("status_info: User input required"), "{output}");
    assert!(site.expect_aicli("list events edge").contains("Successfully registered cluster"));

    site.expect_aicli(&format!("create infraenv {parameters} lone"));
    site.expect_aicli("update infraenv lone -P additional_ntp_sources=ntp.example.com");
    assert!(site.expect_aicli("info infraenv lone").contains("type: full-iso"));
    let url = site.expect_aicli("info iso lone");
    assert!(url.contains("/x86_64/") && url.contains("/full.iso"), "{url}");
    site.expect_aicli("download iso lone");
    let inspected =
        ProgramRun::new(support::KINDLING, site.scratch.folder()).args(["iso", "verify", "lone.iso"]).run();
    assert!(inspected.status.success(), "{}", inspected.stdout_text());
    site.expect_aicli("download discovery-ignition lone");
    let validated = ProgramRun::new(support::KINDLING, site.scratch.folder())
        .args(["ignition", "validate", "discovery.ign.lone"])
        .run();
    assert!(validated.status.success(), "{}", validated.stdout_text());
    site.expect_aicli("download ipxe-script lone");

    site.boot_host("lone");
    assert!(site.expect_aicli("list hosts").contains("node-1"));
    site.expect_aicli("update host node-1 -P role=worker");
    assert!(site.expect_aicli("info host node-1").contains("role: worker"));
    site.expect_aicli("bind host node-1 edge");
    assert_eq!(site.host_status(), "binding");
    // After the binding, the host registers again.
    site.boot_host("lone");
    // The cluster has no virtual IP addresses, and so no machine network.
    site.wait_for_host_status("pending-for-input");
    site.expect_aicli("unbind host node-1");
    assert_eq!(site.host_status(), "unbinding");

    std::fs::create_dir(site.scratch.path("man")).unwrap();
    site.scratch.write("man/one.yaml", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: one\n");
    for line in NOT_IMPLEMENTED {
        let output = site.run_aicli(line);
        let text = format!("{}{}", output.stdout_text(), output.stderr);
        assert!(text.contains("is not implemented by this service yet"), "aicli {line}: {text}");
    }

    site.expect_aicli(&format!("delete host --yes {HOST}"));
    assert!(!site.expect_aicli("list hosts").contains(HOST));
    site.expect_aicli("delete infraenv --yes lone");
    site.expect_aicli("delete cluster --yes edge");
    assert!(!site.expect_aicli("list clusters").contains("edge"));
    assert!(!site.expect_aicli("list infraenvs").contains("lone"));
}

/// Parameters of a cluster whose virtual IP addresses are unused in the network of simulated hosts.
const COMPACT: &str = "
openshift_version: '4.18'
pull_secret: pull-secret.json
base_dns_domain: example.com
api_vips: [192.168.111.5]
ingress_vips: [192.168.111.6]
";

/// Returns the ids and results in a table of validations.
fn validation_rows(table: &str) -> Vec<(String, String)> {
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(1);
    let cells = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    cells.map(|cells| (cells[1].to_owned(), cells[3].to_owned())).collect()
}

#[test]
fn aicli_waits_for_clusters_and_shows_their_validations() {
    let Some(site) = ClientSite::start() else { return };
    site.scratch.write("compact.yaml", COMPACT);
    site.expect_aicli("create cluster --paramfile compact.yaml edge");
    let failed = validation_rows(&site.expect_aicli("info validation edge"));
    let failed: Vec<_> = failed.iter().map(|(id, status)| (id.as_str(), status.as_str())).collect();
    assert!(failed.contains(&("sufficient-masters-count", "failure")), "{failed:?}");
    assert!(failed.contains(&("machine-cidr-defined", "pending")), "{failed:?}");

    let mut simulation = site.simulate(&site.infra_env_id("edge_infra-env"));
    site.expect_aicli("wait hosts -n 3 edge_infra-env");
    site.expect_aicli("wait cluster --status ready edge");
    simulation.kill().unwrap();
    simulation.wait().unwrap();
    assert!(site.expect_aicli("list clusters").contains("| ready"));
    assert_eq!(validation_rows(&site.expect_aicli("info validation edge")), []);
    let all = validation_rows(&site.expect_aicli("info validation --all edge"));
    assert!(all.len() > failed.len() && all.iter().all(|(_, status)| status == "success"), "{all:?}");
    let output = site.expect_aicli("info cluster edge");
    assert!(output.contains("name: edge") && output.contains("status: ready"), "{output}");
    assert!(site.expect_aicli("info cluster edge --full").contains("validations_info: "));
    assert!(site.expect_aicli("list events edge").contains("Updated status of the cluster to ready"));
}

/// Parameters of an infra-env whose MAC addresses have no quotes, in each form that `aicli` accepts.
const NETWORKS: &str = "
static_network_config:
- interfaces:
  - name: eth0
    type: ethernet
    state: up
    mac-address: 52:54:00:00:00:01
- network_yaml: |
    interfaces:
    - name: eth0
      type: ethernet
      state: up
      mac-address: 52:54:00:00:00:02
  mac_interface_map:
  - mac_address: 52:54:00:00:00:02
    logical_nic_name: eth0
- network_yaml:
    interfaces:
    - name: eth0
      type: ethernet
      state: up
  mac_interface_map:
  - mac_address: 52:54:00:aa:bb:03
    logical_nic_name: eth0
";

#[test]
fn aicli_creates_infra_env_with_unquoted_macs() {
    let Some(site) = ClientSite::start() else { return };
    site.scratch.write("networks.yaml", NETWORKS);
    let parameters = "-P pull_secret=pull-secret.json -P openshift_version=4.18 --paramfile networks.yaml";
    site.expect_aicli(&format!("create infraenv {parameters} racks"));
    let output = site.expect_aicli("info infraenv racks");
    let config = output.lines().find_map(|line| line.strip_prefix("static_network_config: ")).unwrap();
    let hosts: Value = serde_json::from_str(config).unwrap();
    let mut macs: Vec<_> =
        hosts.as_array().unwrap().iter().map(|host| &host["mac_interface_map"][0]).collect();
    macs.sort_by_key(|entry| entry["mac_address"].to_string());
    let expected = ["52:54:00:00:00:01", "52:54:00:00:00:02", "52:54:00:aa:bb:03"]
        .map(|mac| json!({"mac_address": mac, "logical_nic_name": "eth0"}));
    assert_eq!(macs, expected.iter().collect::<Vec<_>>());
    assert!(config.contains(r#"mac-address: \"52:54:00:00:00:01\""#), "{config}");
}

#[test]
fn generated_client_manages_clusters_infra_envs_and_hosts() {
    let Some(site) = ClientSite::start() else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/generated.py");
    let output = site.run("python3", &[script, HOST]);
    assert!(output.status.success(), "{}{}", output.stdout_text(), output.stderr);
    let done: Vec<_> = output.stdout_text().lines().collect();
    assert!(done.len() > 25, "{done:?}");
}
