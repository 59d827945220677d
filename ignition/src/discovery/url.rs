//! HTTP URLs of services and proxies.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::input::InputError;
use super::secret::REDACTED;
use crate::spec::Spec;
use crate::validate::url;

/// An `http` or `https` URL with a host. All of its characters are valid in URLs.
///
/// It contains no blanks, quotes (`"`), backslashes or line breaks. `Debug` output and errors do not contain the user,
/// password and query, which may be secret.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HttpUrl(String);

impl HttpUrl {
    /// Maximum length of a URL in bytes. Even if every character is escaped, the URL fits into a line of a unit.
    pub const MAX_LEN: usize = 1000;

    /// Parses a URL. White space around it is removed.
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

    /// Returns the reason why other machines cannot reach this URL, or `None` if they may reach it. Other machines
    /// cannot reach a URL whose host is a loopback or unspecified address, or a name that resolves to a loopback
    /// address, because each machine would connect to itself.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::discovery::HttpUrl;
    ///
    /// assert!(HttpUrl::parse("base_url", "http://[::]:8090")?.unreachable_reason().is_some());
    /// assert_eq!(HttpUrl::parse("base_url", "http://192.0.2.1:8090")?.unreachable_reason(), None);
    /// # Ok::<(), ignition::discovery::InputError>(())
    /// ```
    #[must_use]
    pub fn unreachable_reason(&self) -> Option<String> {
        let host = self.host();
        let is_own = match host_address(host) {
            Some(address) => is_loopback_or_unspecified(address),
            None => is_loopback_name(host),
        };
        is_own.then(|| {
            format!(
                "other machines cannot reach {}: its host is a loopback or unspecified address",
                masked_url(&self.0)
            )
        })
    }

    /// Returns the host: a name, or an IP address without brackets. IPv6 zones are not valid in URLs.
    fn host(&self) -> &str {
        let rest = self.0.split_once("://").map_or(self.0.as_str(), |(_, rest)| rest);
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        match host.strip_prefix('[') {
            Some(address) => address.split_once(']').map_or(address, |(address, _)| address),
            None => host.split_once(':').map_or(host, |(name, _)| name),
        }
    }

    pub(crate) fn is_https(&self) -> bool {
        self.0.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("https:"))
    }

    /// Appends a path that begins with a slash. The query of this URL is removed.
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

/// Returns the scheme, host and path of a URL. Masks the user, password and query, which may be secret. The text need
/// not be a valid URL.
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
    // The last `@` ends the password, because the password may contain characters that should have been escaped.
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}{REDACTED}@{host}{query}"),
        None => format!("{scheme}{rest}{query}"),
    }
}

/// Parses a URL like [`HttpUrl::parse`]. In errors, the name of the field is `url`.
impl FromStr for HttpUrl {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        Self::parse("url", text)
    }
}

fn is_loopback_or_unspecified(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_loopback() || address.is_unspecified()
}

/// Returns `true` for names that systems resolve to a loopback address without a name server.
fn is_loopback_name(host: &str) -> bool {
    const NAMES: [&str; 6] = [
        "ip6-localhost",
        "ip6-loopback",
        "localhost4",
        "localhost4.localdomain4",
        "localhost6",
        "localhost6.localdomain6",
    ];
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let host = host.strip_suffix(".localdomain").unwrap_or(&host);
    host == "localhost" || host.ends_with(".localhost") || NAMES.contains(&host)
}

/// Parses a host as an IP address. An IPv4 address may have the short and hexadecimal forms that the resolvers of C
/// libraries accept, such as `127.1`.
fn host_address(host: &str) -> Option<IpAddr> {
    if let Ok(address) = host.parse::<Ipv6Addr>() {
        return Some(address.into());
    }
    let numbers: Vec<u32> = host.trim_end_matches('.').split('.').map(c_number).collect::<Option<_>>()?;
    let (last, bytes) = numbers.split_last()?;
    let shift = 8 * (4 - u32::try_from(bytes.len()).ok().filter(|len| *len <= 3)?);
    let bits =
        bytes.iter().try_fold(0_u64, |bits, byte| Some(bits << 8 | u64::from(u8::try_from(*byte).ok()?)))?;
    let bits = bits << shift;
    let is_too_large = u64::from(*last) >= 1_u64 << shift;
    let bits = u32::try_from(bits | u64::from(*last)).ok().filter(|_| !is_too_large)?;
    Some(Ipv4Addr::from_bits(bits).into())
}

/// Parses a number in the notation of C: decimal, hexadecimal with `0x`, or octal with `0`.
fn c_number(text: &str) -> Option<u32> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match (lower.strip_prefix("0x"), lower.strip_prefix('0')) {
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) if !digits.is_empty() => (digits, 8),
        _ => (lower.as_str(), 10),
    };
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(digits, radix).ok().filter(|_| is_number)
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
            return Some("does not start with http:// or https://".to_owned());
        }
        Err(url::UrlError::Port { .. }) => return Some("has a port that is not a number".to_owned()),
        Err(error) => return Some(error.to_string()),
    }
    let Some((_, rest)) = text.split_once("://") else {
        return Some("does not start with http:// or https://".to_owned());
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
            assert_eq!(good.parse::<HttpUrl>().unwrap().as_str(), good);
        }
    }

    #[test]
    fn rejects_invalid_urls_without_showing_secrets() {
        for (bad, reason) in [
            ("", "is empty"),
            ("a", "does not start with http:// or https://"),
            ("ftp://a", "does not start with http:// or https://"),
            ("socks5://a", "does not start with http:// or https://"),
            ("http:a", "does not start with http:// or https://"),
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
            ("http://[::1%25lo]", "'%'"),
        ] {
            let error = HttpUrl::parse("proxy.http_proxy", bad).unwrap_err().to_string();
            assert!(error.starts_with("proxy.http_proxy ") && error.contains(reason), "{bad}: {error}");
            assert!(!error.contains("ter2"), "{error}");
        }
        assert!(HttpUrl::parse("f", &format!("http://{}", "a".repeat(994))).is_err());
        let error = "a".parse::<HttpUrl>().unwrap_err().to_string();
        assert_eq!(error, "url \"a\": does not start with http:// or https://");
    }

    #[test]
    fn debug_shows_neither_password_nor_query() {
        let url = HttpUrl::parse("f", "http://user:hunter2@a:1/b?api_key=hunter2").unwrap();
        assert_eq!(format!("{url:?}"), r#""http://*****@a:1/b?*****""#);
    }

    #[test]
    fn loopback_and_unspecified_hosts_are_unreachable() {
        for host in [
            "127.0.0.1",
            "127.255.0.9:8090",
            "0.0.0.0:8090",
            "127.0.0.1.",
            "127.1",
            "0",
            "0x7f.1",
            "2130706433",
            "0177.0.0.1",
            "[::1]:80",
            "[::]",
            "[0:0:0:0:0:0:0:1]",
            "[::ffff:127.0.0.1]",
            "[::FFFF:0.0.0.0]",
            "localhost",
            "LOCALHOST:8090",
            "localhost.",
            "a.b.localhost.",
            "Localhost.LocalDomain",
            "localhost4.localdomain4",
            "localhost6",
            "ip6-localhost",
            "ip6-loopback:1",
            "user:192.0.2.1@127.0.0.1:8090",
        ] {
            for url in [format!("http://{host}"), format!("HTTPS://{host}/path?host=192.0.2.1#@a")] {
                let parsed = HttpUrl::parse("f", &url).unwrap();
                assert!(parsed.unreachable_reason().is_some(), "{url}");
            }
        }
    }

    #[test]
    fn other_hosts_are_not_called_unreachable() {
        for url in [
            "http://192.0.2.1:8090",
            "http://10.0.0.1",
            "http://[fe80::1]:80",
            "http://[2001:db8::1]",
            "http://[::ffff:192.0.2.1]",
            "http://localhost.example.com",
            "http://mylocalhost",
            "http://localdomain",
            "http://127.0.0.1.nip.io",
            "http://127.example.com",
            "http://localhost@192.0.2.1",
            "http://192.0.2.1/localhost",
            "http://256.1",
            "http://1.2.3.4.5",
            "http://127.0.0.1.0",
            "http://4294967296",
            "http://0x",
            "http://+1",
        ] {
            let parsed = HttpUrl::parse("f", url).unwrap();
            assert_eq!(parsed.unreachable_reason(), None, "{url}");
        }
    }

    #[test]
    fn unreachable_reason_shows_neither_password_nor_query() {
        let reason =
            HttpUrl::parse("f", "http://u:hunter2@localhost:1/b?k=hunter2").unwrap().unreachable_reason();
        let expected = "other machines cannot reach http://*****@localhost:1/b?*****: its host is a loopback or unspecified address";
        assert_eq!(reason.unwrap(), expected);
    }

    #[test]
    fn joining_keeps_the_path_and_drops_the_query() {
        let join = |base: &str| HttpUrl::parse("f", base).unwrap().join("/api");
        assert_eq!(join("https://a"), "https://a/api");
        assert_eq!(join("https://a/prefix/?x=y"), "https://a/prefix/api");
    }
}
