//! A URL in an installer config.
//!
//! Parsing checks the scheme, and the host if the scheme requires one. The installer checks the rest. The text of the
//! URL is kept unchanged.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

use crate::customize::from_text::from_text;

/// A URL from which the installer downloads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct InstallUrl(String);

/// The reason why a URL is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstallUrlError {
    /// The text does not start with a scheme and a colon.
    #[error("URL {url:?} has no scheme such as https:")]
    NoScheme {
        /// The invalid text.
        url: String,
    },
    /// The scheme requires a host, and the text has none.
    #[error("URL {url:?} has no host")]
    NoHost {
        /// The invalid text.
        url: String,
    },
}

impl InstallUrl {
    /// Returns the unchanged text of the URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for InstallUrl {
    type Err = InstallUrlError;

    fn from_str(text: &str) -> Result<Self, InstallUrlError> {
        let url = || text.to_owned();
        let split = text.trim().split_once(':').filter(|(scheme, _)| is_scheme(scheme));
        let Some((scheme, rest)) = split else {
            return Err(InstallUrlError::NoScheme { url: url() });
        };
        let scheme = scheme.to_ascii_lowercase();
        if matches!(scheme.as_str(), "http" | "https" | "ftp") && !has_host(rest) {
            return Err(InstallUrlError::NoHost { url: url() });
        }
        Ok(Self(url()))
    }
}

/// Returns `true` if a text is a valid scheme (RFC 3986, section 3.1): a letter, then letters, digits, `+`, `-` and
/// `.`.
fn is_scheme(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.bytes().all(allowed)
}

/// Returns `true` if a URL has a host. `rest` is the part after the scheme. User information or a port alone does not
/// count.
fn has_host(rest: &str) -> bool {
    let rest = rest.trim_start_matches(['/', '\\']);
    let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    !host.is_empty() && !host.starts_with(':')
}

impl fmt::Display for InstallUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for InstallUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

impl From<InstallUrl> for String {
    fn from(url: InstallUrl) -> Self {
        url.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_keeps_its_text() {
        for url in [
            "https://example.com",
            "http://user:word@[fd00::1]:8080/a?b#c",
            "tftp://host/a",
            "data:,x",
            "HTTPS://Example.COM/",
            "file:///a",
        ] {
            assert_eq!(url.parse::<InstallUrl>().unwrap().as_str(), url);
        }
    }

    #[test]
    fn rejects_invalid_urls() {
        for url in ["", "/a", "example.com", "example.com/a:b", "1http://a", "://a", "a b:c"] {
            let error = url.parse::<InstallUrl>().unwrap_err();
            assert!(matches!(error, InstallUrlError::NoScheme { .. }), "{url}");
        }
        for url in ["http:", "https://", "https:///", "https://?a", "http://u@/", "http://:80/"] {
            let error = url.parse::<InstallUrl>().unwrap_err();
            assert!(matches!(error, InstallUrlError::NoHost { .. }), "{url}");
        }
    }
}
