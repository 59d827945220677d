//! An async client of the API.
//!
//! [`ApiClient`] has one method for each operation. A method makes one request: it does not retry, follow redirects or
//! cache. [`ClientError::is_retryable`] says whether a retry can help.
//!
//! ```no_run
//! use assisted::client::{ApiClient, ClientCredential, ClusterFilter};
//! use assisted::Secret;
//!
//! # async fn example() -> Result<(), assisted::client::ClientError> {
//! let client = ApiClient::builder("https://kindling.example.com")
//!     .credential(ClientCredential::Bearer(Secret::new("eyJhbGciOi...")))
//!     .build()?;
//! for cluster in client.list_clusters(&ClusterFilter::default()).await? {
//!     println!("{} is {}: {}", cluster.name, cluster.status, cluster.status_info);
//! }
//! # Ok(())
//! # }
//! ```

mod agent;
mod builder;
mod call;
mod cluster;
mod controller;
mod error;
mod event;
mod host;
mod infra_env;
mod items;
mod logs;
mod version;

pub use builder::{ApiClientBuilder, ClientCredential};
pub use cluster::{ClusterFilter, ClusterHosts};
pub use error::ClientError;
pub use event::{EventFilter, EventList, EventOrder};
pub use host::HostFilter;
pub use infra_env::InfraEnvFile;
pub use logs::LogsUpload;
pub use reqwest;
pub use version::VersionFilter;

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Method, Url};

use builder::{AGENT_VERSION, agent_version_value};
use call::Call;

/// A client of one service.
///
/// Clones share the connections.
#[derive(Clone, Debug)]
pub struct ApiClient {
    http: reqwest::Client,
    /// URL of the service, with the path of its API.
    api: Url,
    /// The credential and the agent version.
    headers: HeaderMap,
    /// The most bytes of a JSON response.
    max_response: usize,
    upload_timeout: Duration,
}

impl ApiClient {
    /// Path of the API, below the URL of the service.
    pub const PATH: &'static str = "api/assisted-install/v2";

    /// Returns a client without a credential, for a service with the policy `none`.
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

    /// Returns a builder of clients of the service at `url`. The URL may have a path, but not the path of the API.
    pub fn builder(url: &str) -> ApiClientBuilder {
        ApiClientBuilder::new(url)
    }

    /// Returns a client that sends another agent version. It shares the connections. See
    /// [`ApiClientBuilder::agent_version`].
    ///
    /// # Errors
    ///
    /// Returns an error if the version contains characters that a header cannot have.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// # fn example(client: ApiClient) -> Result<(), ClientError> {
    /// let upgraded = client.with_agent_version("quay.io/example/agent:2")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_agent_version(&self, image: &str) -> Result<Self, ClientError> {
        let mut headers = self.headers.clone();
        headers.insert(AGENT_VERSION, agent_version_value(image)?);
        Ok(Self { headers, ..self.clone() })
    }

    /// Prepares a request. Error messages use `operation`: "cannot {operation}: ...".
    fn call(&self, method: Method, operation: &'static str, path: &[&str]) -> Call<'_> {
        // `Url` skips dots: the request would be about another resource.
        if let Some(segment) = path.iter().find(|segment| matches!(**segment, "" | "." | "..")) {
            let error = ClientError::PathSegment { operation, segment: (*segment).to_owned() };
            return Call { client: self, operation, request: Err(error) };
        }
        let mut url = self.api.clone();
        // The builder checked that the URL has segments.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.extend(path);
        }
        let mut headers = self.headers.clone();
        if let Ok(id) = HeaderValue::from_str(&uuid::Uuid::new_v4().to_string()) {
            headers.insert("x-request-id", id);
        }
        let request = self.http.request(method, url).headers(headers);
        Call { client: self, operation, request: Ok(request) }
    }

    fn get(&self, operation: &'static str, path: &[&str]) -> Call<'_> {
        self.call(Method::GET, operation, path)
    }

    fn post(&self, operation: &'static str, path: &[&str]) -> Call<'_> {
        self.call(Method::POST, operation, path)
    }

    fn put(&self, operation: &'static str, path: &[&str]) -> Call<'_> {
        self.call(Method::PUT, operation, path)
    }

    fn patch(&self, operation: &'static str, path: &[&str]) -> Call<'_> {
        self.call(Method::PATCH, operation, path)
    }

    fn delete(&self, operation: &'static str, path: &[&str]) -> Call<'_> {
        self.call(Method::DELETE, operation, path)
    }
}
