//! Images on servers, by RFC 9110: ranges of section 14, `If-Range` of 13.1.5.

use std::error::Error;
use std::fs;
use std::ops::Range;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use object_store::ClientOptions;
use object_store::client::{HttpClient, HttpConnector};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode, Url, redirect};

use super::{Body, Offer};
use crate::images::library::error::{FetchError, LibraryError};
use crate::images::library::location::without_credentials;
use crate::images::library::record::{Origin, Validator};
use crate::images::library::settings::{LibrarySettings, Trust};
use crate::trust;

/// Redirects that are followed; mirrors have one or two.
const MOST_REDIRECTS: usize = 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// What all requests share.
#[derive(Clone)]
pub(in crate::images::library) struct Client {
    client: reqwest::Client,
    headers: HeaderMap,
    query: Vec<(String, String)>,
}

impl std::fmt::Debug for Client {
    /// Without headers and parameters, which are often credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

/// An image on a server.
#[derive(Debug)]
pub(in crate::images::library) struct Server {
    client: Client,
    url: Url,
}

impl Client {
    pub(in crate::images::library) fn new(settings: &LibrarySettings) -> Result<Self, LibraryError> {
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.request_headers {
            let refused = || LibraryError::Header { name: name.clone() };
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?;
            let mut value = HeaderValue::from_str(value).map_err(|_| refused())?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        let builder = reqwest::Client::builder()
            .user_agent(concat!("kindling/", env!("CARGO_PKG_VERSION")))
            // Followed here: the headers of the settings are for the server of the catalogue alone.
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(settings.stall);
        let builder = match &settings.trust {
            Trust::System => builder,
            Trust::SystemAnd(path) => {
                let failed = |source: Box<dyn Error + Send + Sync>| LibraryError::Certificates {
                    path: path.clone(),
                    source,
                };
                let pem = fs::read(path).map_err(|error| failed(error.into()))?;
                builder.tls_backend_preconfigured(trust::client_config(&pem).map_err(failed)?)
            }
            Trust::DangerouslyAnybody => builder.tls_danger_accept_invalid_certs(true),
        };
        let client = builder.build().map_err(|error| LibraryError::Client { source: error.into() })?;
        let query = settings.request_query.clone().into_iter().collect();
        Ok(Self { client, headers, query })
    }
}

/// Buckets are asked with the same trust and patience, but without what the settings add to requests: they have credentials of
/// their own.
impl HttpConnector for Client {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.client.clone()))
    }
}

impl Server {
    pub(super) fn new(client: Client, url: Url) -> Self {
        Self { client, url }
    }

    pub(super) async fn open(&self, from: Option<(u64, &Origin)>) -> Result<Offer, FetchError> {
        let mut headers = HeaderMap::new();
        if let Some((have, origin)) = from {
            headers.insert(header::RANGE, value(&format!("bytes={have}-"))?);
            if let Some(validator) = &origin.validator {
                headers.insert(header::IF_RANGE, value(validator.as_str())?);
            }
        }
        let response = self.get(headers).await?;
        match (response.status(), from) {
            (StatusCode::OK, _) => {
                let len = length(&response).ok_or(FetchError::NoLength)?;
                let validator = validator(response.headers());
                Ok(Offer { origin: self.origin(len, validator), start: 0, body: body(response) })
            }
            (StatusCode::PARTIAL_CONTENT, Some((have, origin))) => {
                self.check_range(&response, origin, &(have..origin.len))?;
                let body = body(response);
                Ok(Offer { origin: origin.clone(), start: have, body })
            }
            // There are fewer bytes now than there were.
            (StatusCode::RANGE_NOT_SATISFIABLE, Some(_)) => Err(FetchError::Changed),
            (status, _) => Err(FetchError::Status { status: status.as_u16() }),
        }
    }

    pub(super) async fn range(&self, origin: &Origin, range: &Range<u64>) -> Result<Body, FetchError> {
        let mut headers = HeaderMap::new();
        let last = range.end.saturating_sub(1);
        headers.insert(header::RANGE, value(&format!("bytes={}-{last}", range.start))?);
        if let Some(validator) = &origin.validator {
            headers.insert(header::IF_RANGE, value(validator.as_str())?);
        }
        let response = self.get(headers).await?;
        if response.status() != StatusCode::PARTIAL_CONTENT {
            return Err(FetchError::Status { status: response.status().as_u16() });
        }
        self.check_range(&response, origin, range)?;
        Ok(body(response))
    }

    fn origin(&self, len: u64, validator: Option<Validator>) -> Origin {
        Origin { url: without_credentials(&self.url), len, validator }
    }

    /// Makes sure that an answer has the bytes that were asked for, of the version that was.
    fn check_range(
        &self,
        response: &Response,
        origin: &Origin,
        range: &Range<u64>,
    ) -> Result<(), FetchError> {
        let found = text(response.headers(), &header::CONTENT_RANGE).unwrap_or_default();
        let last = range.end.saturating_sub(1);
        if found != format!("bytes {}-{last}/{}", range.start, origin.len) {
            return Err(FetchError::WrongRange { asked: range.start, found: found.to_owned() });
        }
        // Servers exist that do not look at If-Range.
        let is_other = match &origin.validator {
            Some(Validator::Etag(etag)) => is_other(response.headers(), &header::ETAG, etag),
            Some(Validator::LastModified(time)) => is_other(response.headers(), &header::LAST_MODIFIED, time),
            None => false,
        };
        if is_other { Err(FetchError::Changed) } else { Ok(()) }
    }

    /// Sends a request, wherever it is redirected to.
    async fn get(&self, headers: HeaderMap) -> Result<Response, FetchError> {
        let mut url = self.url.clone();
        if !self.client.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.client.query);
        }
        for _ in 0..=MOST_REDIRECTS {
            let mut headers = headers.clone();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            if url.origin() == self.url.origin() {
                headers.extend(self.client.headers.clone());
            }
            let response =
                self.client.client.get(url.clone()).headers(headers).send().await.map_err(request)?;
            if !response.status().is_redirection() || response.status() == StatusCode::NOT_MODIFIED {
                return check_encoding(response);
            }
            url = target(&url, &response)?;
        }
        Err(FetchError::Redirect { reason: format!("more than {MOST_REDIRECTS} times") })
    }
}

/// Where a response redirects to.
fn target(from: &Url, response: &Response) -> Result<Url, FetchError> {
    let refused = |reason: &str| FetchError::Redirect { reason: reason.to_owned() };
    let location = text(response.headers(), &header::LOCATION).ok_or_else(|| refused("to nowhere"))?;
    let url = from.join(location).map_err(|_| refused("to what is no URL"))?;
    match (from.scheme(), url.scheme()) {
        (_, "https") | ("http", "http") => Ok(url),
        ("https", "http") => Err(refused("from https to http, where anybody may change the image")),
        (_, scheme) => Err(refused(&format!("to {scheme}:"))),
    }
}

fn check_encoding(response: Response) -> Result<Response, FetchError> {
    match text(response.headers(), &header::CONTENT_ENCODING) {
        Some(encoding) if !encoding.eq_ignore_ascii_case("identity") => {
            Err(FetchError::Encoded { encoding: encoding.chars().take(40).collect() })
        }
        _ => Ok(response),
    }
}

/// The length of the whole body, as the server says. With chunks, there is none: the first of them may be all.
fn length(response: &Response) -> Option<u64> {
    text(response.headers(), &header::CONTENT_LENGTH)?.parse().ok()
}

/// A weak tag says nothing about bytes.
fn validator(headers: &HeaderMap) -> Option<Validator> {
    let etag = text(headers, &header::ETAG).filter(|etag| etag.starts_with('"'));
    let last_modified =
        || text(headers, &header::LAST_MODIFIED).map(|time| Validator::LastModified(time.to_owned()));
    etag.map(|etag| Validator::Etag(etag.to_owned())).or_else(last_modified)
}

fn is_other(headers: &HeaderMap, name: &HeaderName, known: &str) -> bool {
    text(headers, name).is_some_and(|found| found != known)
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn value(text: &str) -> Result<HeaderValue, FetchError> {
    HeaderValue::from_str(text).map_err(|error| FetchError::Request { source: error.into() })
}

fn body(response: Response) -> Body {
    response.bytes_stream().map_err(request).boxed()
}

/// The URL in an error may have credentials, and is told beside it anyway.
fn request(error: reqwest::Error) -> FetchError {
    FetchError::Request { source: error.without_url().into() }
}
