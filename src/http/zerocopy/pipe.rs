//! The way of pages from a file into a socket: a pipe, one for each thread.
//!
//! `sendfile` is the same with a pipe of the kernel's own, which takes 64 KiB. A larger one halves what a stream costs.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;

use rustix::io::retry_on_intr;
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, splice};

/// How much a pipe takes: what everybody may have who is not the administrator.
pub(super) const PIPE_LEN: usize = 1 << 20;

thread_local! {
    static PIPE: Cell<Option<Pipe>> = const { Cell::new(None) };
}

/// A pipe, which is empty while nobody has it.
struct Pipe {
    reader: PipeReader,
    writer: PipeWriter,
    /// Where pages go that no socket took.
    nowhere: File,
}

/// Pages in the pipe of this thread, on their way.
pub(super) struct Filled {
    /// There until it is dropped.
    pipe: Option<Pipe>,
    left: usize,
}

impl Pipe {
    fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        fcntl_setpipe_size(&writer, PIPE_LEN)?;
        Ok(Self { reader, writer, nowhere: File::options().write(true).open("/dev/null")? })
    }

    /// Moves what is in it somewhere else, as far as that goes without waiting.
    fn drain(&self, into: impl AsFd, len: usize) -> io::Result<usize> {
        match retry_on_intr(|| splice(&self.reader, None, &into, None, len, SpliceFlags::NONBLOCK))? {
            0 => Err(io::ErrorKind::WriteZero.into()),
            len => Ok(len),
        }
    }
}

impl Filled {
    /// Pages of a file: so many bytes, or as many as a pipe takes.
    ///
    /// # Errors
    ///
    /// Fails where there are none, and where there is no pipe.
    pub(super) fn with(file: &File, mut offset: u64, len: usize) -> io::Result<Self> {
        let pipe = PIPE.take().map_or_else(Pipe::new, Ok)?;
        let mut filled = Self { pipe: None, left: 0 };
        let len = len.min(PIPE_LEN);
        filled.left = retry_on_intr(|| {
            splice(file, Some(&mut offset), &pipe.writer, None, len, SpliceFlags::NONBLOCK)
        })?;
        filled.pipe = Some(pipe);
        if filled.left == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(filled) }
    }

    /// Sends them as far as a socket takes them, which has to be one that does not wait. Gives the number of bytes, and whether it
    /// took all; the error of one that takes none is [`WouldBlock`](io::ErrorKind::WouldBlock).
    ///
    /// # Errors
    ///
    /// Fails as the socket does.
    pub(super) fn send(mut self, socket: impl AsFd) -> io::Result<(usize, bool)> {
        let all = self.left;
        while self.left > 0 {
            match self.drain(&socket) {
                Ok(()) => {}
                Err(error) if self.left == all => return Err(error),
                Err(_) => break,
            }
        }
        Ok((all - self.left, self.left == 0))
    }

    fn drain(&mut self, into: impl AsFd) -> io::Result<()> {
        let pipe = self.pipe.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        self.left -= pipe.drain(into, self.left)?;
        Ok(())
    }
}

impl Drop for Filled {
    /// A pipe with anything in it would give that to the next client: it is not kept.
    fn drop(&mut self) {
        let Some(pipe) = self.pipe.take() else { return };
        while self.left > 0 {
            match pipe.drain(&pipe.nowhere, self.left) {
                Ok(len) => self.left -= len,
                Err(_) => return,
            }
        }
        PIPE.set(Some(pipe));
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn file(byte: u8) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![byte; 2 << 20]).unwrap();
        file
    }

    #[test]
    fn what_a_socket_does_not_take_goes_to_nobody_else() {
        let (first, second) = (file(1), file(2));
        let (mut client, socket) = UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        let (sent, all) = Filled::with(&first, 5, PIPE_LEN).unwrap().send(&socket).unwrap();
        assert!(!all && sent < PIPE_LEN, "{sent}");
        let full = Filled::with(&first, 0, 9).unwrap().send(&socket).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        let mut bytes = vec![0; sent];
        client.read_exact(&mut bytes).unwrap();
        assert!(bytes.iter().all(|byte| *byte == 1));
        // Nobody sent these.
        drop(Filled::with(&first, 0, PIPE_LEN).unwrap());
        assert_eq!(Filled::with(&second, 4095, 9).unwrap().send(&socket).unwrap(), (9, true));
        client.read_exact(&mut bytes[..9]).unwrap();
        assert_eq!(bytes[..9], [2; 9]);
    }

    #[test]
    fn a_file_that_ended_has_no_pages() {
        assert!(Filled::with(&file(1), 2 << 20, 1).is_err());
        let (_, closed) = UnixStream::pair().unwrap();
        assert_eq!(
            Filled::with(&file(1), 0, 1).unwrap().send(&closed).unwrap_err().kind(),
            io::ErrorKind::BrokenPipe
        );
    }
}
