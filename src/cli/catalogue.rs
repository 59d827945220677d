//! The options with the catalogue of base images and OpenShift releases.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use serde::de::IgnoredAny;

use crate::cli::auth::read_text;
use crate::cli::environment::variable_with_value;
use inventory::catalogue::{Catalogue, CatalogueError};

/// Maximum length of a list in a file. A list of all published releases is shorter.
const MAX_LIST: u64 = 16 << 20;

/// The options with the list of base images.
#[derive(Debug, Args)]
#[command(next_help_heading = "Images and releases")]
pub(in crate::cli) struct OsImagesOptions {
    /// List of base images, as JSON, or as @FILE for a file with the list
    ///
    /// RHCOS_VERSIONS is read as well.
    #[arg(long, env = "OS_IMAGES", value_name = "JSON|@FILE")]
    os_images: Option<String>,
    /// File with the list of base images
    #[arg(long, env = "KINDLING_OS_IMAGES_FILE", value_name = "FILE", conflicts_with = "os_images")]
    os_images_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Images and releases")]
pub(in crate::cli) struct CatalogueOptions {
    #[command(flatten)]
    os_images: OsImagesOptions,
    /// List of OpenShift releases that clusters can install, as JSON, or as @FILE for a file with the list
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
    /// OpenShift versions to leave out of the lists, as a JSON list or as @FILE
    #[arg(long, env = "IGNORED_OPENSHIFT_VERSIONS", value_name = "JSON|@FILE")]
    ignored_openshift_versions: Option<String>,
}

impl OsImagesOptions {
    pub(in crate::cli) fn read_catalogue(&self) -> Result<Catalogue> {
        let text =
            OptionValue { option: "--os-images", variable: "OS_IMAGES", value: self.os_images.as_deref() };
        let file = OptionValue {
            option: "--os-images-file",
            variable: "KINDLING_OS_IMAGES_FILE",
            value: self.os_images_file.as_deref(),
        };
        let Some(images) = read_list(&text, Some(&file))? else { return Ok(Catalogue::default()) };
        if images.text.trim().is_empty() {
            bail!("{}: OS_IMAGES list is empty", images.source);
        }
        Catalogue::parse(&images.text).map_err(|error| images.invalid_list_error(error))
    }
}

impl CatalogueOptions {
    pub(in crate::cli) fn read_catalogue(&self) -> Result<Catalogue> {
        let text = OptionValue {
            option: "--release-images",
            variable: "RELEASE_IMAGES",
            value: self.release_images.as_deref(),
        };
        let file = OptionValue {
            option: "--release-images-file",
            variable: "KINDLING_RELEASE_IMAGES_FILE",
            value: self.release_images_file.as_deref(),
        };
        let ignored = OptionValue {
            option: "--ignored-openshift-versions",
            variable: "IGNORED_OPENSHIFT_VERSIONS",
            value: self.ignored_openshift_versions.as_deref(),
        };
        let mut catalogue = self.os_images.read_catalogue()?;
        if let Some(releases) = read_list(&text, Some(&file))? {
            let with = catalogue.with_release_images(&releases.text);
            catalogue = with.map_err(|error| releases.invalid_list_error(error))?;
        }
        if let Some(versions) = read_list(&ignored, None)? {
            let without = catalogue.ignoring(&versions.text);
            catalogue = without.map_err(|error| versions.invalid_list_error(error))?;
        }
        Ok(catalogue)
    }
}

/// The value of an option, which may come from a variable.
struct OptionValue<'a, T: ?Sized> {
    option: &'static str,
    variable: &'static str,
    value: Option<&'a T>,
}

impl<T: AsRef<OsStr> + ?Sized> OptionValue<'_, T> {
    /// Returns the name of the variable that contains the value, or the name of the option if no variable does.
    fn name(&self) -> String {
        let value = self.value.map(AsRef::as_ref);
        variable_with_value(self.variable, value).unwrap_or_else(|| self.option.to_owned())
    }
}

/// The text of a list, which is not parsed yet.
struct ListText {
    /// The option, variable or file with the text, for messages.
    source: String,
    text: String,
}

impl ListText {
    /// Adds the source of the list to an error about an entry. Keeps the position of the entry in the JSON.
    fn invalid_list_error(&self, error: CatalogueError) -> anyhow::Error {
        let source = &self.source;
        match error {
            CatalogueError::List { reason, .. } => anyhow!("{source}: {reason}"),
            CatalogueError::Element { index, key: Some(key), reason, .. } => {
                anyhow!("{source}: [{index}].{key} {reason}")
            }
            CatalogueError::Element { index, key: None, reason, .. } => {
                anyhow!("{source}: [{index}] {reason}")
            }
            error => anyhow!("{source}: {error}"),
        }
    }
}

/// Reads a JSON list. It is the value of `option`, or is in a file that `file` or `option` names.
fn read_list(option: &OptionValue<str>, file: Option<&OptionValue<Path>>) -> Result<Option<ListText>> {
    let file = file.and_then(|file| Some((file.name(), file.value?)));
    let (source, path) = match (file, option.value) {
        (Some(file), _) => file,
        (None, Some(text)) => match text.strip_prefix('@') {
            Some(path) => (option.name(), Path::new(path)),
            None => {
                let list = ListText { source: option.name(), text: text.to_owned() };
                return check_inline_list(&list).map(|()| Some(list));
            }
        },
        (None, None) => return Ok(None),
    };
    let list = ListText { source: format!("{source}: {}", path.display()), text: read_text(path, MAX_LIST)? };
    match list_error(&list.text) {
        Some(error) => bail!("{}: {error}", list.source),
        None => Ok(Some(list)),
    }
}

fn check_inline_list(ListText { source, text }: &ListText) -> Result<()> {
    let Some(error) = list_error(text) else { return Ok(()) };
    let remedy = if Path::new(text).is_file() {
        format!("to read the file {text}, write @{text}")
    } else {
        "to read a file, write @FILE".to_owned()
    };
    bail!("{source}: {error}; {remedy}");
}

/// Returns the reason why a text is not a JSON list. The reason does not quote the text, which may contain credentials.
/// Returns `None` for an empty text, which the catalogue refuses later.
fn list_error(text: &str) -> Option<String> {
    let start = text.trim();
    let error = serde_json::from_str::<Vec<IgnoredAny>>(text).err().filter(|_| !start.is_empty())?;
    Some(match start.starts_with('[') {
        true => format!("the text is not valid JSON: {error}"),
        false => "the text is not a JSON list, which starts with `[`".to_owned(),
    })
}
