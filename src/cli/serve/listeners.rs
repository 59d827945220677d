//! The options for the addresses to listen on, and for TLS.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::private_key::warn_if_exposed;
use crate::cli::listen_address::{HostPort, ResolvedAddresses, is_not_of_this_machine, listen_error};
use crate::http::{Certificate, InheritedListener, ListenAddr, Listener, TlsRules, TlsVersion};

/// The address to listen on if no listener is configured.
pub(in crate::cli) const DEFAULT_ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8090);
/// The prefix of a Unix socket in the value of `--listen`.
const UNIX: &str = "unix:";
/// The options that set addresses and ports, for messages.
const LISTEN: &str = "--listen (KINDLING_LISTEN)";
const LISTEN_TLS: &str = "--listen-tls (KINDLING_LISTEN_TLS)";
const LISTEN_PORT: &str = "--listen-port (LISTEN_PORT)";
const HTTP_LISTEN_PORT: &str = "--http-listen-port (HTTP_LISTEN_PORT)";
/// The name (`FileDescriptorName=`) of inherited systemd sockets that use TLS.
const TLS_SOCKET: &str = "https";

#[derive(Debug, Args)]
#[command(next_help_heading = "Listeners")]
pub(super) struct ListenerOptions {
    /// Addresses and unix sockets to listen on without TLS, separated by commas [default: 127.0.0.1:8090, if no other
    /// listener is configured]
    ///
    /// An address is an IP address or a host name, with a port. A host name stands for all addresses that it resolves
    /// to at the start, except addresses that this machine does not have. Port 0 selects a free port, the same one for
    /// all addresses of a host name.
    ///
    /// If a TLS address is configured as well, addresses without TLS serve only what machines need before they can use
    /// TLS: iPXE scripts, initrds and boot artifacts. Unix sockets always serve everything.
    ///
    /// The service also listens on sockets from systemd socket activation: with TLS on a socket named https
    /// (FileDescriptorName=), without TLS on others.
    #[arg(long, env = "KINDLING_LISTEN", value_name = "ADDRESS|unix:PATH", value_delimiter = ',', value_parser = parse_listen_value)]
    listen: Vec<ListenValue>,
    /// Addresses to listen on with TLS, separated by commas: IP addresses or host names, with a port
    #[arg(long, env = "KINDLING_LISTEN_TLS", value_name = "ADDRESS", value_delimiter = ',', value_parser = HostPort::parse)]
    listen_tls: Vec<HostPort>,
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

/// Returns the name of a TLS version in the notation of Go and Kubernetes.
fn tls_version_name(version: TlsVersion) -> &'static str {
    match version {
        TlsVersion::V1_2 => "VersionTLS12",
        TlsVersion::V1_3 => "VersionTLS13",
    }
}

fn parse_tls_version(text: &str) -> Result<TlsVersion, String> {
    match text {
        // Accept the names of older versions, although the server never uses them.
        "VersionTLS10" | "VersionTLS11" | "VersionTLS12" => Ok(TlsVersion::V1_2),
        "VersionTLS13" => Ok(TlsVersion::V1_3),
        _ => Err("expected VersionTLS12 or VersionTLS13".to_owned()),
    }
}

/// Parses the name of a cipher suite. Accepts registered suites that the server does not support, because Kubernetes
/// lists contain them. Rejects names that are not registered.
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

/// A value of `--listen`.
#[derive(Clone, Debug)]
enum ListenValue {
    Tcp(HostPort),
    Unix(PathBuf),
}

/// The addresses, a port or a socket to listen on.
#[derive(Debug)]
enum ListenTarget {
    Addresses(ResolvedAddresses),
    Unix(PathBuf),
    /// A port on all addresses of this machine, and the option that sets it.
    Port(u16, &'static str),
    /// A socket that is already listening.
    Listener(Box<Listener>),
}

impl ListenerOptions {
    /// Returns the TLS versions and cipher suites to accept.
    pub(super) fn tls_rules(&self) -> TlsRules {
        TlsRules { oldest: self.tls_min_version, suites: self.tls_cipher_suites.clone() }
    }

    /// Returns the targets of `--listen` and of `--listen-tls`, with resolved host names.
    async fn resolve(&self) -> Result<(Vec<ListenTarget>, Vec<ListenTarget>)> {
        let (mut plain, mut tls) = (Vec::new(), Vec::new());
        for value in &self.listen {
            plain.push(match value {
                ListenValue::Tcp(address) => ListenTarget::Addresses(address.resolve(LISTEN).await?),
                ListenValue::Unix(path) => ListenTarget::Unix(path.clone()),
            });
        }
        for address in &self.listen_tls {
            tls.push(ListenTarget::Addresses(address.resolve(LISTEN_TLS).await?));
        }
        Ok((plain, tls))
    }

    /// Returns the targets from all options, and the inherited sockets. Does not listen on new sockets yet.
    pub(super) async fn listen_targets(&self, inherited: Vec<InheritedListener>) -> Result<ListenTargets> {
        let certificate = match (&self.https_cert_file, &self.https_key_file) {
            (Some(chain), Some(key)) => {
                let certificate = Certificate::open_with(chain, key, &self.tls_rules())?;
                warn_if_exposed(key);
                Some(certificate)
            }
            _ => None,
        };
        let (mut plain, mut tls) = self.resolve().await?;
        plain.extend(self.http_listen_port.map(|port| ListenTarget::Port(port, HTTP_LISTEN_PORT)));
        let port_targets = if certificate.is_some() { &mut tls } else { &mut plain };
        port_targets.extend(self.listen_port.map(|port| ListenTarget::Port(port, LISTEN_PORT)));
        for socket in inherited {
            let targets = if socket.name == TLS_SOCKET { &mut tls } else { &mut plain };
            let listener =
                Listener::from_inherited(socket).context("cannot listen on a socket from systemd")?;
            targets.push(ListenTarget::Listener(Box::new(listener)));
        }
        if plain.is_empty() && tls.is_empty() {
            let (targets, option) =
                if certificate.is_some() { (&mut tls, LISTEN_TLS) } else { (&mut plain, LISTEN) };
            let address = HostPort::Address(DEFAULT_ADDRESS).resolve(option).await?;
            targets.push(ListenTarget::Addresses(address));
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
    /// Returns an address that other machines can reach, or `None` if all addresses are local.
    pub(super) fn reachable_address(&self) -> Option<ListenAddr> {
        self.plain.iter().chain(&self.tls).find_map(ListenTarget::reachable_address)
    }

    pub(super) fn certificate(&self) -> Option<&Certificate> {
        self.certificate.as_ref()
    }

    /// Starts to listen. Returns the listeners, with TLS listeners first.
    pub(super) async fn bind(self) -> Result<Vec<Listener>> {
        let mut listeners = Vec::new();
        if let Some(certificate) = &self.certificate {
            for target in self.tls {
                listeners
                    .extend(target.bind().await?.into_iter().map(|listener| listener.with_tls(certificate)));
            }
        }
        let is_tcp = |listener: &Listener| matches!(listener.addr(), ListenAddr::Address(_));
        let has_tls = listeners.iter().any(is_tcp);
        for target in self.plain {
            for listener in target.bind().await? {
                let is_restricted = has_tls && is_tcp(&listener);
                listeners.push(if is_restricted { listener.for_first_boot() } else { listener });
            }
        }
        Ok(listeners)
    }
}

impl ListenTarget {
    fn reachable_address(&self) -> Option<ListenAddr> {
        match self {
            Self::Addresses(resolved) => resolved.reachable_address().map(ListenAddr::Address),
            Self::Unix(_) => None,
            Self::Port(port, _) => Some(ListenAddr::Address((Ipv6Addr::UNSPECIFIED, *port).into())),
            Self::Listener(listener) => Some(listener.addr().clone()).filter(|place| !place.is_local()),
        }
    }

    async fn bind(self) -> Result<Vec<Listener>> {
        match self {
            Self::Addresses(resolved) => resolved.bind().await,
            Self::Unix(path) => {
                let listener = Listener::bind_unix(&path);
                let listener =
                    listener.with_context(|| format!("{LISTEN}: cannot listen on unix:{}", path.display()));
                Ok(vec![listener?])
            }
            Self::Port(port, option) => {
                let address: SocketAddr = (Ipv6Addr::UNSPECIFIED, port).into();
                // The IPv6 wildcard address also accepts IPv4. Use the IPv4 one only on machines without IPv6.
                let bound = match Listener::bind_tcp(address).await {
                    Err(error) if is_not_of_this_machine(&error) => {
                        Listener::bind_tcp((Ipv4Addr::UNSPECIFIED, port).into()).await
                    }
                    bound => bound,
                };
                Ok(vec![bound.map_err(|error| listen_error(address, option, error))?])
            }
            Self::Listener(listener) => Ok(vec![*listener]),
        }
    }
}

fn parse_listen_value(text: &str) -> Result<ListenValue, String> {
    match text.strip_prefix(UNIX) {
        Some("") => Err("expected a path after unix:".to_owned()),
        Some(path) => Ok(ListenValue::Unix(PathBuf::from(path))),
        None => HostPort::parse(text).map(ListenValue::Tcp),
    }
}
