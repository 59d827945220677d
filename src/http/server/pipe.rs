//! The way of pages from a file into a socket: a pipe, one for each thread.
//!
//! `sendfile` is the same with a pipe of the kernel's own, which takes 64 KiB. A larger one halves what a stream costs.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;

use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, splice};

/// How much a pipe takes: what everybody may have who is not the administrator.
pub(super) const PIPE_LEN: usize = 1 << 20;

thread_local! {
    static PIPE: Cell<Option<Pipe>> = const { Cell::new(None) };
}

/// A pipe, which is empty between calls.
struct Pipe {
    reader: PipeReader,
    writer: PipeWriter,
    /// Where pages go that the socket did not take.
    nowhere: File,
}

/// Sends bytes of a file, at most as many as a pipe takes, as far as a socket takes them without waiting. Gives their number, and whether the
/// socket took all that it was given; the error of one that takes none is [`WouldBlock`](io::ErrorKind::WouldBlock).
///
/// # Errors
///
/// Fails where the file ends before, and where there is no pipe.
pub(super) fn send(socket: impl AsFd, file: &File, mut offset: u64, len: usize) -> io::Result<(usize, bool)> {
    let pipe = PIPE.take().map_or_else(Pipe::new, Ok)?;
    let len = len.min(PIPE_LEN);
    let filled =
        retry_on_intr(|| splice(file, Some(&mut offset), &pipe.writer, None, len, SpliceFlags::NONBLOCK))?;
    if filled == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut sent = 0;
    let end = loop {
        match splice(&pipe.reader, None, &socket, None, filled - sent, SpliceFlags::NONBLOCK) {
            Ok(0) => break Err(Errno::PIPE),
            Ok(len) => sent += len,
            Err(Errno::INTR) => {}
            Err(error) => break Err(error),
        }
        if sent == filled {
            break Ok(());
        }
    };
    // A pipe with anything in it would give that to the next client: it is not kept.
    if pipe.empty(filled - sent).is_ok() {
        PIPE.set(Some(pipe));
    }
    match end {
        Err(error) if sent == 0 => Err(error.into()),
        _ => Ok((sent, sent == filled)),
    }
}

impl Pipe {
    fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        fcntl_setpipe_size(&writer, PIPE_LEN)?;
        Ok(Self { reader, writer, nowhere: File::options().write(true).open("/dev/null")? })
    }

    fn empty(&self, mut len: usize) -> io::Result<()> {
        while len > 0 {
            match splice(&self.reader, None, &self.nowhere, None, len, SpliceFlags::NONBLOCK) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(gone) => len -= gone,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
