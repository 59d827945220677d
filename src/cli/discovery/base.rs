//! The live image that images are made on: a file, one of the catalogue, or one at a URL.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use ignition::discovery::masked_url;
use isogen::{BaseImage, Digest};
use sha2::{Digest as _, Sha256};

use crate::cli::catalogue::OsImagesOptions;
use crate::cli::progress::Screen;
use crate::cli::servers::ServerOptions;
use crate::images::library::{Library, LibrarySettings};
use crate::images::{CpuArchitecture, ImageType, OsImage};

#[derive(Debug, Args)]
#[command(next_help_heading = "Live image")]
pub(super) struct BaseOptions {
    /// Live image: a path, or a URL, from which it is fetched once and kept
    #[arg(long, value_name = "ISO|URL", required_unless_present = "os_image", conflicts_with = "os_image")]
    base: Option<String>,
    /// Version of OpenShift: the live image that the catalogue has for it, fetched once and kept
    #[arg(long, value_name = "VERSION")]
    os_image: Option<String>,
    /// Processor of the machines, for which the live image has to be [default: that of the manifests; x86_64 is fetched where
    /// they name none]
    #[arg(long, value_name = "ARCH", value_parser = processor)]
    pub(super) arch: Option<CpuArchitecture>,
    /// SHA-256 that the live image has to have
    #[arg(long, value_name = "DIGEST", requires = "base")]
    base_sha256: Option<Digest>,
    /// Directory of fetched live images [default: kindling/images in the user's directory of caches]
    #[arg(long, env = "KINDLING_IMAGES_DIR", value_name = "DIR")]
    images_dir: Option<PathBuf>,
    #[command(flatten)]
    servers: ServerOptions,
    #[command(flatten)]
    catalogue: OsImagesOptions,
}

/// A live image, opened.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) image: Arc<BaseImage>,
    /// The version of OpenShift that it is known to be for.
    pub(super) version: Option<String>,
}

impl BaseOptions {
    /// Opens the live image, which is for a processor that the manifests name.
    pub(super) fn open(&self, architecture: Option<&str>) -> Result<Opened> {
        let opened = self.open_any(architecture)?;
        self.check_processor(&opened.image)?;
        Ok(opened)
    }

    fn open_any(&self, architecture: Option<&str>) -> Result<Opened> {
        let architecture = || match self.arch {
            Some(arch) => Ok(arch),
            None => processor(architecture.unwrap_or("x86_64")).map_err(anyhow::Error::msg),
        };
        match (&self.base, &self.os_image) {
            (Some(base), _) if !base.contains("://") => self.at_path(base),
            (Some(url), _) => {
                check_scheme(url)?;
                self.fetch(self.at_url(url, architecture()?), None)
            }
            (None, Some(version)) => {
                let catalogue = self.catalogue.read()?;
                ensure!(
                    !catalogue.os_images().is_empty(),
                    "--os-image: there is no list of live images: give one with --os-images-file, --os-images or OS_IMAGES"
                );
                let image = catalogue.os_image(Some(version), architecture()?)?;
                self.fetch(image.clone(), Some(image.openshift_version.clone()))
            }
            (None, None) => bail!("no live image is named"),
        }
    }

    fn at_path(&self, path: &str) -> Result<Opened> {
        let image = BaseImage::open(path)?;
        image.require_pristine()?;
        if let Some(wanted) = self.base_sha256 {
            let found = image.source().digest()?;
            ensure!(found == wanted, "{path} has the SHA-256 {found}, and not {wanted}");
        }
        Ok(Opened { version: version_of(&image), image: Arc::new(image) })
    }

    /// An image of another processor than the option names is hardly the one that was meant.
    fn check_processor(&self, image: &BaseImage) -> Result<()> {
        let (Some(wanted), Some(found)) = (self.arch, processor_of(image)) else { return Ok(()) };
        let name = image.source().name();
        ensure!(found == wanted, "--arch: the live image {name} is for {found}, and not for {wanted}");
        Ok(())
    }

    /// An image of no catalogue. It is kept under a digest of its URL.
    fn at_url(&self, url: &str, cpu_architecture: CpuArchitecture) -> OsImage {
        let digest = Sha256::digest(url);
        let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        OsImage {
            openshift_version: "0.0".to_owned(),
            cpu_architecture,
            url: url.to_owned(),
            version: format!("url-{name}"),
            image_type: ImageType::Full,
            sha256: self.base_sha256,
        }
    }

    fn fetch(&self, image: OsImage, version: Option<String>) -> Result<Opened> {
        let mut settings = LibrarySettings::new(self.directory()?);
        self.servers.apply(&mut settings)?;
        let runtime = tokio::runtime::Runtime::new().context("the runtime cannot be started")?;
        let base = runtime.block_on(async {
            let library = Library::open(settings, [image.clone()])?;
            let bars = tokio::spawn(Screen::for_people().follow(library.clone()));
            let base = library.base(&image).await;
            bars.abort();
            anyhow::Ok(base?)
        })?;
        let image = Arc::clone(base.image());
        Ok(Opened { version: version.or_else(|| version_of(&image)), image })
    }

    fn directory(&self) -> Result<PathBuf> {
        if let Some(directory) = &self.images_dir {
            return Ok(directory.clone());
        }
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let caches = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
        let caches = caches.context("there is no directory for live images: give --images-dir")?;
        Ok(caches.join("kindling/images"))
    }
}

fn processor(name: &str) -> Result<CpuArchitecture, String> {
    CpuArchitecture::from_name(name)
        .ok_or_else(|| format!("{name:?} is no processor that there are live images for"))
}

/// The processor that a live image is for, if it tells.
pub(super) fn processor_of(image: &BaseImage) -> Option<CpuArchitecture> {
    CpuArchitecture::from_name(&format!("{:?}", image.architecture()?).to_ascii_lowercase())
}

/// Tells at once of a URL that no image is fetched from.
fn check_scheme(url: &str) -> Result<()> {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    let is_known = ["http", "https", "s3", "file"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let url = masked_url(url);
    ensure!(
        is_known,
        "--base {url}: live images are at paths and at http, https, s3 and file URLs, not at {scheme} ones"
    );
    Ok(())
}

/// The version of OpenShift in the name of a volume: `rhcos-418.94.202412010000-0` is one of 4.18. Later ones are named
/// after the version of RHEL, which tells nothing.
fn version_of(image: &BaseImage) -> Option<String> {
    let first = image.volume().id().strip_prefix("rhcos-")?.split('.').next()?;
    let minor = first.strip_prefix('4').filter(|minor| minor.len() >= 2)?;
    minor.parse::<u32>().ok().map(|minor| format!("4.{minor}"))
}
