//! The options for the library of base images, and for how images are served.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use ignition::discovery::HttpUrl;

use super::database::DATA_DIR;
use super::value::{parse_directory, parse_url_host};
use crate::cli::directories::check_directory;
use crate::cli::servers::ServerOptions;
use crate::http::Server;
use crate::http::images::{EmbeddedInputs, ImageInputs, ImageServer, follow_added_images};
use crate::images::library::{AddedImageServers, DownloadTiming, Library, LibrarySettings, UnknownFiles};
use crate::inventory::catalogue::OsImage;
use crate::inventory::{AddedImageRule, Inventory, Settings};

#[derive(Debug, Args)]
#[command(next_help_heading = "Base images")]
pub(super) struct ImageOptions {
    /// Directory of base images [default: `images` in the data directory]. DATA_DIR is read as well; DATA_TEMP_DIR is
    /// accepted but has no effect, because images are not unpacked
    #[arg(long, env = "KINDLING_IMAGES_DIR", value_name = "DIR", value_parser = parse_directory)]
    images_dir: Option<PathBuf>,
    /// When to download missing base images [default: on-first-use; at-start with an external inventory]
    #[arg(long, env = "KINDLING_FETCH_IMAGES", value_name = "WHEN", value_enum)]
    fetch_images: Option<FetchTiming>,
    #[command(flatten)]
    servers: ServerOptions,
    /// Copy image bytes instead of using splice. Uses more CPU, but never blocks programs that write to base images
    #[arg(long, env = "KINDLING_COPY_IMAGES")]
    copy_images: bool,
    /// Serve range requests for recently requested images without the HTTP library. Uses less CPU; the responses are
    /// the same as with `off`
    #[arg(long, env = "KINDLING_FAST_PATH", value_name = "SWITCH", value_enum, default_value_t)]
    fast_path: OnByDefault,
    /// Servers from which users may add base images while the service runs, as host names or addresses,
    /// separated by commas
    /// [default: all but this machine, link-local addresses and metadata services of clouds]
    #[arg(long, env = "KINDLING_ADDED_IMAGE_SERVERS", value_name = "HOSTS", value_delimiter = ',', value_parser = parse_url_host)]
    added_image_servers: Option<Vec<String>>,
    /// Delete base images that are in no list
    #[arg(long, env = "KINDLING_PRUNE_IMAGES")]
    prune_images: bool,
}

/// The option that sets the directory, for messages.
const IMAGES_DIR: &str = "--images-dir (KINDLING_IMAGES_DIR)";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FetchTiming {
    /// Each image at its first request
    OnFirstUse,
    /// All images when the service starts
    AtStart,
}

/// The value of a switch that is on by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum OnByDefault {
    #[default]
    On,
    Off,
}

/// An example of a command line with a base image, for messages.
const EXAMPLE: &str = r#"--os-images '[{"openshift_version": "4.20", "cpu_architecture": "x86_64", "version": "9.6.20251023-0", "url": "file:///srv/rhcos-live.iso"}]'"#;

impl ImageOptions {
    /// Applies the options that control how the server sends images.
    pub(super) fn configure_server(&self, server: Server) -> Server {
        let server = if self.copy_images { server.without_zero_copy() } else { server };
        match self.fast_path {
            OnByDefault::On => server,
            OnByDefault::Off => server.without_fast_path(),
        }
    }

    fn added_from(&self) -> AddedImageServers {
        self.added_image_servers.as_ref().map_or_else(AddedImageServers::default, |servers| {
            AddedImageServers::Listed(servers.iter().cloned().collect())
        })
    }

    /// Makes the inventory refuse to add images that the library would not download.
    pub(super) fn apply_to_settings(&self, settings: &mut Settings) {
        let servers = self.added_from();
        settings.added_image_rule = AddedImageRule::new(move |url| servers.check_url(url));
    }

    /// Opens the image library, and returns the image server of this process's inventory.
    pub(super) async fn open_server(&self, inventory: &Inventory, data_dir: &Path) -> Result<ImageServer> {
        let images = inventory.catalogue().os_images().to_vec();
        let added = inventory.added_images().await?;
        if images.is_empty() && added.is_empty() {
            tracing::warn!(
                "OS_IMAGES (--os-images) is not set: without a base image, no infra-env can be created; start with \
                 {EXAMPLE}, or add one on the page or at {}/v2/os-images",
                Settings::API
            );
        }
        let mut settings = self.library_settings(data_dir, DownloadTiming::OnFirstUse)?;
        settings.added_from = self.added_from();
        let library = Library::open_with_added(settings, images.clone(), added)?;
        let inputs = Arc::new(EmbeddedInputs::new(inventory.clone()));
        let base_url = inventory.settings().image_service_base_url.clone();
        let server = ImageServer::new(images, library, inputs, base_url);
        tokio::spawn(follow_added_images(inventory.clone(), server.clone()));
        Ok(server)
    }

    /// Returns the image server of an external inventory.
    pub(super) fn open_external_server(
        &self,
        inputs: Arc<dyn ImageInputs>,
        images: Vec<OsImage>,
        (data_dir, base_url): (&Path, HttpUrl),
    ) -> Result<ImageServer> {
        if images.is_empty() {
            bail!("OS_IMAGES (--os-images) is not set: no base images to serve; start with {EXAMPLE}");
        }
        let library =
            Library::open(self.library_settings(data_dir, DownloadTiming::AtStart)?, images.clone())?;
        Ok(ImageServer::new(images, library, inputs, base_url))
    }

    fn library_settings(&self, data_dir: &Path, when: DownloadTiming) -> Result<LibrarySettings> {
        let (option, directory) = match &self.images_dir {
            Some(directory) => (IMAGES_DIR, directory.clone()),
            None => (DATA_DIR, data_dir.join("images")),
        };
        check_directory(option, &directory)?;
        let mut settings = LibrarySettings::new(directory);
        settings.when = match self.fetch_images {
            None => when,
            Some(FetchTiming::AtStart) => DownloadTiming::AtStart,
            Some(FetchTiming::OnFirstUse) => DownloadTiming::OnFirstUse,
        };
        self.servers.apply_to_settings(&mut settings)?;
        if self.prune_images {
            settings.unknown = UnknownFiles::Prune;
        }
        Ok(settings)
    }
}
