//! The `proxy` of an infra-env in API requests: converts errors into those of the API.
//!
//! `ignition/src/discovery/proxy.rs` has the rules (valid URLs, entries of `no_proxy`) and writes the proxies into
//! configs. This module adds the one check that only the API makes: no entry of `no_proxy` may occur twice.

use ignition::discovery::Proxies;

use crate::error::Error;

/// Parses the fields of `proxy`. An empty string means that there is no such proxy.
pub(crate) fn check_proxies(http: &str, https: &str, none_for: &str) -> Result<Proxies, Error> {
    let mut seen = std::collections::BTreeSet::new();
    if let Some(twice) = none_for.split(',').find(|entry| !entry.is_empty() && !seen.insert(*entry)) {
        return Err(Error::invalid(format!("proxy.no_proxy {none_for:?}: names {twice:?} twice")));
    }
    Proxies::parse(http, https, none_for).map_err(|error| {
        let prefix = match error.field {
            "proxy.http_proxy" => "Failed to validate HTTP Proxy: ",
            "proxy.https_proxy" => "Failed to validate HTTPS Proxy: ",
            _ => "",
        };
        Error::invalid(format!("{prefix}{error}"))
    })
}
