//! TCP addresses to listen on: an IP address or a host name, with a port.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use anyhow::{Context, Result, anyhow, ensure};
use rustix::io::Errno;

use crate::http::{ListenAddr, Listener};

/// An address to listen on, with an unresolved host name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HostPort {
    Address(SocketAddr),
    Name { host: String, port: u16 },
}

/// The addresses of one [`HostPort`].
#[derive(Debug)]
pub(super) struct ResolvedAddresses {
    option: &'static str,
    host_port: HostPort,
    addresses: Vec<SocketAddr>,
}

impl HostPort {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        let expected = || {
            "expected an IP address and a port, such as 127.0.0.1:8090 or [::]:8090, or a host name and a port, such as \
             localhost:8090"
                .to_owned()
        };
        let (host, port) =
            text.rsplit_once(':').filter(|(host, _)| is_host_name(host)).ok_or_else(expected)?;
        // Check the digits, because `parse` would also accept a sign.
        let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|_| is_number).ok_or_else(expected)?;
        Ok(Self::Name { host: host.to_owned(), port })
    }

    /// Resolves the host name. `option` is the option with the value, for messages.
    pub(super) async fn resolve(&self, option: &'static str) -> Result<ResolvedAddresses> {
        let mut addresses = Vec::new();
        match self {
            Self::Address(address) => addresses.push(*address),
            Self::Name { host, port } => {
                let resolved = tokio::net::lookup_host((host.as_str(), *port)).await;
                let resolved = resolved.with_context(|| {
                    format!("{option}: cannot resolve host {host:?}; use an IP address, or a name that DNS or /etc/hosts resolves")
                })?;
                for address in resolved {
                    if !addresses.contains(&address) {
                        addresses.push(address);
                    }
                }
                ensure!(!addresses.is_empty(), "{option}: host {host:?} has no address; use an IP address");
            }
        }
        Ok(ResolvedAddresses { option, host_port: self.clone(), addresses })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(formatter),
            Self::Name { host, port } => write!(formatter, "{host}:{port}"),
        }
    }
}

/// Returns `true` if a text can be a host name. Rejects a name whose last label is a number, because resolvers parse it
/// as an IPv4 address, even with fewer than four numbers.
fn is_host_name(text: &str) -> bool {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    let mut labels = text.strip_suffix('.').unwrap_or(text).split('.');
    let has_address_end = text.rsplit('.').find(|label| !label.is_empty()).is_some_and(|label| {
        label.bytes().all(|byte| byte.is_ascii_digit()) || label.starts_with("0x") || label.starts_with("0X")
    });
    !has_address_end && labels.all(|label| !label.is_empty() && label.chars().all(is_part))
}

impl ResolvedAddresses {
    /// Returns an address that other machines can reach, or `None` if all are loopback addresses.
    pub(super) fn reachable_address(&self) -> Option<SocketAddr> {
        self.addresses.iter().copied().find(|address| !address.ip().to_canonical().is_loopback())
    }

    /// Listens on all addresses. With port 0, all of them use the same free port. Skips addresses that this machine
    /// does not have, such as `::1` without IPv6. Returns an error if no address remains.
    pub(super) async fn bind(&self) -> Result<Vec<Listener>> {
        /// Maximum number of attempts with port 0. An attempt fails if the free port of the first address is in use on
        /// another address.
        const MAX_ATTEMPTS: usize = 8;
        let mut bound = self.bind_once().await;
        for _ in 1..MAX_ATTEMPTS {
            match &bound {
                Err((address, error)) if is_in_use(error) && self.has_free_port() && address.port() != 0 => {
                    bound = self.bind_once().await;
                }
                _ => break,
            }
        }
        bound.map_err(|(address, error)| listen_error(address, self.option, error))
    }

    fn has_free_port(&self) -> bool {
        self.addresses.iter().all(|address| address.port() == 0)
    }

    async fn bind_once(&self) -> Result<Vec<Listener>, (SocketAddr, io::Error)> {
        let mut listeners: Vec<Listener> = Vec::new();
        let mut missing = Vec::new();
        for mut address in self.addresses.iter().copied() {
            if let Some(ListenAddr::Address(first)) = listeners.first().map(Listener::addr) {
                address.set_port(first.port());
            }
            match Listener::bind_tcp(address).await {
                Ok(listener) => listeners.push(listener),
                Err(error) if is_not_of_this_machine(&error) => missing.push((address, error)),
                Err(error) => return Err((address, error)),
            }
        }
        if listeners.is_empty()
            && let Some(last) = missing.pop()
        {
            return Err(last);
        }
        for (address, error) in missing {
            tracing::warn!(
                host = %self.host_port, %address, %error,
                "skipped an address of the host name, which this machine does not have"
            );
        }
        Ok(listeners)
    }
}

fn is_in_use(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse
}

/// Returns `true` if binding failed because the machine does not have the address or does not support its IP version.
pub(super) fn is_not_of_this_machine(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL))
}

/// Adds advice to an error of `bind`. `option` is the option that sets the address.
pub(super) fn listen_error(address: SocketAddr, option: &str, error: io::Error) -> anyhow::Error {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => format!("the port is in use; choose another one with {option}"),
        io::ErrorKind::PermissionDenied => format!(
            "this process may not use the port; ports below 1024 need root or CAP_NET_BIND_SERVICE; choose another one \
             with {option}"
        ),
        _ if is_not_of_this_machine(&error) => {
            format!(
                "this machine does not have the address {}; choose another one with {option}",
                address.ip()
            )
        }
        _ => format!("the address is from {option}"),
    };
    anyhow!(error).context(format!("cannot listen on {address}: {advice}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn resolved(ips: &[[u8; 4]], port: u16) -> ResolvedAddresses {
        ResolvedAddresses {
            option: "--listen",
            host_port: HostPort::Name { host: "mixed".to_owned(), port },
            addresses: ips.iter().map(|ip| (*ip, port).into()).collect(),
        }
    }

    #[test]
    fn host_may_be_an_address_or_a_name() {
        let name = |host: &str, port| HostPort::Name { host: host.to_owned(), port };
        for (text, expected) in [
            ("127.0.0.1:0", HostPort::Address(([127, 0, 0, 1], 0).into())),
            ("[::1]:8090", HostPort::Address((std::net::Ipv6Addr::LOCALHOST, 8090).into())),
            ("localhost:8090", name("localhost", 8090)),
            ("node-1.example.com.:1", name("node-1.example.com.", 1)),
            ("a_b:65535", name("a_b", 65535)),
        ] {
            assert_eq!(HostPort::parse(text).unwrap(), expected);
            assert_eq!(expected.to_string(), text);
        }
        for text in [
            "",
            "localhost",
            ":8090",
            "localhost:",
            "localhost:x",
            "localhost:+18920",
            "localhost:65536",
            "127.0.1:80",
            "127.0.0.256:80",
            "2130706433:80",
            "0x7f000001:80",
            "a..b:80",
            "a b:80",
            "::1:80",
            "[localhost]:80",
            "http://a:80",
            "*:80",
        ] {
            assert!(HostPort::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn host_with_one_reachable_address_is_reachable() {
        assert_eq!(resolved(&[[127, 0, 0, 1], [127, 9, 9, 9]], 1).reachable_address(), None);
        let open = ([192, 0, 2, 1], 1).into();
        assert_eq!(resolved(&[[127, 0, 0, 1], [192, 0, 2, 1]], 1).reachable_address(), Some(open));
    }

    #[tokio::test]
    async fn addresses_of_a_host_share_a_free_port() {
        let listeners = resolved(&[[127, 0, 0, 1], [127, 0, 0, 2]], 0).bind().await.unwrap();
        let ports = listeners.iter().map(|listener| match listener.addr() {
            ListenAddr::Address(address) => address.port(),
            ListenAddr::Path(_) => 0,
        });
        let ports: Vec<u16> = ports.collect();
        assert!(ports[0] != 0 && ports == [ports[0]; 2], "{ports:?}");
    }

    /// The test uses an address in 203.0.113.0/24, which no machine has: the network is reserved for documentation.
    #[tokio::test]
    async fn foreign_address_of_a_host_is_skipped_unless_it_is_the_only_one() {
        assert_eq!(resolved(&[[203, 0, 113, 7], [127, 0, 0, 1]], 0).bind().await.unwrap().len(), 1);
        let error = resolved(&[[203, 0, 113, 7]], 0).bind().await.unwrap_err().to_string();
        let expected = "cannot listen on 203.0.113.7:0: this machine does not have the address 203.0.113.7; choose another one with --listen";
        assert_eq!(error, expected);
    }

    #[tokio::test]
    async fn all_skipped_addresses_are_logged() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let log = tracing_subscriber::fmt().with_ansi(false).with_writer(Arc::new(file.reopen().unwrap()));
        let guard = tracing::subscriber::set_default(log.finish());
        resolved(&[[203, 0, 113, 7], [127, 0, 0, 1], [203, 0, 113, 8]], 0).bind().await.unwrap();
        drop(guard);
        let log = std::fs::read_to_string(file.path()).unwrap();
        for ip in ["203.0.113.7", "203.0.113.8"] {
            assert!(
                log.lines().any(|line| line.contains("skipped an address") && line.contains(ip)),
                "{log}"
            );
        }
    }

    #[test]
    fn refused_port_is_explained() {
        let error = listen_error(([127, 0, 0, 1], 80).into(), "--listen", Errno::ACCESS.into()).to_string();
        assert!(error.contains("CAP_NET_BIND_SERVICE; choose another one with --listen"), "{error}");
    }
}
