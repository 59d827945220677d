//! The live images of the service.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::http::images::{Embedded, ImageServer};
use crate::images::library::{Library, LibrarySettings, Trust, Unknown, When};
use crate::inventory::Inventory;

#[derive(Debug, Args)]
#[command(next_help_heading = "Live images")]
pub(super) struct Images {
    /// Directory of live images; `images` in the data directory without it
    #[arg(long, env = "KINDLING_IMAGES_DIR", value_name = "DIR")]
    images_dir: Option<PathBuf>,
    /// When live images are fetched that are not there
    #[arg(long, env = "KINDLING_FETCH_IMAGES", value_name = "WHEN", value_enum, default_value_t)]
    fetch_images: Fetch,
    /// File with certificates, in PEM, that servers of live images may have beside those that this system trusts
    #[arg(long, env = "OS_IMAGE_DOWNLOAD_TRUSTED_CA_FILE", value_name = "FILE")]
    image_ca_file: Option<PathBuf>,
    /// Delete live images from the directory that are in no list
    #[arg(long, env = "KINDLING_PRUNE_IMAGES")]
    prune_images: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Fetch {
    /// Each when it is first asked for
    #[default]
    OnFirstUse,
    /// All of them when the service starts
    AtStart,
}

impl Images {
    /// The images of an inventory, and the server that serves them.
    pub(super) fn open(&self, inventory: &Inventory, data_dir: &Path) -> Result<ImageServer> {
        let directory = self.images_dir.clone().unwrap_or_else(|| data_dir.join("images"));
        let mut settings = LibrarySettings::new(directory);
        settings.when = match self.fetch_images {
            Fetch::AtStart => When::AtStart,
            Fetch::OnFirstUse => When::OnFirstUse,
        };
        if let Some(file) = &self.image_ca_file {
            settings.trust = Trust::SystemAnd(file.clone());
        }
        if self.prune_images {
            settings.unknown = Unknown::Prune;
        }
        let images = inventory.catalogue().os_images().to_vec();
        let library = Library::open(settings, images.clone())?;
        let inputs = Arc::new(Embedded::new(inventory.clone()));
        Ok(ImageServer::new(images, library, inputs, inventory.settings().image_service_base_url.clone()))
    }
}
