//! Listens on a Unix socket with a path. The socket file is removed when the socket is closed.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process;

use tokio::net::UnixListener;

/// The mode of the socket file. It allows connections from the user and the group of the service. A reverse proxy in
/// front of the server must be in this group.
const MODE: u32 = 0o660;

/// A socket file. Dropping this value removes the file, unless another file has replaced it.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    /// The device and inode of the file.
    identity: (u64, u64),
    /// The process that created the socket. A forked process does not remove the file.
    process: u32,
}

/// Listens on a path. Replaces the socket of a server that ended without removing it.
pub(super) fn listen_on_path(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    require_free_path(path)?;
    // Create the socket under a temporary name, so that it has the right mode when it appears under its final name.
    let mut temporary = OsString::from(path);
    temporary.push(format!(".{}", process::id()));
    let temporary = PathBuf::from(temporary);
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&temporary)?;
    let file = move_into_place(&temporary, path);
    if file.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    Ok((listener, file?))
}

fn move_into_place(temporary: &Path, path: &Path) -> io::Result<SocketFile> {
    fs::set_permissions(temporary, Permissions::from_mode(MODE))?;
    let data = fs::symlink_metadata(temporary)?;
    fs::rename(temporary, path)?;
    Ok(SocketFile { path: path.to_owned(), identity: (data.dev(), data.ino()), process: process::id() })
}

/// Returns an error if the path exists, unless it is an unused socket of this user.
fn require_free_path(path: &Path) -> io::Result<()> {
    let refused = |what: &str| io::Error::new(io::ErrorKind::AlreadyExists, what.to_owned());
    let data = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        data => data?,
    };
    if !data.file_type().is_socket() {
        return Err(refused("the path exists and is not a socket"));
    }
    if data.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused("the socket belongs to another user"));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        // The socket is in use, its queue is full, or this process may not connect to it.
        _ => Err(refused("another process listens on this socket")),
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours = |data: fs::Metadata| (data.dev(), data.ino()) == self.identity;
        if self.process == process::id() && fs::symlink_metadata(&self.path).is_ok_and(is_ours) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen_refusal(path: &Path) -> String {
        listen_on_path(path).unwrap_err().to_string()
    }

    #[tokio::test]
    async fn only_a_dead_socket_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let (listener, file) = listen_on_path(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
        assert_eq!(listen_refusal(&path), "another process listens on this socket");
        drop((listener, file));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        // Leave a socket file without a server, as after a crash.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let (_listener, file) = listen_on_path(&path).unwrap();
        // If another file has replaced the socket, drop does not remove it.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "precious").unwrap();
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        assert_eq!(listen_refusal(&path), "the path exists and is not a socket");
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
