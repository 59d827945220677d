//! `kindling serve`.

mod access;
pub(super) mod database;
mod external;
mod images;
mod inventory;
mod limits;
mod listeners;
mod log;
pub(super) mod value;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::cli::catalogue::CatalogueOptions;
use crate::cli::progress::Screen;
use crate::http::images::ImageInputs;
use crate::http::{App, Certificate, Inherited, Listener, Server};
use crate::images::Catalogue;
use crate::inventory::Inventory;
use crate::inventory::auth::Policy;
use crate::inventory::store::{SqlStore, Store};

/// Serve images and the inventory API
///
/// Every option is also a variable of the environment, as given behind it; those of the Assisted Installer have their names,
/// and may have the prefix MYAPP_. An option counts more than its variable, a variable without value counts as not set, and
/// what neither says may be in a file of TOML, under the name of the option. Durations are written as 90s, 1h30m or 4h.
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// File with options, as `listen = ["127.0.0.1:8090"]` or `auth-type = "local"`
    #[arg(long, env = "KINDLING_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    listeners: listeners::ListenerOptions,
    #[command(flatten)]
    addresses: inventory::Addresses,
    #[command(flatten)]
    access: access::Access,
    #[command(flatten)]
    external: external::ExternalOptions,
    #[command(flatten)]
    database: database::Database,
    #[command(flatten)]
    catalogue: CatalogueOptions,
    #[command(flatten)]
    images: images::Images,
    #[command(flatten)]
    infra_envs: inventory::InfraEnvs,
    #[command(flatten)]
    clusters: inventory::Clusters,
    #[command(flatten)]
    agents: inventory::Agents,
    #[command(flatten)]
    limits: limits::LimitOptions,
    #[command(flatten)]
    log: log::Log,
}

impl Serve {
    pub(super) fn run(self) -> Result<ExitCode> {
        // Before anything else has descriptors or threads.
        let inherited = Inherited::take().context("the sockets of systemd cannot be taken")?;
        let screen = self.log.begin();
        if let Some(file) = &self.config {
            tracing::info!(file = %file.display(), "options are read from a file");
        }
        self.limits.allow_files();
        let runtime = tokio::runtime::Runtime::new().context("the runtime cannot be started")?;
        runtime.block_on(self.serve(inherited, screen))?;
        Ok(ExitCode::SUCCESS)
    }

    async fn serve(self, inherited: Vec<Inherited>, screen: Screen) -> Result<()> {
        let mut signals = Signals::new()?;
        // What is wrong with what was set is said before anything is touched.
        let listeners = self.listeners.read(inherited)?;
        let role = match self.external.inputs()? {
            Some(inputs) => Role::Images(inputs),
            None => Role::Everything(self.access.policy(listeners.open_place().as_ref())?),
        };
        let catalogue = self.catalogue.read()?;
        if let Some(certificate) = listeners.certificate().cloned() {
            signals.follow(certificate);
        }
        let listeners = listeners.bind().await?;
        let server = self.images.sent_by(Server::new(self.limits.limits()));
        let requests = self.limits.concurrent_requests();
        match role {
            Role::Images(inputs) => {
                let place = (self.database.data_dir(), self.addresses.images_url(&listeners)?);
                let images = self.images.open_for(inputs, catalogue.os_images().to_vec(), place)?;
                tokio::spawn(screen.follow(images.live_images().clone()));
                let images = images.answering(requests);
                let app = crate::http::image_app(&images, &self.addresses.allowed_origins());
                serve(&server, listeners, &app, &mut signals).await
            }
            Role::Everything(policy) => {
                let (inventory, store) = self.inventory((policy, catalogue), &listeners).await?;
                let images = self.images.open(&inventory, self.database.data_dir())?;
                tokio::spawn(screen.follow(images.live_images().clone()));
                let app = crate::http::app(&inventory, Some(&images.answering(requests)));
                let clearing = tokio::spawn(inventory.keep_clear());
                serve(&server, listeners, &app, &mut signals).await?;
                clearing.abort();
                store.close().await;
                Ok(())
            }
        }
    }

    /// The inventory of this process, and where it is kept.
    async fn inventory(
        &self,
        (policy, catalogue): (Policy, Catalogue),
        listeners: &[Listener],
    ) -> Result<(Inventory, Arc<SqlStore>)> {
        let mut settings = self.addresses.settings(listeners)?;
        let is_open = listeners.iter().any(|listener| !listener.addr().is_local());
        settings.allowed_hosts = self.access.allowed_hosts(is_open);
        self.infra_envs.apply(&mut settings);
        self.clusters.apply(&mut settings);
        self.agents.apply(&mut settings)?;
        self.database.apply(&mut settings);
        let store = Arc::new(self.database.open().await?);
        let files = self.database.files()?;
        let inventory =
            Inventory::new(Arc::clone(&store) as Arc<dyn Store>, files, catalogue, settings, policy);
        let renewed = inventory.renew_url_tokens().await?;
        if renewed > 0 {
            tracing::warn!(
                infra_envs = renewed,
                "the policy or its key has changed: these have other URLs now"
            );
        }
        Ok((inventory, store))
    }
}

/// What a process is for.
enum Role {
    /// Images alone, for an inventory elsewhere.
    Images(Arc<dyn ImageInputs>),
    /// Images and the inventory, for those whom a policy lets in.
    Everything(Policy),
}

/// Serves until somebody asks for the end, and what is under way then is done.
pub(super) async fn serve(
    server: &Server,
    listeners: Vec<Listener>,
    app: &App,
    signals: &mut Signals,
) -> Result<()> {
    let (end, ended) = watch::channel(false);
    let mut servers = JoinSet::new();
    for listener in listeners {
        announce(&listener);
        let (server, app, mut ended) = (server.clone(), app.clone(), ended.clone());
        servers.spawn(async move {
            let ended = async move {
                // An error is the end of the sender, and so of everything.
                let _ = ended.wait_for(|ended| *ended).await;
            };
            server.serve(listener, app, ended).await;
        });
    }
    signals.end().await;
    tracing::info!("ending: requests that are under way are finished");
    end.send_replace(true);
    let drained = async {
        while let Some(server) = servers.join_next().await {
            server.context("a server failed")?;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        drained = drained => drained,
        () = signals.end() => {
            tracing::warn!("ending at once: asked for it again");
            Ok(())
        }
    }
}

/// Tells that connections are taken. Nobody has to read it.
fn announce(listener: &Listener) {
    let _ = writeln!(std::io::stdout(), "listening on {listener}");
    tracing::info!(%listener, "listening");
}

/// The signals that the program acts on.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    certificate: Option<Certificate>,
}

impl Signals {
    pub(super) fn new() -> Result<Self> {
        let listen = |kind| signal(kind).context("signals cannot be listened to");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
            certificate: None,
        })
    }

    /// Follows the files of a certificate, and reads them again at once on SIGHUP.
    fn follow(&mut self, certificate: Certificate) {
        self.certificate = Some(certificate.clone());
        tokio::spawn(async move { certificate.follow().await });
    }

    /// Waits for a signal to end. SIGHUP is handled meanwhile.
    async fn end(&mut self) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => self.reload(),
            }
        }
    }

    /// Reads again what can change while the server runs: the certificate and its key.
    fn reload(&self) {
        match &self.certificate {
            Some(certificate) => certificate.read_again(),
            None => {
                tracing::info!("SIGHUP: nothing to reload without TLS; other settings apply after a restart")
            }
        }
    }
}
