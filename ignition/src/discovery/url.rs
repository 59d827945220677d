//! URLs of services and proxies.

use std::fmt;

use super::input::InputError;
use super::secret::REDACTED;
use crate::validate::url;

/// An `http` or `https` URL that names a host and holds only characters that a URL may hold.
///
/// Neither blanks, quotes, backslashes nor line breaks are among those. What may be secret in it, user, password and
/// query, shows neither in `Debug` nor in errors.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HttpUrl(String);

impl HttpUrl {
    /// Most bytes of a URL. Written into a unit with every character doubled, it still fits into a line there.
    pub const MAX_LEN: usize = 1000;

    /// Reads a URL. Blanks around it are dropped.
    ///
    /// # Errors
    ///
    /// When the text is longer than [`Self::MAX_LEN`], has another scheme, no host, a port that is none, or a
    /// character that does not belong there.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::discovery::HttpUrl;
    ///
    /// assert_eq!(HttpUrl::parse("base_url", " https://api.example.com/ ")?.as_str(), "https://api.example.com/");
    /// let error = HttpUrl::parse("base_url", "https://user:pass@a b/").unwrap_err();
    /// assert_eq!(error.to_string(), r#"base_url "https://*****@a b/": has the character ' ', which no URL has"#);
    /// # Ok::<(), ignition::discovery::InputError>(())
    /// ```
    pub fn parse(field: &'static str, text: &str) -> Result<Self, InputError> {
        let text = text.trim();
        match problem(text) {
            None => Ok(Self(text.to_owned())),
            Some(reason) => Err(InputError::new(field, &masked_url(text), reason)),
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the scheme is `https`.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.0.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("https:"))
    }

    /// The URL of something below this one: a path that begins with a slash. A query of this URL is dropped.
    #[must_use]
    pub(crate) fn join(&self, path: &str) -> String {
        let end = self.0.find(['?', '#']).unwrap_or(self.0.len());
        format!("{}{path}", self.0.get(..end).unwrap_or_default().trim_end_matches('/'))
    }
}

impl fmt::Debug for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&masked_url(&self.0), f)
    }
}

/// Scheme, host and path of a URL, as far as it has them: not what may be secret in it, user, password and query. The text
/// need not be a URL.
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
    let start = text.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = text.split_at_checked(start).unwrap_or_default();
    let (rest, query) = match rest.find(['?', '#']) {
        Some(at) => (rest.get(..at).unwrap_or_default(), "?*****"),
        None => (rest, ""),
    };
    // A password with a slash that should have been escaped is a password nevertheless.
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}{REDACTED}@{host}{query}"),
        None => format!("{scheme}{rest}{query}"),
    }
}

fn problem(text: &str) -> Option<String> {
    const PUNCTUATION: &str = "-._~:/?#[]@!$&'()*+,;=%";
    if text.is_empty() {
        return Some("is empty".to_owned());
    }
    if text.len() > HttpUrl::MAX_LEN {
        return Some(format!("is longer than {} characters", HttpUrl::MAX_LEN));
    }
    if let Some(bad) = text.chars().find(|it| !(it.is_ascii_alphanumeric() || PUNCTUATION.contains(*it))) {
        return Some(format!("has the character {bad:?}, which no URL has"));
    }
    match url::scheme(text) {
        Ok(url::Scheme::Http | url::Scheme::Https) => {}
        Ok(_) | Err(url::UrlError::Scheme { .. } | url::UrlError::NoScheme) => {
            return Some("is no http or https URL".to_owned());
        }
        Err(url::UrlError::Port { .. }) => return Some("has a port that is no number".to_owned()),
        Err(error) => return Some(error.to_string()),
    }
    let Some((_, rest)) = text.split_once("://") else { return Some("is no http or https URL".to_owned()) };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority_problem(authority).map(str::to_owned)
}

fn authority_problem(authority: &str) -> Option<&'static str> {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (host, None),
    };
    if name.is_empty() {
        return Some("names no host");
    }
    if port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return Some("has a port that is no number up to 65535");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_urls_stay_as_they_are() {
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
    fn bad_urls_are_named_without_their_secrets() {
        for (bad, reason) in [
            ("", "is empty"),
            ("a", "is no http"),
            ("ftp://a", "is no http"),
            ("socks5://a", "is no http"),
            ("http:a", "is no http"),
            ("http://", "names no host"),
            ("http://:80", "names no host"),
            ("http://u:hunter2@", "names no host"),
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
