//! `kindling demo`: a server to try things with.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use fixtures::Recipe;
use ignition::discovery::HttpUrl;
use serde_json::json;

use super::serve::value::address;
use crate::http::images::{Embedded, ImageServer};
use crate::http::{Limits, Listener, Server};
use crate::images::Catalogue;
use crate::images::library::{Library, LibrarySettings};
use crate::inventory::auth::Policy;
use crate::inventory::files::FileStore;
use crate::inventory::infra_env::InfraEnvCreateParams;
use crate::inventory::store::SqlStore;
use crate::inventory::{Inventory, Settings};

/// The live image of the demonstration, of those that tests run on.
const RECIPE: &str = "2024-12.x86_64";
/// The version of OpenShift that it is said to be for.
const VERSION: &str = "4.18";

/// Serve throw-away data, with commands to try
///
/// There is a synthetic live image, which has everything but boots nothing, and one infra-env. When the program ends, all of
/// it is gone.
#[derive(Debug, Args)]
pub(super) struct Demo {
    /// Address to listen on, a loopback one; port 0 is any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8090", value_parser = address)]
    listen: SocketAddr,
}

impl Demo {
    pub(super) fn run(self) -> Result<ExitCode> {
        if !self.listen.ip().to_canonical().is_loopback() {
            bail!(
                "{} can be reached from other machines, and a demonstration is open to everybody",
                self.listen
            );
        }
        let runtime = tokio::runtime::Runtime::new().context("the runtime cannot be started")?;
        runtime.block_on(self.demonstrate())?;
        Ok(ExitCode::SUCCESS)
    }

    async fn demonstrate(self) -> Result<()> {
        let directory = tempfile::Builder::new().prefix("kindling-demo.").tempdir();
        let directory = directory.context("there is no place for the data of the demonstration")?;
        let listener = Listener::tcp(self.listen).await;
        let listener = listener.with_context(|| format!("{} cannot be listened on", self.listen))?;
        let origin = listener.url().context("the address has no URL")?;
        let (inventory, images) = services(directory.path(), &origin).await?;
        let id = infra_env(&inventory).await?;
        // Nobody has to read it.
        let _ = std::io::stdout().write_all(commands(&origin, &id).as_bytes());
        let app = crate::http::app(&inventory, Some(&images));
        let mut signals = super::serve::Signals::new()?;
        super::serve::serve(&Server::new(Limits::default()), vec![listener], &app, &mut signals).await?;
        inventory.records().store().close().await;
        Ok(())
    }
}

/// An inventory and its images, with all they have in a directory.
async fn services(directory: &Path, origin: &str) -> Result<(Inventory, ImageServer)> {
    let base = directory.join("base.iso");
    let recipe = Recipe::all().find(|recipe| recipe.name() == RECIPE).context("the live image is unknown")?;
    std::fs::write(&base, recipe.with_program().build()).context("the live image cannot be written")?;
    let images = json!([{
        "openshift_version": VERSION,
        "cpu_architecture": "x86_64",
        "version": "418.94.202412010000-0",
        "url": format!("file://{}", base.display()),
    }]);
    let catalogue = Catalogue::parse(&images.to_string())?;
    let os_images = catalogue.os_images().to_vec();
    let library = Library::open(LibrarySettings::new(directory.join("images")), os_images.clone())?;
    let store = Arc::new(SqlStore::open_file(&directory.join("kindling.db")).await?);
    let files = FileStore::in_directory(&directory.join("files"))?;
    let url = HttpUrl::parse("origin", origin)?;
    let settings = Settings::new(url.clone(), url.clone());
    let inventory = Inventory::new(store, files, catalogue, settings, Policy::Open);
    let images = ImageServer::new(os_images, library, Arc::new(Embedded::new(inventory.clone())), url);
    Ok((inventory, images))
}

/// Makes the infra-env.
async fn infra_env(inventory: &Inventory) -> Result<String> {
    let params: InfraEnvCreateParams = serde_json::from_value(json!({
        "name": "demo",
        "openshift_version": VERSION,
        "image_type": "full-iso",
        "pull_secret": json!({"auths": {"quay.io": {"auth": "ZGVtbzpkZW1v"}}}).to_string(),
        "kernel_arguments": json!([{"operation": "append", "value": "console=ttyS0"}]),
        "static_network_config": [{
            "network_yaml": "interfaces: [{name: eth0, type: ethernet, state: up, ipv4: {enabled: true, dhcp: true}}]\n",
            "mac_interface_map": [{"mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0"}],
        }],
    }))?;
    let made = inventory.register_infra_env(params).await?;
    Ok(made.id.to_string())
}

/// What to try.
fn commands(origin: &str, id: &str) -> String {
    format!(
        "Listening on {origin}, with a synthetic live image and one infra-env.

In a browser: {origin}/
In another terminal:

  # The discovery image of the infra-env
  curl -fO {origin}/i/{id}/full.iso
  # What is in it
  kindling iso inspect full.iso
  # The config that machines boot with
  kindling iso ignition show full.iso
  # All files there are, with sizes and entity tags
  curl {origin}/i/{id}
  # How far each client is with them
  curl {origin}/i/{id}/boot-trace

Ctrl-C ends it, and nothing is left.
"
    )
}
