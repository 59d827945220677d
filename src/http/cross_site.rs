//! Protection of an API without tokens from the pages of other sites.
//!
//! Under the policy `none`, a request needs nothing but to reach the service, and the browser of an administrator reaches it. Two
//! attacks use that browser. In DNS rebinding, a page has the name of its own site resolve to the address of this service, and
//! then reads the API as if it were that site: the `Host` of such a request is the attacker's name. In cross-site request
//! forgery, a page sends a request that changes something: its `Origin` is the attacker's site. Under other policies such a
//! request has no token. Images are not protected in this way: machines reach them under any name.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ignition::discovery::HttpUrl;

use super::listener::{Peer, Transport};
use super::origin::fits;
use crate::api_error::ApiError;
use crate::inventory::auth::PolicyKind;
use crate::inventory::{AllowedHosts, Inventory};

/// The sites from which a service may be used.
#[derive(Clone, Debug)]
pub(super) struct Sites(Arc<Rules>);

#[derive(Debug)]
struct Rules {
    hosts: AllowedHosts,
    /// The hosts and ports of the base URLs, in lower case.
    own: Vec<Authority>,
    allowed_origins: Vec<String>,
}

impl Sites {
    /// The sites of an inventory; `None` if its policy requires tokens.
    pub(super) fn of(inventory: &Inventory) -> Option<Self> {
        if inventory.policy().kind() != PolicyKind::None {
            return None;
        }
        let settings = inventory.settings();
        let base_urls = [&settings.service_base_url, &settings.image_service_base_url];
        Some(Self(Arc::new(Rules {
            hosts: settings.allowed_hosts.clone(),
            own: base_urls.into_iter().filter_map(authority).collect(),
            allowed_origins: settings.allowed_origins.clone(),
        })))
    }

    fn check(&self, request: &Request) -> Result<(), ApiError> {
        let (headers, uri) = (request.headers(), request.uri());
        let is_unix = |peer: &Peer| peer.transport == Transport::Unix;
        if !request.extensions().get().is_some_and(is_unix) {
            self.check_host(headers, uri)?;
        }
        match request.method() {
            &Method::GET | &Method::HEAD | &Method::OPTIONS => Ok(()),
            _ => self.check_origin(headers),
        }
    }

    /// A request without `Host` (HTTP/1.0) does not come from a browser.
    fn check_host(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), ApiError> {
        let named = headers.get(header::HOST).map(|host| host.as_bytes()).filter(|host| !host.is_empty());
        let named =
            named.map(|host| Authority::try_from(host).map_err(|_| refused_host(&host.escape_ascii())));
        let named = named.transpose()?;
        // A target with a host of its own counts too (RFC 9112, 3.2.2).
        for authority in named.iter().chain(uri.authority()) {
            let host = without_dot(authority.host());
            if !self.0.allows_host(&host) {
                return Err(refused_host(&host));
            }
        }
        Ok(())
    }

    /// Browsers send `Origin` with every request that changes something.
    fn check_origin(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
        let text = origin.to_str().map_err(|_| refused_origin(&origin.as_bytes().escape_ascii()))?;
        let is_allowed = self.0.allowed_origins.iter().any(|pattern| fits(pattern, text));
        if is_allowed || self.0.is_own(text, headers) {
            return Ok(());
        }
        Err(refused_origin(&text))
    }
}

impl Rules {
    fn allows_host(&self, host: &str) -> bool {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        let is_own = || self.own.iter().any(|own| without_dot(own.host()) == host);
        let is_listed = |list: &[String]| list.iter().any(|pattern| fits(pattern, host));
        match &self.hosts {
            AllowedHosts::Any => true,
            AllowedHosts::Loopback(more) => is_loopback(host, address) || is_own() || is_listed(more),
            AllowedHosts::Addresses => address.is_some() || is_loopback(host, address) || is_own(),
            AllowedHosts::Listed(list) => is_loopback(host, address) || is_own() || is_listed(list),
        }
    }

    /// Whether an origin is the site that the request was sent to, or that of a base URL.
    fn is_own(&self, origin: &str, headers: &HeaderMap) -> bool {
        let Ok(uri) = origin.parse::<Uri>() else { return false };
        let (Some(authority), Some(scheme)) = (uri.authority(), uri.scheme_str()) else { return false };
        let port = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
        let site =
            |authority: &Authority| (without_dot(authority.host()), authority.port_u16().unwrap_or(port));
        let host = headers.get(header::HOST).and_then(|host| Authority::try_from(host.as_bytes()).ok());
        self.own.iter().chain(&host).any(|own| site(own) == site(authority))
    }
}

/// Refuses what the page of another site has a browser ask.
pub(super) async fn refuse_other_sites(State(sites): State<Sites>, request: Request, next: Next) -> Response {
    match sites.check(&request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

fn authority(url: &HttpUrl) -> Option<Authority> {
    url.as_str().parse::<Uri>().ok()?.into_parts().authority
}

/// A host in lower case, without the dot that may end a full name.
fn without_dot(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

fn is_loopback(host: &str, address: Option<IpAddr>) -> bool {
    address.is_some_and(|address| address.to_canonical().is_loopback())
        || host == "localhost"
        || host.ends_with(".localhost")
}

fn refused_host(host: &impl std::fmt::Display) -> ApiError {
    ApiError::at_gate(
        StatusCode::MISDIRECTED_REQUEST,
        format!(
            "the service does not answer to host \"{host}\"; allow it with --allowed-hosts (KINDLING_ALLOWED_HOSTS), or set \
             SERVICE_BASE_URL"
        ),
    )
}

fn refused_origin(origin: &impl std::fmt::Display) -> ApiError {
    ApiError::at_gate(
        StatusCode::FORBIDDEN,
        format!(
            "pages of \"{origin}\" may not change anything here; allow them with --allowed-domains (ALLOWED_DOMAINS)"
        ),
    )
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn sites(hosts: AllowedHosts) -> Sites {
        let own = vec![Authority::from_static("kindling.example:8090"), Authority::from_static("192.0.2.7")];
        Sites(Arc::new(Rules { hosts, own, allowed_origins: vec!["https://*.ui.example".to_owned()] }))
    }

    fn status(sites: &Sites, method: &str, headers: &[(HeaderName, &str)]) -> u16 {
        let request = Request::builder().method(method).uri("/");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(name, *value));
        let checked = sites.check(&request.body(axum::body::Body::empty()).unwrap());
        checked.err().map_or(200, |refusal| refusal.status().as_u16())
    }

    #[test]
    fn foreign_hosts_are_refused_on_loopback() {
        let sites = sites(AllowedHosts::Loopback(vec!["lab.example".to_owned()]));
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
            assert_eq!(status(&sites, "GET", &[(header::HOST, host)]), 200, "{host}");
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
            assert_eq!(status(&sites, "GET", &[(header::HOST, host)]), 421, "{host}");
        }
        assert_eq!(status(&sites, "GET", &[]), 200);
    }

    #[test]
    fn open_services_answer_to_addresses_or_to_listed_hosts() {
        let addresses = sites(AllowedHosts::Addresses);
        let listed = sites(AllowedHosts::Listed(vec!["*.lab.example".to_owned()]));
        for (host, by_address, by_list) in [
            ("198.51.100.3:8090", 200, 421),
            ("[2001:db8::1]", 200, 421),
            ("localhost", 200, 200),
            ("kindling.example", 200, 200),
            ("a.lab.example:8090", 421, 200),
            ("evil.example", 421, 421),
        ] {
            assert_eq!(status(&addresses, "GET", &[(header::HOST, host)]), by_address, "{host}");
            assert_eq!(status(&listed, "GET", &[(header::HOST, host)]), by_list, "{host}");
        }
    }

    #[test]
    fn a_target_with_a_foreign_host_is_refused() {
        let request = Request::builder().uri("http://evil.example/").header(header::HOST, "localhost");
        let checked = sites(AllowedHosts::Addresses).check(&request.body(axum::body::Body::empty()).unwrap());
        assert_eq!(checked.unwrap_err().status(), 421);
    }

    #[test]
    fn pages_of_other_sites_change_nothing() {
        let sites = sites(AllowedHosts::Addresses);
        let post = |origin, host| status(&sites, "POST", &[(header::ORIGIN, origin), (header::HOST, host)]);
        for (origin, host) in [
            ("http://192.0.2.9:8090", "192.0.2.9:8090"),
            ("http://192.0.2.9", "192.0.2.9"),
            ("https://192.0.2.9", "192.0.2.9:443"),
            ("http://kindling.example:8090", "127.0.0.1:8090"),
            ("https://a.ui.example", "127.0.0.1:8090"),
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
        ] {
            assert_eq!(post(origin, host), 403, "{origin} {host}");
        }
        assert_eq!(status(&sites, "GET", &[(header::ORIGIN, "http://evil.example")]), 200);
        assert_eq!(status(&sites, "POST", &[]), 200);
    }
}
