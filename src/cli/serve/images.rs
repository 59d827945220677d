//! The live images of the service.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use ignition::discovery::HttpUrl;

use super::database::secret;
use super::value::switch;
use crate::http::Server;
use crate::http::images::{Embedded, ImageInputs, ImageServer};
use crate::images::OsImage;
use crate::images::library::{Library, LibrarySettings, Trust, Unknown, When};
use crate::inventory::{Inventory, Secret, Settings};

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
    /// File with certificates, in PEM, that servers of live images may have beside those that this system trusts
    #[arg(long, env = "OS_IMAGE_DOWNLOAD_TRUSTED_CA_FILE", value_name = "FILE")]
    image_ca_file: Option<PathBuf>,
    /// Whether servers of live images may have any certificate, so that whoever is on the way may give other images;
    /// without effect if there is a file of certificates for them
    #[arg(
        long,
        env = "INSECURE_SKIP_VERIFY",
        value_name = "BOOL",
        default_value = "false",
        value_parser = switch
    )]
    insecure_skip_verify: bool,
    /// Headers of requests for live images, as a JSON object of texts; they are not logged
    #[arg(long, env = "OS_IMAGES_REQUEST_HEADERS", value_name = "JSON", value_parser = secret)]
    image_request_headers: Option<Secret>,
    /// Parameters of requests for live images, as a JSON object of texts; they are not logged
    #[arg(long, env = "OS_IMAGES_REQUEST_QUERY_PARAMS", value_name = "JSON", value_parser = secret)]
    image_request_query: Option<Secret>,
    /// Copy bytes of live images into connections, and do not lend their pages to the kernel. It takes more of the processor, but nobody
    /// who wants to write to a live image has to wait
    #[arg(long, env = "KINDLING_COPY_IMAGES")]
    copy_images: bool,
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

impl Images {
    /// The server as it sends them.
    pub(super) fn sent_by(&self, server: Server) -> Server {
        if self.copy_images { server.copying() } else { server }
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
        settings.trust = match &self.image_ca_file {
            Some(file) => Trust::SystemAnd(file.clone()),
            None if self.insecure_skip_verify => {
                tracing::warn!(
                    "INSECURE_SKIP_VERIFY is set: whoever is on the way may give other live images"
                );
                Trust::DangerouslyAnybody
            }
            None => Trust::System,
        };
        settings.request_headers = texts("OS_IMAGES_REQUEST_HEADERS", self.image_request_headers.as_ref())?;
        settings.request_query = texts("OS_IMAGES_REQUEST_QUERY_PARAMS", self.image_request_query.as_ref())?;
        if self.prune_images {
            settings.unknown = Unknown::Prune;
        }
        Ok(settings)
    }
}

/// Texts by name. What is wrong with them is told by its place: the values are credentials.
fn texts(name: &str, json: Option<&Secret>) -> Result<BTreeMap<String, String>> {
    let Some(json) = json else { return Ok(BTreeMap::new()) };
    let texts = serde_json::from_str(json.reveal());
    texts.map_err(|error| {
        let (line, column) = (error.line(), error.column());
        anyhow::anyhow!("{name} is no JSON object of texts: see line {line}, column {column} of it")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_texts_by_name_and_stay_secret() {
        let read = |json: &str| texts("NAME", Some(&Secret::new(json)));
        assert_eq!(texts("NAME", None).unwrap(), BTreeMap::new());
        assert_eq!(read(r#"{"Authorization": "s3cret"}"#).unwrap()["Authorization"], "s3cret");
        for wrong in [r#"{"a": ["s3cret"]}"#, r#""s3cret""#, r#"{"a": "s3cret""#, r#"{"a": 3}"#] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.starts_with("NAME is no JSON object") && !error.contains("s3cret"), "{error}");
        }
    }
}
