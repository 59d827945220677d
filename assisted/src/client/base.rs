//! Builds the URL of a request from the URL of the service, the path segments and the query parameters.

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::ClientError;

/// Path of the API, below the URL of the service.
pub(super) const API_PATH: &str = "api/assisted-install/v2";

/// Characters to percent-encode in a path segment: the path percent-encode set of the WHATWG URL standard, and `|`,
/// `/`, `\` and `%`.
const NOT_IN_SEGMENT: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}')
    .add(b'/')
    .add(b'\\')
    .add(b'%');

/// URL of the API. For a service in this process, the URL has no server, and request URLs are paths.
#[derive(Clone, Debug)]
pub(super) struct BaseUrl {
    server: Option<(Scheme, Authority)>,
    /// Path of the API, without a slash at the end.
    path: String,
}

impl BaseUrl {
    /// Returns the API URL of a service in this process.
    pub(super) fn without_server() -> Self {
        Self { server: None, path: format!("/{}", API_PATH) }
    }

    /// Returns the API URL of the service at `url`. The error does not quote an invalid URL, because it may contain a
    /// password.
    pub(super) fn parse(url: &str) -> Result<Self, ClientError> {
        let invalid = |reason: String| ClientError::Url { reason };
        let parts = url.parse::<Uri>().map_err(|error| invalid(error.to_string()))?.into_parts();
        let Some(scheme) = parts.scheme.filter(|it| *it == Scheme::HTTP || *it == Scheme::HTTPS) else {
            return Err(invalid("expected http or https".to_owned()));
        };
        let Some(authority) = parts.authority.filter(|it| !it.host().is_empty()) else {
            return Err(invalid("it has no host".to_owned()));
        };
        if authority.as_str().contains('@') {
            return Err(invalid("it contains a user name or a password; use a token".to_owned()));
        }
        let path = parts.path_and_query.as_ref().map_or("", PathAndQuery::path);
        let path = path.strip_suffix('/').unwrap_or(path);
        Ok(Self { server: Some((scheme, authority)), path: format!("{path}/{}", API_PATH) })
    }

    pub(super) fn authority(&self) -> Option<&str> {
        self.server.as_ref().map(|(_, authority)| authority.as_str())
    }

    /// Returns the URL of the operation whose path, below the API path, has these segments. The segments are
    /// percent-encoded.
    pub(super) fn join(&self, segments: &[&str]) -> Result<Uri, http::Error> {
        let mut path = self.path.clone();
        for segment in segments {
            path.push('/');
            path.extend(utf8_percent_encode(segment, NOT_IN_SEGMENT));
        }
        let mut uri = Uri::builder().path_and_query(path);
        if let Some((scheme, authority)) = &self.server {
            uri = uri.scheme(scheme.clone()).authority(authority.clone());
        }
        uri.build()
    }
}

/// Returns the URL with these query parameters.
pub(super) fn with_query(uri: Uri, parameters: &[(&str, String)]) -> Result<Uri, http::Error> {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(parameters);
    let path = format!("{}?{}", uri.path(), query.finish());
    let mut parts = uri.into_parts();
    parts.path_and_query = Some(path.try_into()?);
    Ok(Uri::from_parts(parts)?)
}
