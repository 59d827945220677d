//! The requests of a provisioning service to an inventory, in its own process and over any transport.

use std::path::Path;
use std::sync::Arc;

use assisted::client::{ApiClient, ClientError, ClientErrorKind};
use assisted::infra_env::InfraEnvCreateParams;
use assisted::{HostId, Secret};
use inventory::auth::Policy;
use inventory::catalogue::Catalogue;
use inventory::files::FileStore;
use inventory::store::SqlStore;
use inventory::{HttpUrl, Inventory, Settings};

use crate::site::PULL_SECRET;

/// Opens an inventory in a directory.
pub async fn open_inventory(directory: &Path) -> Result<Inventory, Box<dyn std::error::Error>> {
    let store = SqlStore::open_file(&directory.join("inventory.db")).await?;
    let files = FileStore::in_directory(&directory.join("files"))?;
    let catalogue = Catalogue::parse(
        r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.94.1",
             "url": "https://mirror.example.com/rhcos-live.iso"}]"#,
    )?;
    let catalogue = catalogue.with_release_images(
        r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "4.18.1",
             "url": "quay.io/openshift-release-dev/ocp-release:4.18.1-x86_64"}]"#,
    )?;
    let url = HttpUrl::parse("url", "http://192.0.2.1")?;
    Ok(Inventory::new(Arc::new(store), files, catalogue, Settings::new(url.clone(), url), Policy::Open))
}

/// Creates, reads and deletes an infra-env. Returns the results that the client sees, which must not depend on the
/// transport.
pub async fn use_client(client: &ApiClient) -> Result<Vec<String>, ClientError> {
    let mut results = Vec::new();
    let params = InfraEnvCreateParams::new("rack-1", Secret::new(PULL_SECRET));
    let infra_env = client.register_infra_env(&params).await?;
    results.push(infra_env.name.clone());
    results.push(format!("{} hosts", client.list_hosts(infra_env.id).await?.len()));
    let missing = client.get_host(infra_env.id, HostId::fresh()).await;
    results.push(format!("{:?}", missing.map_err(|error| error.kind()).map(|host| host.id)));
    let empty = InfraEnvCreateParams::new("rack-2", Secret::new(""));
    let refused = client.register_infra_env(&empty).await.map(|infra_env| infra_env.id);
    let refused = refused.map_err(|error| (error.kind() == ClientErrorKind::Invalid, error.to_string()));
    results.push(format!("{refused:?}"));
    client.delete_infra_env(infra_env.id).await?;
    results.push(format!("{} infra-envs", client.list_infra_envs(None).await?.len()));
    Ok(results)
}
