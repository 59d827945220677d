//! A TLS stream that buffers little for a client that does not read.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The most unsent bytes that TLS buffers: one record. One record per system call has no measurable cost compared with
/// that of the records.
const MAX_UNSENT: usize = 16 << 10;

/// A TLS stream that encrypts a record only after all earlier ones are sent. Otherwise TLS would encrypt a second,
/// shorter record to fill its buffer limit, and keep both in memory.
#[derive(Debug)]
pub(in crate::http) struct RecordStream<S>(TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> RecordStream<S> {
    /// Waits for the handshake.
    pub(in crate::http) async fn accept(acceptor: &TlsAcceptor, socket: S) -> io::Result<Self> {
        acceptor.accept_with(socket, |tls| tls.set_buffer_limit(Some(MAX_UNSENT))).await.map(Self)
    }

    fn poll_sent(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (_, tls) = self.0.get_ref();
        if tls.wants_write() { Pin::new(&mut self.0).poll_flush(context) } else { Poll::Ready(Ok(())) }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for RecordStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(context, buf)
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
        Pin::new(&mut this.0).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(context)
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

    /// Returns the two ends of a connection: bytes written to the first arrive encrypted at the second.
    async fn connected_ends(room: usize) -> (RecordStream<DuplexStream>, DuplexStream) {
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
            tokio::join!(RecordStream::accept(&acceptor, near), connector.connect(name, far));
        (records.unwrap(), client.unwrap().into_inner().0)
    }

    #[tokio::test]
    async fn slow_reader_gets_full_records() {
        let (mut records, mut client) = connected_ends(20_000).await;
        let (mut taken, mut sent) = (0, Vec::new());
        while sent.len() < 200_000 {
            while let Some(len) = records.write(&[7; 50_000]).now_or_never() {
                taken += len.unwrap();
            }
            // At most one record is buffered.
            assert!(taken < sent.len() + 20_000 + MAX_UNSENT);
            let mut part = [0; 700];
            client.read_exact(&mut part).await.unwrap();
            sent.extend(part);
        }
        let mut rest = &sent[..];
        while let Some((head, body)) = rest.split_first_chunk::<5>() {
            // 16 KiB, the content type, and a tag.
            assert_eq!(u16::from_be_bytes([head[3], head[4]]), (16 << 10) + 17);
            rest = body.get((16 << 10) + 17..).unwrap_or_default();
        }
    }
}
