//! `kindling serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use ignition::discovery::HttpUrl;
use tokio::net::TcpListener;

use crate::images::Catalogue;
use crate::inventory::auth::Policy;
use crate::inventory::store::{SqlStore, Store};
use crate::inventory::{Inventory, Settings};

/// Every option is also a variable of the environment.
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Address to listen on
    #[arg(long, env = "KINDLING_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8090")]
    listen: SocketAddr,
    /// Directory of the database and of uploaded files
    #[arg(long, env = "KINDLING_DATA_DIR", value_name = "DIR", default_value = "kindling-data")]
    data_dir: PathBuf,
    /// PostgreSQL or SQLite database, by URL; without it, a file in the data directory
    #[arg(long, env = "KINDLING_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    database_url: Option<String>,
    /// Where machines reach the API
    #[arg(long, env = "SERVICE_BASE_URL", value_name = "URL")]
    service_base_url: Option<String>,
    /// Where machines reach images
    #[arg(long, env = "IMAGE_SERVICE_BASE_URL", value_name = "URL")]
    image_service_base_url: Option<String>,
    /// The live images that there are, as a JSON list
    #[arg(long, env = "OS_IMAGES", value_name = "JSON")]
    os_images: Option<String>,
}

impl Serve {
    pub(super) fn run(self) -> Result<ExitCode> {
        tracing_subscriber::fmt().with_writer(std::io::stderr).init();
        let runtime = tokio::runtime::Runtime::new().context("the runtime cannot be started")?;
        runtime.block_on(self.serve())?;
        Ok(ExitCode::SUCCESS)
    }

    async fn serve(self) -> Result<()> {
        let listener = TcpListener::bind(self.listen)
            .await
            .with_context(|| format!("{} cannot be listened on", self.listen))?;
        let address = listener.local_addr()?;
        let store = Arc::new(self.open_store().await?);
        let inventory = Inventory::new(
            Arc::<SqlStore>::clone(&store),
            self.os_images.as_deref().map(Catalogue::parse).transpose()?.unwrap_or_default(),
            self.settings(address)?,
            Policy::Open,
        );
        eprintln!("listening on http://{address}");
        crate::http::serve(listener, inventory.router(), interrupted()).await?;
        store.close().await;
        Ok(())
    }

    async fn open_store(&self) -> Result<SqlStore> {
        if let Some(url) = &self.database_url {
            return Ok(SqlStore::open(url).await?);
        }
        let directory = &self.data_dir;
        std::fs::create_dir_all(directory)
            .with_context(|| format!("{} cannot be made", directory.display()))?;
        Ok(SqlStore::open_file(&directory.join("kindling.db")).await?)
    }

    fn settings(&self, address: SocketAddr) -> Result<Settings> {
        let own = format!("http://{address}");
        let url = |field, given: &Option<String>| HttpUrl::parse(field, given.as_deref().unwrap_or(&own));
        Ok(Settings::new(
            url("SERVICE_BASE_URL", &self.service_base_url)?,
            url("IMAGE_SERVICE_BASE_URL", &self.image_service_base_url)?,
        ))
    }
}

/// Done when somebody asks the program to end.
async fn interrupted() {
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
}
