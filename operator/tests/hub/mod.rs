//! A Kubernetes hub for tests: etcd, kube-apiserver and kube-controller-manager. Each test program starts one hub.
//!
//! The variable `KINDLING_HUB` is the path of the folder with the programs. `.ci/hub` builds them and prints the path.
//! If the variable is not set, tests print a notice and are skipped; with `KINDLING_REQUIRE_TOOLS=1`, they fail
//! instead. If the variable is empty, tests are always skipped.
//!
//! Tests share the hub and run concurrently. So each test needs its own namespace, and a test that counts requests
//! needs its own user.

#![allow(dead_code, reason = "no test program needs all of it")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod audit;
mod certificates;
mod connection;
mod faults;
mod processes;
mod proxy;
#[path = "../../../tests/support/skip.rs"]
mod skip;
mod start;
mod users;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{env, fs};

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};

#[allow(unused_imports, reason = "no test program needs all of it")]
pub(crate) use self::{
    audit::{AuditEntry, AuditMark},
    faults::{Fault, Rule, RuleCounts, RuleId, is_watch},
    proxy::{FaultProxy, HeldResponse, ProxiedRequest},
};

use self::certificates::Certificates;
use self::connection::Connection;
use self::start::RunningHub;

/// Maximum time until the server serves a new kind.
const CRD_LIMIT: Duration = Duration::from_secs(60);

/// The hub that all tests of this program share. Its programs end with this process.
static SHARED: OnceCell<Hub> = OnceCell::const_new();

/// A running hub.
#[derive(Debug)]
pub(crate) struct Hub {
    programs: PathBuf,
    running: RunningHub,
    /// The next unused number for unique names.
    next: AtomicUsize,
    next_user: AtomicUsize,
}

/// A user with a static token, initially without rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HubUser {
    pub(crate) name: String,
    pub(crate) token: String,
}

impl Hub {
    /// Returns the hub of this test program. The first call starts it. If `KINDLING_HUB` is not set, prints a notice
    /// and returns `None`; with `KINDLING_REQUIRE_TOOLS=1`, fails instead.
    pub(crate) async fn shared() -> Option<&'static Self> {
        let Some(programs) = env::var_os("KINDLING_HUB") else {
            skip::report_missing("KINDLING_HUB is not set; .ci/hub builds the programs of a Kubernetes hub");
            return None;
        };
        if programs.is_empty() {
            skip::report_skipped("KINDLING_HUB is empty; .ci/hub builds the programs of a Kubernetes hub");
            return None;
        }
        Some(SHARED.get_or_init(|| Self::start(PathBuf::from(programs))).await)
    }

    /// Starts a hub. `programs` is the folder with its programs.
    pub(crate) async fn start(programs: PathBuf) -> Self {
        let running = start::start(&programs).await;
        Self { programs, running, next: AtomicUsize::new(0), next_user: AtomicUsize::new(0) }
    }

    /// Returns the URL of the API server.
    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.running.address)
    }

    /// Returns a client for a user of the group `system:masters`, bound to the current runtime.
    pub(crate) fn admin(&self) -> kube::Client {
        self.client_of_user("admin")
    }

    /// Returns a client for a user with a static token: `admin`, `assisted` or a user of [`Hub::new_user`].
    pub(crate) fn client_of_user(&self, user: &str) -> kube::Client {
        self.client_to(&self.url(), &users::token_of(user))
    }

    /// Returns a client with a token, for the server or proxy at `url`.
    pub(crate) fn client_to(&self, url: &str, token: &str) -> kube::Client {
        self.connection(url, token).client()
    }

    /// Returns the token of the user `admin` or `assisted`.
    pub(crate) fn token_of_user(&self, user: &str) -> String {
        users::token_of(user)
    }

    /// Returns a user that no other test uses.
    pub(crate) fn new_user(&self) -> HubUser {
        let number = self.next_user.fetch_add(1, Ordering::Relaxed);
        assert!(number < users::NUMBERED_USERS, "all users are taken");
        let name = format!("user-{number}");
        HubUser { token: users::token_of(&name), name }
    }

    /// Binds a user to the role `cluster-admin`.
    pub(crate) async fn allow_everything(&self, user: &str) {
        let name = format!("everything-{user}");
        let group = "rbac.authorization.k8s.io";
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
        });
        let bindings: Api<ClusterRoleBinding> = Api::all(self.admin());
        bindings.patch(&name, &PatchParams::apply("hub").force(), &Patch::Apply(binding)).await.unwrap();
    }

    /// Returns a token for a service account. Creates the account if it does not exist.
    pub(crate) async fn token_of_service_account(&self, namespace: &str, name: &str) -> String {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.admin(), namespace);
        let account = ServiceAccount { metadata: named(name), ..ServiceAccount::default() };
        match accounts.create(&PostParams::default(), &account).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => panic!("{error}"),
        }
        let request: TokenRequest =
            serde_json::from_value(json!({"spec": {"audiences": [], "expirationSeconds": 3600}})).unwrap();
        let response = accounts.create_token_request(name, &PostParams::default(), &request).await.unwrap();
        let response = serde_json::to_value(response).unwrap();
        response["status"]["token"].as_str().unwrap().to_owned()
    }

    /// Returns a client for a service account. Creates the account if it does not exist.
    pub(crate) async fn client_of_service_account(&self, namespace: &str, name: &str) -> kube::Client {
        self.client_to(&self.url(), &self.token_of_service_account(namespace, name).await)
    }

    /// Writes a kubeconfig with a token, for the server or proxy at `url`.
    pub(crate) fn kubeconfig(&self, url: &str, token: &str) -> PathBuf {
        let path = self.folder().join(format!("{}.kubeconfig", self.next_number()));
        let text = self.connection(url, token).kubeconfig(&self.folder().join("ca.pem"), "default");
        fs::write(&path, text).unwrap();
        path
    }

    /// Creates a namespace with a unique name that begins with `prefix`. Returns the name.
    pub(crate) async fn namespace(&self, prefix: &str) -> String {
        let name = format!("{prefix}-{}", self.next_number());
        let namespace = Namespace { metadata: named(&name), ..Namespace::default() };
        Api::all(self.admin()).create(&PostParams::default(), &namespace).await.unwrap();
        name
    }

    /// Creates or updates the CRDs of a YAML text. Waits until the server serves their kinds.
    pub(crate) async fn install_crds(&self, yaml: &str) {
        let crds: Api<CustomResourceDefinition> = Api::all(self.admin());
        let documents = serde_yaml_ng::Deserializer::from_str(yaml)
            .map(|document| serde_json::Value::deserialize(document).unwrap());
        let mut names = Vec::new();
        for document in documents.filter(|document| !document.is_null()) {
            let name = document["metadata"]["name"].as_str().unwrap().to_owned();
            let params = PatchParams::apply("hub").force();
            crds.patch(&name, &params, &Patch::Apply(document)).await.unwrap();
            names.push(name);
        }
        for name in names {
            self.wait_for_crd(&crds, &name).await;
        }
    }

    async fn wait_for_crd(&self, crds: &Api<CustomResourceDefinition>, name: &str) {
        let deadline = Instant::now() + CRD_LIMIT;
        loop {
            let crd = crds.get(name).await.unwrap();
            if is_established(&crd) && self.serves(&crd).await {
                return;
            }
            assert!(Instant::now() < deadline, "{name} is not established: {:#?}", crd.status);
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Returns `true` if the server can list the objects of a CRD in all versions.
    async fn serves(&self, crd: &CustomResourceDefinition) -> bool {
        let admin = self.admin();
        for version in crd.spec.versions.iter().filter(|version| version.served) {
            let path = format!("/apis/{}/{}/{}", crd.spec.group, version.name, crd.spec.names.plural);
            let request = http::Request::get(path).body(Vec::new()).unwrap();
            if admin.request_text(request).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Creates or updates the objects of a YAML text with `kubectl apply --server-side`, as the admin.
    pub(crate) async fn apply(&self, yaml: &str) {
        let output = self
            .run_kubectl(&["apply", "--server-side", "--force-conflicts", "--filename=-"], yaml.as_bytes())
            .await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Runs `kubectl` as the admin, and returns its standard output. Panics if the command fails.
    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.run_kubectl(arguments, &[]).await;
        assert!(
            output.status.success(),
            "kubectl {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs `kubectl` as the admin, with an input. A `--kubeconfig` in `arguments` takes precedence.
    pub(crate) async fn run_kubectl(&self, arguments: &[&str], input: &[u8]) -> Output {
        let admin = self.kubeconfig(&self.url(), &users::token_of("admin"));
        let mut child = Command::new(self.programs.join("kubectl"))
            .env("KUBECONFIG", admin)
            .env("HOME", self.folder())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // kubectl may exit before it reads the input. Its exit status then reports the failure.
        let write = async move {
            let _ = pipe.write_all(input).await;
        };
        tokio::join!(write, child.wait_with_output()).1.unwrap()
    }

    /// Starts a fault proxy in front of the API server.
    pub(crate) fn fault_proxy(&'static self) -> FaultProxy {
        FaultProxy::start(self)
    }

    /// Returns the folder with `kubectl` and the programs of the hub.
    pub(crate) fn programs(&self) -> &Path {
        &self.programs
    }

    /// Returns the process ids of the shells that guard the programs of the hub.
    pub(crate) fn guards(&self) -> Vec<u32> {
        self.running.programs.iter().map(processes::Program::guard_id).collect()
    }

    /// Returns the folder with data and logs. It is removed together with the hub.
    pub(crate) fn folder(&self) -> &Path {
        &self.running.folder
    }

    fn connection(&self, url: &str, token: &str) -> Connection {
        Connection {
            server: url.to_owned(),
            authority: self.running.certificates.authority.clone(),
            token: token.to_owned(),
        }
    }

    fn next_number(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn address(&self) -> SocketAddr {
        self.running.address
    }

    fn certificates(&self) -> &Certificates {
        &self.running.certificates
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

fn is_established(crd: &CustomResourceDefinition) -> bool {
    let conditions = crd.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Established" && condition.status == "True")
}
