//! Which images and releases there are.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use serde::de::IgnoredAny;

use crate::cli::auth::read_text;
use crate::images::Catalogue;

/// The largest list that is read from a file. One of every release that ever was has less.
const MAX_LIST: u64 = 16 << 20;

/// The live images that there are.
#[derive(Debug, Args)]
#[command(next_help_heading = "Images and releases")]
pub(in crate::cli) struct OsImagesOptions {
    /// The live images that there are, as a JSON list, or as @ and the name of a file with one; the variable
    /// RHCOS_VERSIONS is read as well
    #[arg(long, env = "OS_IMAGES", value_name = "JSON|@FILE")]
    os_images: Option<String>,
    /// File with the list of live images
    #[arg(long, env = "KINDLING_OS_IMAGES_FILE", value_name = "FILE", conflicts_with = "os_images")]
    os_images_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Images and releases")]
pub(in crate::cli) struct CatalogueOptions {
    #[command(flatten)]
    os_images: OsImagesOptions,
    /// The releases that clusters can be made of, as a JSON list, or as @ and the name of a file with one
    #[arg(long, env = "RELEASE_IMAGES", value_name = "JSON|@FILE")]
    release_images: Option<String>,
    /// File with the list of releases
    #[arg(
        long,
        env = "KINDLING_RELEASE_IMAGES_FILE",
        value_name = "FILE",
        conflicts_with = "release_images"
    )]
    release_images_file: Option<PathBuf>,
    /// Versions that are not offered, as a JSON list
    #[arg(long, env = "IGNORED_OPENSHIFT_VERSIONS", value_name = "JSON|@FILE")]
    ignored_openshift_versions: Option<String>,
}

impl OsImagesOptions {
    pub(in crate::cli) fn read(&self) -> Result<Catalogue> {
        const TEXT: &str = "--os-images (OS_IMAGES)";
        const FILE: &str = "--os-images-file (KINDLING_OS_IMAGES_FILE)";
        let images = list((TEXT, self.os_images.as_deref()), (FILE, self.os_images_file.as_deref()))?;
        Ok(images.as_deref().map(Catalogue::parse).transpose()?.unwrap_or_default())
    }
}

impl CatalogueOptions {
    pub(in crate::cli) fn read(&self) -> Result<Catalogue> {
        const TEXT: &str = "--release-images (RELEASE_IMAGES)";
        const FILE: &str = "--release-images-file (KINDLING_RELEASE_IMAGES_FILE)";
        const IGNORED: &str = "--ignored-openshift-versions (IGNORED_OPENSHIFT_VERSIONS)";
        let mut catalogue = self.os_images.read()?;
        let releases =
            list((TEXT, self.release_images.as_deref()), (FILE, self.release_images_file.as_deref()))?;
        if let Some(releases) = releases {
            catalogue = catalogue.with_release_images(&releases)?;
        }
        if let Some(ignored) = list((IGNORED, self.ignored_openshift_versions.as_deref()), (IGNORED, None))? {
            catalogue = catalogue.ignoring(&ignored)?;
        }
        Ok(catalogue)
    }
}

/// The text of a JSON list, which is the value of the first option, or in a file that either option names. The options have
/// names for messages.
fn list(
    (option, text): (&str, Option<&str>),
    (file_option, file): (&str, Option<&Path>),
) -> Result<Option<String>> {
    let (option, path) = match (file, text.map(|text| (text, text.strip_prefix('@')))) {
        (Some(path), _) => (file_option, path),
        (None, Some((_, Some(path)))) => (option, Path::new(path)),
        (None, Some((text, None))) => {
            check_inline(option, text)?;
            return Ok(Some(text.to_owned()));
        }
        (None, None) => return Ok(None),
    };
    let text = read_text(path, MAX_LIST)?;
    if let Some(error) = list_error(&text) {
        bail!("{option}: {}: not a JSON list: {error}", path.display());
    }
    Ok(Some(text))
}

fn check_inline(option: &str, text: &str) -> Result<()> {
    let Some(error) = list_error(text) else { return Ok(()) };
    let remedy = if Path::new(text).is_file() {
        format!("to read the file {text}, write @{text}")
    } else {
        "to read a file, write @FILE".to_owned()
    };
    bail!("{option}: not a JSON list: {error}; {remedy}");
}

/// Why a text is not a JSON list. The catalogue refuses an empty text.
fn list_error(text: &str) -> Option<serde_json::Error> {
    if text.trim().is_empty() { None } else { serde_json::from_str::<Vec<IgnoredAny>>(text).err() }
}
