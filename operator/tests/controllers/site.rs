//! A test site: an inventory and an operator for one namespace of the hub.

#![allow(dead_code, reason = "no test program needs all of it")]

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use inventory::auth::Policy;
use inventory::background;
use inventory::catalogue::Catalogue;
use inventory::files::FileStore;
use inventory::store::SqlStore;
use inventory::{HttpUrl, Inventory, Settings as InventorySettings};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, Resource};
use operator::crds::{InfraEnv, InfraEnvSpec, LocalRef, NMStateConfig};
use operator::{Operator, Settings};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::hub::{AuditEntry, AuditMark, Hub, HubUser};

/// The rights of the service in the kustomization. Tests bind them in their own namespaces.
const RIGHTS: &str = include_str!("../../../packaging/kubernetes-hub/cluster-role.yaml");
const LEADER_RIGHTS: &str = include_str!("../../../packaging/kubernetes-hub/role.yaml");

/// Maximum time to wait for an effect of the operator.
const LIMIT: Duration = Duration::from_secs(60);
pub(crate) const PULL_SECRET: &str = r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}"#;
pub(crate) const SSH_KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9Nf8wT9dU3tZ5w3m9s5fC6T1Y1nS4kq6Jr0Q0yQd2v a@b";

static CRDS: OnceCell<()> = OnceCell::const_new();

/// Returns the hub, with the custom resource definitions installed. Returns `None` if the hub is not available.
pub(crate) async fn hub() -> Option<&'static Hub> {
    let hub = Hub::shared().await?;
    CRDS.get_or_init(|| async {
        hub.install_crds(&operator::crds::to_yaml().unwrap()).await;
        hub.apply(RIGHTS).await;
    })
    .await;
    Some(hub)
}

/// A namespace with an operator. The operator stops when the site is dropped.
pub(crate) struct Site {
    pub(crate) hub: &'static Hub,
    pub(crate) namespace: String,
    pub(crate) user: HubUser,
    pub(crate) inventory: Inventory,
    pub(crate) lease_namespace: String,
    policy: Policy,
    admin: Client,
    tasks: Vec<JoinHandle<()>>,
    operators: Vec<JoinHandle<()>>,
    directory: Arc<TempDir>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.tasks.iter().chain(&self.operators).for_each(JoinHandle::abort);
    }
}

impl Site {
    /// Returns a site whose operator has the rights of the kustomization.
    pub(crate) async fn open(hub: &'static Hub) -> Self {
        Self::open_with_policy(hub, Policy::Open).await
    }

    pub(crate) async fn open_with_policy(hub: &'static Hub, policy: Policy) -> Self {
        let namespace = hub.namespace("site").await;
        let user = service_account(hub, &namespace).await;
        let mut site = Self::prepare_with_policy(hub, namespace, user, policy).await;
        site.start_operator("replica", site.client());
        site
    }

    /// Returns a site without an operator. The background tasks of its inventory run.
    pub(crate) async fn prepare(hub: &'static Hub, namespace: String, user: HubUser) -> Self {
        Self::prepare_with_policy(hub, namespace, user, Policy::Open).await
    }

    async fn prepare_with_policy(
        hub: &'static Hub,
        namespace: String,
        user: HubUser,
        policy: Policy,
    ) -> Self {
        let directory = Arc::new(TempDir::new().unwrap());
        let inventory = open_inventory(&directory, policy.clone()).await;
        let (tasks, operators) = (Vec::new(), Vec::new());
        let (admin, lease_namespace) = (hub.admin(), namespace.clone());
        let mut site = Self {
            hub,
            namespace,
            user,
            inventory,
            lease_namespace,
            policy,
            admin,
            tasks,
            operators,
            directory,
        };
        site.start_tasks();
        site
    }

    fn start_tasks(&mut self) {
        let tasks = background::run(self.inventory.clone(), std::future::pending());
        self.tasks.push(tokio::spawn(tasks));
    }

    /// Returns a client for the user of the site.
    pub(crate) fn client(&self) -> Client {
        self.hub.client_to(&self.hub.url(), &self.user.token)
    }

    /// Returns an operator for the namespace. It immediately takes over the lease of an operator with the same
    /// identity.
    pub(crate) fn operator(&self, identity: &str, client: Client) -> Operator {
        let mut settings = Settings::new(&self.lease_namespace, identity);
        settings.namespaces = vec![self.namespace.clone()];
        Operator::new(client, self.inventory.clone(), settings)
    }

    pub(crate) fn start_operator(&mut self, identity: &str, client: Client) {
        let running = self.operator(identity, client).run(std::future::pending());
        self.operators.push(tokio::spawn(running));
    }

    /// Kills all operators of the site.
    pub(crate) async fn kill_operators(&mut self) {
        for operator in self.operators.drain(..) {
            operator.abort();
            let _ = operator.await;
        }
    }

    /// Kills the operator, and starts it again with a new, empty database.
    pub(crate) async fn lose_database(&mut self) {
        self.kill_operators().await;
        self.tasks.drain(..).for_each(|task| task.abort());
        self.directory = Arc::new(TempDir::new().unwrap());
        self.inventory = open_inventory(&self.directory, self.policy.clone()).await;
        self.start_tasks();
        self.start_operator("replica", self.client());
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.admin.clone(), &self.namespace)
    }

    pub(crate) async fn create_pull_secret(&self, name: &str) {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": PULL_SECRET}});
        let secret: Secret = serde_json::from_value(secret).unwrap();
        self.api::<Secret>().create(&PostParams::default(), &secret).await.unwrap();
    }

    pub(crate) async fn create<K>(&self, object: &K) -> K
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned,
    {
        self.api::<K>().create(&PostParams::default(), object).await.unwrap()
    }

    pub(crate) async fn create_infra_env(
        &self,
        name: &str,
        edit: impl FnOnce(&mut InfraEnvSpec),
    ) -> InfraEnv {
        let mut spec = InfraEnvSpec {
            pull_secret_ref: LocalRef { name: "pull-secret".to_owned() },
            ssh_authorized_key: Some(SSH_KEY.to_owned()),
            ..InfraEnvSpec::default()
        };
        edit(&mut spec);
        self.create(&InfraEnv::new(name, spec)).await
    }

    pub(crate) async fn patch_spec(&self, name: &str, spec: Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.api::<InfraEnv>().patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    pub(crate) async fn delete<K>(&self, name: &str)
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned,
    {
        let _ = self.api::<K>().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until `is_met` is true for an InfraEnv, and returns the InfraEnv.
    pub(crate) async fn wait_for(&self, name: &str, is_met: impl Fn(&InfraEnv) -> bool) -> InfraEnv {
        let begin = Instant::now();
        loop {
            let object = self.api::<InfraEnv>().get(name).await.unwrap();
            if is_met(&object) {
                return object;
            }
            assert!(begin.elapsed() < LIMIT, "{object:#?}");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the condition `ImageCreated` has this message, and returns the InfraEnv.
    pub(crate) async fn wait_for_message(&self, name: &str, message: &str) -> InfraEnv {
        self.wait_for(name, |object| image_created(object).is_some_and(|(_, _, it)| it == message)).await
    }

    pub(crate) async fn wait_for_image(&self, name: &str) -> InfraEnv {
        self.wait_for_message(name, "InfraEnv is available: Image has been created").await
    }

    pub(crate) async fn wait_until_gone<K>(&self, name: &str)
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned,
    {
        let begin = Instant::now();
        while let Some(object) = self.api::<K>().get_opt(name).await.unwrap() {
            assert!(begin.elapsed() < LIMIT, "{object:#?}");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Returns the requests of the operator since a mark, as `verb resource`. Watches, lists and lease requests are
    /// omitted.
    pub(crate) async fn requests_since(&self, mark: AuditMark) -> Vec<String> {
        self.texts_since(mark, |_| true).await
    }

    /// Returns the accepted writes of the operator since a mark, as `verb resource`. Lease requests are omitted.
    pub(crate) async fn accepted_writes_since(&self, mark: AuditMark) -> Vec<String> {
        self.texts_since(mark, |entry| entry.verb != "get" && entry.code < 300).await
    }

    async fn texts_since(&self, mark: AuditMark, filter: impl Fn(&AuditEntry) -> bool) -> Vec<String> {
        let is_counted = |entry: &AuditEntry| {
            entry.user == self.user.name
                && entry.namespace == self.namespace
                && entry.resource != "leases"
                && !["watch", "list"].contains(&entry.verb.as_str())
                && filter(entry)
        };
        let entries = self.hub.audit_since(mark, is_counted).await;
        let text = |entry: &AuditEntry| match entry.subresource.as_str() {
            "" => format!("{} {}", entry.verb, entry.resource),
            subresource => format!("{} {}/{subresource}", entry.verb, entry.resource),
        };
        entries.iter().map(text).collect()
    }
}

/// Creates the service account of the kustomization in a namespace, with its rights in this namespace.
async fn service_account(hub: &Hub, namespace: &str) -> HubUser {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "kindling", "namespace": namespace}});
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "kindling", "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kindling"},
        "subjects": [{"kind": "ServiceAccount", "name": "kindling", "namespace": namespace}],
    });
    hub.apply(&account.to_string()).await;
    hub.apply(&binding.to_string()).await;
    hub.apply(&LEADER_RIGHTS.replace("namespace: kindling", &format!("namespace: {namespace}"))).await;
    HubUser {
        name: format!("system:serviceaccount:{namespace}:kindling"),
        token: hub.token_of_service_account(namespace, "kindling").await,
    }
}

async fn open_inventory(directory: &TempDir, policy: Policy) -> Inventory {
    let store = SqlStore::open_file(&directory.path().join("inventory.db")).await.unwrap();
    let files = FileStore::in_directory(&directory.path().join("files")).unwrap();
    let url = HttpUrl::parse("url", "http://192.0.2.1").unwrap();
    let images = json!([
        {"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.1", "url": "http://192.0.2.1/a.iso"},
        {"openshift_version": "4.17", "cpu_architecture": "x86_64", "version": "417.1", "url": "http://192.0.2.1/b.iso"},
        {"openshift_version": "4.18", "cpu_architecture": "arm64", "version": "418.1", "url": "http://192.0.2.1/c.iso"},
    ]);
    let catalogue = Catalogue::parse(&images.to_string()).unwrap();
    let settings = InventorySettings::new(url.clone(), url);
    Inventory::new(Arc::new(store), files, catalogue, settings, policy)
}

/// Returns the status, reason and message of the condition `ImageCreated`.
pub(crate) fn image_created(object: &InfraEnv) -> Option<(String, String, String)> {
    let condition = object.status.as_ref()?.conditions.iter().find(|it| it.type_ == "ImageCreated")?;
    Some((condition.status.clone(), condition.reason.clone(), condition.message.clone()))
}

pub(crate) fn iso_url(object: &InfraEnv) -> String {
    object.status.as_ref().unwrap().iso_download_url.clone()
}

/// Returns an NMStateConfig with one interface and the label `net: site`.
pub(crate) fn network(name: &str, mac_address: &str, address: &str) -> NMStateConfig {
    let object = json!({
        "metadata": {"name": name, "labels": {"net": "site"}},
        "spec": {
            "interfaces": [{"name": "nic0", "macAddress": mac_address}],
            "config": {"interfaces": [{"name": "nic0", "type": "ethernet", "state": "up",
                "ipv4": {"enabled": true, "dhcp": false, "address": [{"ip": address, "prefix-length": 24}]}}]},
        },
    });
    serde_json::from_value(object).unwrap()
}
