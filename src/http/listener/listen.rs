//! Where connections come from.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use socket2::SockRef;
use tokio::net::{TcpListener, UnixListener};
use tokio_rustls::TlsAcceptor;

use super::inherited::{Inherited, InheritedSocket};
use super::peer::{Peer, Reach, Transport};
use super::socket::Socket;
use super::tls::Certificate;
use super::unix::{self, SocketFile};

/// How many bytes the kernel holds for a client beyond those that are on their way. On its own it takes 4 MiB for each, from
/// what all sockets of the machine share: that is gone with some hundred slow readers, and all connections stand still then.
const MAX_UNSENT: u32 = 256 << 10;
/// Every Linux has it, everybody may choose it, and it has no timers.
const UNPACED: &[u8] = b"reno";

/// Something to listen on: an address or a path, with TLS or without.
pub struct Listener {
    door: Door,
    addr: ListenAddr,
    tls: Option<TlsAcceptor>,
    reach: Reach,
}

/// The listening socket.
enum Door {
    Tcp(TcpListener),
    Unix {
        listener: UnixListener,
        /// Whoever made the file removes it.
        _file: Option<SocketFile>,
    },
}

/// Where a listener is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddr {
    /// At an address.
    Address(SocketAddr),
    /// At a path of this machine, if it has one.
    Path(Option<PathBuf>),
}

impl ListenAddr {
    /// Whether nobody but this machine gets there.
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
    /// Listens at an address.
    ///
    /// # Errors
    ///
    /// When that cannot be.
    pub async fn tcp(address: SocketAddr) -> io::Result<Self> {
        TcpListener::bind(address).await?.try_into()
    }

    /// Listens at a path. A socket there that nobody listens on any more is replaced. The socket is gone when the listener
    /// is.
    ///
    /// # Errors
    ///
    /// When that cannot be, and when there is anything else.
    pub fn unix(path: &Path) -> io::Result<Self> {
        let (listener, file) = unix::listen(path)?;
        let addr = ListenAddr::Path(Some(path.to_owned()));
        let door = Door::Unix { listener, _file: Some(file) };
        Ok(Self { door, addr, tls: None, reach: Reach::All })
    }

    /// Listens on a socket that was handed over.
    ///
    /// # Errors
    ///
    /// When it is no longer one.
    pub fn inherited(inherited: Inherited) -> io::Result<Self> {
        match inherited.socket {
            InheritedSocket::Tcp(socket) => TcpListener::from_std(socket)?.try_into(),
            InheritedSocket::Unix(socket) => {
                let path = socket.local_addr()?.as_pathname().map(Path::to_owned);
                let door = Door::Unix { listener: UnixListener::from_std(socket)?, _file: None };
                Ok(Self { door, addr: ListenAddr::Path(path), tls: None, reach: Reach::All })
            }
        }
    }

    /// The same with TLS.
    #[must_use]
    pub fn with_tls(self, certificate: &Certificate) -> Self {
        Self { tls: Some(certificate.acceptor()), ..self }
    }

    /// The same for requests of machines that cannot do TLS yet, and no others.
    #[must_use]
    pub fn for_first_boot(self) -> Self {
        Self { reach: Reach::FirstBoot, ..self }
    }

    /// Where it is reached.
    #[must_use]
    pub fn addr(&self) -> &ListenAddr {
        &self.addr
    }

    /// Whether it has TLS.
    #[must_use]
    pub fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    pub(super) fn tls(&self) -> Option<&TlsAcceptor> {
        self.tls.as_ref()
    }

    pub(super) async fn accept(&self) -> io::Result<(Socket, Peer)> {
        let (socket, address) = match &self.door {
            Door::Tcp(listener) => {
                let (socket, address) = listener.accept().await?;
                let _ = socket.set_nodelay(true);
                (Socket::Tcp(socket), Some(address))
            }
            Door::Unix { listener, .. } => (Socket::Unix(listener.accept().await?.0), None),
        };
        let transport = match (&socket, &self.tls) {
            (_, Some(_)) => Transport::Tls,
            (Socket::Tcp(_), None) => Transport::Tcp,
            (Socket::Unix(_), None) => Transport::Unix,
        };
        Ok((socket, Peer { address, transport, reach: self.reach }))
    }

    /// The URL at which machines find it, if they can.
    #[must_use]
    pub fn url(&self) -> Option<String> {
        let scheme = if self.has_tls() { "https" } else { "http" };
        match &self.addr {
            ListenAddr::Address(address) => Some(format!("{scheme}://{address}")),
            ListenAddr::Path(_) => None,
        }
    }

    /// The address, if it has one.
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
        // Connections have what their listener has.
        let socket = SockRef::from(&listener);
        if let Err(error) = socket.set_tcp_notsent_lowat(MAX_UNSENT) {
            tracing::warn!(%error, "the kernel holds as much for slow clients as it likes");
        }
        if addr.is_local()
            && let Err(error) = unpace(&socket)
        {
            tracing::debug!(%error, "TCP spaces what it sends within this machine");
        }
        Ok(Self { door: Door::Tcp(listener), addr, tls: None, reach: Reach::All })
    }
}

/// Lets what stays within this machine, behind a proxy mostly, go out at once. BBR spaces it with timers, as if there were a network: four
/// streams had a quarter of the rate that they have without.
fn unpace(socket: &SockRef<'_>) -> io::Result<()> {
    if socket.tcp_congestion()?.starts_with(b"bbr") {
        socket.set_tcp_congestion(UNPACED)?;
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
    async fn what_stays_within_this_machine_is_not_spaced() {
        for (ip, expected) in [(Ipv4Addr::LOCALHOST, UNPACED), (Ipv4Addr::UNSPECIFIED, b"bbr")] {
            let listener = TcpListener::bind((ip, 0)).await.unwrap();
            if let Err(error) = SockRef::from(&listener).set_tcp_congestion(b"bbr") {
                eprintln!("skipped: this kernel has no BBR, or not for everybody: {error}");
                return;
            }
            let port = listener.local_addr().unwrap().port();
            let listener = Listener::try_from(listener).unwrap();
            let _client = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
            let Socket::Tcp(socket) = listener.accept().await.unwrap().0 else { panic!("no TCP") };
            let chosen = SockRef::from(&socket).tcp_congestion().unwrap();
            assert!(chosen.starts_with(expected), "{ip}: {}", String::from_utf8_lossy(&chosen));
        }
    }
}
