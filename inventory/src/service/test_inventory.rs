//! An inventory for tests, which stores its data in a separate SQLite file.

use std::sync::Arc;

use assisted::infra_env::InfraEnvCreateParams;
use assisted::step::StepType;
use ignition::discovery::HttpUrl;
use serde_json::json;
use tempfile::TempDir;

use crate::auth::Policy;
use crate::catalogue::Catalogue;
use crate::files::FileStore;
use crate::id::{HostId, HostKey};
use crate::service::hosts::recent_replies::ReplyDigest;
use crate::service::hosts::registration::Registration;
use crate::store::SqlStore;
use crate::{Inventory, Secret, Settings};

const OS_IMAGES: &str = r#"[
    {"openshift_version": "4.17", "cpu_architecture": "x86_64", "url": "http://192.0.2.1/a.iso", "version": "417.1"},
    {"openshift_version": "4.18", "cpu_architecture": "x86_64", "url": "http://192.0.2.1/b.iso", "version": "418.1"},
    {"openshift_version": "4.18", "cpu_architecture": "arm64", "url": "http://192.0.2.1/c.iso", "version": "418.1"}
]"#;

const RELEASE_IMAGES: &str = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "4.18.3",
    "url": "quay.io/releases:4.18.3"}]"#;

pub(crate) const PULL_SECRET: &str = r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}"#;

/// An inventory, and the temporary directory that contains its files.
pub(crate) struct TestInventory {
    pub(crate) inventory: Inventory,
    _directory: TempDir,
}

impl TestInventory {
    /// Opens an inventory without authentication, whose default NTP source is `ntp.example.com`.
    pub(crate) async fn open() -> Self {
        Self::with(|settings| settings).await
    }

    pub(crate) async fn with(change: impl FnOnce(Settings) -> Settings) -> Self {
        Self::with_policy(Policy::Open, change).await
    }

    pub(crate) async fn with_policy(policy: Policy, change: impl FnOnce(Settings) -> Settings) -> Self {
        let directory = TempDir::new().unwrap();
        let store = SqlStore::open_file(&directory.path().join("kindling.db")).await.unwrap();
        let files = FileStore::in_directory(&directory.path().join("files")).unwrap();
        let url = HttpUrl::parse("origin", "http://192.0.2.1").unwrap();
        let settings =
            Settings { default_ntp_source: "ntp.example.com".to_owned(), ..Settings::new(url.clone(), url) };
        let catalogue = Catalogue::parse(OS_IMAGES).unwrap().with_release_images(RELEASE_IMAGES).unwrap();
        let inventory = Inventory::new(Arc::new(store), files, catalogue, change(settings), policy);
        Self { inventory, _directory: directory }
    }
}

/// Returns parameters of an infra-env with only the required values.
pub(crate) fn infra_env_params() -> InfraEnvCreateParams {
    InfraEnvCreateParams::new("rack-1", Secret::new(PULL_SECRET))
}

/// An inventory report with two disks that are suitable for an installation.
pub(crate) const INVENTORY_REPORT: &str = r#"{
    "hostname": "node-1", "cpu": {"count": 8, "architecture": "x86_64"},
    "memory": {"physical_bytes": 34359738368, "usable_bytes": 34359738368},
    "disks": [
        {"id": "disk-a", "by_path": "/dev/disk/by-path/a", "path": "/dev/sda", "name": "sda", "drive_type": "HDD",
            "size_bytes": 128849018880, "hctl": "0:0:0:0"},
        {"id": "disk-b", "by_path": "/dev/disk/by-path/b", "path": "/dev/sdb", "name": "sdb", "drive_type": "HDD",
            "size_bytes": 128849018880, "hctl": "0:0:0:1"}
    ],
    "interfaces": [{"name": "eth0", "type": "physical", "mac_address": "52:54:00:00:00:01",
        "ipv4_addresses": ["192.0.2.11/24"]}],
    "routes": [{"interface": "eth0", "gateway": "192.0.2.1", "destination": "0.0.0.0", "family": 2}]
}"#;

/// Registers a host in a new infra-env, and returns its key.
pub(crate) async fn register_host(inventory: &Inventory) -> HostKey {
    let infra_env_id = inventory.register_infra_env(infra_env_params(), None).await.unwrap().id;
    let key = HostKey { infra_env_id, host_id: HostId::fresh() };
    let registration = Registration { key, agent_version: String::new(), request: None };
    inventory.register_host(&registration).await.unwrap();
    key
}

/// Sends the reply of a host's agent to a successful step.
pub(crate) async fn reply(inventory: &Inventory, key: HostKey, step: StepType, output: &str) {
    let reply = json!({"step_type": step.as_str(), "step_id": "a", "exit_code": 0, "output": output});
    let digest = ReplyDigest::new(reply.to_string().as_bytes());
    let reply = serde_json::from_value(reply).unwrap();
    inventory.store_reply(key, (&reply, digest), None).await.unwrap();
}
