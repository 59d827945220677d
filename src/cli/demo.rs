//! `kindling demo`: serves throw-away data and simulated hosts, to try the service.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use agent::simulated::SimulatedSite;
use anyhow::{Context, Result, bail};
use assisted::client::ApiClient;
use assisted::infra_env::InfraEnvCreateParams;
use clap::Args;
use fixtures::Recipe;
use ignition::discovery::HttpUrl;
use serde_json::json;

use super::listen_address::{HostPort, ResolvedAddresses};
use super::serve::{DEFAULT_ADDRESS, Signals, serve_until_signal, with_background_tasks};
use super::shell::program_command;
use crate::http::images::{EmbeddedInputs, ImageServer, follow_added_images};
use crate::http::{Listener, Server, ServerLimits};
use crate::images::library::{Library, LibrarySettings};
use crate::simulation::{BootImage, Simulation, SimulationOptions, SimulationReport, read_profile};
use inventory::auth::Policy;
use inventory::catalogue::Catalogue;
use inventory::files::FileStore;
use inventory::id::InfraEnvId;
use inventory::store::SqlStore;
use inventory::{Inventory, Settings};

/// The recipe of the synthetic base image. The tests use the same recipes.
const RECIPE: &str = "2024-12.x86_64";
/// The OpenShift version of the base image in the catalogue.
const VERSION: &str = "4.18";
/// The profile of simulated hosts: three control plane nodes, then workers.
const PROFILE: &str = "standard";
/// A fixed seed, so that every demonstration has the same hosts.
const SEED: u64 = 1;
/// Pause between the polls of a simulated host. Short, so that a user sees changes on the page.
const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum time until the first error of a simulated host is printed.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Serve throw-away data, with commands to try
///
/// Serves a synthetic base image, which is complete but does not boot, and one infra-env with simulated hosts. All data
/// is deleted when the command ends.
#[derive(Debug, Args)]
pub(super) struct Demo {
    /// Loopback address or host name to listen on, with a port; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS", default_value_t = HostPort::Address(DEFAULT_ADDRESS), value_parser = HostPort::parse)]
    listen: HostPort,
    /// Number of simulated hosts that read the image, register and check in
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(..=100))]
    hosts: u32,
}

impl Demo {
    pub(super) fn run(self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Runtime::new().context("cannot start the async runtime")?;
        runtime.block_on(self.demonstrate())?;
        Ok(ExitCode::SUCCESS)
    }

    async fn demonstrate(self) -> Result<()> {
        let addresses = self.listen.resolve("--listen").await?;
        require_loopback(&addresses)?;
        let directory = tempfile::Builder::new().prefix("kindling-demo.").tempdir();
        let directory = directory.context("cannot create a directory for the demo data")?;
        let listeners = addresses.bind().await?;
        let origin = listeners.first().and_then(Listener::url).context("the address has no URL")?;
        let (inventory, images) = open_services(directory.path(), &origin).await?;
        let id = register_infra_env(&inventory).await?;
        let simulation = if self.hosts == 0 { None } else { Some(self.simulation(&origin, id)?) };
        // A closed standard output is not an error.
        let _ = std::io::stdout().write_all(commands_to_try(&origin, id, self.hosts).as_bytes());
        let app = crate::http::app(&inventory, Some(&images));
        let hosts = simulation.map(|simulation| tokio::spawn(run(simulation)));
        let mut signals = Signals::new()?;
        let server = Server::new(ServerLimits::default());
        let serve = async {
            let served = serve_until_signal(&server, listeners, &app, &mut signals).await;
            if let Some(hosts) = hosts {
                hosts.abort();
            }
            served
        };
        with_background_tasks(&inventory, serve).await
    }

    /// Returns a simulation of hosts that read the image of the infra-env when they boot.
    fn simulation(&self, origin: &str, infra_env: InfraEnvId) -> Result<Simulation> {
        let profile = read_profile(PROFILE)?;
        let site = Arc::new(SimulatedSite::new(profile, self.hosts, SEED).context("cannot simulate hosts")?);
        // The server listens on a loopback address, which no proxy can reach.
        let transport = reqwest::Client::builder().no_proxy();
        let client = ApiClient::builder(origin).transport(transport).build()?;
        let image = BootImage::new(format!("{origin}/i/{infra_env}/full.iso"));
        // IPv6 has only one loopback address, so hosts cannot have different ones.
        let image = if origin.starts_with("http://[") { image } else { image.own_addresses() };
        let mut options = SimulationOptions::default();
        (options.hosts_per_second, options.poll_interval) = (1, Some(POLL_INTERVAL));
        options.report_interval = REPORT_INTERVAL;
        options.boot_image = Some(image);
        let infra_env = infra_env.to_string().parse()?;
        Ok(Simulation::new((origin, client), infra_env, site, options))
    }
}

/// Returns an error unless all addresses are loopback addresses.
fn require_loopback(addresses: &ResolvedAddresses) -> Result<()> {
    match addresses.reachable_address() {
        Some(address) => bail!(
            "other machines can reach {address}, but the demo has no authentication; use a loopback address for --listen"
        ),
        None => Ok(()),
    }
}

/// Returns an inventory and its image server, with all their files in `directory`.
async fn open_services(directory: &Path, origin: &str) -> Result<(Inventory, ImageServer)> {
    let base = directory.join("base.iso");
    let recipe = Recipe::all()
        .find(|recipe| recipe.name() == RECIPE)
        .context("the synthetic base image is unknown")?;
    std::fs::write(&base, recipe.with_program().build()).context("cannot write the synthetic base image")?;
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
    let images = ImageServer::new(os_images, library, Arc::new(EmbeddedInputs::new(inventory.clone())), url);
    tokio::spawn(follow_added_images(inventory.clone(), images.clone()));
    Ok((inventory, images))
}

/// Runs the simulated hosts. Prints the first error only.
async fn run(simulation: Simulation) {
    let mut is_printed = false;
    let print_first_error = |report: &SimulationReport| {
        if let Some(error) = report.errors.keys().next().filter(|_| !is_printed) {
            is_printed = true;
            eprintln!("Warning: request of a simulated host failed, retrying: {error}");
        }
    };
    if let Err(error) = simulation.run(std::future::pending(), print_first_error).await {
        eprintln!("Warning: the simulation failed, its hosts have stopped: {:#}", anyhow::Error::new(error));
    }
}

async fn register_infra_env(inventory: &Inventory) -> Result<InfraEnvId> {
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
    let infra_env = inventory.register_infra_env(params, None).await?;
    Ok(infra_env.id)
}

fn commands_to_try(origin: &str, id: InfraEnvId, hosts: u32) -> String {
    let kindling = program_command();
    let hosts = match hosts {
        0 => "no hosts".to_owned(),
        1 => "one simulated host".to_owned(),
        _ => format!("{hosts} simulated hosts"),
    };
    format!(
        "Listening on {origin}, with a synthetic base image and one infra-env with {hosts}.

In a browser: {origin}/
In another terminal:

  # The discovery image of the infra-env
  curl -fO {origin}/i/{id}/full.iso
  # Its content
  {kindling} iso inspect full.iso
  # The config that machines boot with
  {kindling} iso ignition show full.iso
  # All files of the infra-env, with sizes and entity tags
  curl {origin}/i/{id}
  # What each client has downloaded
  curl {origin}/i/{id}/boot-trace

Ctrl-C ends the demo and deletes its data.
"
    )
}
