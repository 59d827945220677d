//! Downloads of base images from HTTP servers, with ranges (RFC 9110, 14) and `If-Range` (RFC 9110, 13.1.5).

use std::error::Error;
use std::fs;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use object_store::ClientOptions;
use object_store::client::{HttpClient, HttpConnector};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{ClientBuilder, Response, StatusCode, Url, redirect};

use super::{ByteStream, ImageResponse};
use crate::images::library::added_servers::AddedImageServers;
use crate::images::library::error::{FetchError, LibraryError};
use crate::images::library::location::without_credentials;
use crate::images::library::record::{RemoteVersion, VersionValidator};
use crate::images::library::settings::{LibrarySettings, ServerTrust};
use crate::trust;
use inventory::BucketTransport;

/// Maximum number of redirects. Mirrors redirect once or twice.
const MAX_REDIRECTS: usize = 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The HTTP client, headers and parameters of all requests.
#[derive(Clone)]
pub(in crate::images::library) struct RemoteClient {
    client: reqwest::Client,
    stall: Duration,
    headers: HeaderMap,
    query: Vec<(String, String)>,
    /// The servers that may provide images. `None` allows all servers.
    servers: Option<AddedImageServers>,
}

impl std::fmt::Debug for RemoteClient {
    /// Omits headers and parameters, which often contain credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteClient").finish_non_exhaustive()
    }
}

/// A base image on an HTTP server.
#[derive(Debug)]
pub(in crate::images::library) struct HttpSource {
    client: RemoteClient,
    url: Url,
}

impl RemoteClient {
    /// Returns the client for the images of the catalogue.
    pub(in crate::images::library) fn new(settings: &LibrarySettings) -> Result<Self, LibraryError> {
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.request_headers {
            let refused = || LibraryError::Header { name: name.clone() };
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?;
            let mut value = HeaderValue::from_str(value).map_err(|_| refused())?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        let client = build(client_builder(settings)?)?;
        let query = settings.request_query.clone().into_iter().collect();
        Ok(Self { client, stall: settings.stall, headers, query, servers: None })
    }

    /// Returns the client for added images. The client does not send the headers and parameters in the settings, which
    /// often contain credentials.
    pub(in crate::images::library) fn for_added_images(
        settings: &LibrarySettings,
    ) -> Result<Self, LibraryError> {
        let builder = client_builder(settings)?;
        let builder = match settings.added_from.resolver() {
            Some(resolver) => builder.dns_resolver(resolver),
            None => builder,
        };
        let servers = Some(settings.added_from.clone());
        let client = build(builder)?;
        Ok(Self { client, stall: settings.stall, headers: HeaderMap::new(), query: Vec::new(), servers })
    }
}

fn build(builder: ClientBuilder) -> Result<reqwest::Client, LibraryError> {
    builder.build().map_err(|error| LibraryError::Client { source: error.into() })
}

fn client_builder(settings: &LibrarySettings) -> Result<ClientBuilder, LibraryError> {
    let builder = reqwest::Client::builder()
        .user_agent(concat!("kindling/", env!("CARGO_PKG_VERSION")))
        // `send_request` follows redirects, because the headers in the settings are only for the origin of the
        // catalogue's URL.
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(settings.stall);
    Ok(match &settings.trust {
        ServerTrust::System => builder,
        ServerTrust::SystemAnd(path) => {
            let failed = |source: Box<dyn Error + Send + Sync>| LibraryError::Certificates {
                path: path.clone(),
                source,
            };
            let pem = fs::read(path).map_err(|error| failed(error.into()))?;
            builder.tls_backend_preconfigured(trust::client_config(&pem).map_err(failed)?)
        }
        ServerTrust::DangerouslyAnybody => builder.tls_danger_accept_invalid_certs(true),
    })
}

/// Requests to buckets use the same certificates and timeouts. They do not use the headers and parameters in the
/// settings, because buckets have their own credentials.
impl HttpConnector for RemoteClient {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(BucketTransport::new(self.client.clone(), self.stall)))
    }
}

impl HttpSource {
    pub(super) fn new(client: RemoteClient, url: Url) -> Self {
        Self { client, url }
    }

    pub(super) async fn request_from(
        &self,
        from: Option<(u64, &RemoteVersion)>,
    ) -> Result<ImageResponse, FetchError> {
        let mut headers = HeaderMap::new();
        if let Some((have, origin)) = from {
            headers.insert(header::RANGE, header_value(&format!("bytes={have}-"))?);
            if let Some(validator) = &origin.validator {
                headers.insert(header::IF_RANGE, header_value(validator.as_str())?);
            }
        }
        let response = self.send_request(headers).await?;
        match (response.status(), from) {
            (StatusCode::OK, _) => {
                let len = whole_body_len(&response).ok_or(FetchError::NoLength)?;
                let validator = response_validator(response.headers());
                Ok(ImageResponse {
                    origin: self.remote_version(len, validator),
                    start: 0,
                    body: body_stream(response),
                })
            }
            (StatusCode::PARTIAL_CONTENT, Some((have, origin))) => {
                check_rest(&response, origin, have)?;
                let body = body_stream(response);
                Ok(ImageResponse { origin: origin.clone(), start: have, body })
            }
            // The file on the server is now shorter than the received bytes.
            (StatusCode::RANGE_NOT_SATISFIABLE, Some(_)) => Err(FetchError::Changed),
            (status, _) => Err(FetchError::Status { status: status.as_u16() }),
        }
    }

    fn remote_version(&self, len: u64, validator: Option<VersionValidator>) -> RemoteVersion {
        RemoteVersion { url: without_credentials(&self.url), len, validator }
    }

    /// Sends a request and follows redirects.
    async fn send_request(&self, headers: HeaderMap) -> Result<Response, FetchError> {
        let mut url = self.url.clone();
        if !self.client.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.client.query);
        }
        for _ in 0..=MAX_REDIRECTS {
            if let Some(servers) = &self.client.servers {
                servers.check(&url)?;
            }
            let mut headers = headers.clone();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            if url.origin() == self.url.origin() {
                headers.extend(self.client.headers.clone());
            }
            let response =
                self.client.client.get(url.clone()).headers(headers).send().await.map_err(request_error)?;
            if !response.status().is_redirection() || response.status() == StatusCode::NOT_MODIFIED {
                return check_encoding(response);
            }
            url = redirect_target(&url, &response)?;
        }
        Err(FetchError::Redirect { reason: format!("more than {MAX_REDIRECTS} times") })
    }
}

/// Checks that a response contains all bytes of a version after the offset `start`.
fn check_rest(response: &Response, origin: &RemoteVersion, start: u64) -> Result<(), FetchError> {
    let content_range = header_text(response.headers(), &header::CONTENT_RANGE).unwrap_or_default();
    let last = origin.len.saturating_sub(1);
    if content_range != format!("bytes {start}-{last}/{}", origin.len) {
        return Err(FetchError::WrongRange { asked: start, found: content_range.to_owned() });
    }
    // Compare the validators, because some servers ignore `If-Range`.
    let is_other = match &origin.validator {
        Some(VersionValidator::Etag(etag)) => differs_from(response.headers(), &header::ETAG, etag),
        Some(VersionValidator::LastModified(time)) => {
            differs_from(response.headers(), &header::LAST_MODIFIED, time)
        }
        None => false,
    };
    if is_other { Err(FetchError::Changed) } else { Ok(()) }
}

/// Returns the target of a redirect. Returns an error for a redirect from HTTPS to HTTP.
fn redirect_target(from: &Url, response: &Response) -> Result<Url, FetchError> {
    let refused = |reason: &str| FetchError::Redirect { reason: reason.to_owned() };
    let location = header_text(response.headers(), &header::LOCATION)
        .ok_or_else(|| refused("without a Location header"))?;
    let url = from.join(location).map_err(|_| refused("to an invalid URL"))?;
    match (from.scheme(), url.scheme()) {
        (_, "https") | ("http", "http") => Ok(url),
        ("https", "http") => Err(refused("from https to http, which is insecure")),
        (_, scheme) => Err(refused(&format!("to {scheme}:"))),
    }
}

fn check_encoding(response: Response) -> Result<Response, FetchError> {
    // Compare bytes, because a value that is not ASCII text also means an encoding.
    match response.headers().get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        Some(encoding) if !encoding.eq_ignore_ascii_case(b"identity") => {
            let encoding = String::from_utf8_lossy(encoding);
            Err(FetchError::Encoded { encoding: encoding.chars().take(40).collect() })
        }
        _ => Ok(response),
    }
}

/// Returns the length of the body. Returns `None` for a chunked response, whose truncation could not be detected.
fn whole_body_len(response: &Response) -> Option<u64> {
    header_text(response.headers(), &header::CONTENT_LENGTH)?.parse().ok()
}

/// Returns the validator of a response. Ignores a weak entity tag, because different bytes may have the same
/// weak tag.
fn response_validator(headers: &HeaderMap) -> Option<VersionValidator> {
    let etag = header_text(headers, &header::ETAG).filter(|etag| etag.starts_with('"'));
    let last_modified = || {
        header_text(headers, &header::LAST_MODIFIED)
            .map(|time| VersionValidator::LastModified(time.to_owned()))
    };
    etag.map(|etag| VersionValidator::Etag(etag.to_owned())).or_else(last_modified)
}

fn differs_from(headers: &HeaderMap, name: &HeaderName, expected: &str) -> bool {
    headers.get(name).is_some_and(|value| value.as_bytes() != expected.as_bytes())
}

fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn header_value(text: &str) -> Result<HeaderValue, FetchError> {
    HeaderValue::from_str(text).map_err(|error| FetchError::Request { source: error.into() })
}

fn body_stream(response: Response) -> ByteStream {
    response.bytes_stream().map_err(request_error).boxed()
}

/// Removes the URL from an error, because it may contain credentials. The log contains the masked URL separately.
fn request_error(error: reqwest::Error) -> FetchError {
    FetchError::Request { source: error.without_url().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(encoding: &[u8]) -> Response {
        let encoding = HeaderValue::from_bytes(encoding).unwrap();
        axum::http::Response::builder().header(header::CONTENT_ENCODING, encoding).body("").unwrap().into()
    }

    #[test]
    fn rejects_any_encoding_but_identity() {
        check_encoding(response(b"Identity")).unwrap();
        for (encoding, shown) in [(&b"gzip"[..], "gzip"), (b"\xff", "\u{fffd}"), (b"", "")] {
            let error = check_encoding(response(encoding)).unwrap_err();
            assert!(matches!(&error, FetchError::Encoded { encoding } if encoding == shown), "{error}");
        }
    }

    #[test]
    fn validator_that_is_not_text_counts_as_changed() {
        let is_changed = |value: &[u8]| {
            let value = HeaderValue::from_bytes(value).unwrap();
            differs_from(&HeaderMap::from_iter([(header::ETAG, value)]), &header::ETAG, "\"a\"")
        };
        assert!(!is_changed(b"\"a\""));
        assert!(is_changed(b"\"b\"") && is_changed(b"\"\xe4\""));
        assert!(!differs_from(&HeaderMap::new(), &header::ETAG, "\"a\""));
    }

    #[test]
    fn rejects_unusable_certificate_files() {
        let directory = tempfile::TempDir::new().unwrap();
        let file = |name: &str| directory.path().join(name);
        fs::write(file("empty.pem"), "").unwrap();
        fs::create_dir(file("directory.pem")).unwrap();
        for path in [file("empty.pem"), file("directory.pem"), file("missing.pem")] {
            let settings = LibrarySettings {
                trust: ServerTrust::SystemAnd(path.clone()),
                ..LibrarySettings::new(directory.path())
            };
            let error = RemoteClient::new(&settings).unwrap_err();
            assert!(matches!(&error, LibraryError::Certificates { path: of, .. } if *of == path), "{error}");
        }
    }
}
