//! A socket that gives the kernel pages of live images, where they are [lent](super::lending), and copies of all else; and that sends
//! long answers in full packets.

use std::fs::File;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg, sockopt};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use super::closing::Changes;
use super::direct::Direct;
use super::lending::{Borrowed, Lending};
use super::pipe::{Filled, PIPE_LEN};
use super::sending::Sending;
use crate::http::listener::{Socket, count_as_operations};

/// From this length on, sending pages costs less than a copy.
pub(in crate::http) const PAGES_LEN: usize = 64 << 10;
/// After so many bytes without an end more is expected to follow. A record of TLS, and what is with it, may be all.
const MORE: usize = 20 << 10;

/// A socket, and the pages that are on their way through it.
#[derive(Debug)]
pub(in crate::http) struct Paged {
    socket: Socket,
    /// Where there is none, everything is copied.
    lending: Option<Lending>,
    sending: Sending,
    borrowed: Option<Borrowed>,
    /// How much it took of what it was given last: to fill a pipe takes time as well.
    room: usize,
    /// What was written since the last flush.
    unflushed: usize,
    /// Whether the last bytes wait for more, until a packet is full or somebody flushes.
    is_corked: bool,
    /// Present after `shutdown`, while the client has not acknowledged all pages.
    closing: Option<Changes>,
}

impl Paged {
    pub(in crate::http) fn new(socket: Socket, lending: Option<Lending>, sending: Sending) -> Self {
        Self {
            socket,
            lending,
            sending,
            borrowed: None,
            room: PIPE_LEN / 4,
            unflushed: 0,
            is_corked: false,
            closing: None,
        }
    }

    /// Fails where pages are called in that are on their way. Whoever has sent all of them goes on.
    fn check(&mut self) -> io::Result<()> {
        let called_in = self.borrowed.as_ref().filter(|borrowed| borrowed.is_called_in());
        let Some(source) = called_in.map(|borrowed| borrowed.name().to_owned()) else { return Ok(()) };
        let Some(unsent) = self.unsent() else { return Ok(()) };
        let error = "another process wants to write to it";
        tracing::error!(source, unsent, error, "download aborted: base image unusable");
        Err(io::Error::new(io::ErrorKind::ConnectionAborted, error))
    }

    /// How many bytes are on their way, if pages may be among them. Gives the pages back once the client has acknowledged all bytes.
    fn unsent(&mut self) -> Option<usize> {
        self.borrowed.as_ref()?;
        let len = self.socket.unsent();
        if len == 0 {
            self.borrowed = None;
        }
        (len > 0).then_some(len)
    }

    /// Sends full packets only from now on, or again what waited for more. Without, what is left over of a write is a packet of its own
    /// as soon as the client tells how far it is: a stream of pages takes up to twice as many, and one of records four times.
    fn cork(&mut self, is_corked: bool) -> io::Result<()> {
        if let Socket::Tcp(socket) = &self.socket
            && self.is_corked != is_corked
        {
            sockopt::set_tcp_cork(socket, is_corked)?;
            self.is_corked = is_corked;
        }
        Ok(())
    }

    /// Returns the file and the offset of mapped bytes, if its pages may be sent.
    fn pages(&mut self, bytes: &[u8], context: &Context<'_>) -> Option<(Arc<File>, u64)> {
        let lending = self.lending.as_ref().filter(|_| matches!(self.socket, Socket::Tcp(_)))?.clone();
        let base = self.sending.file()?;
        let (file, offset) = base.pages_of(bytes)?;
        if !self.borrowed.as_ref().is_some_and(|borrowed| borrowed.is_of(file) && !borrowed.is_called_in()) {
            // The pages of another file have to be sent first.
            if self.unsent().is_some() {
                return None;
            }
            self.borrowed = lending.borrow(file, context.waker());
        }
        // A file that was revoked before this lease began may have other bytes by now.
        let is_mapped = || base.pages_of(bytes).is_some();
        (self.borrowed.is_some() && is_mapped()).then(|| (Arc::clone(file), offset))
    }

    /// Writes pages where bytes have any, and copies otherwise.
    fn poll_give(&mut self, context: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let large = slices.iter().position(|slice| slice.len() >= PAGES_LEN);
        let pages = large.and_then(|at| {
            let (copies, rest) = slices.split_at_checked(at)?;
            let bytes = rest.first()?;
            Some((copies, self.pages(bytes, context)?, bytes.len()))
        });
        let (Socket::Tcp(socket), Some((copies, (file, offset), len))) = (&self.socket, pages) else {
            return Pin::new(&mut self.socket).poll_write_vectored(context, slices);
        };
        loop {
            ready!(socket.poll_write_ready(context))?;
            let Ok(pages) = Filled::with(&file, offset, len.min(self.room)) else {
                // A copy tells what is wrong with the file, or goes on where it is pipes that there are none of.
                self.lending = None;
                return Pin::new(&mut self.socket).poll_write_vectored(context, slices);
            };
            let mut taken = 0;
            let tried = socket.try_io(Interest::WRITABLE, || {
                let (sent, all) = send(socket, copies, pages)?;
                taken = sent;
                // Nothing more for now, and the socket is to say when.
                if all { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
            });
            match tried {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Poll::Ready(Err(error)),
                Ok(()) => self.room = (self.room * 2).min(PIPE_LEN),
                Err(_) => self.room = taken.max(PAGES_LEN),
            }
            if taken > 0 {
                return count_as_operations(Poll::Ready(Ok(taken)), context);
            }
        }
    }
}

/// Sends copies, and pages after them. Gives the number of bytes, and whether the socket took all.
fn send(socket: &TcpStream, copies: &[IoSlice<'_>], pages: Filled) -> io::Result<(usize, bool)> {
    let mut copied = 0;
    if !copies.is_empty() {
        // They wait for what comes behind them, not to be a packet of their own.
        let flags = SendFlags::MORE | SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        copied = sendmsg(socket, copies, &mut SendAncillaryBuffer::default(), flags)?;
        if copied < copies.iter().map(|slice| slice.len()).sum() {
            return Ok((copied, false));
        }
    }
    match pages.send(socket) {
        Ok((sent, all)) => Ok((copied + sent, all)),
        Err(error) if copied > 0 && error.kind() == io::ErrorKind::WouldBlock => Ok((copied, false)),
        Err(error) => Err(error),
    }
}

impl AsyncRead for Paged {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.check()?;
        Pin::new(&mut this.socket).poll_read(context, buf)
    }
}

impl AsyncWrite for Paged {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.check()?;
        if this.unflushed > MORE || slices.iter().any(|slice| slice.len() > PAGES_LEN) {
            this.cork(true)?;
        }
        let written = this.poll_give(context, slices);
        if let Poll::Ready(Ok(len)) = written {
            this.unflushed = this.unflushed.saturating_add(len);
        }
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.check()?;
        this.unflushed = 0;
        this.cork(false)?;
        Pin::new(&mut this.socket).poll_flush(context)
    }

    /// Sends the end of the stream, then waits until the client has acknowledged all pages: they may not change before. The watch
    /// over the connection bounds the wait.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.closing.is_none() {
            // Pages that are acknowledged already are given back here: the end of the stream has to be acknowledged as well.
            let _ = this.unsent();
            ready!(Pin::new(&mut this.socket).poll_shutdown(context))?;
        }
        if this.unsent().is_none() {
            return Poll::Ready(Ok(()));
        }
        this.check()?;
        if let (Socket::Tcp(socket), None) = (&this.socket, &this.closing) {
            this.closing = Some(Changes::watch(socket, context.waker())?);
        }
        Poll::Pending
    }
}

impl Direct for Paged {
    fn write_now(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.socket.write_now(slices)
    }

    fn unsent(&self) -> usize {
        self.socket.unsent()
    }

    fn forget_unsent(&self) {
        self.socket.forget_unsent();
    }
}

impl Drop for Paged {
    /// Pages do not outlive what is known of them.
    fn drop(&mut self) {
        if self.unsent().is_some() {
            self.forget_unsent();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use isogen::Source;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::super::base_file::BaseFile;
    use super::*;

    /// A client would get what waits as well, a fifth of a second later.
    #[tokio::test]
    async fn what_is_flushed_does_not_wait_for_more() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        // What somebody may write to is not lent.
        let path = file.into_temp_path();
        let base = Arc::new(BaseFile::new(Arc::new(Source::open(&path).unwrap())));
        let mapped = base.mapped().unwrap();
        let sending = Sending::default();
        sending.begin(Arc::downgrade(&base));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let socket = Socket::Tcp(listener.accept().await.unwrap().0);
        let mut paged = Paged::new(socket, Some(Lending::default()), sending);
        let is_corked = |paged: &Paged| match &paged.socket {
            Socket::Tcp(socket) => sockopt::tcp_cork(socket).unwrap(),
            Socket::Unix(_) => false,
        };
        let record = 16_406;
        for (lens, waits) in [
            (&[1000, 1000][..], false),
            (&[record, 300], false),
            (&[record, record, 300], true),
            (&[PAGES_LEN], false),
            (&[PAGES_LEN + 1], true),
        ] {
            for len in lens {
                assert_eq!(paged.write(&mapped[..*len]).await.unwrap(), *len);
            }
            assert_eq!(is_corked(&paged), waits, "{lens:?}");
            paged.flush().await.unwrap();
            assert!(!is_corked(&paged), "{lens:?}");
        }
    }
}
