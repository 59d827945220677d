//! A connection to a server, plain or with TLS, that discards bodies as cheaply as possible.
//!
//! The same code drives blocking and non-blocking sockets. If no data is available, [`Connection::read_some`] returns
//! immediately or after [`POLL_TIMEOUT`].

use std::io::{BufRead, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, sockopt};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use crate::exchange::{Exchange, ExpectedResponse};
use crate::interrupt;

/// Time for which a blocking socket waits before it checks whether the run has ended.
pub(crate) const POLL_TIMEOUT: Duration = Duration::from_millis(100);
/// Maximum time in which a server sends nothing before the connection fails.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// Length of the read buffer of a thread: more than a server sends between two reads.
pub(crate) const SCRATCH: usize = 1 << 20;
/// Number of bytes to read while a head is expected. A small response takes one system call, and only a small part of a
/// large response is copied.
const HEAD_READ: usize = 8 << 10;
/// Maximum length of a body in memory. A list of 10,000 infra-envs, or of one infra-env with 10,000 networks, is a
/// quarter as long.
const MAX_KEPT: usize = 128 << 20;

/// A file on a server.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) authority: String,
    pub(crate) path: String,
    pub(crate) tls: Option<Tls>,
}

/// TLS configuration of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Tls {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

impl Target {
    /// Returns the same server with another path.
    pub(crate) fn at(&self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self.clone() }
    }
}

/// First and last requested byte.
pub(crate) type Bounds = (u64, u64);

pub(crate) fn write_get(request: &mut Vec<u8>, target: &Target, bounds: Option<Bounds>) {
    begin_get(request, target);
    end_get(request, bounds);
}

/// Appends the part of a GET request that is the same for every range of a file.
pub(crate) fn begin_get(request: &mut Vec<u8>, target: &Target) {
    // Writing to a `Vec` cannot fail.
    let _ = write!(request, "GET {} HTTP/1.1\r\nHost: {}\r\n", target.path, target.authority);
}

pub(crate) fn end_get(request: &mut Vec<u8>, bounds: Option<Bounds>) {
    if let Some((first, last)) = bounds {
        let _ = write!(request, "Range: bytes={first}-{last}\r\n");
    }
    request.extend_from_slice(b"\r\n");
}

/// Appends a POST request with a JSON body. `headers` are further lines, each with its CRLF.
pub(crate) fn write_post(request: &mut Vec<u8>, target: &Target, headers: &str, body: &[u8]) {
    let _ = write!(
        request,
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n",
        target.path,
        target.authority,
        body.len(),
    );
    request.extend_from_slice(body);
}

/// The behaviour of a read if no data is available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitMode {
    /// Waits up to [`POLL_TIMEOUT`] in the call itself.
    Blocks,
    /// Does not wait; epoll reports readiness.
    Polled,
}

/// Result of one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadResult {
    /// The buffer is full: more data may be available.
    Full,
    /// All available data was read.
    Drained,
    /// No data was available.
    Nothing,
}

/// The destination of a body.
pub(crate) enum Sink<'a> {
    Discard,
    Give(&'a mut dyn FnMut(&[u8]) -> Result<()>),
}

/// A keep-alive connection, for one request after another.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

impl Connection {
    /// Connects, and completes the TLS handshake if the target uses TLS.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection or the TLS handshake fails.
    pub(crate) fn open(target: &Target) -> Result<Self> {
        Self::open_with(target, None)
    }

    /// Like [`Self::open`], with the given size of the receive buffer, for slow readers.
    ///
    /// # Errors
    ///
    /// Same as [`Self::open`].
    pub(crate) fn open_with(target: &Target, receive_buffer: Option<usize>) -> Result<Self> {
        let context = || format!("connecting to {}", target.authority);
        let mut socket = connected(target.address, receive_buffer).with_context(context)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
        socket.set_write_timeout(Some(RESPONSE_TIMEOUT))?;
        let mut tls = None;
        if let Some(Tls { config, name }) = &target.tls {
            let mut session = ClientConnection::new(Arc::clone(config), name.clone())?;
            session.complete_io(&mut socket).with_context(context)?;
            tls = Some(Box::new(session));
        }
        socket.set_read_timeout(Some(POLL_TIMEOUT))?;
        Ok(Self { socket, tls })
    }

    /// Sets how later reads wait.
    ///
    /// # Errors
    ///
    /// Returns an error if the system call fails.
    pub(crate) fn set_waiting(&self, waiting: WaitMode) -> Result<()> {
        Ok(self.socket.set_nonblocking(waiting == WaitMode::Polled)?)
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    pub(crate) fn suite(&self) -> Option<String> {
        let tls = self.tls.as_deref()?;
        Some(format!("{:?} {:?}", tls.protocol_version()?, tls.negotiated_cipher_suite()?.suite()))
    }

    /// Sends a whole request.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection is closed or accepts nothing for [`RESPONSE_TIMEOUT`].
    pub(crate) fn send(&mut self, mut bytes: &[u8]) -> Result<()> {
        if self.tls.is_none() {
            while !bytes.is_empty() {
                let sent_len = write_some(&self.socket, bytes)?;
                bytes = bytes.get(sent_len..).unwrap_or_default();
            }
            return Ok(());
        }
        if let Some(tls) = &mut self.tls {
            tls.writer().write_all(bytes)?;
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        let mut records = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut records)?;
        }
        let mut rest = records.as_slice();
        while !rest.is_empty() {
            let sent_len = write_some(&self.socket, rest)?;
            rest = rest.get(sent_len..).unwrap_or_default();
        }
        Ok(())
    }

    /// Reads the available bytes of a response once.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection ends before the response does, or the response is not the expected one.
    pub(crate) fn read_some(
        &mut self,
        exchange: &mut Exchange,
        scratch: &mut [u8],
        sink: &mut Sink<'_>,
    ) -> Result<ReadResult> {
        if self.tls.is_some() {
            return self.take_records(exchange, scratch, sink);
        }
        let discards = matches!(sink, Sink::Discard);
        let (most, flags) = match exchange.left() {
            // With `MSG_TRUNC`, the kernel discards the bytes without copying them.
            Some(left) if discards => (usize::try_from(left).unwrap_or(usize::MAX), RecvFlags::TRUNC),
            Some(_) => (usize::MAX, RecvFlags::empty()),
            None if exchange.is_chunked() => (usize::MAX, RecvFlags::empty()),
            None => (HEAD_READ, RecvFlags::empty()),
        };
        let most = most.min(scratch.len());
        let buffer = scratch.get_mut(..most).unwrap_or_default();
        let Some(len) = receive(&self.socket, buffer, flags)? else { return Ok(ReadResult::Nothing) };
        if flags == RecvFlags::TRUNC {
            exchange.passed(len)?;
        } else {
            let body = exchange.feed(buffer.get(..len).unwrap_or_default())?;
            exchange.decode(body, &mut |bytes| pass_to_sink(sink, bytes))?;
        }
        Ok(if len == most { ReadResult::Full } else { ReadResult::Drained })
    }

    fn take_records(
        &mut self,
        exchange: &mut Exchange,
        scratch: &mut [u8],
        sink: &mut Sink<'_>,
    ) -> Result<ReadResult> {
        let most = scratch.len().min(128 << 10);
        let buffer = scratch.get_mut(..most).unwrap_or_default();
        let Some(len) = receive(&self.socket, buffer, RecvFlags::empty())? else {
            return Ok(ReadResult::Nothing);
        };
        let mut records = buffer.get(..len).unwrap_or_default();
        let Some(tls) = &mut self.tls else { bail!("no TLS") };
        while !records.is_empty() {
            tls.read_tls(&mut records)?;
            tls.process_new_packets()?;
            loop {
                let mut reader = tls.reader();
                let len = match reader.fill_buf() {
                    Ok([]) => bail!("the server closed the connection"),
                    Ok(text) => {
                        let body = exchange.feed(text)?;
                        exchange.decode(body, &mut |bytes| pass_to_sink(sink, bytes))?;
                        text.len()
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.into()),
                };
                reader.consume(len);
            }
        }
        self.flush()?;
        Ok(if len == most { ReadResult::Full } else { ReadResult::Drained })
    }

    /// Sends a request and waits for the whole response. The socket must be blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the response is missing or not the expected one.
    pub(crate) fn ask(
        &mut self,
        request: &[u8],
        expected: ExpectedResponse,
        sink: &mut Sink<'_>,
    ) -> Result<Exchange> {
        self.send(request)?;
        let mut exchange = Exchange::new(expected);
        let mut scratch = vec![0; SCRATCH];
        let mut last_read = Instant::now();
        while !exchange.is_done() {
            interrupt::check()?;
            if self.read_some(&mut exchange, &mut scratch, sink)? == ReadResult::Nothing {
                ensure!(
                    last_read.elapsed() < RESPONSE_TIMEOUT,
                    "no bytes from the server for {RESPONSE_TIMEOUT:?}"
                );
            } else {
                last_read = Instant::now();
            }
        }
        Ok(exchange)
    }

    /// Sends a request and returns the body.
    ///
    /// # Errors
    ///
    /// Same as [`Self::ask`]; also returns an error if the body is too long.
    pub(crate) fn fetch(&mut self, request: &[u8], expected: ExpectedResponse) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        let mut keep = |bytes: &[u8]| {
            ensure!(body.len() + bytes.len() <= MAX_KEPT, "the body is longer than {MAX_KEPT} bytes");
            body.extend_from_slice(bytes);
            Ok(())
        };
        self.ask(request, expected, &mut Sink::Give(&mut keep))?;
        Ok(body)
    }
}

fn pass_to_sink(sink: &mut Sink<'_>, body: &[u8]) -> Result<()> {
    match sink {
        Sink::Discard => Ok(()),
        Sink::Give(take) => take(body),
    }
}

fn connected(address: SocketAddr, receive_buffer: Option<usize>) -> Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    if let Some(len) = receive_buffer {
        // Set the buffer size before connecting, because it determines the first TCP window.
        sockopt::set_socket_recv_buffer_size(&socket, len)?;
    }
    rustix::net::connect(&socket, &address)?;
    Ok(socket.into())
}

fn receive(socket: &TcpStream, buffer: &mut [u8], flags: RecvFlags) -> Result<Option<usize>> {
    match recv(socket, buffer, flags) {
        Ok((_, 0)) => bail!("the server closed the connection"),
        Ok((_, len)) => Ok(Some(len)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(error).context("receiving"),
    }
}

fn write_some(mut socket: &TcpStream, bytes: &[u8]) -> Result<usize> {
    loop {
        match socket.write(bytes) {
            Ok(0) => bail!("the connection accepts no bytes"),
            Ok(len) => return Ok(len),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let timeout = Timespec { tv_sec: i64::try_from(RESPONSE_TIMEOUT.as_secs())?, tv_nsec: 0 };
                let ready = poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&timeout))?;
                ensure!(ready > 0, "the server accepts no request for {RESPONSE_TIMEOUT:?}");
            }
            Err(error) => return Err(error).context("sending"),
        }
    }
}
