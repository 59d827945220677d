//! Which images and releases there are.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use serde::de::IgnoredAny;

use crate::cli::auth::read_text;
use crate::cli::environment::variable_with;
use crate::images::{Catalogue, CatalogueError};

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
        let text = Setting { option: "--os-images", variable: "OS_IMAGES", value: self.os_images.as_deref() };
        let file = Setting {
            option: "--os-images-file",
            variable: "KINDLING_OS_IMAGES_FILE",
            value: self.os_images_file.as_deref(),
        };
        let Some(images) = list(&text, Some(&file))? else { return Ok(Catalogue::default()) };
        Catalogue::parse(&images.text).map_err(|error| images.rejected("OS_IMAGES", &error))
    }
}

impl CatalogueOptions {
    pub(in crate::cli) fn read(&self) -> Result<Catalogue> {
        let text = Setting {
            option: "--release-images",
            variable: "RELEASE_IMAGES",
            value: self.release_images.as_deref(),
        };
        let file = Setting {
            option: "--release-images-file",
            variable: "KINDLING_RELEASE_IMAGES_FILE",
            value: self.release_images_file.as_deref(),
        };
        let ignored = Setting {
            option: "--ignored-openshift-versions",
            variable: "IGNORED_OPENSHIFT_VERSIONS",
            value: self.ignored_openshift_versions.as_deref(),
        };
        let mut catalogue = self.os_images.read()?;
        if let Some(releases) = list(&text, Some(&file))? {
            let with = catalogue.with_release_images(&releases.text);
            catalogue = with.map_err(|error| releases.rejected("RELEASE_IMAGES", &error))?;
        }
        if let Some(versions) = list(&ignored, None)? {
            let without = catalogue.ignoring(&versions.text);
            catalogue = without.map_err(|error| versions.rejected("IGNORED_OPENSHIFT_VERSIONS", &error))?;
        }
        Ok(catalogue)
    }
}

/// The value of an option, which may come from a variable.
struct Setting<'a, T: ?Sized> {
    option: &'static str,
    variable: &'static str,
    value: Option<&'a T>,
}

impl<T: AsRef<OsStr> + ?Sized> Setting<'_, T> {
    /// The name of the variable that the value comes from, else that of the option.
    fn name(&self) -> String {
        let value = self.value.map(AsRef::as_ref);
        variable_with(self.variable, value).unwrap_or_else(|| self.option.to_owned())
    }
}

/// A list as text.
struct List {
    /// Where it comes from, for messages.
    source: String,
    text: String,
}

impl List {
    /// The error of a list whose entries are wrong. The catalogue begins its messages with the name of a variable.
    fn rejected(&self, variable: &str, error: &CatalogueError) -> anyhow::Error {
        let message = error.to_string();
        let reason =
            message.strip_prefix(variable).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(&message);
        anyhow!("{}: {reason}", self.source)
    }
}

/// Reads the JSON list in the value of the first option, or in a file that either option names.
fn list(option: &Setting<str>, file: Option<&Setting<Path>>) -> Result<Option<List>> {
    let file = file.and_then(|file| Some((file.name(), file.value?)));
    let (source, path) = match (file, option.value) {
        (Some(file), _) => file,
        (None, Some(text)) => match text.strip_prefix('@') {
            Some(path) => (option.name(), Path::new(path)),
            None => {
                let list = List { source: option.name(), text: text.to_owned() };
                return check_inline(&list).map(|()| Some(list));
            }
        },
        (None, None) => return Ok(None),
    };
    let list = List { source: format!("{source}: {}", path.display()), text: read_text(path, MAX_LIST)? };
    match list_error(&list.text) {
        Some(error) => bail!("{}: {error}", list.source),
        None => Ok(Some(list)),
    }
}

fn check_inline(List { source, text }: &List) -> Result<()> {
    let Some(error) = list_error(text) else { return Ok(()) };
    let remedy = if Path::new(text).is_file() {
        format!("to read the file {text}, write @{text}")
    } else {
        "to read a file, write @FILE".to_owned()
    };
    bail!("{source}: {error}; {remedy}");
}

/// Why a text is not a JSON list. The catalogue refuses an empty text.
fn list_error(text: &str) -> Option<String> {
    /// Most characters that a message repeats.
    const MAX_SHOWN: usize = 40;
    let start = text.trim();
    let error = serde_json::from_str::<Vec<IgnoredAny>>(text).err().filter(|_| !start.is_empty())?;
    let short: String = start.chars().take(MAX_SHOWN).collect();
    let rest = if short.len() < start.len() { "..." } else { "" };
    Some(match start.starts_with('[') {
        true => format!("{short:?}{rest} is not valid JSON: {error}"),
        false => format!("{short:?}{rest} is not a JSON list"),
    })
}
