//! The URL under examination, and its masked form without secrets.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;
use reqwest::Url;

use super::DoctorError;
use crate::http::RedactedUrl;

/// The text that replaces possible secrets.
const MASK: &str = "*****";
/// Maximum length of a URL. Servers refuse longer URLs.
const MAX_URL: usize = 64 << 10;

/// A URL to which requests are sent.
#[derive(Clone)]
pub(super) struct TargetUrl {
    url: Url,
    /// The host, with brackets around an IPv6 address.
    host: String,
    port: u16,
    len: usize,
}

impl fmt::Debug for TargetUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TargetUrl").field(&self.redacted_url()).finish()
    }
}

impl TargetUrl {
    pub(super) fn parse(text: &str) -> Result<Self, DoctorError> {
        if text.len() > MAX_URL {
            return Err(DoctorError::TooLong { len: text.len(), most: MAX_URL });
        }
        let url = Url::parse(text).map_err(|error| DoctorError::Url {
            reason: match text.contains("://") {
                true => error.to_string(),
                false => "expected a URL such as http://192.0.2.1/image.iso".to_owned(),
            },
        })?;
        Self::new(url, text.chars().count())
    }

    /// Returns the URL to which a redirect leads.
    pub(super) fn join(&self, location: &str) -> Result<Self, DoctorError> {
        if location.len() > MAX_URL {
            return Err(DoctorError::TooLong { len: location.len(), most: MAX_URL });
        }
        let url = self.url.join(location).map_err(|error| DoctorError::Url { reason: error.to_string() })?;
        let len = url.as_str().chars().count();
        Self::new(url, len)
    }

    fn new(url: Url, len: usize) -> Result<Self, DoctorError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(DoctorError::Scheme { scheme: url.scheme().to_owned() });
        }
        match (url.host_str().map(str::to_owned), url.port_or_known_default()) {
            (Some(host), Some(port)) => Ok(Self { url, host, port, len }),
            _ => Err(DoctorError::Url { reason: "no host".to_owned() }),
        }
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the length of the URL in characters, as the user entered it.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Returns the host, without the brackets of an IPv6 address.
    pub(super) fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the value of the `Host` header.
    pub(super) fn authority(&self) -> String {
        let host = &self.host;
        self.url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}"))
    }

    /// Returns the request target for the request line.
    pub(super) fn request_target(&self) -> String {
        let path = self.url.path();
        self.url.query().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"))
    }

    /// Returns the `Authorization` header for the user name and password in the URL, after percent-decoding.
    pub(super) fn authorization(&self) -> Option<String> {
        let (user, password) = (self.url.username(), self.url.password());
        if user.is_empty() && password.is_none() {
            return None;
        }
        let decoded = |part| percent_decode_str(part);
        let pair: Vec<u8> = decoded(user).chain(*b":").chain(decoded(password.unwrap_or_default())).collect();
        Some(format!("Basic {}", BASE64_STANDARD.encode(pair)))
    }

    /// Returns `true` if both URLs have the same origin.
    pub(super) fn has_same_origin(&self, other: &Self) -> bool {
        self.url.origin() == other.url.origin()
    }

    /// Returns `true` if the path contains a token.
    pub(super) fn has_token(&self) -> bool {
        self.redacted_path().contains(MASK)
    }

    /// Returns the URL with its secrets masked. These are tokens in the path, user name and password, and all values in
    /// the query, because the names of secret parameters differ between servers.
    pub(super) fn redacted_url(&self) -> String {
        let mut text = format!("{}://{}{}", self.url.scheme(), self.authority(), self.redacted_path());
        for (index, parameter) in self.url.query().into_iter().flat_map(|query| query.split('&')).enumerate()
        {
            text.push(if index == 0 { '?' } else { '&' });
            match parameter.split_once('=') {
                Some((name, _)) => text.push_str(&format!("{name}={MASK}")),
                None => text.push_str(MASK),
            }
        }
        text
    }

    fn redacted_path(&self) -> String {
        match self.url.path().parse() {
            Ok(uri) => RedactedUrl(&uri).to_string(),
            // The path is too long for the parser.
            Err(_) => format!("/{MASK}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_url_hides_secrets() {
        for (url, shown) in [
            ("http://host/a.iso", "http://host/a.iso"),
            ("http://host:8090/a.iso", "http://host:8090/a.iso"),
            ("https://user:secret@host/a.iso", "https://host/a.iso"),
            ("https://[::1]:8443/byapikey/secret/full.iso", "https://[::1]:8443/byapikey/*****/full.iso"),
            ("http://host/a?X-Amz-Signature=secret&secret", "http://host/a?X-Amz-Signature=*****&*****"),
            ("http://host/i/eyJhbGciOi.secret.s/full.iso", "http://host/i/*****/full.iso"),
            ("http://host/a?version=1#secret", "http://host/a?version=*****"),
        ] {
            let target = TargetUrl::parse(url).unwrap();
            assert_eq!(target.redacted_url(), shown);
            assert!(!format!("{target:?}").contains("secret"), "{target:?}");
        }
    }

    #[test]
    fn authorization_has_decoded_credentials() {
        for (url, pair) in [
            ("http://host/", None),
            ("http://us%40er:p%40ss%2F%c3%bc@host/", Some("us@er:p@ss/\u{FC}")),
            ("http://user@host/", Some("user:")),
            ("http://:pass@host/", Some(":pass")),
        ] {
            let authorization = TargetUrl::parse(url).unwrap().authorization();
            let expected = pair.map(|pair| format!("Basic {}", BASE64_STANDARD.encode(pair)));
            assert_eq!(authorization, expected, "{url}");
        }
    }

    #[test]
    fn rejects_invalid_urls() {
        for (url, reason) in [
            ("a.iso", "expected a URL such as http:"),
            ("ftp://host/a.iso", "ftp"),
            ("http://", "empty host"),
            (&format!("http://host/{}", "a".repeat(70_000)), "70012"),
        ] {
            let error = TargetUrl::parse(url).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
