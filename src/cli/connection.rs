//! The options for the connection to a service, shared by the commands that call its API.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result};
use assisted::client::reqwest::{Client, ClientBuilder};
use assisted::client::{ApiClient, ApiClientBuilder, ClientCredential, ClientError};
use clap::Args;
use ignition::discovery::masked_url;

use super::serve::database::parse_secret;
use super::shell::shell_quoted;
use crate::inventory::Secret;
use crate::trust;

pub(super) const DEFAULT_URL: &str = "http://127.0.0.1:8090";
/// Environment variable of `--url`. `kindling simulate` ignores it, so that simulated hosts do not register in a
/// service by mistake.
const URL_VARIABLE: &str = "KINDLING_URL";

/// Options for the verification of the server's certificate.
#[derive(Debug, Args)]
pub(super) struct CertificateOptions {
    /// File with CA certificates, in PEM, to trust in addition to the CA certificates of the system
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Accept any certificate of the server (insecure)
    #[arg(long, conflicts_with = "ca")]
    insecure: bool,
}

impl CertificateOptions {
    /// Returns a client builder that verifies the server's certificate as the options specify.
    pub(super) fn client_builder(&self, url: &str, mut transport: ClientBuilder) -> Result<ApiClientBuilder> {
        if let Some(path) = &self.ca {
            let pem = fs::read(path).with_context(|| format!("--ca: cannot read {}", path.display()))?;
            let config = trust::client_config(&pem).map_err(|error| anyhow::anyhow!("{error}"));
            let config =
                config.with_context(|| format!("--ca: invalid certificates in {}", path.display()))?;
            transport = transport.tls_backend_preconfigured(config);
        } else if self.insecure {
            transport = transport.tls_danger_accept_invalid_certs(true);
        }
        Ok(ApiClient::builder(url).transport(transport))
    }
}

/// Options for the connection of a user to a service.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(super) struct UserConnectionOptions {
    /// URL of the server, without the path of the API
    #[arg(long, env = URL_VARIABLE, value_name = "URL", default_value = DEFAULT_URL)]
    url: String,
    #[command(flatten)]
    certificates: CertificateOptions,
    /// Token of a user, from `kindling auth token --user`. Other users of this machine can see options, but not
    /// variables
    #[arg(long, env = "KINDLING_TOKEN", value_name = "TOKEN", value_parser = parse_secret)]
    token: Option<Secret>,
}

impl UserConnectionOptions {
    /// Runs API calls with a client. Adds advice to the errors of the client.
    pub(super) fn call<T>(
        &self,
        change: impl FnOnce(ApiClientBuilder) -> ApiClientBuilder,
        calls: impl AsyncFnOnce(ApiClient) -> Result<T>,
    ) -> Result<T> {
        let mut builder = self.certificates.client_builder(&self.url, Client::builder())?;
        if let Some(token) = &self.token {
            let token = assisted::Secret::new(token.reveal());
            builder = builder.credential(ClientCredential::Bearer(token));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start the async runtime")?;
        let result = change(builder).build().map_err(anyhow::Error::new);
        let result = result.and_then(|client| runtime.block_on(calls(client)));
        result.map_err(|error| match error.downcast_ref().and_then(|error| self.advice(error)) {
            Some(advice) => error.context(advice),
            None => error,
        })
    }

    /// Returns the connection options that a suggested command needs to reach the same service, each after a space.
    /// Omits the token and the credentials in the URL.
    pub(super) fn repeated_options(&self) -> String {
        let default_url = env::var(URL_VARIABLE).unwrap_or_else(|_| DEFAULT_URL.to_owned());
        let mut options = String::new();
        if self.url != default_url {
            let url = masked_url(&self.url);
            options = format!(" --url {}", shell_quoted(Path::new(url.as_str())));
        }
        if let Some(path) = &self.certificates.ca {
            options = format!("{options} --ca {}", shell_quoted(path));
        } else if self.certificates.insecure {
            options.push_str(" --insecure");
        }
        options
    }

    /// Returns advice on how to resolve an error.
    fn advice(&self, error: &ClientError) -> Option<String> {
        let url = masked_url(&self.url);
        match error {
            ClientError::Url { .. } => Some("--url is not the URL of a server".to_owned()),
            ClientError::Connect { .. } => {
                Some(format!("cannot reach {url}; start the service, or select another with --url"))
            }
            ClientError::Timeout { .. } => Some(format!("{url} does not respond in time; check --url")),
            ClientError::Tls { .. } => Some(format!(
                "no TLS connection to {url}; if the server's certificate is from a private CA, trust that CA with --ca"
            )),
            ClientError::Response { status, reason, .. } => self.response_advice(*status, reason, &url),
            ClientError::Decode { .. } | ClientError::UnexpectedStatus { .. } => {
                Some(format!("{url} does not respond as the service does; check --url"))
            }
            _ => None,
        }
    }

    fn response_advice(&self, status: u16, reason: &str, url: &str) -> Option<String> {
        match status {
            300..=399 => Some(format!("{url} redirects to another URL; set --url to that one")),
            401 | 403 => Some(self.token_advice(url)),
            502..=504 => Some(format!("the service behind {url} is not available; try again later")),
            _ if reason.starts_with('<') => {
                Some(format!("{url} responds with a web page, so it is not the service; check --url"))
            }
            404 => Some(format!("not found at {url}; check --url, and the id if the command has one")),
            _ => None,
        }
    }

    fn token_advice(&self, url: &str) -> String {
        let problem = if self.token.is_some() { "refuses the token" } else { "requires a token" };
        format!("{url} {problem}; set KINDLING_TOKEN to one from `kindling auth token --user`")
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        connection: UserConnectionOptions,
    }

    #[test]
    fn repeated_options_are_quoted_and_without_credentials() {
        for (arguments, expected) in [
            (&["--url", "https://a:8090", "--ca", "my ca.pem"][..], " --url https://a:8090 --ca 'my ca.pem'"),
            (&["--url", "https://me:hunter2@a", "--insecure"], " --url 'https://*****@a' --insecure"),
            (&["--url", "https://a", "--token", "s3cret"], " --url https://a"),
        ] {
            let command = Command::parse_from([&["test"], arguments].concat());
            assert_eq!(command.connection.repeated_options(), expected);
        }
    }
}
