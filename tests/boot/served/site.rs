//! `kindling serve` with a base image, and an infra-env created through its API.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::recording_proxy::RecordingProxy;
use crate::support::Scratch;

const API: &str = "/api/assisted-install/v2";
const VERSION: &str = "417.94.202412010000-0";
const PULL_SECRET: &str = r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#;

/// The server, which runs as long as the test.
pub(crate) struct ServedSite {
    child: Child,
    runtime: Runtime,
    client: Client,
    pub(crate) tap: RecordingProxy,
    pub(crate) scratch: Scratch,
    id: String,
}

impl ServedSite {
    /// Starts a site with one base image, and with one infra-env that has these properties and the processor of the
    /// image.
    pub(crate) fn start(live_image: &[u8], properties: &Value) -> Self {
        let scratch = Scratch::new();
        let base = scratch.write("base.iso", live_image);
        let architecture = properties["cpu_architecture"].as_str().unwrap_or("x86_64");
        let images = json!([{
            "openshift_version": "4.17", "cpu_architecture": architecture, "version": VERSION,
            "url": format!("file://{}", base.display()),
        }]);
        let tap = RecordingProxy::start();
        let url = tap_url("10.0.2.2", &tap, "");
        let options = ["serve", "--listen", "127.0.0.1:0", "--service-base-url", &url];
        let mut command = scratch.command(options).env("OS_IMAGES", images.to_string()).command();
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().rsplit(':').next().unwrap().parse();
        tap.set_server(port.unwrap_or_else(|_| panic!("the server does not start: {line}")));

        let runtime = Runtime::new().unwrap();
        let client = Client::builder().no_proxy().build().unwrap();
        let mut site = Self { child, runtime, client, tap, scratch, id: String::new() };
        let mut body = json!({"name": "boot", "openshift_version": "4.17", "pull_secret": PULL_SECRET});
        body.as_object_mut().unwrap().extend(properties.as_object().unwrap().clone());
        let request = site.client.post(site.url(&format!("{API}/infra-envs"))).json(&body);
        let created: Value = serde_json::from_slice(&site.send(request)).unwrap();
        created["id"].as_str().unwrap().clone_into(&mut site.id);
        site
    }

    fn url(&self, path: &str) -> String {
        tap_url("127.0.0.1", &self.tap, path)
    }

    /// Returns the URL at which QEMU reads a file of the infra-env.
    pub(crate) fn file_url(&self, file: &str) -> String {
        self.url(&format!("/i/{}/{file}", self.id))
    }

    /// Returns the URL at which machines read a file of the infra-env. It begins with the server's own base URL.
    pub(crate) fn url_for_machines(&self, file: &str) -> String {
        tap_url("10.0.2.2", &self.tap, &format!("/i/{}/{file}", self.id))
    }

    fn send(&self, request: RequestBuilder) -> Vec<u8> {
        self.runtime.block_on(async {
            let response = request.send().await.unwrap();
            let (status, bytes) = (response.status(), response.bytes().await.unwrap());
            assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&bytes));
            bytes.to_vec()
        })
    }

    pub(crate) fn infra_env_file(&self, file: &str) -> Vec<u8> {
        self.send(self.client.get(self.file_url(file)))
    }

    /// Downloads a file from the API.
    pub(crate) fn api_download(&self, what: &str) -> Vec<u8> {
        let path = format!("{API}/infra-envs/{}/downloads/{what}", self.id);
        self.send(self.client.get(self.url(&path)))
    }
}

impl Drop for ServedSite {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tap_url(host: &str, tap: &RecordingProxy, path: &str) -> String {
    format!("http://{host}:{}{path}", tap.port)
}
