//! Protects an API without tokens from the pages of other sites.
//!
//! Under the policy `none`, every client that reaches the service may use its API, including the browser of an
//! administrator. Two attacks use such a browser. In DNS rebinding, the attacker's host name resolves to the address of
//! this service, so a page of the attacker can read the API as if it were the attacker's site. These requests have the
//! attacker's name in `Host`. In cross-site request forgery, a page of another site sends requests that change data.
//! These requests have the attacker's site in `Origin`.
//!
//! Under other policies, both attacks fail for lack of a token. Images are not protected in this way, because hosts may
//! reach them under any name.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ignition::discovery::HttpUrl;

use super::cors::matches_pattern;
use super::listener::{Peer, PeerTransport};
use inventory::api::ApiError;
use inventory::auth::PolicyKind;
use inventory::{AllowedHosts, Inventory};

/// The sites whose pages may call a service.
#[derive(Clone, Debug)]
pub(super) struct AllowedSites(Arc<SiteRules>);

#[derive(Debug)]
struct SiteRules {
    hosts: AllowedHosts,
    /// The sites of the base URLs.
    own: Vec<Site>,
    allowed_origins: Vec<String>,
}

/// A normalized host with a port.
#[derive(Debug, PartialEq, Eq)]
struct Site {
    host: String,
    port: u16,
}

impl Site {
    /// Returns the site of an authority. The default port is the port of the scheme.
    fn new(authority: &Authority, scheme: &str) -> Self {
        let default = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
        Self { host: normalized_host(authority.host()), port: authority.port_u16().unwrap_or(default) }
    }
}

impl AllowedSites {
    /// Returns the sites of an inventory. Returns `None` if its policy requires tokens.
    pub(super) fn from_inventory(inventory: &Inventory) -> Option<Self> {
        if inventory.policy().kind() != PolicyKind::None {
            return None;
        }
        let settings = inventory.settings();
        let base_urls = [&settings.service_base_url, &settings.image_service_base_url];
        Some(Self(Arc::new(SiteRules {
            hosts: settings.allowed_hosts.clone(),
            own: base_urls.into_iter().filter_map(base_url_site).collect(),
            allowed_origins: settings.allowed_origins.clone(),
        })))
    }

    fn check(&self, request: &Request) -> Result<(), ApiError> {
        let (headers, uri) = (request.headers(), request.uri());
        let is_unix = |peer: &Peer| peer.transport == PeerTransport::Unix;
        if !request.extensions().get().is_some_and(is_unix) {
            self.check_host(headers, uri)?;
        }
        match request.method() {
            &Method::GET | &Method::HEAD | &Method::OPTIONS => Ok(()),
            _ => self.check_origin(headers),
        }
    }

    /// Checks the host in the request. A request without `Host` (HTTP/1.0) is accepted, because no browser sends one.
    fn check_host(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), ApiError> {
        let value = headers.get(header::HOST).map(|value| value.as_bytes()).filter(|value| !value.is_empty());
        let authority =
            value.map(|value| Authority::try_from(value).map_err(|_| host_refusal(&value.escape_ascii())));
        let authority = authority.transpose()?;
        // Check the host of an absolute request target, too (RFC 9112, 3.2.2).
        for authority in authority.iter().chain(uri.authority()) {
            let host = normalized_host(authority.host());
            if !self.0.allows_host(&host) {
                return Err(host_refusal(&host));
            }
        }
        Ok(())
    }

    /// Checks the `Origin`. A request without it is accepted, because browsers send it with every request that may
    /// change data.
    fn check_origin(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
        let text = origin.to_str().map_err(|_| origin_refusal(&origin.as_bytes().escape_ascii()))?;
        let is_allowed = self.0.allowed_origins.iter().any(|pattern| matches_pattern(pattern, text));
        if is_allowed || self.0.is_own_origin(text, headers) {
            return Ok(());
        }
        Err(origin_refusal(&text))
    }
}

impl SiteRules {
    fn allows_host(&self, host: &str) -> bool {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        let is_own = || self.own.iter().any(|own| own.host == host);
        let is_listed = |list: &[String]| list.iter().any(|pattern| matches_pattern(pattern, host));
        match &self.hosts {
            AllowedHosts::Any => true,
            AllowedHosts::Loopback(more) => is_loopback(host, address) || is_own() || is_listed(more),
            AllowedHosts::Addresses => address.is_some() || is_loopback(host, address) || is_own(),
            AllowedHosts::Listed(list) => is_loopback(host, address) || is_own() || is_listed(list),
        }
    }

    /// Returns `true` if an origin is the site to which the request was sent, or the site of a base URL.
    fn is_own_origin(&self, origin: &str, headers: &HeaderMap) -> bool {
        let Ok(uri) = origin.parse::<Uri>() else { return false };
        let (Some(authority), Some(scheme)) = (uri.authority(), uri.scheme_str()) else { return false };
        let host = headers.get(header::HOST).and_then(|host| Authority::try_from(host.as_bytes()).ok());
        // A TLS proxy may have forwarded the request, so assume the scheme of the origin. But if a base URL shows that
        // the host has TLS, pages of this host without TLS are foreign.
        let has_tls = |host: &str| self.own.contains(&Site { host: normalized_host(host), port: 443 });
        let requested =
            host.map(|host| Site::new(&host, if has_tls(host.host()) { "https" } else { scheme }));
        self.own.iter().chain(&requested).any(|site| *site == Site::new(authority, scheme))
    }
}

/// Refuses requests that pages of other sites make a browser send.
pub(super) async fn refuse_other_sites(
    State(sites): State<AllowedSites>,
    request: Request,
    next: Next,
) -> Response {
    match sites.check(&request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

/// Returns the site of a base URL. Logs a URL whose host cannot be in a request, because such requests are refused.
fn base_url_site(url: &HttpUrl) -> Option<Site> {
    let (scheme, after_scheme) = url.as_str().split_once("://")?;
    let authority = after_scheme.split(['/', '?', '#']).next()?;
    Authority::try_from(authority)
        .inspect_err(
            |error| tracing::error!(?url, %error, "base URL has an invalid host, requests to it are refused"),
        )
        .ok()
        .map(|authority| Site::new(&authority, scheme))
}

/// Converts a host to lower case, and removes the dot at the end of a fully qualified name.
fn normalized_host(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

fn is_loopback(host: &str, address: Option<IpAddr>) -> bool {
    address.is_some_and(|address| address.to_canonical().is_loopback())
        || host == "localhost"
        || host.ends_with(".localhost")
}

fn host_refusal(host: &impl std::fmt::Display) -> ApiError {
    ApiError::infra_error(
        StatusCode::MISDIRECTED_REQUEST,
        format!(
            "host \"{host}\" is not allowed: it is neither one of the service's allowed hosts nor the host of a \
             base URL"
        ),
    )
}

fn origin_refusal(origin: &impl std::fmt::Display) -> ApiError {
    ApiError::infra_error(
        StatusCode::FORBIDDEN,
        format!(
            "requests from pages of \"{origin}\" are refused: it is not one of the service's allowed origins"
        ),
    )
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn sites_with_hosts(hosts: AllowedHosts) -> AllowedSites {
        let own = [("kindling.example", 8090), ("192.0.2.7", 80), ("secure.example", 443)];
        let own = own.map(|(host, port)| Site { host: host.to_owned(), port }).into();
        AllowedSites(Arc::new(SiteRules {
            hosts,
            own,
            allowed_origins: vec!["https://*.ui.example".to_owned()],
        }))
    }

    fn response_status(sites: &AllowedSites, method: &str, headers: &[(HeaderName, &str)]) -> u16 {
        let request = Request::builder().method(method).uri("/");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(name, *value));
        let checked = sites.check(&request.body(axum::body::Body::empty()).unwrap());
        checked.err().map_or(200, |refusal| refusal.status().as_u16())
    }

    #[test]
    fn base_url_host_is_found_with_any_path() {
        for (url, expected) in [
            ("http://a.example", ("a.example", 80)),
            ("https://A.example", ("a.example", 443)),
            ("https://a.example:8090/b[c]|?d", ("a.example", 8090)),
            ("http://[2001:db8::1]/", ("[2001:db8::1]", 80)),
            ("http://user@a.example/", ("a.example", 80)),
        ] {
            let url = url.replace('|', "%7C");
            let site = base_url_site(&HttpUrl::parse("base_url", &url).unwrap()).unwrap();
            assert_eq!((&site.host[..], site.port), expected, "{url}");
        }
    }

    #[test]
    fn rejects_foreign_hosts_on_loopback() {
        let sites = sites_with_hosts(AllowedHosts::Loopback(vec!["lab.example".to_owned()]));
        for host in [
            "localhost",
            "LOCALHOST:8090",
            "localhost.",
            "a.localhost",
            "127.0.0.1:8090",
            "127.9.9.9",
            "[::1]:8090",
            "[::ffff:127.0.0.1]",
            "kindling.example",
            "Kindling.Example.:1",
            "192.0.2.7:8090",
            "lab.example",
            "",
        ] {
            assert_eq!(response_status(&sites, "GET", &[(header::HOST, host)]), 200, "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.2.2:8090",
            "0.0.0.0",
            "[::]",
            "kindling.example.evil.example",
            "xlocalhost",
            "lab.example.org",
        ] {
            assert_eq!(response_status(&sites, "GET", &[(header::HOST, host)]), 421, "{host}");
        }
        assert_eq!(response_status(&sites, "GET", &[]), 200);
    }

    #[test]
    fn open_service_accepts_addresses_or_listed_hosts() {
        let addresses = sites_with_hosts(AllowedHosts::Addresses);
        let listed = sites_with_hosts(AllowedHosts::Listed(vec!["*.lab.example".to_owned()]));
        for (host, by_address, by_list) in [
            ("198.51.100.3:8090", 200, 421),
            ("[2001:db8::1]", 200, 421),
            ("localhost", 200, 200),
            ("kindling.example", 200, 200),
            ("a.lab.example:8090", 421, 200),
            ("evil.example", 421, 421),
        ] {
            assert_eq!(response_status(&addresses, "GET", &[(header::HOST, host)]), by_address, "{host}");
            assert_eq!(response_status(&listed, "GET", &[(header::HOST, host)]), by_list, "{host}");
        }
    }

    #[test]
    fn rejects_absolute_target_with_foreign_host() {
        let request = Request::builder().uri("http://evil.example/").header(header::HOST, "localhost");
        let checked = sites_with_hosts(AllowedHosts::Addresses)
            .check(&request.body(axum::body::Body::empty()).unwrap());
        assert_eq!(checked.unwrap_err().status(), 421);
    }

    #[test]
    fn rejects_changes_from_pages_of_other_sites() {
        let sites = sites_with_hosts(AllowedHosts::Addresses);
        let post =
            |origin, host| response_status(&sites, "POST", &[(header::ORIGIN, origin), (header::HOST, host)]);
        for (origin, host) in [
            ("http://192.0.2.9:8090", "192.0.2.9:8090"),
            ("http://192.0.2.9", "192.0.2.9"),
            ("https://192.0.2.9", "192.0.2.9:443"),
            ("http://kindling.example:8090", "127.0.0.1:8090"),
            ("https://a.ui.example", "127.0.0.1:8090"),
            ("https://secure.example", "127.0.0.1:8090"),
            ("https://secure.example", "secure.example"),
        ] {
            assert_eq!(post(origin, host), 200, "{origin} {host}");
        }
        for (origin, host) in [
            ("http://evil.example", "127.0.0.1:8090"),
            ("null", "127.0.0.1:8090"),
            ("http://127.0.0.1:3000", "127.0.0.1:8090"),
            ("http://192.0.2.9", "192.0.2.9:8090"),
            ("https://a.ui.example.evil.example", "127.0.0.1:8090"),
            ("", "127.0.0.1:8090"),
            ("file://", "127.0.0.1:8090"),
            // The plain port of a host may belong to another program than the TLS port.
            ("http://secure.example", "127.0.0.1:8090"),
            ("http://secure.example", "secure.example"),
        ] {
            assert_eq!(post(origin, host), 403, "{origin} {host}");
        }
        assert_eq!(response_status(&sites, "GET", &[(header::ORIGIN, "http://evil.example")]), 200);
        assert_eq!(response_status(&sites, "POST", &[]), 200);
    }
}
