//! A socket that sends [lent](PageLending) pages of base images without a copy, and copies all other bytes. It sends
//! long responses in full packets.

use std::fs::File;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg, sockopt};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use super::direct_socket::{DirectSocket, discard_received};
use super::pipe::{PIPE_LEN, PipedPages};
use super::sending_file::SendingFile;
use super::socket_changes::SocketChanges;
use crate::base_files::{LentPages, PageLending};
use crate::http::listener::{Socket, charge_task_budget};

/// Minimum length of a write for which sending pages costs less than copying.
pub(in crate::http) const PAGES_LEN: usize = 64 << 10;
/// The number of unflushed bytes after which more writes are expected. Fewer bytes may be a whole response, for
/// example one TLS record and the bytes sent with it.
const STREAM_LEN: usize = 20 << 10;
/// The interval between checks whether the client has acknowledged lent pages, after their base image was dropped.
const RETURN_INTERVAL: Duration = Duration::from_millis(50);

/// A socket, with the lent pages whose bytes the client has not yet acknowledged.
#[derive(Debug)]
pub(in crate::http) struct PagedSocket {
    socket: Socket,
    /// `None` if all bytes are copied.
    lending: Option<PageLending>,
    sending: SendingFile,
    lent: Option<LentPages>,
    /// The timer for the next check of lent pages whose base image was dropped.
    returning: Option<Pin<Box<Sleep>>>,
    /// Maximum number of bytes to put into the pipe at a time. It adapts to the number that the socket accepted last,
    /// because filling the pipe also takes time.
    room: usize,
    /// The number of bytes written since the last flush.
    unflushed: usize,
    /// Whether the kernel holds back an incomplete packet until it is full or the stream is flushed.
    is_corked: bool,
    /// Set after `shutdown`, while the client has not acknowledged everything.
    closing: Option<SocketChanges>,
}

impl PagedSocket {
    pub(in crate::http) fn new(socket: Socket, lending: Option<PageLending>, sending: SendingFile) -> Self {
        Self {
            socket,
            lending,
            sending,
            lent: None,
            returning: None,
            room: PIPE_LEN / 4,
            unflushed: 0,
            is_corked: false,
            closing: None,
        }
    }

    /// Returns an error if lent pages were recalled and the client has not acknowledged them all. Otherwise, the
    /// connection continues.
    fn require_not_recalled(&mut self) -> io::Result<()> {
        let recalled = self.lent.as_ref().filter(|lent| lent.is_recalled());
        let Some(source) = recalled.map(|lent| lent.file_name().to_owned()) else { return Ok(()) };
        if !self.has_unsent_pages() {
            return Ok(());
        }
        let unsent = self.socket.unsent_len();
        let error = "another process wants to write to the base image";
        tracing::error!(source, unsent, error, "download aborted: base image unusable");
        Err(io::Error::new(io::ErrorKind::ConnectionAborted, error))
    }

    /// Returns `true` if the client has acknowledged all bytes. The lent pages are then returned.
    fn has_sent_all(&mut self) -> bool {
        let has_sent_all = self.socket.unsent_len() == 0;
        if has_sent_all {
            self.lent = None;
        }
        has_sent_all
    }

    /// Returns `true` if unacknowledged bytes may include lent pages.
    fn has_unsent_pages(&mut self) -> bool {
        self.lent.is_some() && !self.has_sent_all()
    }

    /// Returns the lent pages after their base image was dropped, as soon as the client has acknowledged them.
    /// Otherwise, a connection that waits for its next request would keep a deleted file open. The kernel has no event
    /// for the acknowledgement, so a timer checks for it.
    fn return_unused_pages(&mut self, context: &mut Context<'_>) {
        while self.lent.as_ref().is_some_and(LentPages::is_unused) && !self.has_sent_all() {
            let timer = self.returning.get_or_insert_with(|| Box::pin(sleep(RETURN_INTERVAL)));
            if timer.as_mut().poll(context).is_pending() {
                return;
            }
            self.returning = None;
        }
    }

    /// Makes the kernel hold back an incomplete packet, or send it. Without holding back, the rest of each write would
    /// become a separate packet as soon as the client acknowledges more. A stream of pages would take up to twice as
    /// many packets, and a stream of TLS records four times as many.
    fn set_corked(&mut self, is_corked: bool) -> io::Result<()> {
        if let Socket::Tcp(socket) = &self.socket
            && self.is_corked != is_corked
        {
            sockopt::set_tcp_cork(socket, is_corked)?;
            self.is_corked = is_corked;
        }
        Ok(())
    }

    /// Returns the file and the offset in it for mapped bytes, if the pages may be sent.
    fn lendable_pages(&mut self, bytes: &[u8], context: &Context<'_>) -> Option<(Arc<File>, u64)> {
        let lending = self.lending.as_ref().filter(|_| matches!(self.socket, Socket::Tcp(_)))?.clone();
        let base = self.sending.current_file()?;
        let (file, offset) = base.file_pages(bytes)?;
        if !self.lent.as_ref().is_some_and(|lent| lent.belong_to(file) && !lent.is_recalled()) {
            // Bytes of another file must be acknowledged first.
            if self.has_unsent_pages() {
                return None;
            }
            self.lent = lending.borrow(file, context.waker());
        }
        // Check again after the lease was acquired: if the file was revoked before, its bytes may have changed.
        let is_mapped = || base.file_pages(bytes).is_some();
        (self.lent.is_some() && is_mapped()).then(|| (Arc::clone(file.file()), offset))
    }

    /// Sends pages if the first long slice belongs to a lent file, and copies otherwise.
    fn poll_send(&mut self, context: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let large = slices.iter().position(|slice| slice.len() >= PAGES_LEN);
        let pages = large.and_then(|at| {
            let (copies, rest) = slices.split_at_checked(at)?;
            let bytes = rest.first()?;
            Some((copies, self.lendable_pages(bytes, context)?, bytes.len()))
        });
        let (Socket::Tcp(socket), Some((copies, (file, offset), len))) = (&self.socket, pages) else {
            return Pin::new(&mut self.socket).poll_write_vectored(context, slices);
        };
        loop {
            ready!(socket.poll_write_ready(context))?;
            let Ok(pages) = PipedPages::from_file(&file, offset, len.min(self.room)) else {
                // Copy instead. This reports the error of the file, or succeeds if only pipes are unavailable.
                self.lending = None;
                return Pin::new(&mut self.socket).poll_write_vectored(context, slices);
            };
            let mut sent_len = 0;
            let tried = socket.try_io(Interest::WRITABLE, || {
                let (sent, all) = send_copies_and_pages(socket, copies, pages)?;
                sent_len = sent;
                // The socket is full. This error makes tokio wait until the socket is writable again.
                if all { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
            });
            match tried {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Poll::Ready(Err(error)),
                Ok(()) => self.room = (self.room * 2).min(PIPE_LEN),
                Err(_) => self.room = sent_len.max(PAGES_LEN),
            }
            if sent_len > 0 {
                return charge_task_budget(Poll::Ready(Ok(sent_len)), context);
            }
        }
    }
}

/// Copies bytes, then sends pages. Returns the number of bytes sent, and whether the socket accepted all of them.
fn send_copies_and_pages(
    socket: &TcpStream,
    copies: &[IoSlice<'_>],
    pages: PipedPages,
) -> io::Result<(usize, bool)> {
    let mut copied = 0;
    if !copies.is_empty() {
        // `MORE`: keep the bytes for the same packet as the pages that follow.
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

impl AsyncRead for PagedSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.require_not_recalled()?;
        this.return_unused_pages(context);
        Pin::new(&mut this.socket).poll_read(context, buf)
    }
}

impl AsyncWrite for PagedSocket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.require_not_recalled()?;
        if this.unflushed > STREAM_LEN || slices.iter().any(|slice| slice.len() > PAGES_LEN) {
            this.set_corked(true)?;
        }
        let result = this.poll_send(context, slices);
        if let Poll::Ready(Ok(len)) = result {
            this.unflushed = this.unflushed.saturating_add(len);
        }
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.require_not_recalled()?;
        this.unflushed = 0;
        this.set_corked(false)?;
        Pin::new(&mut this.socket).poll_flush(context)
    }

    /// Sends the end of the stream, then waits until the client has acknowledged everything. Until then, lent pages
    /// must not change. Also, closing the socket earlier would make a client that still sends bytes lose the rest of
    /// the response. [`TimedSocket`](super::TimedSocket) limits the wait.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.closing.is_none() {
            // Check before the end of the stream is sent, because that must be acknowledged as well.
            let is_sent = this.has_sent_all();
            ready!(Pin::new(&mut this.socket).poll_shutdown(context))?;
            if is_sent {
                return Poll::Ready(Ok(()));
            }
        }
        if this.has_sent_all() {
            discard_received(&this.socket);
            return Poll::Ready(Ok(()));
        }
        this.require_not_recalled()?;
        if let (Socket::Tcp(socket), None) = (&this.socket, &this.closing) {
            this.closing = Some(SocketChanges::watch(socket, context.waker())?);
        }
        Poll::Pending
    }
}

impl DirectSocket for PagedSocket {
    fn write_now(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.socket.write_now(slices)
    }

    fn unsent_len(&self) -> usize {
        self.socket.unsent_len()
    }

    fn discard_unsent_on_close(&self) {
        self.socket.discard_unsent_on_close();
    }
}

impl Drop for PagedSocket {
    /// Makes the kernel discard unacknowledged pages, because they must not stay in the socket after `LentPages` is
    /// dropped.
    fn drop(&mut self) {
        if self.has_unsent_pages() {
            self.discard_unsent_on_close();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use isogen::Source;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::base_files::BaseFile;

    /// Without a flush, the kernel would send the waiting bytes after a fifth of a second.
    #[tokio::test]
    async fn flushed_bytes_do_not_wait_for_more() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        // Close the file, because a file that is open for writing cannot be leased.
        let path = file.into_temp_path();
        let base = Arc::new(BaseFile::new(Arc::new(Source::open(&path).unwrap())));
        let mapped = base.mapped_bytes().unwrap();
        let sending = SendingFile::default();
        sending.begin_answer(Arc::downgrade(&base));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let socket = Socket::Tcp(listener.accept().await.unwrap().0);
        let mut paged = PagedSocket::new(socket, Some(PageLending::default()), sending);
        let is_corked = |paged: &PagedSocket| match &paged.socket {
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

    /// If a socket is closed with unread bytes, the connection is reset and the client loses bytes that it has not
    /// read.
    #[tokio::test]
    async fn shutdown_waits_until_the_client_has_everything() {
        const LEN: usize = 8 << 20;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        client.write_all(b"not read").await.unwrap();
        let send = async {
            let mut socket = PagedSocket::new(Socket::Tcp(accepted), None, SendingFile::default());
            socket.write_all(&vec![7; LEN]).await.unwrap();
            socket.shutdown().await.unwrap();
        };
        let mut received = Vec::new();
        let (read, ()) = tokio::join!(client.read_to_end(&mut received), send);
        assert_eq!((read.unwrap(), received.len()), (LEN, LEN));
    }
}
