//! `kindling serve`: serves images and the inventory API.

mod access;
mod addresses;
pub(super) mod database;
mod external;
mod images;
mod inventory;
#[cfg(feature = "kube-api")]
mod kube;
#[cfg(feature = "kube-api")]
mod kube_metrics;
mod limits;
mod listeners;
mod log;
mod private_key;
mod proxy;
pub(super) mod value;
mod variables;
#[cfg(feature = "kube-api")]
mod webhooks;

#[cfg(feature = "demo")]
pub(super) use listeners::DEFAULT_ADDRESS;
pub(super) use variables::is_protected;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use crate::cli::catalogue::CatalogueOptions;
use crate::cli::progress::{StderrScreen, without_bars};
use crate::http::images::ImageInputs;
use crate::http::{App, Certificate, InheritedListener, Listener, Server};
use crate::inventory::Inventory;
use crate::inventory::auth::{Policy, PolicyKind};
use crate::inventory::background;
use crate::inventory::catalogue::Catalogue;
use crate::sys::unmap_large_blocks_when_freed;

pub(super) const NAME: &str = "serve";

/// Serve images and the inventory API
///
/// Every option can also be set with the environment variable shown after it. Variables of the Assisted Installer keep
/// their names, and may have the prefix MYAPP_. An option overrides its variable, and a variable overrides the TOML
/// file of `--config`, whose keys are the names of the options. An empty variable counts as not set, but is an error if
/// its option decides access, encryption or integrity. An unknown variable KINDLING_* is a warning, or an error if it
/// resembles such an option's variable. Durations are written as 90s, 1h30m or 4h.
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// TOML file with options, such as `listen = ["127.0.0.1:8090"]` or `auth-type = "local"`
    #[arg(long, env = "KINDLING_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    listeners: listeners::ListenerOptions,
    #[command(flatten)]
    addresses: addresses::AddressOptions,
    #[command(flatten)]
    access: access::AccessOptions,
    #[command(flatten)]
    external: external::ExternalOptions,
    #[command(flatten)]
    database: database::DatabaseOptions,
    #[command(flatten)]
    catalogue: CatalogueOptions,
    #[command(flatten)]
    images: images::ImageOptions,
    #[command(flatten)]
    infra_envs: inventory::InfraEnvDefaultOptions,
    #[command(flatten)]
    clusters: inventory::ClusterDefaultOptions,
    #[command(flatten)]
    agents: inventory::AgentOptions,
    #[command(flatten)]
    validations: inventory::ValidationOptions,
    #[cfg(feature = "kube-api")]
    #[command(flatten)]
    kube: kube::KubeOptions,
    #[command(flatten)]
    limits: limits::LimitOptions,
    #[command(flatten)]
    log: log::LogOptions,
}

/// The options that `kindling serve -h` shows. A first start needs no other options.
const SUMMARY_OPTIONS: [&str; 12] = [
    "config",
    "listen",
    "https-cert-file",
    "https-key-file",
    "service-base-url",
    "auth-type",
    "allow-open-access",
    "ec-private-key-file",
    "data-dir",
    "os-images",
    "os-images-file",
    "log-level",
];
const SUMMARY_NOTE: &str = "`kindling serve --help` shows all options, with variables and examples.";

/// Shortens the help text of `serve` if the arguments contain `-h`, so that the text fits on a screen.
pub(super) fn shorten_summary(program: clap::Command, arguments: &[OsString]) -> clap::Command {
    let is_serve = arguments.get(1).is_some_and(|name| name == NAME);
    if !(is_serve && arguments.iter().any(|argument| argument == "-h")) {
        return program;
    }
    let is_shown = |name: &str| SUMMARY_OPTIONS.contains(&name);
    program.mut_subcommand(NAME, |command| {
        let command = command.mut_args(|option| match option.get_long().is_some_and(is_shown) {
            true => option.help_heading(None::<&str>).hide_env(true),
            false => option.hide_short_help(true),
        });
        command.after_help(SUMMARY_NOTE)
    })
}

impl Serve {
    pub(super) fn run(self) -> Result<ExitCode> {
        // These calls must come first, before other code opens file descriptors or starts threads.
        unmap_large_blocks_when_freed();
        let inherited = InheritedListener::take_all().context("cannot take over the sockets from systemd")?;
        let screen = self.log.init()?;
        if let Some(file) = &self.config {
            tracing::info!(file = %file.display(), "options read from file");
        }
        variables::check_environment()?;
        proxy::check_environment()?;
        self.limits.raise_open_file_limit();
        limits::require_threads()?;
        let runtime = tokio::runtime::Runtime::new().context("cannot start the async runtime")?;
        runtime.block_on(self.open_and_serve(inherited, screen))?;
        Ok(ExitCode::SUCCESS)
    }

    async fn open_and_serve(self, inherited: Vec<InheritedListener>, screen: StderrScreen) -> Result<()> {
        let mut signals = Signals::new()?;
        // Report invalid options before the first side effect.
        #[cfg(feature = "kube-api")]
        self.kube.check(&self.listeners.tls_rules())?;
        let listeners = self.listeners.listen_targets(inherited).await?;
        let role = match self.external.image_inputs(self.database.outage_grace())? {
            Some(inputs) => ServerRole::Images(inputs),
            None => ServerRole::Everything(self.access.policy(listeners.reachable_address().as_ref())?),
        };
        let catalogue = self.catalogue.read_catalogue()?;
        let certificate = listeners.certificate().cloned();
        if let Some(certificate) = certificate.clone() {
            signals.reload_certificate_on_change(certificate);
        }
        let listeners = listeners.bind().await?;
        let server = self.images.configure_server(Server::new(self.limits.server_limits()));
        match role {
            ServerRole::Images(inputs) => {
                let place = (self.database.data_dir(), self.addresses.images_url(&listeners)?);
                let images =
                    self.images.open_external_server(inputs, catalogue.os_images().to_vec(), place)?;
                tokio::spawn(screen.show_progress(images.library().clone()));
                let images = self.limits.configure_images(images);
                let app = crate::http::image_app(&images, &self.addresses.allowed_origins());
                certificate.inspect(|certificate| app.export_certificate(certificate));
                serve_until_signal(&server, listeners, &app, &mut signals).await
            }
            ServerRole::Everything(policy) => {
                let inventory = self.open_inventory((policy, catalogue), &listeners).await?;
                let images = self.images.open_server(&inventory, self.database.data_dir()).await?;
                tokio::spawn(screen.show_progress(images.library().clone()));
                let app = crate::http::app(&inventory, Some(&self.limits.configure_images(images)));
                certificate.inspect(|certificate| app.export_certificate(certificate));
                if let Some(url) = page_url(&listeners) {
                    tracing::info!(%url, "page for browsers");
                }
                let serve = serve_until_signal(&server, listeners, &app, &mut signals);
                #[cfg(feature = "kube-api")]
                let serve = {
                    let operator = self.kube.operator(&inventory, &self.listeners.tls_rules()).await?;
                    operator.iter().for_each(|operator| kube_metrics::export(operator, &app));
                    kube::with_operator(operator, serve)
                };
                with_background_tasks(&inventory, serve).await
            }
        }
    }

    /// Opens the inventory with the settings from all options.
    async fn open_inventory(
        &self,
        (policy, catalogue): (Policy, Catalogue),
        listeners: &[Listener],
    ) -> Result<Inventory> {
        let mut settings = self.addresses.settings(listeners)?;
        let is_open = listeners.iter().any(|listener| !listener.addr().is_local());
        if policy.kind() == PolicyKind::None {
            settings.allowed_hosts = self.access.allowed_hosts(is_open);
        }
        self.infra_envs.apply_to_settings(&mut settings);
        self.clusters.apply_to_settings(&mut settings);
        self.agents.apply_to_settings(&mut settings)?;
        self.validations.apply_to_settings(&mut settings);
        self.database.apply_to_settings(&mut settings);
        self.images.apply_to_settings(&mut settings);
        let store = Arc::new(self.database.open_store().await?);
        let files = self.database.file_store()?;
        let inventory = Inventory::new(store, files, catalogue, settings, policy);
        let renewed = inventory.renew_url_tokens().await?;
        if renewed > 0 {
            tracing::warn!(
                infra_envs = renewed,
                "access policy or its key changed: image URLs of infra-envs were regenerated"
            );
        }
        Ok(inventory)
    }
}

/// Returns the URL of the page for browsers, or `None` if the service listens only on Unix sockets. Prefers listeners
/// with TLS, which come first: if one exists, listeners without TLS do not serve the page.
fn page_url(listeners: &[Listener]) -> Option<String> {
    listeners.iter().find_map(Listener::url).map(|url| format!("{url}/"))
}

enum ServerRole {
    /// Serves only images, for an external inventory.
    Images(Arc<dyn ImageInputs>),
    /// Serves the inventory and images, with an access policy.
    Everything(Policy),
}

/// Runs the background tasks of the inventory until `serve` completes, then drains them and closes the inventory.
pub(super) async fn with_background_tasks(
    inventory: &Inventory,
    serve: impl Future<Output = Result<()>>,
) -> Result<()> {
    let (end, ended) = oneshot::channel::<()>();
    let tasks = tokio::spawn(background::run(inventory.clone(), async {
        // Completes when the sender is dropped.
        let _ = ended.await;
    }));
    let served = serve.await;
    drop(end);
    let drained = tasks.await.context("the background tasks failed");
    inventory.close().await;
    served.and(drained)
}

/// Serves until a signal arrives, and then completes the requests in progress. A second signal closes all connections.
pub(super) async fn serve_until_signal(
    server: &Server,
    listeners: Vec<Listener>,
    app: &App,
    signals: &mut Signals,
) -> Result<()> {
    let (end, ended) = watch::channel(false);
    let mut servers = JoinSet::new();
    for listener in listeners {
        print_address(&listener);
        let (server, app, mut ended) = (server.clone(), app.clone(), ended.clone());
        servers.spawn(async move {
            let ended = async move {
                // An error means that the sender was dropped, which also ends the server.
                let _ = ended.wait_for(|ended| *ended).await;
            };
            server.serve(listener, app, ended).await;
        });
    }
    signals.wait_for_end().await;
    tracing::info!("shutting down, finishing requests in progress");
    end.send_replace(true);
    let drained = async {
        while let Some(server) = servers.join_next().await {
            server.context("a server failed")?;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        drained = drained => drained,
        () = signals.wait_for_end() => {
            tracing::warn!("second signal received, closing all connections");
            Ok(())
        }
    }
}

/// Prints the address of a listener. A closed stdout is not an error.
fn print_address(listener: &Listener) {
    let _ = without_bars(|| writeln!(std::io::stdout(), "listening on {listener}"));
    tracing::info!(%listener, "listening");
}

/// The signals that the program handles.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    certificate: Option<Certificate>,
}

impl Signals {
    pub(super) fn new() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
            certificate: None,
        })
    }

    /// Reloads the certificate when its files change. SIGHUP reloads it immediately.
    fn reload_certificate_on_change(&mut self, certificate: Certificate) {
        self.certificate = Some(certificate.clone());
        tokio::spawn(async move { certificate.reload_on_change().await });
    }

    /// Waits for SIGTERM or SIGINT. Handles SIGHUP while it waits.
    async fn wait_for_end(&mut self) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => self.reload_certificate(),
            }
        }
    }

    /// Reloads the certificate and its key. All other settings are fixed while the server runs.
    fn reload_certificate(&self) {
        match &self.certificate {
            Some(certificate) => certificate.force_reload(),
            None => {
                tracing::info!("SIGHUP: nothing to reload without TLS; other settings apply after a restart")
            }
        }
    }
}
