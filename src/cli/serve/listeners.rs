//! What the service listens on.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::value::address;
use crate::http::{Certificate, Inherited, ListenAddr, Listener, TlsRules, TlsVersion};

/// Where the service listens if nobody says anything.
const DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8090);
/// What a unix socket begins with, in the place of an address.
const UNIX: &str = "unix:";
/// The name of sockets from systemd that are for TLS.
const TLS_SOCKET: &str = "https";

#[derive(Debug, Args)]
#[command(next_help_heading = "Listeners")]
pub(super) struct ListenerOptions {
    /// Where to listen without TLS, with commas between them: addresses, of which port 0 is any free one, and paths of unix
    /// sockets [default: 127.0.0.1:8090, if there is nothing else to listen on]
    ///
    /// Where there is an address with TLS as well, addresses without it have what machines need before they can do TLS, and
    /// nothing else: iPXE scripts, initrds and boot artifacts. Unix sockets always have everything.
    ///
    /// Sockets that systemd hands over are listened on too: one that is called https (FileDescriptorName=) with TLS, others
    /// without.
    #[arg(long, env = "KINDLING_LISTEN", value_name = "ADDRESS|unix:PATH", value_delimiter = ',', value_parser = place)]
    listen: Vec<ListenAddr>,
    /// Addresses to listen on with TLS, with commas between them
    #[arg(long, env = "KINDLING_LISTEN_TLS", value_name = "ADDRESS", value_delimiter = ',', value_parser = address)]
    listen_tls: Vec<SocketAddr>,
    /// Port to listen on at all addresses of this machine: with TLS if there is a certificate, and without it otherwise
    #[arg(long, env = "LISTEN_PORT", value_name = "PORT")]
    listen_port: Option<u16>,
    /// Port to listen on without TLS at all addresses of this machine
    #[arg(long, env = "HTTP_LISTEN_PORT", value_name = "PORT")]
    http_listen_port: Option<u16>,
    /// File with the certificate of this service and its chain, in PEM. It is read again when it changes, and on SIGHUP
    #[arg(long, env = "HTTPS_CERT_FILE", value_name = "FILE", requires = "https_key_file")]
    https_cert_file: Option<PathBuf>,
    /// File with the private key of the certificate, in PEM
    #[arg(long, env = "HTTPS_KEY_FILE", value_name = "FILE", requires = "https_cert_file")]
    https_key_file: Option<PathBuf>,
    /// The oldest version of TLS, as Go and Kubernetes write it: VersionTLS12 or VersionTLS13. There is none older here
    #[arg(long, env = "TLS_MIN_VERSION", value_name = "VERSION", default_value = "VersionTLS12", value_parser = tls_version)]
    tls_min_version: TlsVersion,
    /// The suites of TLS 1.2 that may be, with commas between them; all that there are without it. TLS 1.3 has all of its own
    #[arg(long, env = "TLS_CIPHER_SUITES", value_name = "NAMES", value_delimiter = ',')]
    tls_cipher_suites: Vec<String>,
}

fn tls_version(text: &str) -> Result<TlsVersion, String> {
    match text {
        // What is older is not spoken here, whoever asks for it.
        "VersionTLS10" | "VersionTLS11" | "VersionTLS12" => Ok(TlsVersion::V1_2),
        "VersionTLS13" => Ok(TlsVersion::V1_3),
        _ => Err("expected VersionTLS12 or VersionTLS13".to_owned()),
    }
}

/// What is to be listened on.
#[derive(Debug)]
pub(super) struct Listeners {
    plain: Vec<Spot>,
    tls: Vec<Spot>,
    certificate: Option<Certificate>,
}

/// One of them.
#[derive(Debug)]
enum Spot {
    At(ListenAddr),
    /// A port of all addresses.
    Port(u16),
    /// A socket that is listened on already.
    Listener(Box<Listener>),
}

impl ListenerOptions {
    fn rules(&self) -> TlsRules {
        let suites = self.tls_cipher_suites.iter().map(|name| name.trim().to_owned());
        TlsRules { oldest: self.tls_min_version, suites: suites.filter(|name| !name.is_empty()).collect() }
    }

    /// What they say, with the sockets that were handed over. Nothing is listened on yet.
    pub(super) fn read(&self, inherited: Vec<Inherited>) -> Result<Listeners> {
        let certificate = match (&self.https_cert_file, &self.https_key_file) {
            (Some(chain), Some(key)) => Some(Certificate::open_with(chain, key, &self.rules())?),
            _ => None,
        };
        let mut plain: Vec<Spot> = self.listen.iter().cloned().map(Spot::At).collect();
        let tls = self.listen_tls.iter().copied().map(|address| Spot::At(ListenAddr::Address(address)));
        let mut tls: Vec<Spot> = tls.collect();
        plain.extend(self.http_listen_port.map(Spot::Port));
        let of_certificate = if certificate.is_some() { &mut tls } else { &mut plain };
        of_certificate.extend(self.listen_port.map(Spot::Port));
        for socket in inherited {
            let spots = if socket.name == TLS_SOCKET { &mut tls } else { &mut plain };
            let listener =
                Listener::inherited(socket).context("a socket of systemd cannot be listened on")?;
            spots.push(Spot::Listener(Box::new(listener)));
        }
        if plain.is_empty() && tls.is_empty() {
            let spots = if certificate.is_some() { &mut tls } else { &mut plain };
            spots.push(Spot::At(ListenAddr::Address(DEFAULT)));
        }
        match (&certificate, tls.is_empty()) {
            (None, false) => bail!(
                "TLS needs a certificate and its key: HTTPS_CERT_FILE (--https-cert-file) and HTTPS_KEY_FILE \
                 (--https-key-file)"
            ),
            (Some(_), true) => bail!(
                "there is a certificate, and nothing to listen on with TLS: say where with KINDLING_LISTEN_TLS \
                 (--listen-tls) or LISTEN_PORT (--listen-port)"
            ),
            _ => Ok(Listeners { plain, tls, certificate }),
        }
    }
}

impl Listeners {
    /// A place that other machines reach.
    pub(super) fn open_place(&self) -> Option<ListenAddr> {
        self.plain.iter().chain(&self.tls).map(Spot::place).find(|place| !place.is_local())
    }

    pub(super) fn certificate(&self) -> Option<&Certificate> {
        self.certificate.as_ref()
    }

    /// Listens on all of them. Those with TLS come first.
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

impl Spot {
    fn place(&self) -> ListenAddr {
        match self {
            Self::At(place) => place.clone(),
            Self::Port(port) => ListenAddr::Address((Ipv6Addr::UNSPECIFIED, *port).into()),
            Self::Listener(listener) => listener.addr().clone(),
        }
    }

    async fn bind(self) -> Result<Listener> {
        let place = self.place();
        let bound = match self {
            Self::At(ListenAddr::Address(address)) => Listener::tcp(address).await,
            Self::At(ListenAddr::Path(path)) => Listener::unix(&path.unwrap_or_default()),
            Self::Port(port) => match Listener::tcp((Ipv6Addr::UNSPECIFIED, port).into()).await {
                Err(error) if has_no_version_6(&error) => {
                    Listener::tcp((Ipv4Addr::UNSPECIFIED, port).into()).await
                }
                bound => bound,
            },
            Self::Listener(listener) => Ok(*listener),
        };
        bound.with_context(|| format!("{place} cannot be listened on"))
    }
}

/// Whether this machine has no addresses of version 6, which stand for those of version 4 as well elsewhere.
fn has_no_version_6(error: &io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    matches!(errno, Some(rustix::io::Errno::AFNOSUPPORT | rustix::io::Errno::ADDRNOTAVAIL))
}

fn place(text: &str) -> Result<ListenAddr, String> {
    match text.strip_prefix(UNIX) {
        Some("") => Err("expected a path behind unix:".to_owned()),
        Some(path) => {
            let path: Result<PathBuf, Infallible> = path.parse();
            Ok(ListenAddr::Path(path.ok()))
        }
        None => address(text).map(ListenAddr::Address),
    }
}
