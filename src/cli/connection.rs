//! The connection to a service, for the commands that call its API.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use assisted::client::reqwest::{Client, ClientBuilder};
use assisted::client::{ApiClient, ApiClientBuilder, ClientCredential, ClientError};
use clap::Args;
use ignition::discovery::masked_url;

use super::serve::database::parse_secret;
use crate::inventory::Secret;
use crate::trust;

#[derive(Debug, Args)]
pub(super) struct ConnectionOptions {
    /// URL of the server, without the path of the API
    #[arg(long, env = "KINDLING_URL", value_name = "URL", default_value = "http://127.0.0.1:8090")]
    pub(super) url: String,
    /// File with CA certificates, in PEM, to trust in addition to those of the system
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Accept any certificate of the server (insecure)
    #[arg(long, conflicts_with = "ca")]
    insecure: bool,
}

impl ConnectionOptions {
    /// Returns a builder of clients that trust the server's certificate as the options say.
    pub(super) fn client_builder(&self, mut transport: ClientBuilder) -> Result<ApiClientBuilder> {
        if let Some(path) = &self.ca {
            let pem = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            let config = trust::client_config(&pem).map_err(|error| anyhow::anyhow!("{error}"));
            let config = config.with_context(|| format!("invalid certificates in {}", path.display()))?;
            transport = transport.tls_backend_preconfigured(config);
        } else if self.insecure {
            transport = transport.tls_danger_accept_invalid_certs(true);
        }
        Ok(ApiClient::builder(&self.url).transport(transport))
    }
}

/// The connection of a user. Some services require a token.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(super) struct UserConnectionOptions {
    #[command(flatten)]
    connection: ConnectionOptions,
    /// Token of a user, from `kindling auth token --user`. Other users of this machine can see options, but not
    /// variables
    #[arg(long, env = "KINDLING_TOKEN", value_name = "TOKEN", value_parser = parse_secret)]
    token: Option<Secret>,
}

impl UserConnectionOptions {
    /// Runs calls of the API. Adds advice to the errors of the client.
    pub(super) fn call<T>(
        &self,
        change: impl FnOnce(ApiClientBuilder) -> ApiClientBuilder,
        calls: impl AsyncFnOnce(ApiClient) -> Result<T>,
    ) -> Result<T> {
        let mut builder = self.connection.client_builder(Client::builder())?;
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

    /// Returns what the user can do about an error.
    fn advice(&self, error: &ClientError) -> Option<String> {
        let url = masked_url(&self.connection.url);
        match error {
            ClientError::Url { .. } => Some("--url is not the URL of a server".to_owned()),
            ClientError::Connect { .. } => {
                Some(format!("cannot reach {url}; start the service, or select another with --url"))
            }
            ClientError::Timeout { .. } => Some(format!("{url} does not respond in time; check --url")),
            ClientError::Tls { .. } => Some(format!(
                "no TLS connection to {url}; if the server's certificate is from a private CA, trust that CA with --ca"
            )),
            ClientError::Response { reason, .. } if reason.starts_with('<') => {
                Some(format!("{url} responds with a web page, so it is not the service; check --url"))
            }
            ClientError::Response { status: 401 | 403, .. } => Some(self.token_advice(&url)),
            ClientError::Response { status: 404, .. } => {
                Some(format!("not found at {url}; check the id and --url"))
            }
            ClientError::Decode { .. } | ClientError::UnexpectedStatus { .. } => {
                Some(format!("{url} does not respond as the service does; check --url"))
            }
            _ => None,
        }
    }

    fn token_advice(&self, url: &str) -> String {
        let problem = if self.token.is_some() { "refuses the token" } else { "requires a token" };
        format!("{url} {problem}; set KINDLING_TOKEN to one from `kindling auth token --user`")
    }
}
