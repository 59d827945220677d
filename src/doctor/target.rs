//! The URL, and what it is to be seen of it.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use reqwest::Url;

use super::DoctorError;
use crate::http::{Redacted, unescaped};

/// What stands in the place of a value that may be a secret.
const MASK: &str = "*****";
/// The longest URL that is taken. Servers refuse longer ones.
const MAX_URL: usize = 64 << 10;

/// A URL that requests can be sent to.
#[derive(Clone)]
pub(super) struct Target {
    url: Url,
    len: usize,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.shown()).finish()
    }
}

impl Target {
    pub(super) fn parse(text: &str) -> Result<Self, DoctorError> {
        if text.len() > MAX_URL {
            return Err(DoctorError::TooLong { len: text.len(), most: MAX_URL });
        }
        let url = Url::parse(text).map_err(|error| DoctorError::Url {
            reason: match text.contains("://") {
                true => error.to_string(),
                false => "it does not begin as http://192.0.2.1/image.iso does".to_owned(),
            },
        })?;
        Self::new(url, text.chars().count())
    }

    /// Where a redirect leads to.
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
        match url.host() {
            Some(_) => Ok(Self { url, len }),
            None => Err(DoctorError::Url { reason: "it has no host".to_owned() }),
        }
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// The characters of the URL as it was given.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The host, without the brackets of an IPv6 address.
    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
    }

    pub(super) fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or(80)
    }

    /// What the header `Host` says.
    pub(super) fn authority(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// What the first line of a request says.
    pub(super) fn request_target(&self) -> String {
        let path = self.url.path();
        self.url.query().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"))
    }

    /// What the header `Authorization` says of a URL with a user: user and password as they are, not as URLs escape them.
    pub(super) fn authorization(&self) -> Option<String> {
        let (user, password) = (self.url.username(), self.url.password());
        if user.is_empty() && password.is_none() {
            return None;
        }
        let pair = [unescaped(user), unescaped(password.unwrap_or_default())].join(&b':');
        Some(format!("Basic {}", BASE64_STANDARD.encode(pair)))
    }

    /// Whether requests to both are for the same server.
    pub(super) fn has_origin_of(&self, other: &Self) -> bool {
        self.url.origin() == other.url.origin()
    }

    /// Whether the path has something in it that is a token.
    pub(super) fn has_token(&self) -> bool {
        self.shown_path().contains(MASK)
    }

    /// The URL without what is secret in it: tokens in the path, all values of the query, user and password. Which values
    /// are secrets, each server says in its own way.
    pub(super) fn shown(&self) -> String {
        let mut text = format!("{}://{}{}", self.url.scheme(), self.authority(), self.shown_path());
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

    fn shown_path(&self) -> String {
        match self.url.path().parse() {
            Ok(uri) => Redacted(&uri).to_string(),
            // Longer than what the parser takes.
            Err(_) => format!("/{MASK}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        for (url, shown) in [
            ("http://host/a.iso", "http://host/a.iso"),
            ("http://host:8090/a.iso", "http://host:8090/a.iso"),
            ("https://user:secret@host/a.iso", "https://host/a.iso"),
            ("https://[::1]:8443/byapikey/secret/full.iso", "https://[::1]:8443/byapikey/*****/full.iso"),
            ("http://host/a?X-Amz-Signature=secret&secret", "http://host/a?X-Amz-Signature=*****&*****"),
            ("http://host/i/eyJhbGciOi.secret.s/full.iso", "http://host/i/*****/full.iso"),
            ("http://host/a?version=1#secret", "http://host/a?version=*****"),
        ] {
            let target = Target::parse(url).unwrap();
            assert_eq!(target.shown(), shown);
            assert!(!format!("{target:?}").contains("secret"), "{target:?}");
        }
    }

    #[test]
    fn credentials_are_sent_as_they_are() {
        for (url, pair) in [
            ("http://host/", None),
            ("http://us%40er:p%40ss%2F%c3%bc@host/", Some("us@er:p@ss/\u{FC}")),
            ("http://user@host/", Some("user:")),
            ("http://:pass@host/", Some(":pass")),
        ] {
            let authorization = Target::parse(url).unwrap().authorization();
            let expected = pair.map(|pair| format!("Basic {}", BASE64_STANDARD.encode(pair)));
            assert_eq!(authorization, expected, "{url}");
        }
    }

    #[test]
    fn what_is_no_url_of_a_server_is_refused() {
        for (url, reason) in [
            ("a.iso", "does not begin as http:"),
            ("ftp://host/a.iso", "ftp"),
            ("http://", "empty host"),
            (&format!("http://host/{}", "a".repeat(70_000)), "70012"),
        ] {
            let error = Target::parse(url).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
