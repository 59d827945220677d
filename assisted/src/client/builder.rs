//! Settings of a client that connects over HTTP or HTTPS.

use std::time::Duration;

use reqwest::{Url, redirect};

use super::base::BaseUrl;
use super::connection::Connections;
use super::{ApiClient, ClientCredential, ClientError, MAX_RESPONSE};
use crate::secret::Secret;

/// Default timeout for connecting, as in upstream's clients.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Default timeout for a request and its response.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Default timeout for uploading logs. Services accept uploads up to 250 MiB.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(600);

impl ApiClient {
    /// Returns a client that connects to the service at `url` without a credential. This works with a service whose
    /// authentication policy is `none`.
    ///
    /// # Errors
    ///
    /// Returns an error if `url` is not an HTTP URL, or if TLS cannot be set up.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// let client = assisted::client::ApiClient::new("http://127.0.0.1:8090")?;
    /// # Ok::<(), assisted::client::ClientError>(())
    /// ```
    pub fn new(url: &str) -> Result<Self, ClientError> {
        Self::builder(url).build()
    }

    /// Returns a builder of clients that connect to the service at `url`. The URL may have a path prefix; the client
    /// appends the API path ([`ApiClient::PATH`]).
    pub fn builder(url: &str) -> ApiClientBuilder {
        ApiClientBuilder::new(url)
    }
}

/// The settings of a client. [`ApiClient::builder`] returns the defaults.
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct ApiClientBuilder {
    /// A `Secret`, because the URL may contain a password. `build` refuses such a URL.
    url: Secret,
    credential: Option<ClientCredential>,
    agent_version: Option<String>,
    connect_timeout: Duration,
    timeout: Duration,
    upload_timeout: Duration,
    max_response: usize,
    transport: reqwest::ClientBuilder,
}

impl ApiClientBuilder {
    fn new(url: &str) -> Self {
        Self {
            url: Secret::new(url),
            credential: None,
            agent_version: None,
            connect_timeout: CONNECT_TIMEOUT,
            timeout: TIMEOUT,
            upload_timeout: UPLOAD_TIMEOUT,
            max_response: MAX_RESPONSE,
            transport: reqwest::Client::builder(),
        }
    }

    /// Sets the credential. Default: none.
    pub fn credential(self, credential: ClientCredential) -> Self {
        Self { credential: Some(credential), ..self }
    }

    /// Sets the agent version: the reference of the agent's container image. Agents send it with each request. If it
    /// differs from the service's setting, the service asks the agent to upgrade.
    pub fn agent_version(self, image: impl Into<String>) -> Self {
        Self { agent_version: Some(image.into()), ..self }
    }

    /// Sets the timeout for connecting. Default: 30 seconds.
    pub fn connect_timeout(self, timeout: Duration) -> Self {
        Self { connect_timeout: timeout, ..self }
    }

    /// Sets the timeout for a request and its response, except uploads of logs. Default: 60 seconds.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets the timeout for uploading logs. Default: 10 minutes.
    pub fn upload_timeout(self, timeout: Duration) -> Self {
        Self { upload_timeout: timeout, ..self }
    }

    /// Sets the maximum length of a response, in bytes. A longer response is an error. Default: 256 MiB.
    pub fn max_response(self, bytes: usize) -> Self {
        Self { max_response: bytes, ..self }
    }

    /// Sets connection settings such as CA certificates and proxies. The client overrides their timeouts and redirect
    /// policy.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use assisted::client::ApiClient;
    /// use assisted::client::reqwest::{Certificate, Client};
    ///
    /// # fn example(pem: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
    /// let transport = Client::builder().tls_certs_only([Certificate::from_pem(pem)?]);
    /// let client = ApiClient::builder("https://kindling.example.com").transport(transport).build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn transport(self, transport: reqwest::ClientBuilder) -> Self {
        Self { transport, ..self }
    }

    /// Builds the client.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is not an HTTP URL or contains a user name or a password. Returns an error if the
    /// token or the agent version contains characters that a header cannot have.
    ///
    /// Returns an error if TLS cannot be set up. Without the feature `aws-lc-rs`, the program must install a default
    /// crypto provider of `rustls` first.
    pub fn build(self) -> Result<ApiClient, ClientError> {
        let base = base_url(self.url.reveal())?;
        require_crypto_provider()?;
        // Redirects are not followed: the new server would receive the credential, and a POST would become a GET.
        let http = self
            .transport
            .connect_timeout(self.connect_timeout)
            .timeout(self.timeout)
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .build()
            .map_err(|error| ClientError::Setup(error.into()))?;
        let transport = Connections { http, upload_timeout: self.upload_timeout };
        let mut client = ApiClient::with_transport(base, transport).with_max_response(self.max_response);
        if let Some(credential) = &self.credential {
            client = client.with_credential(credential)?;
        }
        match &self.agent_version {
            Some(version) => client.with_agent_version(version),
            None => Ok(client),
        }
    }
}

/// Checks for a default crypto provider, because `reqwest` panics if none is installed.
fn require_crypto_provider() -> Result<(), ClientError> {
    if cfg!(feature = "aws-lc-rs") || rustls::crypto::CryptoProvider::get_default().is_some() {
        return Ok(());
    }
    Err(ClientError::Setup("the process has no default crypto provider for TLS; install one first".into()))
}

/// Parses the URL of the service. The `url` crate accepts what browsers accept, such as non-ASCII host names.
fn base_url(text: &str) -> Result<BaseUrl, ClientError> {
    let url = Url::parse(text).map_err(|error| ClientError::Url { reason: error.to_string() })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(ClientError::Url { reason: "expected http or https".to_owned() });
    }
    BaseUrl::parse(url.as_str())
}
