//! Proxies.

use ignition::discovery::Proxies;

use crate::api_error::ApiError;

/// Reads proxies; empty texts are none.
pub(crate) fn check_proxies(http: &str, https: &str, none_for: &str) -> Result<Proxies, ApiError> {
    let mut seen = std::collections::BTreeSet::new();
    if let Some(twice) = none_for.split(',').find(|entry| !entry.is_empty() && !seen.insert(*entry)) {
        return Err(ApiError::bad(format!("proxy.no_proxy {none_for:?}: names {twice:?} twice")));
    }
    Proxies::parse(http, https, none_for).map_err(|error| {
        let prefix = match error.field {
            "proxy.http_proxy" => "Failed to validate HTTP Proxy: ",
            "proxy.https_proxy" => "Failed to validate HTTPS Proxy: ",
            _ => "",
        };
        ApiError::bad(format!("{prefix}{error}"))
    })
}
