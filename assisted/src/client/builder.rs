//! The settings of a client.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Url, redirect};

use super::{ApiClient, ClientError};
use crate::secret::Secret;

/// Time to connect, as in upstream's clients.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for a request and its response.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Time for an upload of logs, which services accept up to 250 MiB.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(600);
/// The most bytes of a JSON response. A host's reports may be megabytes, and a list may have hundreds of hosts.
const MAX_RESPONSE: usize = 256 << 20;

/// Header with the container image of the agent.
pub(super) const AGENT_VERSION: &str = "discovery_agent_version";

pub(super) fn agent_version_value(image: &str) -> Result<HeaderValue, ClientError> {
    HeaderValue::from_str(image).map_err(|_| ClientError::Header { name: AGENT_VERSION })
}

/// A token, and the header that carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientCredential {
    /// Token of a user: `Authorization: Bearer TOKEN`.
    Bearer(Secret),
    /// Token of a user of the agent-based installer: `Authorization: TOKEN`.
    Authorization(Secret),
    /// Token of an agent, an installer or a controller: `X-Secret-Key: TOKEN`.
    Agent(Secret),
    /// Token of a program that only watches an agent-based installation: `Watcher-Authorization: TOKEN`.
    Watcher(Secret),
}

impl ClientCredential {
    fn header(&self) -> Result<(HeaderName, HeaderValue), ClientError> {
        let (name, text) = match self {
            Self::Bearer(token) => ("authorization", format!("Bearer {}", token.reveal())),
            Self::Authorization(token) => ("authorization", token.reveal().to_owned()),
            Self::Agent(token) => ("x-secret-key", token.reveal().to_owned()),
            Self::Watcher(token) => ("watcher-authorization", token.reveal().to_owned()),
        };
        let mut value = HeaderValue::from_str(&text).map_err(|_| ClientError::Header { name })?;
        value.set_sensitive(true);
        Ok((HeaderName::from_static(name), value))
    }
}

/// The settings of a client. [`ApiClient::builder`] returns the defaults.
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct ApiClientBuilder {
    /// Not shown: it may contain a password, which `build` refuses.
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
    pub(super) fn new(url: &str) -> Self {
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

    /// Sets the container image of the agent, which agents send with each request. The service compares the text with
    /// its own setting, and asks an agent with another text to upgrade.
    pub fn agent_version(self, image: impl Into<String>) -> Self {
        Self { agent_version: Some(image.into()), ..self }
    }

    /// Sets the time to connect. Default: 30 seconds.
    pub fn connect_timeout(self, timeout: Duration) -> Self {
        Self { connect_timeout: timeout, ..self }
    }

    /// Sets the time for a request and its response, except an upload of logs. Default: 60 seconds.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets the time for an upload of logs. Default: 10 minutes.
    pub fn upload_timeout(self, timeout: Duration) -> Self {
        Self { upload_timeout: timeout, ..self }
    }

    /// Sets the most bytes of a response. A longer response is an error. Default: 256 MiB.
    pub fn max_response(self, bytes: usize) -> Self {
        Self { max_response: bytes, ..self }
    }

    /// Sets the settings of connections, such as CA certificates and proxies. This client sets timeouts and redirects.
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

    /// Returns the client.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is not an HTTP URL or contains a user name or a password, if the token or the agent
    /// version contains characters that a header cannot have, or if TLS cannot be set up.
    pub fn build(self) -> Result<ApiClient, ClientError> {
        let mut headers = HeaderMap::new();
        if let Some(credential) = &self.credential {
            let (name, value) = credential.header()?;
            headers.insert(name, value);
        }
        if let Some(version) = &self.agent_version {
            headers.insert(AGENT_VERSION, agent_version_value(version)?);
        }
        // A redirect to another server must not receive the credential, and would turn a POST into a GET.
        let http = self
            .transport
            .connect_timeout(self.connect_timeout)
            .timeout(self.timeout)
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .build()
            .map_err(ClientError::Setup)?;
        let (max_response, upload_timeout) = (self.max_response, self.upload_timeout);
        Ok(ApiClient { http, api: api_url(self.url.reveal())?, headers, max_response, upload_timeout })
    }
}

/// Returns the URL of the API. The text of an invalid URL is not part of the error, because it may contain a password.
fn api_url(text: &str) -> Result<Url, ClientError> {
    let mut url = Url::parse(text).map_err(|error| ClientError::Url { reason: error.to_string() })?;
    let invalid = |reason: &str| Err(ClientError::Url { reason: reason.to_owned() });
    if !matches!(url.scheme(), "http" | "https") {
        return invalid("expected http or https");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return invalid("it contains a user name or a password; use a token");
    }
    url.set_query(None);
    url.set_fragment(None);
    match url.path_segments_mut() {
        Ok(mut segments) => segments.pop_if_empty().extend(ApiClient::PATH.split('/')),
        Err(()) => return invalid("it has no path"),
    };
    Ok(url)
}
