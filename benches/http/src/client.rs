//! A connection to a server, plain or with TLS, whose bodies are thrown away as cheaply as can be.
//!
//! A socket that blocks and one that does not are driven by the same code: where nothing comes, [`Connection::take`] says so, at
//! once or after [`PATIENCE`].

use std::io::{BufRead, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, sockopt};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use crate::exchange::{Exchange, Wanted};
use crate::interrupt;

/// How long a socket that blocks waits, before somebody looks whether all of this has ended.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);
/// How long a server may say nothing at all.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);
/// What a thread reads into: more than a server sends between two looks.
pub(crate) const SCRATCH: usize = 1 << 20;
/// As much as is read while a head may come: one call of the kernel for a small answer, and little to copy of a large one.
const HEAD_READ: usize = 8 << 10;
/// The longest body that is kept: a list of ten thousand infra-envs, or one with as many networks, has a fourth of that.
const MAX_KEPT: usize = 128 << 20;

/// A file on a server.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    /// For the `Host` header.
    pub(crate) authority: String,
    pub(crate) path: String,
    pub(crate) tls: Option<Tls>,
}

/// What a connection with TLS needs to know.
#[derive(Debug, Clone)]
pub(crate) struct Tls {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

impl Target {
    /// The same server, and another file.
    pub(crate) fn at(&self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self.clone() }
    }
}

/// Bytes of the first and last one that are asked for.
pub(crate) type Bounds = (u64, u64);

/// Writes a GET request to the end of `request`.
pub(crate) fn write_get(request: &mut Vec<u8>, target: &Target, bounds: Option<Bounds>) {
    begin_get(request, target);
    end_get(request, bounds);
}

/// Writes as much of a GET request as is the same for each of a file.
pub(crate) fn begin_get(request: &mut Vec<u8>, target: &Target) {
    // A `Vec` takes whatever is written to it.
    let _ = write!(request, "GET {} HTTP/1.1\r\nHost: {}\r\n", target.path, target.authority);
}

/// Writes the rest of it.
pub(crate) fn end_get(request: &mut Vec<u8>, bounds: Option<Bounds>) {
    if let Some((first, last)) = bounds {
        let _ = write!(request, "Range: bytes={first}-{last}\r\n");
    }
    request.extend_from_slice(b"\r\n");
}

/// Whether a socket waits for what does not come at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// For [`PATIENCE`], in the call itself.
    Blocks,
    /// Not at all; an epoll tells when there is something.
    Polled,
}

/// What came of looking once for more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// So much as was asked for: there may be more.
    Full,
    /// All that there was.
    Drained,
    /// Nothing.
    Nothing,
}

/// What becomes of a body.
pub(crate) enum Sink<'a> {
    Discard,
    Give(&'a mut dyn FnMut(&[u8]) -> Result<()>),
}

/// A connection over which one answer after another comes.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

impl Connection {
    /// Connects, and shakes hands where there is TLS.
    ///
    /// # Errors
    ///
    /// When the server does not answer.
    pub(crate) fn open(target: &Target) -> Result<Self> {
        Self::open_with(target, None)
    }

    /// The same with a receive buffer of so many bytes, as of a reader who is slow.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub(crate) fn open_with(target: &Target, receive_buffer: Option<usize>) -> Result<Self> {
        let context = || format!("connecting to {}", target.authority);
        let mut socket = connected(target.address, receive_buffer).with_context(context)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(SILENCE))?;
        socket.set_write_timeout(Some(SILENCE))?;
        let mut tls = None;
        if let Some(Tls { config, name }) = &target.tls {
            let mut session = ClientConnection::new(Arc::clone(config), name.clone())?;
            session.complete_io(&mut socket).with_context(context)?;
            tls = Some(Box::new(session));
        }
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { socket, tls })
    }

    /// Chooses how it waits from now on.
    ///
    /// # Errors
    ///
    /// When the system does not let it.
    pub(crate) fn set_waiting(&self, waiting: Waiting) -> Result<()> {
        Ok(self.socket.set_nonblocking(waiting == Waiting::Polled)?)
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// The TLS version and cipher suite that were agreed on.
    pub(crate) fn suite(&self) -> Option<String> {
        let tls = self.tls.as_deref()?;
        Some(format!("{:?} {:?}", tls.protocol_version()?, tls.negotiated_cipher_suite()?.suite()))
    }

    /// Sends all of a request.
    ///
    /// # Errors
    ///
    /// When the connection has ended, or takes nothing for [`SILENCE`].
    pub(crate) fn send(&mut self, mut bytes: &[u8]) -> Result<()> {
        if self.tls.is_none() {
            while !bytes.is_empty() {
                let sent = write_some(&self.socket, bytes)?;
                bytes = bytes.get(sent..).unwrap_or_default();
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
            let sent = write_some(&self.socket, rest)?;
            rest = rest.get(sent..).unwrap_or_default();
        }
        Ok(())
    }

    /// Looks once for more of an answer.
    ///
    /// # Errors
    ///
    /// When the connection ends before the answer does, or when the answer is not the wanted one.
    pub(crate) fn take(
        &mut self,
        exchange: &mut Exchange,
        scratch: &mut [u8],
        sink: &mut Sink<'_>,
    ) -> Result<Taken> {
        if self.tls.is_some() {
            return self.take_records(exchange, scratch, sink);
        }
        let discards = matches!(sink, Sink::Discard);
        let (most, flags) = match exchange.left() {
            // The kernel throws the bytes away itself, nothing is copied.
            Some(left) if discards => (usize::try_from(left).unwrap_or(usize::MAX), RecvFlags::TRUNC),
            Some(_) => (usize::MAX, RecvFlags::empty()),
            None => (HEAD_READ, RecvFlags::empty()),
        };
        let most = most.min(scratch.len());
        let buffer = scratch.get_mut(..most).unwrap_or_default();
        let Some(len) = receive(&self.socket, buffer, flags)? else { return Ok(Taken::Nothing) };
        if flags == RecvFlags::TRUNC {
            exchange.passed(len)?;
        } else {
            let body = exchange.feed(buffer.get(..len).unwrap_or_default())?;
            give(sink, body)?;
        }
        Ok(if len == most { Taken::Full } else { Taken::Drained })
    }

    fn take_records(
        &mut self,
        exchange: &mut Exchange,
        scratch: &mut [u8],
        sink: &mut Sink<'_>,
    ) -> Result<Taken> {
        let most = scratch.len().min(128 << 10);
        let buffer = scratch.get_mut(..most).unwrap_or_default();
        let Some(len) = receive(&self.socket, buffer, RecvFlags::empty())? else { return Ok(Taken::Nothing) };
        let mut records = buffer.get(..len).unwrap_or_default();
        let Some(tls) = &mut self.tls else { bail!("no TLS") };
        while !records.is_empty() {
            tls.read_tls(&mut records)?;
            tls.process_new_packets()?;
            loop {
                let mut reader = tls.reader();
                let len = match reader.fill_buf() {
                    Ok([]) => bail!("the server has ended the connection"),
                    Ok(text) => {
                        give(sink, exchange.feed(text)?)?;
                        text.len()
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.into()),
                };
                reader.consume(len);
            }
        }
        self.flush()?;
        Ok(if len == most { Taken::Full } else { Taken::Drained })
    }

    /// Asks and waits for all of the answer. The socket has to block.
    ///
    /// # Errors
    ///
    /// When the answer is not the wanted one, or does not come.
    pub(crate) fn ask(&mut self, request: &[u8], wanted: Wanted, sink: &mut Sink<'_>) -> Result<Exchange> {
        self.send(request)?;
        let mut exchange = Exchange::new(wanted);
        let mut scratch = vec![0; SCRATCH];
        let mut heard = Instant::now();
        while !exchange.is_done() {
            interrupt::check()?;
            if self.take(&mut exchange, &mut scratch, sink)? == Taken::Nothing {
                ensure!(heard.elapsed() < SILENCE, "the server says nothing for {SILENCE:?}");
            } else {
                heard = Instant::now();
            }
        }
        Ok(exchange)
    }

    /// Asks, and keeps the body, which has to be short.
    ///
    /// # Errors
    ///
    /// As [`Self::ask`], or when the body is long.
    pub(crate) fn fetch(&mut self, request: &[u8], wanted: Wanted) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        let mut keep = |bytes: &[u8]| {
            ensure!(body.len() + bytes.len() <= MAX_KEPT, "the body is longer than {MAX_KEPT} bytes");
            body.extend_from_slice(bytes);
            Ok(())
        };
        self.ask(request, wanted, &mut Sink::Give(&mut keep))?;
        Ok(body)
    }
}

fn give(sink: &mut Sink<'_>, body: &[u8]) -> Result<()> {
    match sink {
        Sink::Discard => Ok(()),
        Sink::Give(take) if !body.is_empty() => take(body),
        Sink::Give(_) => Ok(()),
    }
}

fn connected(address: SocketAddr, receive_buffer: Option<usize>) -> Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    if let Some(len) = receive_buffer {
        // Before connecting: the window that is offered first follows from it.
        sockopt::set_socket_recv_buffer_size(&socket, len)?;
    }
    rustix::net::connect(&socket, &address)?;
    Ok(socket.into())
}

/// Receives what there is; `None` if there is nothing yet.
fn receive(socket: &TcpStream, buffer: &mut [u8], flags: RecvFlags) -> Result<Option<usize>> {
    match recv(socket, buffer, flags) {
        Ok((_, 0)) => bail!("the server has ended the connection"),
        Ok((_, len)) => Ok(Some(len)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(error).context("receiving"),
    }
}

fn write_some(mut socket: &TcpStream, bytes: &[u8]) -> Result<usize> {
    loop {
        match socket.write(bytes) {
            Ok(0) => bail!("the connection takes nothing"),
            Ok(sent) => return Ok(sent),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let timeout = Timespec { tv_sec: i64::try_from(SILENCE.as_secs())?, tv_nsec: 0 };
                let ready = poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&timeout))?;
                ensure!(ready > 0, "the server takes no request for {SILENCE:?}");
            }
            Err(error) => return Err(error).context("sending"),
        }
    }
}
