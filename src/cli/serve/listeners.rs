//! Options of the addresses to listen on.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::access::warn_if_exposed;
use super::value::parse_address;
use crate::http::{Certificate, InheritedListener, ListenAddr, Listener, TlsRules, TlsVersion};

/// The default address.
pub(in crate::cli) const DEFAULT_ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8090);
/// The prefix of a unix socket.
const UNIX: &str = "unix:";
/// The systemd name of sockets that use TLS.
const TLS_SOCKET: &str = "https";

#[derive(Debug, Args)]
#[command(next_help_heading = "Listeners")]
pub(super) struct ListenerOptions {
    /// Addresses and unix sockets to listen on without TLS, separated by commas [default: 127.0.0.1:8090, if no other
    /// listener is configured]
    ///
    /// Port 0 selects a free port.
    ///
    /// If a TLS address is configured as well, addresses without TLS serve only what machines need before they can use
    /// TLS: iPXE scripts, initrds and boot artifacts. Unix sockets always serve everything.
    ///
    /// The service also listens on sockets from systemd socket activation: with TLS on a socket named https
    /// (FileDescriptorName=), without TLS on others.
    #[arg(long, env = "KINDLING_LISTEN", value_name = "ADDRESS|unix:PATH", value_delimiter = ',', value_parser = parse_listen_address)]
    listen: Vec<ListenAddr>,
    /// Addresses to listen on with TLS, separated by commas
    #[arg(long, env = "KINDLING_LISTEN_TLS", value_name = "ADDRESS", value_delimiter = ',', value_parser = parse_address)]
    listen_tls: Vec<SocketAddr>,
    /// Port to listen on at all addresses of this machine: with TLS if a certificate is configured, without otherwise
    #[arg(long, env = "LISTEN_PORT", value_name = "PORT")]
    listen_port: Option<u16>,
    /// Port to listen on without TLS at all addresses of this machine
    #[arg(long, env = "HTTP_LISTEN_PORT", value_name = "PORT")]
    http_listen_port: Option<u16>,
    /// File with the certificate of this service and its chain, in PEM
    ///
    /// The file is read again when it changes, and on SIGHUP.
    #[arg(long, env = "HTTPS_CERT_FILE", value_name = "FILE", requires = "https_key_file")]
    https_cert_file: Option<PathBuf>,
    /// File with the private key of the certificate, in PEM
    #[arg(long, env = "HTTPS_KEY_FILE", value_name = "FILE", requires = "https_cert_file")]
    https_key_file: Option<PathBuf>,
    /// Minimum TLS version, in the notation of Go and Kubernetes: VersionTLS12 or VersionTLS13. Older versions are not
    /// supported
    #[arg(long, env = "TLS_MIN_VERSION", value_name = "VERSION", default_value = tls_version_name(TlsVersion::default()), value_parser = parse_tls_version)]
    tls_min_version: TlsVersion,
    /// TLS 1.2 cipher suites to accept, separated by commas [default: all supported suites]. TLS 1.3 suites are always
    /// accepted
    #[arg(long, env = "TLS_CIPHER_SUITES", value_name = "NAMES", value_delimiter = ',', value_parser = parse_cipher_suite)]
    tls_cipher_suites: Vec<String>,
}

/// Returns the name of a TLS version, as Go and Kubernetes write it.
fn tls_version_name(version: TlsVersion) -> &'static str {
    match version {
        TlsVersion::V1_2 => "VersionTLS12",
        TlsVersion::V1_3 => "VersionTLS13",
    }
}

fn parse_tls_version(text: &str) -> Result<TlsVersion, String> {
    match text {
        // The server never accepts an older version than 1.2.
        "VersionTLS10" | "VersionTLS11" | "VersionTLS12" => Ok(TlsVersion::V1_2),
        "VersionTLS13" => Ok(TlsVersion::V1_3),
        _ => Err("expected VersionTLS12 or VersionTLS13".to_owned()),
    }
}

/// Parses the name of a cipher suite. Kubernetes lists suites that the server does not support, but a name of no suite
/// is a mistake.
fn parse_cipher_suite(text: &str) -> Result<String, String> {
    let text = text.trim();
    match TlsRules::is_suite(text) {
        true => Ok(text.to_owned()),
        false => {
            Err("expected a name of IANA's registry, such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
                .to_owned())
        }
    }
}

/// The addresses and sockets to listen on.
#[derive(Debug)]
pub(super) struct ListenTargets {
    plain: Vec<ListenTarget>,
    tls: Vec<ListenTarget>,
    certificate: Option<Certificate>,
}

/// An address, port or socket to listen on.
#[derive(Debug)]
enum ListenTarget {
    At(ListenAddr),
    /// A port on all addresses.
    Port(u16),
    /// A socket that is already listening.
    Listener(Box<Listener>),
}

impl ListenerOptions {
    fn tls_rules(&self) -> TlsRules {
        TlsRules { oldest: self.tls_min_version, suites: self.tls_cipher_suites.clone() }
    }

    /// Returns the listeners of the options and of the inherited sockets. Does not listen yet.
    pub(super) fn listen_targets(&self, inherited: Vec<InheritedListener>) -> Result<ListenTargets> {
        let certificate = match (&self.https_cert_file, &self.https_key_file) {
            (Some(chain), Some(key)) => {
                let certificate = Certificate::open_with(chain, key, &self.tls_rules())?;
                warn_if_exposed(key);
                Some(certificate)
            }
            _ => None,
        };
        let mut plain: Vec<ListenTarget> = self.listen.iter().cloned().map(ListenTarget::At).collect();
        let tls =
            self.listen_tls.iter().copied().map(|address| ListenTarget::At(ListenAddr::Address(address)));
        let mut tls: Vec<ListenTarget> = tls.collect();
        plain.extend(self.http_listen_port.map(ListenTarget::Port));
        let of_certificate = if certificate.is_some() { &mut tls } else { &mut plain };
        of_certificate.extend(self.listen_port.map(ListenTarget::Port));
        for socket in inherited {
            let spots = if socket.name == TLS_SOCKET { &mut tls } else { &mut plain };
            let listener =
                Listener::from_inherited(socket).context("cannot listen on a socket from systemd")?;
            spots.push(ListenTarget::Listener(Box::new(listener)));
        }
        if plain.is_empty() && tls.is_empty() {
            let spots = if certificate.is_some() { &mut tls } else { &mut plain };
            spots.push(ListenTarget::At(ListenAddr::Address(DEFAULT_ADDRESS)));
        }
        match (&certificate, tls.is_empty()) {
            (None, false) => bail!(
                "TLS needs a certificate and its key: HTTPS_CERT_FILE (--https-cert-file) and HTTPS_KEY_FILE \
                 (--https-key-file)"
            ),
            (Some(_), true) => bail!(
                "a certificate is configured, but no TLS listener; set KINDLING_LISTEN_TLS (--listen-tls) or LISTEN_PORT \
                 (--listen-port)"
            ),
            _ => Ok(ListenTargets { plain, tls, certificate }),
        }
    }
}

impl ListenTargets {
    /// Returns an address that other machines can reach.
    pub(super) fn reachable_address(&self) -> Option<ListenAddr> {
        self.plain.iter().chain(&self.tls).map(ListenTarget::address).find(|place| !place.is_local())
    }

    pub(super) fn certificate(&self) -> Option<&Certificate> {
        self.certificate.as_ref()
    }

    /// Starts to listen. Listeners with TLS come first.
    pub(super) async fn bind(self) -> Result<Vec<Listener>> {
        let mut listeners = Vec::new();
        if let Some(certificate) = &self.certificate {
            for spot in self.tls {
                listeners.push(spot.bind().await?.with_tls(certificate));
            }
        }
        let is_tcp = |listener: &Listener| matches!(listener.addr(), ListenAddr::Address(_));
        let has_tls = listeners.iter().any(is_tcp);
        for spot in self.plain {
            let listener = spot.bind().await?;
            let is_restricted = has_tls && is_tcp(&listener);
            listeners.push(if is_restricted { listener.for_first_boot() } else { listener });
        }
        Ok(listeners)
    }
}

impl ListenTarget {
    fn address(&self) -> ListenAddr {
        match self {
            Self::At(place) => place.clone(),
            Self::Port(port) => ListenAddr::Address((Ipv6Addr::UNSPECIFIED, *port).into()),
            Self::Listener(listener) => listener.addr().clone(),
        }
    }

    async fn bind(self) -> Result<Listener> {
        let place = self.address();
        let bound = match self {
            Self::At(ListenAddr::Address(address)) => Listener::bind_tcp(address).await,
            Self::At(ListenAddr::Path(Some(path))) => Listener::bind_unix(&path),
            Self::At(ListenAddr::Path(None)) => bail!("cannot listen on a unix socket without a path"),
            Self::Port(port) => match Listener::bind_tcp((Ipv6Addr::UNSPECIFIED, port).into()).await {
                Err(error) if is_ipv6_missing(&error) => {
                    Listener::bind_tcp((Ipv4Addr::UNSPECIFIED, port).into()).await
                }
                bound => bound,
            },
            Self::Listener(listener) => Ok(*listener),
        };
        bound.with_context(|| format!("cannot listen on {place}"))
    }
}

/// Returns whether the error means that this machine has no IPv6. If it has, the IPv6 wildcard address also accepts
/// IPv4.
fn is_ipv6_missing(error: &io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    matches!(errno, Some(rustix::io::Errno::AFNOSUPPORT | rustix::io::Errno::ADDRNOTAVAIL))
}

fn parse_listen_address(text: &str) -> Result<ListenAddr, String> {
    match text.strip_prefix(UNIX) {
        Some("") => Err("expected a path after unix:".to_owned()),
        Some(path) => Ok(ListenAddr::Path(Some(PathBuf::from(path)))),
        None => parse_address(text).map(ListenAddr::Address),
    }
}
