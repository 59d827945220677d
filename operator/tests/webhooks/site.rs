//! A test site: a namespace, and an operator with webhooks.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use inventory::auth::Policy;
use inventory::background;
use inventory::catalogue::Catalogue;
use inventory::files::FileStore;
use inventory::store::SqlStore;
use inventory::{Clock, HttpUrl, Inventory, Settings as InventorySettings, SystemClock};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use operator::{Operator, Settings, WEBHOOK_SECRET, WebhookEndpoint, WebhookSettings};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::hub::{Hub, HubUser};

const LIMIT: Duration = Duration::from_secs(60);
pub(crate) const NAMES: [&str; 4] = ["infraenv", "agent", "nmstateconfig", "agentclassification"];

static CRDS: OnceCell<()> = OnceCell::const_new();

/// Returns the hub, with the custom resource definitions installed. Returns `None` if the hub is not available.
pub(crate) async fn hub() -> Option<&'static Hub> {
    let hub = Hub::shared().await?;
    CRDS.get_or_init(|| async { hub.install_crds(&operator::crds::to_yaml().unwrap()).await }).await;
    Some(hub)
}

/// The system time, shifted by a number of seconds.
#[derive(Debug, Default)]
pub(crate) struct ShiftedClock(AtomicI64);

impl Clock for ShiftedClock {
    fn now(&self) -> DateTime<Utc> {
        SystemClock.now() + TimeDelta::seconds(self.0.load(Ordering::Relaxed))
    }
}

impl ShiftedClock {
    pub(crate) fn shift(&self, time: TimeDelta) {
        self.0.store(time.num_seconds(), Ordering::Relaxed);
    }
}

/// A namespace with an operator and webhooks. They stop when the site is dropped.
pub(crate) struct Site {
    pub(crate) hub: &'static Hub,
    pub(crate) namespace: String,
    pub(crate) clock: Arc<ShiftedClock>,
    pub(crate) address: SocketAddr,
    user: HubUser,
    tasks: Vec<JoinHandle<()>>,
    directories: Vec<TempDir>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Site {
    /// Returns a site with configured webhooks.
    pub(crate) async fn open(hub: &'static Hub) -> Self {
        let mut site = Self::prepare(hub, TimeDelta::zero()).await;
        site.start().await;
        site
    }

    /// Returns a site whose operator has not started.
    pub(crate) async fn prepare(hub: &'static Hub, shift: TimeDelta) -> Self {
        let namespace = hub.namespace("webhooks").await;
        let user = hub.new_user();
        hub.allow_everything(&user.name).await;
        let clock = Arc::new(ShiftedClock::default());
        clock.shift(shift);
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        Self { hub, namespace, clock, address, user, tasks: Vec::new(), directories: Vec::new() }
    }

    /// Starts the operator. Waits until its webhooks are configured.
    pub(crate) async fn start(&mut self) {
        self.address = self.start_replica("one").await;
        self.wait_for_configurations(|_| true).await;
    }

    /// Starts an operator with its own inventory. Returns the address of its webhooks.
    pub(crate) async fn start_replica(&mut self, identity: &str) -> SocketAddr {
        let directory = TempDir::new().unwrap();
        let inventory = open_inventory(&directory, Arc::clone(&self.clock)).await;
        self.directories.push(directory);
        let tasks = background::run(inventory.clone(), std::future::pending());
        self.tasks.push(tokio::spawn(tasks));
        let client = self.hub.client_to(&self.hub.url(), &self.user.token);
        let mut settings = Settings::new(&self.namespace, identity);
        settings.namespaces = vec![self.namespace.clone()];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let endpoint = WebhookEndpoint::Address { host: "127.0.0.1".to_owned(), port: address.port() };
        let mut webhooks = WebhookSettings::new(listener, endpoint);
        webhooks.name_suffix = format!("-{}", self.namespace);
        webhooks.interval = Duration::from_millis(200);
        let operator = Operator::new(client, inventory, settings).with_webhooks(webhooks);
        self.tasks.push(tokio::spawn(operator.run(std::future::pending())));
        address
    }

    pub(crate) async fn secret(&self) -> Secret {
        Api::namespaced(self.hub.admin(), &self.namespace).get(WEBHOOK_SECRET).await.unwrap()
    }

    /// Returns a text of the Secret with the certificates.
    pub(crate) async fn certificate(&self, key: &str) -> String {
        String::from_utf8(self.secret().await.data.unwrap()[key].0.clone()).unwrap()
    }

    pub(crate) async fn configurations(&self) -> Vec<Option<ValidatingWebhookConfiguration>> {
        let api: Api<ValidatingWebhookConfiguration> = Api::all(self.hub.admin());
        let names = NAMES
            .map(|name| format!("{name}validators.admission.agentinstall.openshift.io-{}", self.namespace));
        futures_util::future::join_all(names.iter().map(async |name| api.get_opt(name).await.unwrap())).await
    }

    /// Waits until `is_met` is true for the CA bundles of all configurations, and the API server uses these bundles.
    pub(crate) async fn wait_for_configurations(&self, is_met: impl Fn(&str) -> bool) {
        let begin = Instant::now();
        loop {
            let configurations = self.configurations().await;
            let bundle = |configuration: &Option<ValidatingWebhookConfiguration>| {
                let webhook = configuration.as_ref()?.webhooks.as_ref()?.first()?;
                let bundle = webhook.client_config.ca_bundle.as_ref()?;
                Some(String::from_utf8(bundle.0.clone()).unwrap())
            };
            if configurations.iter().all(|it| bundle(it).is_some_and(|bundle| is_met(&bundle))) {
                break;
            }
            assert!(begin.elapsed() < LIMIT, "{configurations:#?}");
            sleep(Duration::from_millis(50)).await;
        }
        self.wait_for_reviews().await;
    }

    /// Waits until the API server sends requests to all webhooks.
    async fn wait_for_reviews(&self) {
        let begin = Instant::now();
        let objects = [
            infra_env("probe", &json!({"sshAuthorizedKey": "x"})),
            nmstate_config("probe", "52:54:00:00:00:01", 99),
            classification("probe", &json!({"labelValue": "QUERYERROR"})),
        ];
        for object in objects {
            loop {
                let error = self.dry_run(&object).await.err().unwrap_or_default();
                if error.contains(" denied the request: ") || error.contains("is invalid") {
                    break;
                }
                assert!(begin.elapsed() < LIMIT, "{object}: {error}");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }

    /// Applies an object as a dry run. Returns the output, or the error message.
    pub(crate) async fn dry_run(&self, object: &Value) -> Result<String, String> {
        self.kubectl(&["apply", "--dry-run=server", "--filename=-"], object).await
    }

    pub(crate) async fn apply(&self, object: &Value) -> Result<String, String> {
        self.kubectl(&["apply", "--filename=-"], object).await
    }

    pub(crate) async fn merge(&self, object: (&str, &str), patch: &Value) -> Result<String, String> {
        let patch = patch.to_string();
        self.kubectl(&["patch", object.0, object.1, "--type=merge", "--patch", &patch], &Value::Null).await
    }

    async fn kubectl(&self, arguments: &[&str], input: &Value) -> Result<String, String> {
        let arguments = [&["--namespace", &self.namespace][..], arguments].concat();
        let output = self.hub.run_kubectl(&arguments, input.to_string().as_bytes()).await;
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let error = text(output.stderr);
        if output.status.success() { Ok(text(output.stdout) + &error) } else { Err(error) }
    }
}

async fn open_inventory(directory: &TempDir, clock: Arc<ShiftedClock>) -> Inventory {
    let store = SqlStore::open_file(&directory.path().join("inventory.db")).await.unwrap();
    let files = FileStore::in_directory(&directory.path().join("files")).unwrap();
    let url = HttpUrl::parse("url", "http://192.0.2.1").unwrap();
    let images = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.1",
        "url": "http://192.0.2.1/a.iso"}]"#;
    let catalogue = Catalogue::parse(images).unwrap();
    let mut settings = InventorySettings::new(url.clone(), url);
    settings.clock = clock;
    Inventory::new(Arc::new(store), files, catalogue, settings, Policy::Open)
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "agent-install.openshift.io/v1beta1", "kind": kind,
        "metadata": {"name": name, "labels": {"net": "site"}}, "spec": spec})
}

pub(crate) fn infra_env(name: &str, spec: &Value) -> Value {
    let mut members = json!({"pullSecretRef": {"name": "pull-secret"}});
    members.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object("InfraEnv", name, members)
}

/// Returns an NMStateConfig with one interface and the label `net: site`.
pub(crate) fn nmstate_config(name: &str, mac_address: &str, prefix_len: u8) -> Value {
    let spec = json!({
        "interfaces": [{"name": "nic0", "macAddress": mac_address}],
        "config": {"interfaces": [{"name": "nic0", "type": "ethernet", "state": "up", "ipv4": {"enabled": true,
            "dhcp": false, "address": [{"ip": "192.0.2.11", "prefix-length": prefix_len}]}}]},
    });
    object("NMStateConfig", name, spec)
}

pub(crate) fn agent(name: &str, spec: &Value) -> Value {
    let mut members = json!({"approved": false, "role": ""});
    members.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object("Agent", name, members)
}

pub(crate) fn classification(name: &str, spec: &Value) -> Value {
    let mut members = json!({"labelKey": "size", "labelValue": "big", "query": ".cpu.count >= 8"});
    members.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object("AgentClassification", name, members)
}
