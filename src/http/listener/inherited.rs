//! Listening sockets that a supervisor such as systemd passes to the server at start (`sd_listen_fds(3)`).
//!
//! Environment variables contain the number of sockets, the process that they are for, and their names. The sockets are
//! the file descriptors from 3 on. `listenfd` turns these bare numbers into sockets.

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process;

use listenfd::ListenFd;

/// The most sockets that are accepted. By default systemd has no more descriptors to pass, and a unit has a few.
const MAX_SOCKETS: usize = 64;

/// A listening socket that a supervisor passed to this process.
#[derive(Debug)]
pub struct Inherited {
    /// The name of the socket; empty if it has none.
    pub name: String,
    pub(super) socket: InheritedSocket,
}

#[derive(Debug)]
pub(super) enum InheritedSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Inherited {
    /// Takes all sockets that were passed to this process.
    ///
    /// Call it once, before any thread starts: it changes the environment, so that child processes do not take the
    /// sockets for theirs.
    ///
    /// # Errors
    ///
    /// Returns an error if `LISTEN_FDS` is invalid, or if one of the descriptors is not a listening socket.
    pub fn take() -> io::Result<Vec<Self>> {
        let variable = |name: &str| std::env::var(name).ok();
        if variable("LISTEN_PID").as_deref() != Some(&process::id().to_string()) {
            return Ok(Vec::new());
        }
        let count: Option<usize> = variable("LISTEN_FDS").and_then(|count| count.parse().ok());
        if count.is_none_or(|count| count > MAX_SOCKETS) {
            let text = format!("LISTEN_FDS is no number up to {MAX_SOCKETS}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let names = variable("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':');
        let mut sockets = ListenFd::from_env();
        (0..sockets.len())
            .map(|index| {
                let name = names.next().unwrap_or_default().to_owned();
                Ok(Self { name, socket: take(&mut sockets, index)? })
            })
            .collect()
    }
}

fn take(sockets: &mut ListenFd, index: usize) -> io::Result<InheritedSocket> {
    if let Ok(Some(socket)) = sockets.take_unix_listener(index) {
        socket.set_nonblocking(true)?;
        return Ok(InheritedSocket::Unix(socket));
    }
    // For a descriptor that is not a TCP listener either, the error contains its number.
    let socket = sockets.take_tcp_listener(index)?.ok_or(io::ErrorKind::NotFound)?;
    socket.set_nonblocking(true)?;
    Ok(InheritedSocket::Tcp(socket))
}
