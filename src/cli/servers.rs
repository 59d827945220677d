//! The servers that live images come from.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::serve::database::secret;
use super::serve::value::switch;
use crate::images::library::{LibrarySettings, Trust};
use crate::inventory::Secret;

#[derive(Debug, Args)]
pub(super) struct ServerOptions {
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
    /// Headers of requests for live images, as a JSON object of strings; they are not logged
    #[arg(long, env = "OS_IMAGES_REQUEST_HEADERS", value_name = "JSON", value_parser = secret)]
    image_request_headers: Option<Secret>,
    /// Parameters of requests for live images, as a JSON object of strings; they are not logged
    #[arg(long, env = "OS_IMAGES_REQUEST_QUERY_PARAMS", value_name = "JSON", value_parser = secret)]
    image_request_query: Option<Secret>,
}

impl ServerOptions {
    pub(super) fn apply(&self, settings: &mut LibrarySettings) -> Result<()> {
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
        Ok(())
    }
}

/// Strings by name. An error has the place of a mistake but no value: the values are credentials.
fn texts(name: &str, json: Option<&Secret>) -> Result<BTreeMap<String, String>> {
    let Some(json) = json else { return Ok(BTreeMap::new()) };
    let texts = serde_json::from_str(json.reveal());
    texts.map_err(|error| {
        let (line, column) = (error.line(), error.column());
        anyhow::anyhow!("{name} is not a JSON object of strings: line {line}, column {column}")
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
            assert!(
                error.starts_with("NAME is not a JSON object of strings: line ") && !error.contains("s3cret"),
                "{error}"
            );
        }
    }
}
