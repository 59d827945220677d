//! TLS connections that encrypt little in advance, so that slow clients use little memory.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Maximum number of plain bytes in a TLS record.
const RECORD: usize = 16 << 10;
/// The number of bytes to encrypt together in a burst. Four records in one system call take 8 % less CPU time than four
/// calls (whole image, one client).
const BURST: usize = 4 * RECORD;
/// Maximum number of connections with an unsent burst. A client that does not read keeps its burst in memory.
const MAX_BURSTS: usize = 64;

/// The permits for bursts, shared by all connections of a listener.
#[derive(Clone, Debug)]
pub(in crate::http) struct RecordBursts(Arc<Semaphore>);

impl Default for RecordBursts {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_BURSTS)))
    }
}

/// A TLS stream that encrypts the next record or burst only after all earlier ones are sent. Otherwise, TLS would
/// encrypt a shorter record to fill its buffer limit, and keep both in memory.
#[derive(Debug)]
pub(in crate::http) struct RecordStream<S> {
    tls: TlsStream<S>,
    bursts: RecordBursts,
    /// The permit for the current burst, held until the burst is sent.
    burst: Option<OwnedSemaphorePermit>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> RecordStream<S> {
    /// Performs the TLS handshake.
    pub(in crate::http) async fn accept(
        acceptor: &TlsAcceptor,
        socket: S,
        bursts: RecordBursts,
    ) -> io::Result<Self> {
        let tls = acceptor.accept_with(socket, |tls| tls.set_buffer_limit(Some(RECORD))).await?;
        Ok(Self { tls, bursts, burst: None })
    }

    fn poll_sent(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.tls.get_ref().1.wants_write() {
            Pin::new(self).poll_flush(context)
        } else {
            Poll::Ready(Ok(()))
        }
    }

    /// Allows a burst for a write of `len` bytes, if the write is long enough and a permit is free.
    fn begin_burst(&mut self, len: usize) {
        if len > RECORD && self.burst.is_none() {
            self.burst = Arc::clone(&self.bursts.0).try_acquire_owned().ok();
            if self.burst.is_some() {
                self.tls.get_mut().1.set_buffer_limit(Some(BURST));
            }
        }
    }

    fn end_burst(&mut self) {
        if self.burst.take().is_some() {
            self.tls.get_mut().1.set_buffer_limit(Some(RECORD));
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for RecordStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tls).poll_read(context, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for RecordStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_sent(context))?;
        this.begin_burst(slices.iter().map(|slice| slice.len()).sum());
        let result = Pin::new(&mut this.tls).poll_write_vectored(context, slices);
        if !this.tls.get_ref().1.wants_write() {
            this.end_burst();
        }
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.tls.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.tls).poll_flush(context))?;
        this.end_burst();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tls).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;
    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
    use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

    use super::*;

    /// Returns both ends of a connection: bytes written to the first arrive encrypted at the second.
    async fn connected_ends(room: usize, bursts: RecordBursts) -> (RecordStream<DuplexStream>, DuplexStream) {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".into()]).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder().with_no_client_auth();
        let mut config = config.with_single_cert(vec![cert.der().clone()], key).unwrap();
        config.send_tls13_tickets = 0;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).unwrap();
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(config));
        let (near, far) = duplex(room);
        let name = ServerName::try_from("localhost").unwrap();
        let (records, client) =
            tokio::join!(RecordStream::accept(&acceptor, near, bursts), connector.connect(name, far));
        (records.unwrap(), client.unwrap().into_inner().0)
    }

    /// Sends bytes to a slow reader, and checks that at most `max_unsent` encrypted bytes are unsent.
    async fn assert_full_records(bursts: RecordBursts, max_unsent: usize) {
        let (mut records, mut client) = connected_ends(20_000, bursts).await;
        let (mut accepted, mut sent) = (0, Vec::new());
        while sent.len() < 400_000 {
            while let Some(len) = records.write(&[7; 100_000]).now_or_never() {
                accepted += len.unwrap();
            }
            assert!(accepted < sent.len() + 20_000 + max_unsent);
            let mut part = [0; 700];
            client.read_exact(&mut part).await.unwrap();
            sent.extend(part);
        }
        assert!(accepted > 300_000 && (max_unsent == RECORD) == (records.burst.is_none()));
        let mut rest = &sent[..];
        while let Some((head, body)) = rest.split_first_chunk::<5>() {
            // The content of a record (16 KiB), its content type, and the authentication tag.
            assert_eq!(usize::from(u16::from_be_bytes([head[3], head[4]])), RECORD + 17);
            rest = body.get(RECORD + 17..).unwrap_or_default();
        }
    }

    #[tokio::test]
    async fn slow_reader_gets_full_records() {
        assert_full_records(RecordBursts::default(), BURST).await;
        // No permit for a burst is free.
        assert_full_records(RecordBursts(Arc::new(Semaphore::new(0))), RECORD).await;
    }

    #[tokio::test]
    async fn burst_is_free_once_it_is_sent() {
        let bursts = RecordBursts::default();
        let (mut records, mut client) = connected_ends(20_000, bursts.clone()).await;
        assert_eq!(records.write(&[7; 100_000]).await.unwrap(), BURST);
        assert_eq!(bursts.0.available_permits(), MAX_BURSTS - 1);
        let mut part = vec![0; BURST];
        let (sent, read) = tokio::join!(records.flush(), client.read_exact(&mut part));
        assert!(sent.is_ok() && read.is_ok());
        assert_eq!(bursts.0.available_permits(), MAX_BURSTS);
    }
}
