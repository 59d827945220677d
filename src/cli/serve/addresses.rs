//! The options for the URLs at which machines and browsers reach the service.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;

use anyhow::Result;
use clap::Args;
use ignition::discovery::HttpUrl;

use super::value::parse_origin;
use crate::http::{ListenAddr, Listener};
use crate::inventory::Settings;
use crate::sys::trim_freed_memory;

#[derive(Debug, Args)]
#[command(next_help_heading = "Addresses")]
pub(super) struct AddressOptions {
    /// URL at which machines reach the API, without the API's path [default: the first listener, TLS first]
    #[arg(long, env = "SERVICE_BASE_URL", value_name = "URL")]
    service_base_url: Option<String>,
    /// URL at which machines reach images [default: the URL of the API]
    #[arg(long, env = "IMAGE_SERVICE_BASE_URL", value_name = "URL")]
    image_service_base_url: Option<String>,
    /// Origins whose pages may call the API, separated by commas; `*` matches any part of an origin
    #[arg(
        long,
        env = "ALLOWED_DOMAINS",
        value_name = "ORIGINS",
        value_delimiter = ',',
        value_parser = parse_origin
    )]
    allowed_domains: Vec<String>,
}

impl AddressOptions {
    /// Returns default settings with the base URLs of the service. `listeners` provide the default URL.
    pub(super) fn settings(&self, listeners: &[Listener]) -> Result<Settings> {
        let service = SERVICE.base_url(self.service_base_url.as_deref(), listeners)?;
        let images = match self.image_service_base_url.as_deref() {
            Some(images) => IMAGES.base_url(Some(images), listeners)?,
            None => service.clone(),
        };
        let mut settings = Settings::new(service, images);
        settings.allowed_origins = self.allowed_origins();
        settings.after_large_work = trim_freed_memory;
        Ok(settings)
    }

    /// Returns the origins whose pages may call the API.
    pub(super) fn allowed_origins(&self) -> Vec<String> {
        let host = |origin: &str| origin.split_once("://").map_or(origin, |(_, host)| host).to_owned();
        if self.allowed_domains.iter().any(|origin| host(origin) == "*") {
            tracing::warn!(
                "--allowed-domains (ALLOWED_DOMAINS) contains `*`: pages of any site may call the API"
            );
        }
        self.allowed_domains.clone()
    }

    /// Returns the base URL of the images, for a process that serves only images.
    pub(super) fn images_url(&self, listeners: &[Listener]) -> Result<HttpUrl> {
        IMAGES.base_url(self.image_service_base_url.as_deref(), listeners)
    }
}

/// The names of the variable and the option that set a base URL.
struct BaseUrlSetting {
    variable: &'static str,
    option: &'static str,
}

const SERVICE: BaseUrlSetting = BaseUrlSetting { variable: "SERVICE_BASE_URL", option: "--service-base-url" };
const IMAGES: BaseUrlSetting =
    BaseUrlSetting { variable: "IMAGE_SERVICE_BASE_URL", option: "--image-service-base-url" };

impl BaseUrlSetting {
    /// Returns the base URL: the value of the option, or else the URL of the first listener. Logs a warning if machines
    /// cannot reach the URL.
    fn base_url(&self, value: Option<&str>, listeners: &[Listener]) -> Result<HttpUrl> {
        // TLS listeners come first. If any exist, listeners without TLS serve only the files that machines need before
        // they can use TLS.
        let own = listeners.iter().find_map(Listener::url);
        let text = value.or(own.as_deref()).unwrap_or("http://localhost");
        let url = HttpUrl::parse(self.variable, text)?;
        let Self { variable, option } = self;
        match url.unreachable_reason() {
            Some(reason) => tracing::warn!(
                "{reason}; set {option} ({variable}) to the URL at which they reach this service{}",
                advice(listeners)
            ),
            None if value.is_none() => {
                tracing::info!(url = url.as_str(), "base URL is the URL of the first listener");
            }
            None => {}
        }
        Ok(url)
    }
}

/// Returns the end of the warning about a base URL that machines cannot reach.
fn advice(listeners: &[Listener]) -> String {
    if listeners.iter().all(|listener| listener.addr().is_local()) {
        return "; without a proxy in front of it, the service must also listen on an address that machines reach: \
                --listen (KINDLING_LISTEN)"
            .to_owned();
    }
    let example = listeners.iter().find_map(|listener| {
        let ListenAddr::Address(address) = listener.addr() else { return None };
        let own = own_address(address.ip()).filter(|_| address.ip().to_canonical().is_unspecified())?;
        let scheme = if listener.has_tls() { "https" } else { "http" };
        Some(format!(", such as {scheme}://{}", SocketAddr::new(own, address.port())))
    });
    example.unwrap_or_default()
}

/// Returns the address from which this machine reaches other networks, if a listener on the unspecified address
/// `listening` accepts connections to it. Sends no packets: the documentation addresses of RFC 5737 and RFC 3849 only
/// select a route.
fn own_address(listening: IpAddr) -> Option<IpAddr> {
    // Return no address in a container, because other machines usually cannot reach it.
    if ["/.dockerenv", "/run/.containerenv"].iter().any(|file| Path::new(file).exists()) {
        return None;
    }
    let v4: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into()];
    let v6: [IpAddr; 2] =
        [Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into()];
    // Try both families for a listener on the unspecified IPv6 address, which accepts IPv4 as well.
    let families = if listening.is_ipv6() { vec![v4, v6] } else { vec![v4] };
    families.into_iter().find_map(|[unspecified, remote]| {
        let socket = UdpSocket::bind((unspecified, 0)).ok()?;
        socket.connect((remote, 9)).ok()?;
        let address = socket.local_addr().ok()?.ip();
        (!address.is_loopback() && !address.is_unspecified()).then_some(address)
    })
}
