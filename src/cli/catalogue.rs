//! Which images and releases there are.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

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
        let images = list(self.os_images.as_deref(), self.os_images_file.as_deref())?;
        Ok(images.as_deref().map(Catalogue::parse).transpose()?.unwrap_or_default())
    }
}

impl CatalogueOptions {
    pub(in crate::cli) fn read(&self) -> Result<Catalogue> {
        let mut catalogue = self.os_images.read()?;
        if let Some(releases) = list(self.release_images.as_deref(), self.release_images_file.as_deref())? {
            catalogue = catalogue.with_release_images(&releases)?;
        }
        if let Some(ignored) = list(self.ignored_openshift_versions.as_deref(), None)? {
            catalogue = catalogue.ignoring(&ignored)?;
        }
        Ok(catalogue)
    }
}

/// A list as text, from wherever it stands.
fn list(text: Option<&str>, file: Option<&Path>) -> Result<Option<String>> {
    match (text.map(|text| text.strip_prefix('@').ok_or(text)), file) {
        (_, Some(path)) => read_text(path, MAX_LIST).map(Some),
        (Some(Ok(path)), None) => read_text(Path::new(path), MAX_LIST).map(Some),
        (Some(Err(text)), None) => Ok(Some(text.to_owned())),
        (None, None) => Ok(None),
    }
}
