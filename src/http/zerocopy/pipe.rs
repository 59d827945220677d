//! Moves pages from a file into a socket through a pipe. Each thread has one pipe.
//!
//! `sendfile` does the same with a pipe of 64 KiB inside the kernel. A larger pipe halves the CPU cost of a download.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;

use rustix::io::retry_on_intr;
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, splice};

/// The capacity of a pipe: the maximum for an unprivileged user.
pub(super) const PIPE_LEN: usize = 1 << 20;

thread_local! {
    static PIPE: Cell<Option<PagePipe>> = const { Cell::new(None) };
}

/// A pipe. It is empty while no [`PipedPages`] uses it.
struct PagePipe {
    reader: PipeReader,
    writer: PipeWriter,
    /// `/dev/null`, for pages that no socket accepted.
    sink: File,
}

/// Pages of a file in this thread's pipe.
pub(super) struct PipedPages {
    /// `None` only during drop.
    pipe: Option<PagePipe>,
    left: usize,
}

impl PagePipe {
    fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        fcntl_setpipe_size(&writer, PIPE_LEN)?;
        Ok(Self { reader, writer, sink: File::options().write(true).open("/dev/null")? })
    }

    /// Moves up to `len` bytes from the pipe into another file, without waiting.
    fn drain(&self, into: impl AsFd, len: usize) -> io::Result<usize> {
        match retry_on_intr(|| splice(&self.reader, None, &into, None, len, SpliceFlags::NONBLOCK))? {
            0 => Err(io::ErrorKind::WriteZero.into()),
            len => Ok(len),
        }
    }
}

impl PipedPages {
    /// Moves up to `len` bytes of a file into the pipe.
    ///
    /// # Errors
    ///
    /// Returns an error if the file has no bytes at `offset`, or if no pipe can be created.
    pub(super) fn from_file(file: &File, mut offset: u64, len: usize) -> io::Result<Self> {
        let pipe = PIPE.take().map_or_else(PagePipe::new, Ok)?;
        let mut pages = Self { pipe: None, left: 0 };
        let len = len.min(PIPE_LEN);
        pages.left = retry_on_intr(|| {
            splice(file, Some(&mut offset), &pipe.writer, None, len, SpliceFlags::NONBLOCK)
        })?;
        pages.pipe = Some(pipe);
        if pages.left == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(pages) }
    }

    /// Sends the pages to a non-blocking socket. Returns the number of bytes sent, and whether the socket accepted all
    /// of them.
    ///
    /// # Errors
    ///
    /// Returns the error of a socket that accepts nothing: [`WouldBlock`](io::ErrorKind::WouldBlock) if it is full.
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

impl Drop for PipedPages {
    /// Empties the pipe and keeps it for later use. If that fails, closes the pipe, because its bytes would go to the
    /// next client.
    fn drop(&mut self) {
        let Some(pipe) = self.pipe.take() else { return };
        while self.left > 0 {
            match pipe.drain(&pipe.sink, self.left) {
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

    fn file_with_byte(byte: u8) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![byte; 2 << 20]).unwrap();
        file
    }

    #[test]
    fn unsent_pages_are_not_sent_to_another_socket() {
        let (first, second) = (file_with_byte(1), file_with_byte(2));
        let (mut client, socket) = UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        let (sent, all) = PipedPages::from_file(&first, 5, PIPE_LEN).unwrap().send(&socket).unwrap();
        assert!(!all && sent < PIPE_LEN, "{sent}");
        let full = PipedPages::from_file(&first, 0, 9).unwrap().send(&socket).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        let mut bytes = vec![0; sent];
        client.read_exact(&mut bytes).unwrap();
        assert!(bytes.iter().all(|byte| *byte == 1));
        // Drop pages that were never sent.
        drop(PipedPages::from_file(&first, 0, PIPE_LEN).unwrap());
        assert_eq!(PipedPages::from_file(&second, 4095, 9).unwrap().send(&socket).unwrap(), (9, true));
        client.read_exact(&mut bytes[..9]).unwrap();
        assert_eq!(bytes[..9], [2; 9]);
    }

    #[test]
    fn rejects_an_offset_at_the_end_of_the_file() {
        assert!(PipedPages::from_file(&file_with_byte(1), 2 << 20, 1).is_err());
        let (_, closed) = UnixStream::pair().unwrap();
        assert_eq!(
            PipedPages::from_file(&file_with_byte(1), 0, 1).unwrap().send(&closed).unwrap_err().kind(),
            io::ErrorKind::BrokenPipe
        );
    }
}
