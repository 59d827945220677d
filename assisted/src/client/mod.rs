//! An async client of the Assisted Installer API.
//!
//! [`ApiClient`] has one method for each operation. Each method sends one request: it does not retry, follow redirects
//! or cache. [`ClientError::kind`] classifies an error, and [`ClientError::is_retryable`] returns `true` if a retry can
//! help. Only [`ApiClient::watch_hosts`] and [`ApiClient::wait_for_host`] send many requests and retry.
//!
//! A client sends its requests to any `tower` service, such as the router of a service in the same process: see
//! [`ApiClient::over`]. With the feature `reqwest`, the client can also connect to a service over the network.
#![cfg_attr(
    feature = "reqwest",
    doc = r#"
```no_run
use assisted::client::{ApiClient, ClientCredential, ClusterFilter};
use assisted::Secret;

# async fn example() -> Result<(), assisted::client::ClientError> {
let client = ApiClient::builder("https://kindling.example.com")
    .credential(ClientCredential::Bearer(Secret::new("eyJhbGciOi...")))
    .build()?;
for cluster in client.list_clusters(&ClusterFilter::default()).await? {
    println!("{} is {}: {}", cluster.name, cluster.status, cluster.status_info);
}
# Ok(())
# }
```
"#
)]

mod agent;
mod base;
mod body;
#[cfg(feature = "reqwest")]
mod builder;
mod call;
mod cluster;
#[cfg(feature = "reqwest")]
mod connection;
mod controller;
mod credential;
mod error;
mod event;
mod host;
mod infra_env;
mod items;
mod logs;
mod multipart;
mod transport;
mod version;
mod watch;

pub use body::{Body, BoxError};
#[cfg(feature = "reqwest")]
pub use builder::ApiClientBuilder;
pub use cluster::{ClusterFilter, ClusterHosts};
pub use credential::ClientCredential;
pub use error::{ClientError, ClientErrorKind};
pub use event::{EventFilter, EventList, EventOrder};
pub use host::HostFilter;
pub use infra_env::InfraEnvFile;
pub use logs::LogsUpload;
#[cfg(feature = "reqwest")]
pub use reqwest;
pub use version::VersionFilter;
pub use watch::{HostChange, HostWatch, WatchOptions};

use std::sync::Arc;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use tower_service::Service;

use base::BaseUrl;
use call::Call;
use credential::{AGENT_VERSION, agent_version_value};
use transport::{ServiceTransport, Transport};

/// Default maximum length of a JSON response, in bytes. One host's reports may take megabytes, and a list may have
/// hundreds of hosts.
const MAX_RESPONSE: usize = 256 << 20;

/// A client of one service.
///
/// Clones share their connections.
#[derive(Clone, Debug)]
pub struct ApiClient {
    transport: Arc<dyn Transport>,
    base: BaseUrl,
    /// Headers of each request: the credential, the agent version, and `Host` if the service is in this process.
    headers: HeaderMap,
    /// Maximum length of a JSON response, in bytes.
    max_response: usize,
}

impl ApiClient {
    /// The path of the API, relative to the URL of the service.
    pub const PATH: &'static str = base::API_PATH;

    /// Returns a client that passes its requests to a `tower` service: the router of a service in the same process, or
    /// another HTTP client.
    ///
    /// With a `url`, requests have absolute URLs and the header `Host`. Without a `url`, request URLs are paths, and
    /// requests have no `Host`.
    ///
    /// The service must not follow redirects. The client has no timeout: it waits until the service responds. If an
    /// error of the service has an [`std::io::Error`] among its causes, its kind determines the [`ClientError`]: a
    /// timeout becomes [`ClientError::Timeout`], a refused connection becomes [`ClientError::Connect`]. All other
    /// errors become [`ClientError::Connection`].
    ///
    /// # Errors
    ///
    /// Returns an error if `url` is not an HTTP URL, or contains a user name or a password.
    ///
    /// # Examples
    ///
    /// ```
    /// use assisted::client::ApiClient;
    /// use axum::Router;
    /// use axum::routing::get;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), assisted::client::ClientError> {
    /// let router = Router::new().route("/api/assisted-install/v2/infra-envs", get(async || "[]"));
    /// let client = ApiClient::over(None, router)?;
    /// assert!(client.list_infra_envs(None).await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn over<S, R>(url: Option<&str>, service: S) -> Result<Self, ClientError>
    where
        S: Service<Request<Body>, Response = Response<R>> + Clone + Send + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
        R: http_body::Body<Data = Bytes> + Send + 'static,
        R::Error: Into<BoxError>,
    {
        let base = url.map_or_else(|| Ok(BaseUrl::without_server()), BaseUrl::parse)?;
        let host = base.authority().map(HeaderValue::from_str).transpose();
        let host = host.map_err(|error| ClientError::Url { reason: error.to_string() })?;
        let mut client = Self::with_transport(base, ServiceTransport::new(service));
        client.headers.extend(host.map(|host| (HOST, host)));
        Ok(client)
    }

    fn with_transport(base: BaseUrl, transport: impl Transport + 'static) -> Self {
        let transport = Arc::new(transport);
        Self { transport, base, headers: HeaderMap::new(), max_response: MAX_RESPONSE }
    }

    /// Returns a client with another credential. Both clients share their connections.
    ///
    /// # Errors
    ///
    /// Returns an error if the token contains characters that a header cannot have.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// use assisted::Secret;
    /// use assisted::client::ClientCredential;
    ///
    /// # fn example(client: ApiClient) -> Result<(), ClientError> {
    /// let agent = client.with_credential(&ClientCredential::Agent(Secret::new("eyJhbGciOi...")))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_credential(&self, credential: &ClientCredential) -> Result<Self, ClientError> {
        let mut headers = self.headers.clone();
        for name in ClientCredential::HEADERS {
            headers.remove(name);
        }
        let (name, value) = credential.header()?;
        headers.insert(name, value);
        Ok(Self { headers, ..self.clone() })
    }

    /// Returns a client with another maximum length of a response, in bytes. A longer response is an error. The default
    /// is 256 MiB. Both clients share their connections.
    #[must_use]
    pub fn with_max_response(&self, bytes: usize) -> Self {
        Self { max_response: bytes, ..self.clone() }
    }

    /// Returns a client with another agent version: the reference of the agent's container image. Agents send it with
    /// each request. If it differs from the service's setting, the service asks the agent to upgrade. Both clients
    /// share their connections.
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

    /// Prepares a request. `operation` completes the error message "cannot {operation}: ...".
    fn call(&self, method: Method, operation: &'static str, path: &[&str]) -> Call<'_> {
        // Servers normalize dot segments, so the request would reach another resource.
        let request = match path.iter().find(|segment| matches!(**segment, "" | "." | "..")) {
            Some(segment) => Err(ClientError::PathSegment { operation, segment: (*segment).to_owned() }),
            None => self.request(method, path).map_err(|error| ClientError::Setup(error.into())),
        };
        Call {
            transport: &*self.transport,
            max_response: self.max_response,
            operation,
            request,
            upload: None,
        }
    }

    fn request(&self, method: Method, path: &[&str]) -> Result<Request<Body>, http::Error> {
        let mut request = Request::builder().method(method).uri(self.base.join(path)?).body(Body::empty())?;
        *request.headers_mut() = self.headers.clone();
        let id = HeaderValue::try_from(uuid::Uuid::new_v4().to_string())?;
        request.headers_mut().insert("x-request-id", id);
        Ok(request)
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
