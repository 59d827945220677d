//! Checks the environment variables that configure a proxy for outgoing requests.
//!
//! The HTTP client reads these variables itself and silently ignores values that it cannot parse. Requests would then
//! bypass the proxy, or use it although an exception was intended. Error messages do not quote values, because the URL
//! of a proxy may contain a password, even if the user has set the wrong variable.

use std::env;
use std::net::IpAddr;

use anyhow::{Result, bail};
use axum::http::Uri;

/// The variables with the URL of a proxy. The client reads the lower-case form if the upper-case form is not set.
const PROXIES: [[&str; 2]; 3] =
    [["HTTP_PROXY", "http_proxy"], ["HTTPS_PROXY", "https_proxy"], ["ALL_PROXY", "all_proxy"]];
/// The variables with the hosts to reach without a proxy.
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Checks all variables. An empty variable counts as not set.
///
/// # Errors
///
/// Returns an error that names the variable with an invalid value.
pub(super) fn check_environment() -> Result<()> {
    let mut has_proxy = false;
    for names in PROXIES {
        if let Some((name, value)) = effective_variable(names)? {
            has_proxy = true;
            if let Err(reason) = check_proxy(&value) {
                bail!("{name} is not the URL of a proxy: {reason}; use http://HOST:PORT");
            }
        }
    }
    // Check exceptions only if a proxy is set, because they have no effect without a proxy.
    if has_proxy && let Some((name, value)) = effective_variable(EXCEPTIONS)? {
        for (number, entry) in
            (1..).zip(value.split(',').map(str::trim)).filter(|(_, entry)| !entry.is_empty())
        {
            if let Err(remedy) = check_exception(entry) {
                bail!("entry {number} of {name} would match no host: {remedy}");
            }
        }
    }
    Ok(())
}

fn effective_variable(names: [&'static str; 2]) -> Result<Option<(&'static str, String)>> {
    for name in names {
        match env::var(name) {
            Ok(value) => return Ok((!value.is_empty()).then_some((name, value))),
            Err(env::VarError::NotPresent) => {}
            Err(env::VarError::NotUnicode(_)) => bail!("{name} is not valid UTF-8"),
        }
    }
    Ok(None)
}

fn check_proxy(value: &str) -> Result<(), &'static str> {
    let url: Uri = value.parse().map_err(|_| "it is malformed")?;
    if !matches!(url.scheme_str(), None | Some("http" | "https")) {
        return Err("its scheme is neither http nor https");
    }
    let authority = url.authority().ok_or("it has no host")?;
    // Check the port, because the client would ignore an invalid port.
    let (_, address) = authority.as_str().rsplit_once('@').unwrap_or(("", authority.as_str()));
    let port = address.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
    match (authority.host(), port) {
        ("", _) => Err("it has no host"),
        (_, Some(port)) if port.parse::<u16>().is_err() => Err("its port is not a number up to 65535"),
        _ => Ok(()),
    }
}

/// Checks an exception: an address, a network, a domain, or `*`.
fn check_exception(entry: &str) -> Result<(), &'static str> {
    if entry == "*" || entry.parse::<IpAddr>().is_ok() || is_network(entry) {
        return Ok(());
    }
    if entry.starts_with('[') || entry.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
        return Err("ports and brackets are not supported; write the address or domain alone");
    }
    if entry.contains('*') {
        return Err("the only wildcard is `*` alone; write .example.com for a domain");
    }
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) || !byte.is_ascii();
    match entry.bytes().all(is_part) {
        true => Ok(()),
        false => Err("expected an address, a network, a domain or `*`"),
    }
}

fn is_network(entry: &str) -> bool {
    let Some((address, prefix)) = entry.split_once('/') else { return false };
    let (Ok(address), Ok(prefix)) = (address.parse::<IpAddr>(), prefix.parse::<u8>()) else { return false };
    prefix <= if address.is_ipv4() { 32 } else { 128 } && !entry.contains('+')
}

#[cfg(test)]
mod tests {
    use hyper_util::client::proxy::matcher::Matcher;

    use super::*;

    fn is_used(proxy: &str) -> bool {
        let url = "http://example.com/".parse().unwrap();
        Matcher::builder().all(proxy).build().intercept(&url).is_some()
    }

    #[test]
    fn proxy_is_a_url_or_an_address() {
        for value in [
            "http://proxy:3128",
            "https://me:p%40ss@proxy.example.com:3128/",
            "proxy:3128",
            "proxy",
            "http://[2001:db8::1]:3128",
            "http://[2001:db8::1]",
        ] {
            assert_eq!(check_proxy(value), Ok(()), "{value}");
            assert!(is_used(value), "{value}");
        }
        for value in [
            "http://",
            "http:/proxy",
            "http//proxy:3128",
            "http://a b",
            "socks5://proxy",
            "htp://proxy",
            "http://proxy:port",
            "http://proxy:65536",
            "/proxy",
            "http://me:p@",
        ] {
            assert!(check_proxy(value).is_err(), "{value}");
        }
    }

    #[test]
    fn accepts_only_exceptions_that_the_client_matches() {
        for entry in [
            "*",
            "10.0.0.1",
            "::1",
            "10.0.0.0/8",
            "fd00::/8",
            "localhost",
            ".example.com",
            "example.com",
            "a_b",
            "ü.de",
        ] {
            assert_eq!(check_exception(entry), Ok(()), "{entry}");
        }
        for entry in [
            "10.0.0.1:8080",
            "example.com:443",
            "[::1]",
            "[::1]:80",
            "*.example.com",
            "10.0.*",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "fd00::/129",
            "http://a",
            "a b",
            "a;b",
        ] {
            assert!(check_exception(entry).is_err(), "{entry}");
        }
    }
}
