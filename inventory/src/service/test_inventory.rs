//! An inventory for tests, in its own SQLite file.

use std::sync::Arc;

use assisted::infra_env::InfraEnvCreateParams;
use ignition::discovery::HttpUrl;
use tempfile::TempDir;

use crate::auth::Policy;
use crate::catalogue::Catalogue;
use crate::files::FileStore;
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

/// An inventory and the directory of its files.
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
        let directory = TempDir::new().unwrap();
        let store = SqlStore::open_file(&directory.path().join("kindling.db")).await.unwrap();
        let files = FileStore::in_directory(&directory.path().join("files")).unwrap();
        let url = HttpUrl::parse("origin", "http://192.0.2.1").unwrap();
        let settings =
            Settings { default_ntp_source: "ntp.example.com".to_owned(), ..Settings::new(url.clone(), url) };
        let catalogue = Catalogue::parse(OS_IMAGES).unwrap().with_release_images(RELEASE_IMAGES).unwrap();
        let inventory = Inventory::new(Arc::new(store), files, catalogue, change(settings), Policy::Open);
        Self { inventory, _directory: directory }
    }
}

/// Returns the shortest valid parameters of an infra-env.
pub(crate) fn infra_env_params() -> InfraEnvCreateParams {
    InfraEnvCreateParams::new("rack-1", Secret::new(PULL_SECRET))
}
