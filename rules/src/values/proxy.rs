//! Checks for proxy settings.
//!
//! [`Proxies::parse`] checks the URLs and the entries of `no_proxy`. This module adds the prefixes of the API's error
//! texts, and a check that only the API makes: `no_proxy` must not contain an entry twice.

use ignition::discovery::Proxies;

use super::error::InvalidValue;

/// Parses the fields of `proxy`. An empty string means that no such proxy is set.
///
/// # Errors
///
/// Returns an error if a URL or an entry of `no_proxy` is invalid, or if an entry occurs twice.
pub fn check_proxies(http: &str, https: &str, none_for: &str) -> Result<Proxies, InvalidValue> {
    let mut entries = std::collections::BTreeSet::new();
    if let Some(twice) = none_for.split(',').find(|entry| !entry.is_empty() && !entries.insert(*entry)) {
        return Err(InvalidValue::new(format!("proxy.no_proxy {none_for:?}: names {twice:?} twice")));
    }
    Proxies::parse(http, https, none_for).map_err(|error| {
        let prefix = match error.field {
            "proxy.http_proxy" => "Failed to validate HTTP Proxy: ",
            "proxy.https_proxy" => "Failed to validate HTTPS Proxy: ",
            _ => "",
        };
        InvalidValue::new(format!("{prefix}{error}"))
    })
}
