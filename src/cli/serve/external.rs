//! The options for an external inventory. With one, this process serves only images.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use ignition::discovery::HttpUrl;

use crate::http::images::{ExternalInputs, ExternalSettings, ImageInputs};

#[derive(Debug, Args)]
#[command(next_help_heading = "External inventory")]
pub(super) struct ExternalOptions {
    /// Serve only images, for the inventory at this URL, which also authorizes the downloads. This process then has no
    /// database, no API and no access policy
    #[arg(long, env = "KINDLING_INVENTORY_URL", value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    inventory_url: Option<String>,
    /// Host and port of the external inventory, instead of a URL
    #[arg(long, env = "ASSISTED_SERVICE_HOST", value_name = "HOST[:PORT]", value_parser = NonEmptyStringValueParser::new())]
    assisted_service_host: Option<String>,
    /// Scheme for --assisted-service-host
    #[arg(long, env = "ASSISTED_SERVICE_SCHEME", value_name = "SCHEME", value_enum, default_value_t)]
    assisted_service_scheme: UrlScheme,
    /// File with CA certificates, in PEM, to trust for the inventory in addition to the system's certificates;
    /// HTTPS_CA_FILE is read as well
    #[arg(long, env = "ASSISTED_SERVICE_API_TRUSTED_CA_FILE", value_name = "FILE")]
    inventory_ca_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum UrlScheme {
    /// Without encryption
    #[default]
    Http,
    /// With TLS
    Https,
}

impl ExternalOptions {
    /// Returns a client of the external inventory, or `None` if no inventory is configured.
    pub(super) fn image_inputs(&self, outage_grace: Duration) -> Result<Option<Arc<dyn ImageInputs>>> {
        let Some(url) = self.inventory_url()? else { return Ok(None) };
        tracing::info!(inventory = ?url, "serving only images, for an external inventory");
        let ca_file = self.inventory_ca_file.clone();
        let settings = ExternalSettings { ca_file, outage_grace, ..ExternalSettings::new(url) };
        Ok(Some(Arc::new(ExternalInputs::new(&settings)?)))
    }

    fn inventory_url(&self) -> Result<Option<HttpUrl>> {
        if let Some(url) = &self.inventory_url {
            let url = HttpUrl::parse("KINDLING_INVENTORY_URL", url)?;
            if url.as_str().contains(['?', '#', '@']) {
                bail!("KINDLING_INVENTORY_URL {url:?} may only have a scheme, a host, a port and a path");
            }
            return Ok(Some(url));
        }
        let Some(host) = &self.assisted_service_host else { return Ok(None) };
        if host.contains(['/', '?', '#', '@']) {
            bail!("ASSISTED_SERVICE_HOST must be HOST[:PORT]; to set a URL, use KINDLING_INVENTORY_URL");
        }
        let scheme = match self.assisted_service_scheme {
            UrlScheme::Http => "http",
            UrlScheme::Https => "https",
        };
        Ok(Some(HttpUrl::parse("ASSISTED_SERVICE_HOST", &format!("{scheme}://{host}"))?))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        external: ExternalOptions,
    }

    fn inventory_url_of(line: &[&str]) -> Result<Option<String>, String> {
        let command = Command::try_parse_from(["test"].iter().chain(line)).unwrap();
        let url = command.external.inventory_url().map_err(|error| error.to_string())?;
        Ok(url.map(|url| url.as_str().to_owned()))
    }

    #[test]
    fn inventory_url_is_explicit_or_built_from_host() {
        assert_eq!(inventory_url_of(&[]), Ok(None));
        assert_eq!(inventory_url_of(&["--assisted-service-scheme", "https"]), Ok(None));
        let host = ["--assisted-service-host", "assisted:8090"];
        assert_eq!(inventory_url_of(&host).unwrap().unwrap(), "http://assisted:8090");
        let with_scheme = [&host[..], &["--assisted-service-scheme", "https"]].concat();
        assert_eq!(inventory_url_of(&with_scheme).unwrap().unwrap(), "https://assisted:8090");
        let both = [&host[..], &["--inventory-url", "https://api.example.com/prefix/"]].concat();
        assert_eq!(inventory_url_of(&both).unwrap().unwrap(), "https://api.example.com/prefix/");
        for wrong in ["http://user:secret@host", "http://host/?token=secret", "ftp://host", "host"] {
            let error = inventory_url_of(&["--inventory-url", wrong]).unwrap_err();
            assert!(error.contains("KINDLING_INVENTORY_URL") && !error.contains("secret"), "{error}");
        }
        assert!(
            inventory_url_of(&["--assisted-service-host", "http://assisted"])
                .unwrap_err()
                .contains("HOST[:PORT]")
        );
    }
}
