//! Takes over listening sockets that a supervisor such as systemd passes to the server at start (`sd_listen_fds(3)`).
//!
//! Environment variables contain the number of the sockets, their names, and the id of the process that they are for.
//! The sockets are the file descriptors from 3 on. The crate `listenfd` converts the descriptors to sockets.

use std::env;
use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process;

use listenfd::ListenFd;

/// Maximum number of sockets. Typical units have a few.
const MAX_SOCKETS: usize = 64;

/// A listening socket that a supervisor passed to this process.
#[derive(Debug)]
pub struct InheritedListener {
    /// The name of the socket from `LISTEN_FDNAMES`. Empty if it has no name.
    pub name: String,
    pub(super) socket: InheritedSocket,
}

#[derive(Debug)]
pub(super) enum InheritedSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl InheritedListener {
    /// Takes over all sockets passed to this process.
    ///
    /// Call this once, before any thread starts. It changes the environment, so that child processes do not use the
    /// sockets.
    ///
    /// # Errors
    ///
    /// Returns an error if `LISTEN_FDS` or `LISTEN_FDNAMES` is invalid, or if a descriptor is not a listening socket.
    pub fn take_all() -> io::Result<Vec<Self>> {
        if env::var_os("LISTEN_PID").is_none_or(|id| id != *process::id().to_string()) {
            return Ok(Vec::new());
        }
        let count = env::var("LISTEN_FDS").ok().and_then(|count| count.parse().ok());
        let Some(count) = count.filter(|count| *count <= MAX_SOCKETS) else {
            return Err(invalid_names(format!("LISTEN_FDS is not a number up to {MAX_SOCKETS}")));
        };
        let names = socket_names(env::var_os("LISTEN_FDNAMES"), count)?;
        let mut sockets = ListenFd::from_env();
        let take = |(index, name)| Ok(Self { name, socket: take_socket(&mut sockets, index)? });
        names.into_iter().enumerate().map(take).collect()
    }
}

/// Parses the names of `count` sockets, separated by colons. The names select the sockets with TLS.
fn socket_names(variable: Option<OsString>, count: usize) -> io::Result<Vec<String>> {
    let Some(text) = variable else { return Ok(vec![String::new(); count]) };
    let text = text.into_string().map_err(|_| invalid_names("LISTEN_FDNAMES is not UTF-8".to_owned()))?;
    let names: Vec<String> = text.split(':').map(str::to_owned).collect();
    if names.len() == count || (count == 0 && text.is_empty()) {
        return Ok(names.into_iter().take(count).collect());
    }
    Err(invalid_names(format!("LISTEN_FDNAMES has {} names for {count} sockets", names.len())))
}

fn invalid_names(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

fn take_socket(sockets: &mut ListenFd, index: usize) -> io::Result<InheritedSocket> {
    if let Ok(Some(socket)) = sockets.take_unix_listener(index) {
        socket.set_nonblocking(true)?;
        return Ok(InheritedSocket::Unix(socket));
    }
    // If the descriptor is not a TCP listener either, the error contains its number.
    let socket = sockets.take_tcp_listener(index)?.ok_or(io::ErrorKind::NotFound)?;
    socket.set_nonblocking(true)?;
    Ok(InheritedSocket::Tcp(socket))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn every_socket_has_a_name_if_any_has_one() {
        let names = |text: &str, count| socket_names(Some(text.into()), count);
        assert_eq!(names("https:http", 2).unwrap(), ["https", "http"]);
        assert_eq!(names("", 1).unwrap(), [""]);
        assert_eq!(names("", 0).unwrap(), [""; 0]);
        assert_eq!(socket_names(None, 2).unwrap(), ["", ""]);
        for (text, count) in [("https", 2), ("https:http", 1), ("https", 0)] {
            assert!(names(text, count).unwrap_err().to_string().contains("LISTEN_FDNAMES has"), "{text}");
        }
        let error = socket_names(Some(OsString::from_vec(vec![0xff])), 1).unwrap_err();
        assert_eq!(error.to_string(), "LISTEN_FDNAMES is not UTF-8");
    }
}
