//! Sockets that a supervisor listens on and hands over when it starts us, as systemd does (`sd_listen_fds(3)`).
//!
//! The variables say how many there are, for which process, and what they are called. The sockets are file descriptors from
//! 3 on. Taking them from their bare numbers is what `listenfd` does for us.

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process;

use listenfd::ListenFd;

/// The most sockets that are taken: systemd has no more descriptors to give by default, and a unit has a few.
const MAX_SOCKETS: usize = 64;

/// A socket that was handed over.
#[derive(Debug)]
pub struct Inherited {
    /// What it is called; empty if it has no name.
    pub name: String,
    pub(super) socket: InheritedSocket,
}

#[derive(Debug)]
pub(super) enum InheritedSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Inherited {
    /// All sockets that were handed over to this process. To be called once, before there are threads: it changes the
    /// environment, so that what this process starts does not take them for its own.
    ///
    /// # Errors
    ///
    /// When one of them is not a socket that can be listened on.
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
    // What is neither fails with the number of its descriptor.
    let socket = sockets.take_tcp_listener(index)?.ok_or(io::ErrorKind::NotFound)?;
    socket.set_nonblocking(true)?;
    Ok(InheritedSocket::Tcp(socket))
}
