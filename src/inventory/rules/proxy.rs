//! Proxies.

use ignition::discovery::Proxies;

use crate::inventory::Refusal;

/// Reads proxies; empty texts are none.
pub(crate) fn check_proxies(http: &str, https: &str, none_for: &str) -> Result<Proxies, Refusal> {
    let mut seen = std::collections::BTreeSet::new();
    if let Some(twice) = none_for.split(',').find(|entry| !entry.is_empty() && !seen.insert(*entry)) {
        return Err(Refusal::bad(format!("proxy.no_proxy {none_for:?}: names {twice:?} twice")));
    }
    Proxies::parse(http, https, none_for).map_err(|error| {
        let prefix = match error.field {
            "proxy.http_proxy" => "Failed to validate HTTP Proxy: ",
            "proxy.https_proxy" => "Failed to validate HTTPS Proxy: ",
            _ => "",
        };
        Refusal::bad(format!("{prefix}{error}"))
    })
}

/// The URL of a proxy without user and password.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    format!("{scheme}://{place}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_told_of_without_its_password() {
        for (url, shown) in [
            ("http://proxy:3128", "http://proxy:3128"),
            ("http://me:a@b@proxy:3128/", "http://proxy:3128/"),
            ("http://me:secret@proxy?to=a@b", "http://proxy?to=a@b"),
            ("http://proxy/a@b", "http://proxy/a@b"),
            ("", ""),
        ] {
            assert_eq!(without_password(url), shown, "{url}");
        }
    }
}
