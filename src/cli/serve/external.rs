//! The inventory of another process.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use ignition::discovery::HttpUrl;

use crate::http::images::{External, ExternalSettings, ImageInputs};

#[derive(Debug, Args)]
#[command(next_help_heading = "Another inventory")]
pub(super) struct ExternalOptions {
    /// Serve images alone, for the inventory at this URL, which says who may have them: without a database, an API and
    /// access rules of this process
    #[arg(long, env = "KINDLING_INVENTORY_URL", value_name = "URL")]
    inventory_url: Option<String>,
    /// The same by host and port, where there is no URL
    #[arg(long, env = "ASSISTED_SERVICE_HOST", value_name = "HOST[:PORT]")]
    assisted_service_host: Option<String>,
    /// How that host is spoken to
    #[arg(long, env = "ASSISTED_SERVICE_SCHEME", value_name = "SCHEME", value_enum, default_value_t)]
    assisted_service_scheme: Scheme,
    /// File with certificates, in PEM, that the inventory may have beside those that this system trusts; the variable
    /// HTTPS_CA_FILE is read as well
    #[arg(long, env = "ASSISTED_SERVICE_API_TRUSTED_CA_FILE", value_name = "FILE")]
    inventory_ca_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Scheme {
    /// Without encryption
    #[default]
    Http,
    /// With TLS
    Https,
}

impl ExternalOptions {
    /// The inventory of another process, if that is the one.
    pub(super) fn inputs(&self) -> Result<Option<Arc<dyn ImageInputs>>> {
        let Some(url) = self.url()? else { return Ok(None) };
        tracing::info!(inventory = ?url, "images alone are served, for an inventory elsewhere");
        let settings =
            ExternalSettings { ca_file: self.inventory_ca_file.clone(), ..ExternalSettings::new(url) };
        Ok(Some(Arc::new(External::new(&settings)?)))
    }

    fn url(&self) -> Result<Option<HttpUrl>> {
        if let Some(url) = &self.inventory_url {
            let url = HttpUrl::parse("KINDLING_INVENTORY_URL", url)?;
            if url.as_str().contains(['?', '#', '@']) {
                bail!("KINDLING_INVENTORY_URL {url:?} has more than a scheme, a host and a path");
            }
            return Ok(Some(url));
        }
        let Some(host) = &self.assisted_service_host else { return Ok(None) };
        if host.contains(['/', '?', '#', '@']) {
            bail!(
                "ASSISTED_SERVICE_HOST is not of the form HOST[:PORT]; a URL is set with KINDLING_INVENTORY_URL"
            );
        }
        let scheme = match self.assisted_service_scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
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

    fn url(line: &[&str]) -> Result<Option<String>, String> {
        let command = Command::try_parse_from(["test"].iter().chain(line)).unwrap();
        let url = command.external.url().map_err(|error| error.to_string())?;
        Ok(url.map(|url| url.as_str().to_owned()))
    }

    #[test]
    fn an_inventory_is_named_by_url_or_by_host() {
        assert_eq!(url(&[]), Ok(None));
        assert_eq!(url(&["--assisted-service-scheme", "https"]), Ok(None));
        let host = ["--assisted-service-host", "assisted:8090"];
        assert_eq!(url(&host).unwrap().unwrap(), "http://assisted:8090");
        let with_scheme = [&host[..], &["--assisted-service-scheme", "https"]].concat();
        assert_eq!(url(&with_scheme).unwrap().unwrap(), "https://assisted:8090");
        let both = [&host[..], &["--inventory-url", "https://api.example.com/prefix/"]].concat();
        assert_eq!(url(&both).unwrap().unwrap(), "https://api.example.com/prefix/");
        for wrong in ["http://user:secret@host", "http://host/?token=secret", "ftp://host", "host"] {
            let error = url(&["--inventory-url", wrong]).unwrap_err();
            assert!(error.contains("KINDLING_INVENTORY_URL") && !error.contains("secret"), "{error}");
        }
        assert!(url(&["--assisted-service-host", "http://assisted"]).unwrap_err().contains("HOST[:PORT]"));
    }
}
