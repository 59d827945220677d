//! Listening sockets for TCP addresses and Unix paths, and sockets inherited from a supervisor.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use socket2::SockRef;
use tokio::net::{TcpListener, UnixListener};
use tokio_rustls::TlsAcceptor;

use super::inherited::{InheritedListener, InheritedSocket};
use super::peer::{AllowedRequests, Peer, PeerTransport};
use super::socket::Socket;
use super::tls::Certificate;
use super::unix::{self, SocketFile};

/// Maximum number of unsent bytes that the kernel buffers for a client, in addition to bytes in flight. By default, the
/// kernel buffers up to 4 MiB per client, in a pool that all sockets of the machine share. A few hundred slow clients
/// exhaust this pool, and then all connections stall.
const MAX_UNSENT: u32 = 256 << 10;
/// The congestion control for local connections. Every Linux kernel has it, every user may select it, and it does not
/// pace packets with timers.
const LOCAL_CONGESTION_CONTROL: &[u8] = b"reno";

/// A listening socket on an address or path, with or without TLS.
pub struct Listener {
    socket: ListeningSocket,
    addr: ListenAddr,
    tls: Option<TlsAcceptor>,
    reach: AllowedRequests,
}

enum ListeningSocket {
    Tcp(TcpListener),
    Unix {
        listener: UnixListener,
        /// The socket file, which is removed on drop. `None` for an inherited socket, because its file belongs to the
        /// supervisor.
        _file: Option<SocketFile>,
    },
}

/// The address or path of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddr {
    /// A TCP address.
    Address(SocketAddr),
    /// A path on this machine. `None` for an inherited socket without a path.
    Path(Option<PathBuf>),
}

impl ListenAddr {
    /// Returns `true` if only clients on this machine can connect.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Address(address) => address.ip().to_canonical().is_loopback(),
            Self::Path(_) => true,
        }
    }
}

impl fmt::Display for ListenAddr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(formatter),
            Self::Path(Some(path)) => write!(formatter, "unix:{}", path.display()),
            Self::Path(None) => formatter.write_str("unix:"),
        }
    }
}

impl Listener {
    /// Listens on a TCP address.
    ///
    /// # Errors
    ///
    /// Returns an error if the address cannot be bound.
    pub async fn bind_tcp(address: SocketAddr) -> io::Result<Self> {
        TcpListener::bind(address).await?.try_into()
    }

    /// Listens on a path. Replaces an existing socket if no process listens on it. Dropping the listener removes the
    /// socket.
    ///
    /// # Errors
    ///
    /// Returns an error if the path cannot be bound, if it is another kind of file, or if the socket is in use.
    pub fn bind_unix(path: &Path) -> io::Result<Self> {
        let (listener, file) = unix::listen_on_path(path)?;
        let addr = ListenAddr::Path(Some(path.to_owned()));
        let socket = ListeningSocket::Unix { listener, _file: Some(file) };
        Ok(Self { socket, addr, tls: None, reach: AllowedRequests::All })
    }

    /// Listens on an inherited socket.
    ///
    /// # Errors
    ///
    /// Returns an error if the inherited socket cannot be used.
    pub fn from_inherited(inherited: InheritedListener) -> io::Result<Self> {
        match inherited.socket {
            InheritedSocket::Tcp(socket) => TcpListener::from_std(socket)?.try_into(),
            InheritedSocket::Unix(socket) => {
                let path = socket.local_addr()?.as_pathname().map(Path::to_owned);
                let socket = ListeningSocket::Unix { listener: UnixListener::from_std(socket)?, _file: None };
                Ok(Self { socket, addr: ListenAddr::Path(path), tls: None, reach: AllowedRequests::All })
            }
        }
    }

    /// Adds TLS to the listener.
    #[must_use]
    pub fn with_tls(self, certificate: &Certificate) -> Self {
        Self { tls: Some(certificate.acceptor()), ..self }
    }

    /// Restricts the listener to requests of machines that cannot use TLS yet (see [`AllowedRequests::FirstBoot`]).
    #[must_use]
    pub fn for_first_boot(self) -> Self {
        Self { reach: AllowedRequests::FirstBoot, ..self }
    }

    /// Returns the address or path of the listener.
    #[must_use]
    pub fn addr(&self) -> &ListenAddr {
        &self.addr
    }

    /// Returns `true` if connections use TLS.
    #[must_use]
    pub fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    pub(super) fn tls(&self) -> Option<&TlsAcceptor> {
        self.tls.as_ref()
    }

    pub(super) async fn accept(&self) -> io::Result<(Socket, Peer)> {
        let (socket, address) = match &self.socket {
            ListeningSocket::Tcp(listener) => {
                let (socket, address) = listener.accept().await?;
                // If this fails, short responses are delayed, but they still arrive.
                let _ = socket.set_nodelay(true);
                (Socket::Tcp(socket), Some(address))
            }
            ListeningSocket::Unix { listener, .. } => (Socket::Unix(listener.accept().await?.0), None),
        };
        let transport = match (&socket, &self.tls) {
            (_, Some(_)) => PeerTransport::Tls,
            (Socket::Tcp(_), None) => PeerTransport::Tcp,
            (Socket::Unix(_), None) => PeerTransport::Unix,
        };
        Ok((socket, Peer { address, transport, reach: self.reach }))
    }

    /// Returns the URL of the listener. Returns `None` for a Unix socket.
    #[must_use]
    pub fn url(&self) -> Option<String> {
        let scheme = if self.has_tls() { "https" } else { "http" };
        match &self.addr {
            ListenAddr::Address(address) => Some(format!("{scheme}://{address}")),
            ListenAddr::Path(_) => None,
        }
    }

    /// Returns the IP address. Returns `None` for a Unix socket.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        match &self.addr {
            ListenAddr::Address(address) => Some(address.ip()),
            ListenAddr::Path(_) => None,
        }
    }
}

impl TryFrom<TcpListener> for Listener {
    type Error = io::Error;

    fn try_from(listener: TcpListener) -> io::Result<Self> {
        let addr = ListenAddr::Address(listener.local_addr()?);
        // Connections inherit these options from their listener.
        let socket = SockRef::from(&listener);
        if let Err(error) = socket.set_tcp_notsent_lowat(MAX_UNSENT) {
            tracing::warn!(%error, "cannot set TCP_NOTSENT_LOWAT, slow clients may buffer more memory");
        }
        if addr.is_local()
            && let Err(error) = disable_pacing(&socket)
        {
            tracing::debug!(%error, "cannot disable TCP pacing for local connections");
        }
        Ok(Self { socket: ListeningSocket::Tcp(listener), addr, tls: None, reach: AllowedRequests::All })
    }
}

/// Turns off pacing for connections within this machine, which usually come from a reverse proxy. BBR paces packets
/// even on such a connection, which has no network. Four downloads with pacing reached a quarter of the rate without
/// pacing.
fn disable_pacing(socket: &SockRef<'_>) -> io::Result<()> {
    if socket.tcp_congestion()?.starts_with(b"bbr") {
        socket.set_tcp_congestion(LOCAL_CONGESTION_CONTROL)?;
    }
    Ok(())
}

impl fmt::Display for Listener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.url() {
            Some(url) => formatter.write_str(&url),
            None => self.addr.fmt(formatter),
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Listener({self})")
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[tokio::test]
    async fn local_connections_are_not_paced() {
        for (ip, expected) in
            [(Ipv4Addr::LOCALHOST, LOCAL_CONGESTION_CONTROL), (Ipv4Addr::UNSPECIFIED, b"bbr")]
        {
            let listener = TcpListener::bind((ip, 0)).await.unwrap();
            if let Err(error) = SockRef::from(&listener).set_tcp_congestion(b"bbr") {
                eprintln!("skipped: this process cannot use BBR on this kernel: {error}");
                return;
            }
            let port = listener.local_addr().unwrap().port();
            let listener = Listener::try_from(listener).unwrap();
            let _client = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
            let Socket::Tcp(socket) = listener.accept().await.unwrap().0 else { panic!("no TCP") };
            let algorithm = SockRef::from(&socket).tcp_congestion().unwrap();
            assert!(algorithm.starts_with(expected), "{ip}: {}", String::from_utf8_lossy(&algorithm));
        }
    }
}
