//! The base image of discovery images: a file, a catalogue entry, or a URL.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use clap::{ArgGroup, Args};
use discovery::OpenshiftVersion;
use ignition::discovery::masked_url;
use isogen::{BaseImage, Digest};
use sha2::{Digest as _, Sha256};

use crate::cli::catalogue::OsImagesOptions;
use crate::cli::directories::check_directory;
use crate::cli::progress::{StderrScreen, clear_bars};
use crate::cli::servers::ServerOptions;
use crate::images::library::{Library, LibrarySettings, image_architecture};
use inventory::catalogue::{CpuArchitecture, ImageType, OsImage};

#[derive(Debug, Args)]
#[command(next_help_heading = "Base image", group = ArgGroup::new("base_source").required(true))]
pub(super) struct BaseOptions {
    /// Base image: a path, or a URL to download it from once
    #[arg(long, value_name = "ISO|URL", group = "base_source")]
    base: Option<String>,
    /// OpenShift version whose base image in the catalogue to use; downloaded once
    #[arg(long, value_name = "VERSION", group = "base_source")]
    os_image: Option<String>,
    /// CPU architecture of the machines, which the base image must have [default: the architecture in the manifests;
    /// x86_64 for downloads if the manifests name none]
    #[arg(long, value_name = "ARCH", value_parser = parse_architecture)]
    pub(super) arch: Option<CpuArchitecture>,
    /// Expected SHA-256 digest of the base image
    #[arg(long, value_name = "DIGEST", requires = "base")]
    base_sha256: Option<Digest>,
    /// Directory for downloaded base images [default: kindling/images in the user's cache directory]
    #[arg(long, env = "KINDLING_IMAGES_DIR", value_name = "DIR")]
    images_dir: Option<PathBuf>,
    #[command(flatten)]
    servers: ServerOptions,
    #[command(flatten)]
    catalogue: OsImagesOptions,
}

#[derive(Debug)]
pub(super) struct OpenedBase {
    pub(super) image: Arc<BaseImage>,
    /// The OpenShift version of the image, if known.
    pub(super) version: Option<OpenshiftVersion>,
}

impl BaseOptions {
    /// Opens the base image. `architecture` is the architecture in the manifests.
    pub(super) fn open(&self, architecture: Option<&str>) -> Result<OpenedBase> {
        let opened = self.open_unchecked(architecture)?;
        self.check_architecture(&opened.image)?;
        Ok(opened)
    }

    fn open_unchecked(&self, architecture: Option<&str>) -> Result<OpenedBase> {
        let architecture = || match self.arch {
            Some(arch) => Ok(arch),
            None => parse_architecture(architecture.unwrap_or("x86_64")).map_err(anyhow::Error::msg),
        };
        match (&self.base, &self.os_image) {
            (Some(base), _) if !base.contains("://") => self.open_path(base),
            (Some(url), _) => {
                check_scheme(url)?;
                self.fetch_image(self.os_image_for_url(url, architecture()?), None)
            }
            (None, Some(version)) => {
                let catalogue = self.catalogue.read_catalogue()?;
                ensure!(
                    !catalogue.os_images().is_empty(),
                    "--os-image: no list of base images; set --os-images-file, --os-images or OS_IMAGES"
                );
                let architecture = architecture()?;
                let image = catalogue.os_image(Some(version), architecture).with_context(|| {
                    let listed = listed_images(catalogue.os_images());
                    format!(
                        "--os-image: no base image for {version:?} and {architecture}; the list has {listed}"
                    )
                })?;
                let version = image.openshift_version.parse().context("--os-image")?;
                self.fetch_image(image.clone(), Some(version))
            }
            (None, None) => bail!("no base image; set --base or --os-image"),
        }
    }

    fn open_path(&self, path: &str) -> Result<OpenedBase> {
        let image = BaseImage::open(path).with_context(|| format!("--base: cannot use {path}"))?;
        image.require_pristine()?;
        if let Some(expected) = self.base_sha256 {
            let actual = image.source().digest()?;
            ensure!(actual == expected, "{path}: SHA-256 digest is {actual}, expected {expected}");
        }
        Ok(OpenedBase { version: version_in_volume_id(&image), image: Arc::new(image) })
    }

    /// Returns an error if the architecture of the image differs from `--arch`.
    fn check_architecture(&self, image: &BaseImage) -> Result<()> {
        let (Some(expected), Some(actual)) = (self.arch, image_architecture(image)) else { return Ok(()) };
        let name = image.source().name();
        ensure!(actual == expected, "--arch: base image {name} is for {actual}, not for {expected}");
        Ok(())
    }

    /// Returns a catalogue entry for the image at a URL. The version and the file name contain a digest of the URL.
    fn os_image_for_url(&self, url: &str, cpu_architecture: CpuArchitecture) -> OsImage {
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

    fn fetch_image(&self, image: OsImage, version: Option<OpenshiftVersion>) -> Result<OpenedBase> {
        let directory = self.images_directory()?;
        check_directory("--images-dir (KINDLING_IMAGES_DIR)", &directory)?;
        let mut settings = LibrarySettings::new(directory);
        self.servers.apply_to_settings(&mut settings)?;
        let runtime = tokio::runtime::Runtime::new().context("cannot start the async runtime")?;
        let base = runtime.block_on(async {
            let library = Library::open(settings, [image.clone()])?;
            let bars = tokio::spawn(StderrScreen::with_bars().show_progress(library.clone()));
            let base = library.base(&image).await;
            bars.abort();
            // The result is the expected error of a cancelled task.
            let _ = bars.await;
            clear_bars();
            anyhow::Ok(base?)
        })?;
        let image = Arc::clone(base.image());
        Ok(OpenedBase { version: version.or_else(|| version_in_volume_id(&image)), image })
    }

    fn images_directory(&self) -> Result<PathBuf> {
        if let Some(directory) = &self.images_dir {
            return Ok(directory.clone());
        }
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let caches = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
        let caches = caches.context("no directory for base images; set --images-dir")?;
        Ok(caches.join("kindling/images"))
    }
}

/// Returns a sorted list of the versions and architectures of images, for a message.
fn listed_images(images: &[OsImage]) -> String {
    let description = |image: &OsImage| {
        let kind = if image.image_type == ImageType::Disconnected { ", disconnected ISO" } else { "" };
        format!("{} ({}{kind})", image.openshift_version, image.cpu_architecture)
    };
    let images: BTreeSet<String> = images.iter().map(description).collect();
    images.into_iter().collect::<Vec<_>>().join(", ")
}

pub(in crate::cli) fn parse_architecture(name: &str) -> Result<CpuArchitecture, String> {
    CpuArchitecture::from_name(name)
        .ok_or_else(|| format!("no base images exist for CPU architecture {name:?}"))
}

/// Returns an error if the scheme is not supported.
fn check_scheme(url: &str) -> Result<()> {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    let is_known = ["http", "https", "s3", "file"].iter().any(|name| scheme.eq_ignore_ascii_case(name));
    let url = masked_url(url);
    ensure!(
        is_known,
        "--base {url}: unsupported scheme {scheme:?}; use a path or an http, https, s3 or file URL"
    );
    Ok(())
}

/// Returns the OpenShift version in the volume identifier: `rhcos-418.94.202412010000-0` is for 4.18. Identifiers of
/// newer images contain the version of RHEL instead, so this returns `None` for them.
fn version_in_volume_id(image: &BaseImage) -> Option<OpenshiftVersion> {
    let first = image.volume().id().strip_prefix("rhcos-")?.split('.').next()?;
    let minor = first.strip_prefix('4').filter(|minor| minor.len() >= 2)?;
    format!("4.{}", minor.parse::<u32>().ok()?).parse().ok()
}
