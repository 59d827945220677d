//! `kindling serve` with a small base image, its API and the page.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use fixtures::{Architecture, Era, Recipe};
use reqwest::{Client, Method, Response};
use serde_json::{Value, json};

use crate::support::Scratch;

pub(crate) const API: &str = "/api/assisted-install/v2";
pub(crate) const PULL_SECRET: &str = r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#;
/// The version of the base image.
pub(crate) const VERSION: &str = "417.94.202412010000-0";

/// A service for one test.
pub(crate) struct PageService {
    child: Child,
    /// The service's addresses, in the order of its options.
    pub(crate) urls: Vec<String>,
    pub(crate) client: Client,
    pub(crate) token: Option<String>,
    pub(crate) scratch: Scratch,
}

impl PageService {
    /// Starts a service, and waits until its base image is ready.
    pub(crate) async fn start() -> Self {
        Self::start_with_options(Scratch::new(), small_recipe(), &["--listen", "127.0.0.1:0"]).await
    }

    pub(crate) async fn start_with_options(scratch: Scratch, recipe: Recipe, options: &[&str]) -> Self {
        let base = scratch.path("base.iso");
        recipe.write_to(&base).unwrap();
        let service = Self::spawn(scratch, &file_url(&base), options);
        service.wait_until_ready().await;
        service
    }

    /// Starts a service with one base image from a URL.
    pub(crate) fn spawn(scratch: Scratch, url: &str, options: &[&str]) -> Self {
        let images = json!([{
            "openshift_version": "4.17", "cpu_architecture": "x86_64", "version": VERSION, "url": url,
        }]);
        Self::spawn_with_images(scratch, &images.to_string(), options)
    }

    /// Starts a service with the base images of a list. An empty text means no list.
    pub(crate) fn spawn_with_images(scratch: Scratch, images: &str, options: &[&str]) -> Self {
        let run = scratch.command(["serve"].iter().chain(options)).env("OS_IMAGES", images);
        let mut command = run.command();
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let listeners = options.iter().filter(|option| option.starts_with("--listen")).count();
        let urls = lines.map(|line| line.strip_prefix("listening on ").unwrap().to_owned());
        let urls: Vec<String> = urls.take(listeners).collect();
        assert_eq!(urls.len(), listeners, "the service does not start");
        // Other tests verify certificates.
        let client = Client::builder().no_proxy().danger_accept_invalid_certs(true).build().unwrap();
        Self { child, urls, client, token: None, scratch }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.urls[0])
    }

    pub(crate) async fn wait_until_ready(&self) {
        let start = std::time::Instant::now();
        while self.get("/health").await.status() != 200 {
            assert!(start.elapsed() < crate::browser::PATIENCE, "the base image does not become ready");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.client.get(self.url(path)).send().await.unwrap()
    }

    /// Returns the body of a successful API response.
    pub(crate) async fn api_json(&self, method: Method, path: &str, body: &Value) -> Value {
        let mut request = self.client.request(method, self.url(&format!("{API}{path}"))).json(body);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert!(status.is_success(), "{status}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) async fn infra_envs(&self) -> Vec<Value> {
        self.api_json(Method::GET, "/infra-envs", &json!(null)).await.as_array().unwrap().clone()
    }

    /// Creates an infra-env with a static network for one host, and returns the infra-env.
    pub(crate) async fn create_infra_env(&self, name: &str) -> Value {
        let body = json!({
            "name": name, "pull_secret": PULL_SECRET, "openshift_version": "4.17",
            "kernel_arguments": [{"operation": "append", "value": "console=ttyS0"}],
            "static_network_config": [{
                "network_yaml": NMSTATE,
                "mac_interface_map": [{"mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0"}],
            }],
        });
        self.api_json(Method::POST, "/infra-envs", &body).await
    }
}

impl PageService {
    /// Registers a host in an infra-env, without a report about its hardware.
    pub(crate) async fn register_host(&self, infra_env: &Value, host: &str) {
        let path = format!("/infra-envs/{}/hosts", infra_env["id"].as_str().unwrap());
        self.api_json(Method::POST, &path, &json!({"host_id": host})).await;
    }

    /// Sends an inventory report of a host.
    pub(crate) async fn report_hardware(&self, infra_env: &Value, host: &str, report: &Value) {
        let id = infra_env["id"].as_str().unwrap();
        let reply = json!({"step_type": "inventory", "step_id": "1", "output": report.to_string()});
        let url = self.url(&format!("{API}/infra-envs/{id}/hosts/{host}/instructions"));
        assert_eq!(self.client.post(url).json(&reply).send().await.unwrap().status(), 204);
    }

    pub(crate) async fn hosts(&self, infra_env: &Value) -> Vec<Value> {
        let path = format!("/infra-envs/{}/hosts", infra_env["id"].as_str().unwrap());
        self.api_json(Method::GET, &path, &json!(null)).await.as_array().unwrap().clone()
    }
}

/// Returns the inventory report of a host with a small disk.
pub(crate) fn hardware(name: &str) -> Value {
    let disk = |name: &str, gigabytes: u64| {
        json!({
            "id": format!("/dev/disk/by-id/wwn-{name}"), "by_id": format!("/dev/disk/by-id/wwn-{name}"), "name": name,
            "path": format!("/dev/{name}"), "drive_type": "SSD", "size_bytes": gigabytes * 1_000_000_000,
            "vendor": "ATA", "model": "DataStore 5", "serial": format!("S-{name}"),
            "installation_eligibility": {"eligible": true, "not_eligible_reasons": []},
        })
    };
    json!({
        "hostname": name,
        "cpu": {"count": 16, "architecture": "x86_64", "model_name": "Example CPU 7", "flags": []},
        "memory": {"physical_bytes": 64_u64 << 30, "usable_bytes": 63_u64 << 30},
        "disks": [disk("sda", 480), disk("sdb", 20)],
        "interfaces": [
            {
                "name": "eth0", "mac_address": "52:54:00:00:00:01", "has_carrier": true, "speed_mbps": 25_000,
                "vendor": "Example", "product": "NetCard 2", "mtu": 1500, "flags": [],
                "ipv4_addresses": ["192.0.2.7/24"], "ipv6_addresses": ["2001:db8::7/64"],
            },
            {
                "name": "eth1", "mac_address": "52:54:00:00:00:02", "has_carrier": false, "speed_mbps": -1,
                "mtu": 1500, "flags": [], "ipv4_addresses": [], "ipv6_addresses": [],
            },
        ],
        "routes": [{"interface": "eth0", "gateway": "192.0.2.1", "destination": "0.0.0.0", "family": 2, "metric": 100}],
        "system_vendor": {"manufacturer": "Example", "product_name": "Blade 3", "serial_number": "SN-0042"},
        "bmc_address": "198.51.100.9", "bmc_v6address": "::/0", "boot": {"current_boot_mode": "uefi"},
    })
}

impl Drop for PageService {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn small_recipe() -> Recipe {
    Recipe::new(Architecture::X86_64, Era::E2024_12)
}

pub(crate) fn file_url(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// A valid network document with a VLAN that causes a warning.
pub(crate) const NMSTATE: &str = "\
interfaces:
- name: eth0
  type: ethernet
  state: up
  ipv4:
    enabled: true
    address:
    - ip: 192.0.2.10
      prefix-length: 24
- name: eth0.0
  type: vlan
  state: up
  vlan:
    base-iface: eth0
    id: 0
";
