//! URLs of services and proxies.

use std::fmt;

use super::input::InputError;
use super::secret::REDACTED;
use crate::spec::Spec;
use crate::validate::url;

/// An `http` or `https` URL that names a host and contains only characters that a URL may contain.
///
/// It contains no blanks, quotes (`"`), backslashes or line breaks. Neither `Debug` nor errors show its user, password
/// and query, which may be secret.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HttpUrl(String);

impl HttpUrl {
    /// Maximum length of a URL in bytes. With every character escaped by another one, it still fits into a line of a
    /// unit.
    pub const MAX_LEN: usize = 1000;

    /// Parses a URL. White space around it is dropped.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is longer than [`Self::MAX_LEN`], has another scheme, no host, an invalid port, or
    /// a character that is not allowed in URLs.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::discovery::HttpUrl;
    ///
    /// assert_eq!(HttpUrl::parse("base_url", " https://api.example.com/ ")?.as_str(), "https://api.example.com/");
    /// let error = HttpUrl::parse("base_url", "https://user:pass@a b/").unwrap_err();
    /// let expected = r#"base_url "https://*****@a b/": contains the character ' ', which is not allowed in a URL"#;
    /// assert_eq!(error.to_string(), expected);
    /// # Ok::<(), ignition::discovery::InputError>(())
    /// ```
    pub fn parse(field: &'static str, text: &str) -> Result<Self, InputError> {
        let text = text.trim();
        match url_problem(text) {
            None => Ok(Self(text.to_owned())),
            Some(reason) => Err(InputError::new(field, &masked_url(text), reason)),
        }
    }

    /// Returns the URL as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the scheme is `https`.
    pub(crate) fn is_https(&self) -> bool {
        self.0.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("https:"))
    }

    /// Appends a path that begins with a slash. The query of this URL is dropped.
    pub(crate) fn join(&self, path: &str) -> String {
        let base = self.0.split_once(['?', '#']).map_or(self.0.as_str(), |(base, _)| base);
        format!("{}{path}", base.trim_end_matches('/'))
    }
}

impl fmt::Debug for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&masked_url(&self.0), f)
    }
}

/// Returns the scheme, host and path of a URL and masks the user, password and query, which may be secret. The text
/// need not be a valid URL.
///
/// # Examples
///
/// ```
/// use ignition::discovery::masked_url;
///
/// assert_eq!(masked_url("https://user:pass@example.com/a?token=t"), "https://*****@example.com/a?*****");
/// ```
#[must_use]
pub fn masked_url(text: &str) -> String {
    const SEPARATOR: &str = "://";
    let (scheme, rest) = text.split_at(text.find(SEPARATOR).map_or(0, |at| at + SEPARATOR.len()));
    let (rest, query) = match rest.split_once(['?', '#']) {
        Some((rest, _)) => (rest, "?*****"),
        None => (rest, ""),
    };
    // The last `@` ends the password, which may contain a slash that should have been escaped.
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}{REDACTED}@{host}{query}"),
        None => format!("{scheme}{rest}{query}"),
    }
}

fn url_problem(text: &str) -> Option<String> {
    const PUNCTUATION: &str = "-._~:/?#[]@!$&'()*+,;=%";
    if text.is_empty() {
        return Some("is empty".to_owned());
    }
    if text.len() > HttpUrl::MAX_LEN {
        return Some(format!("is longer than {} characters", HttpUrl::MAX_LEN));
    }
    if let Some(bad) = text.chars().find(|it| !(it.is_ascii_alphanumeric() || PUNCTUATION.contains(*it))) {
        return Some(format!("contains the character {bad:?}, which is not allowed in a URL"));
    }
    match url::parse_scheme(text, Spec::LATEST) {
        Ok(url::Scheme::Http | url::Scheme::Https) => {}
        Ok(_) | Err(url::UrlError::Scheme { .. } | url::UrlError::NoScheme) => {
            return Some("is not an http or https URL".to_owned());
        }
        Err(url::UrlError::Port { .. }) => return Some("has a port that is not a number".to_owned()),
        Err(error) => return Some(error.to_string()),
    }
    let Some((_, rest)) = text.split_once("://") else {
        return Some("is not an http or https URL".to_owned());
    };
    let authority = rest.split_once(['/', '?', '#']).map_or(rest, |(authority, _)| authority);
    authority_problem(authority).map(str::to_owned)
}

fn authority_problem(authority: &str) -> Option<&'static str> {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (host, None),
    };
    if name.is_empty() {
        return Some("has no host");
    }
    if port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return Some("has a port that is not a number up to 65535");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_urls_are_kept_unchanged() {
        for good in [
            "http://a",
            "https://a.example.com:8443/x?y=z",
            "HTTP://[2001:db8::1]:3128",
            "http://u%40x:p$'!@10.0.0.1:3128",
        ] {
            assert_eq!(HttpUrl::parse("f", good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn rejects_invalid_urls_without_showing_secrets() {
        for (bad, reason) in [
            ("", "is empty"),
            ("a", "is not an http"),
            ("ftp://a", "is not an http"),
            ("socks5://a", "is not an http"),
            ("http:a", "is not an http"),
            ("http://", "has no host"),
            ("http://:80", "has no host"),
            ("http://u:hunter2@", "has no host"),
            ("http://u:hunter2@a:x", "port"),
            ("http://a:65536", "port"),
            ("http://a:", "port"),
            ("http://a\nb", "'\\n'"),
            ("http://u:hunter2@a\"b", "'\"'"),
            ("http://u:hun/ter2@a\\b", "'\\\\'"),
            ("http://a?hunter2=%zz b", "' '"),
            ("http://u%zzhunter2@a", "%"),
            ("http://a/ä", "'ä'"),
        ] {
            let error = HttpUrl::parse("proxy.http_proxy", bad).unwrap_err().to_string();
            assert!(error.starts_with("proxy.http_proxy ") && error.contains(reason), "{bad}: {error}");
            assert!(!error.contains("ter2"), "{error}");
        }
        assert!(HttpUrl::parse("f", &format!("http://{}", "a".repeat(994))).is_err());
    }

    #[test]
    fn debug_shows_neither_password_nor_query() {
        let url = HttpUrl::parse("f", "http://user:hunter2@a:1/b?api_key=hunter2").unwrap();
        assert_eq!(format!("{url:?}"), r#""http://*****@a:1/b?*****""#);
    }

    #[test]
    fn joining_keeps_the_path_and_drops_the_query() {
        let join = |base: &str| HttpUrl::parse("f", base).unwrap().join("/api");
        assert_eq!(join("https://a"), "https://a/api");
        assert_eq!(join("https://a/prefix/?x=y"), "https://a/prefix/api");
    }
}
