//! Options for the servers that provide base images.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::serve::database::parse_secret;
use super::serve::value::parse_switch;
use crate::images::library::{LibrarySettings, ServerTrust};
use crate::inventory::Secret;

#[derive(Debug, Args)]
pub(super) struct ServerOptions {
    /// File with CA certificates, in PEM, to trust for base image downloads in addition to the system's certificates
    #[arg(long, env = "OS_IMAGE_DOWNLOAD_TRUSTED_CA_FILE", value_name = "FILE")]
    image_ca_file: Option<PathBuf>,
    /// Skip TLS verification when downloading base images (insecure). Has no effect together with --image-ca-file
    #[arg(
        long,
        env = "INSECURE_SKIP_VERIFY",
        value_name = "BOOL",
        default_value_t = ServerTrust::default() == ServerTrust::DangerouslyAnybody,
        value_parser = parse_switch
    )]
    insecure_skip_verify: bool,
    /// Headers of base image downloads, as a JSON object of strings; not logged
    #[arg(long, env = "OS_IMAGES_REQUEST_HEADERS", value_name = "JSON", value_parser = parse_secret)]
    image_request_headers: Option<Secret>,
    /// Query parameters of base image downloads, as a JSON object of strings; not logged
    #[arg(long, env = "OS_IMAGES_REQUEST_QUERY_PARAMS", value_name = "JSON", value_parser = parse_secret)]
    image_request_query: Option<Secret>,
}

impl ServerOptions {
    pub(super) fn apply_to_settings(&self, settings: &mut LibrarySettings) -> Result<()> {
        settings.trust = match &self.image_ca_file {
            Some(file) => {
                if self.insecure_skip_verify {
                    tracing::warn!(
                        "INSECURE_SKIP_VERIFY has no effect together with --image-ca-file \
                         (OS_IMAGE_DOWNLOAD_TRUSTED_CA_FILE)"
                    );
                }
                ServerTrust::SystemAnd(file.clone())
            }
            None if self.insecure_skip_verify => {
                tracing::warn!(
                    "INSECURE_SKIP_VERIFY is set: base image downloads are not protected against tampering"
                );
                ServerTrust::DangerouslyAnybody
            }
            None => ServerTrust::System,
        };
        settings.request_headers =
            parse_text_map("OS_IMAGES_REQUEST_HEADERS", self.image_request_headers.as_ref())?;
        settings.request_query =
            parse_text_map("OS_IMAGES_REQUEST_QUERY_PARAMS", self.image_request_query.as_ref())?;
        Ok(())
    }
}

/// Parses a JSON object of strings. An error contains the position but no value, because the values are credentials.
fn parse_text_map(name: &str, json: Option<&Secret>) -> Result<BTreeMap<String, String>> {
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
    fn header_errors_hide_values() {
        let read = |json: &str| parse_text_map("NAME", Some(&Secret::new(json)));
        assert_eq!(parse_text_map("NAME", None).unwrap(), BTreeMap::new());
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
