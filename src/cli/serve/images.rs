//! The live images of the service.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use ignition::discovery::HttpUrl;

use crate::cli::servers::ServerOptions;
use crate::http::Server;
use crate::http::images::{Embedded, ImageInputs, ImageServer};
use crate::images::OsImage;
use crate::images::library::{Library, LibrarySettings, Unknown, When};
use crate::inventory::{Inventory, Settings};

#[derive(Debug, Args)]
#[command(next_help_heading = "Live images")]
pub(super) struct Images {
    /// Directory of live images; `images` in the data directory without it. The variable DATA_DIR is read as well;
    /// DATA_TEMP_DIR is accepted and of no use: nothing is unpacked
    #[arg(long, env = "KINDLING_IMAGES_DIR", value_name = "DIR")]
    images_dir: Option<PathBuf>,
    /// When live images are fetched that are not there [default: on-first-use; at-start with another inventory]
    #[arg(long, env = "KINDLING_FETCH_IMAGES", value_name = "WHEN", value_enum)]
    fetch_images: Option<Fetch>,
    #[command(flatten)]
    servers: ServerOptions,
    /// Copy bytes of live images into connections, and do not lend their pages to the kernel. It takes more of the processor, but nobody
    /// who wants to write to a live image has to wait
    #[arg(long, env = "KINDLING_COPY_IMAGES")]
    copy_images: bool,
    /// Answer ranges of recently requested images without the HTTP library, which uses less CPU. The responses are the same with
    /// `off`
    #[arg(long, env = "KINDLING_FAST_PATH", value_name = "SWITCH", value_enum, default_value_t)]
    fast_path: Switch,
    /// Delete live images from the directory that are in no list
    #[arg(long, env = "KINDLING_PRUNE_IMAGES")]
    prune_images: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Fetch {
    /// Each when it is first asked for
    OnFirstUse,
    /// All of them when the service starts
    AtStart,
}

/// An option that is on unless the user turns it off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Switch {
    #[default]
    On,
    Off,
}

impl Images {
    /// The server as it sends them.
    pub(super) fn sent_by(&self, server: Server) -> Server {
        let server = if self.copy_images { server.copying() } else { server };
        match self.fast_path {
            Switch::On => server,
            Switch::Off => server.without_fast_path(),
        }
    }

    /// The images of an inventory, and the server that serves them.
    pub(super) fn open(&self, inventory: &Inventory, data_dir: &Path) -> Result<ImageServer> {
        let images = inventory.catalogue().os_images().to_vec();
        if images.is_empty() {
            tracing::warn!(
                "OS_IMAGES (--os-images) is not set: this service has no live image to serve, and infra-envs can only be \
                 made of those that are added at {}/v2/os-images",
                Settings::API
            );
        }
        let library = Library::open(self.settings(data_dir, When::OnFirstUse)?, images.clone())?;
        let inputs = Arc::new(Embedded::new(inventory.clone()));
        Ok(ImageServer::new(images, library, inputs, inventory.settings().image_service_base_url.clone()))
    }

    /// The same for an inventory elsewhere.
    pub(super) fn open_for(
        &self,
        inputs: Arc<dyn ImageInputs>,
        images: Vec<OsImage>,
        (data_dir, base_url): (&Path, HttpUrl),
    ) -> Result<ImageServer> {
        if images.is_empty() {
            bail!("OS_IMAGES (--os-images) is not set: there is no live image to serve");
        }
        let library = Library::open(self.settings(data_dir, When::AtStart)?, images.clone())?;
        Ok(ImageServer::new(images, library, inputs, base_url))
    }

    fn settings(&self, data_dir: &Path, when: When) -> Result<LibrarySettings> {
        let directory = self.images_dir.clone().unwrap_or_else(|| data_dir.join("images"));
        let mut settings = LibrarySettings::new(directory);
        settings.when = match self.fetch_images {
            None => when,
            Some(Fetch::AtStart) => When::AtStart,
            Some(Fetch::OnFirstUse) => When::OnFirstUse,
        };
        self.servers.apply(&mut settings)?;
        if self.prune_images {
            settings.unknown = Unknown::Prune;
        }
        Ok(settings)
    }
}
