//! Minimal servers: they respond to every request with bytes of one file and read only the `Range` header.
//!
//! They are a lower bound for each send method: no server can use less CPU time if it passes bytes to the kernel in the
//! same way. The rate of a minimal server is the maximum that the clients can reach.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, IoSlice, PipeReader, PipeWriter, Read, Write, pipe};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;

use anyhow::{Context, Result};
use bytes::Bytes;
use clap::ValueEnum;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fs::sendfile;
use rustix::net::{SendFlags, send, sockopt};
use rustix::pipe::{SpliceFlags, splice};

/// Maximum length of a request.
const MAX_REQUEST: usize = 4 << 10;
/// Maximum number of bytes sent before other connections get their turn. A larger value costs no less.
const WRITE_LEN: u64 = 4 << 20;
const SENDFILE_LEN: u64 = 2 << 20;
const PIPE_LEN: usize = 1 << 20;
/// Minimum length of a response to be sent in full packets (`MSG_MORE`, `TCP_CORK`), which takes two more system calls.
const CORK_LEN: u64 = 64 << 10;
/// The event loop's token for new connections, which is never a connection number.
const WAKE_TOKEN: u64 = u64::MAX;
/// The response headers of Kindling's images. Minimal servers send them too, because a longer head costs the kernel
/// more than the copying of its bytes.
const DESCRIPTION: &str = "Cache-Control: private, no-cache\r\n\
    ETag: \"0000000000000000000000000000000000000000000000000000000000000000\"\r\n\
    Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
    Accept-Ranges: bytes\r\n\
    Content-Disposition: attachment; filename=00000000-0000-0000-0000-000000000000-discovery.iso\r\n\
    Content-Type: application/x-iso9660-image\r\n\
    Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n";
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SendMethod {
    /// The kernel copies bytes from a mapping of the file.
    Writes,
    /// The kernel sends pages of the file (`sendfile`).
    Sendfile,
    /// The kernel moves pages of the file through a pipe (`splice`), whose size limits the number of pages per call.
    Pipe,
}

impl SendMethod {
    pub(crate) const ALL: [Self; 3] = [Self::Writes, Self::Sendfile, Self::Pipe];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Writes => "bare writes",
            Self::Sendfile => "bare sendfile",
            Self::Pipe => "bare pipe",
        }
    }
}

/// Serves a file until the process ends, and prints its address.
///
/// # Errors
///
/// Returns an error if a system call fails.
pub(crate) fn serve(path: &Path, way: SendMethod) -> Result<Infallible> {
    println!("Listening on 127.0.0.1:{}", start(path, way)?);
    loop {
        thread::park();
    }
}

/// Serves a file on one thread per processor until the process ends, and returns the port.
///
/// # Errors
///
/// Returns an error if a system call fails.
pub(crate) fn start(path: &Path, way: SendMethod) -> Result<u16> {
    let served = Arc::new(Served::open(path, way).with_context(|| format!("{}", path.display()))?);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    if sockopt::tcp_congestion(&listener)?.starts_with("bbr") {
        // Loopback needs no pacing. Connections inherit the congestion control of their listener.
        sockopt::set_tcp_congestion(&listener, "reno")?;
    }
    let port = listener.local_addr()?.port();
    let count = thread::available_parallelism().map_or(1, usize::from);
    let workers = (0..count).map(|_| Worker::start(&served)).collect::<Result<Vec<_>>>()?;
    thread::Builder::new().name("listener".to_owned()).spawn(move || {
        let mut next = workers.iter().cycle();
        for socket in listener.incoming().map_while(Result::ok) {
            if next.next().is_none_or(|worker| worker.hand_over(socket).is_err()) {
                break;
            }
        }
    })?;
    Ok(port)
}

struct Served {
    file: File,
    mapped: Bytes,
    way: SendMethod,
}

impl Served {
    fn open(path: &Path, way: SendMethod) -> Result<Self> {
        let file = File::open(path)?;
        let mapped = isogen::mmap::map_file(&file)?.bytes().clone();
        Ok(Self { file, mapped, way })
    }

    fn total(&self) -> u64 {
        self.mapped.len() as u64
    }

    /// Passes the head and the start of a range to the kernel, and removes the accepted bytes from both. Returns `true`
    /// if the kernel accepted all of them.
    fn send(
        &self,
        (socket, pipe): (&TcpStream, &Pipe),
        head: &mut Vec<u8>,
        range: &mut Range<u64>,
    ) -> io::Result<bool> {
        match self.way {
            SendMethod::Writes => {
                let bounds = [range.start, range.end.min(range.start + WRITE_LEN)];
                let [start, end] = bounds.map(|at| usize::try_from(at).unwrap_or(usize::MAX));
                let body = self.mapped.get(start..end).unwrap_or_default();
                let written_len = rustix::io::writev(socket, &[IoSlice::new(head), IoSlice::new(body)])?;
                let is_all = written_len == head.len() + body.len();
                let of_head = written_len.min(head.len());
                head.drain(..of_head);
                range.start += (written_len - of_head) as u64;
                Ok(is_all)
            }
            SendMethod::Sendfile | SendMethod::Pipe => {
                if !head.is_empty() {
                    let written_len = send(socket, head, SendFlags::MORE)?;
                    head.drain(..written_len);
                    if !head.is_empty() {
                        return Ok(false);
                    }
                }
                if self.way == SendMethod::Pipe {
                    return pipe.send(&self.file, socket, range);
                }
                let len = SENDFILE_LEN.min(range.end - range.start);
                let max_len = usize::try_from(len).unwrap_or(usize::MAX);
                let written_len = sendfile(socket, &self.file, Some(&mut range.start), max_len)?;
                Ok(written_len == max_len)
            }
        }
    }
}

struct Pipe {
    reader: PipeReader,
    writer: PipeWriter,
    /// `/dev/null`, to discard pages that a socket did not accept.
    nowhere: File,
    len: usize,
}

impl Pipe {
    fn new() -> Result<Self> {
        let (reader, writer) = pipe()?;
        let len = rustix::pipe::fcntl_setpipe_size(&writer, PIPE_LEN)?;
        Ok(Self { reader, writer, len, nowhere: File::options().write(true).open("/dev/null")? })
    }

    fn send(&self, file: &File, socket: &TcpStream, range: &mut Range<u64>) -> io::Result<bool> {
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX).min(self.len);
        let mut at = range.start;
        let filled = splice(file, Some(&mut at), &self.writer, None, len, SpliceFlags::NONBLOCK)?;
        if filled == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut left = filled;
        let more =
            if range.start + (filled as u64) < range.end { SpliceFlags::MORE } else { SpliceFlags::empty() };
        let mut result = Ok(true);
        while left > 0 {
            match splice(&self.reader, None, socket, None, left, SpliceFlags::NONBLOCK | more) {
                Ok(len) => {
                    left -= len;
                    range.start += len as u64;
                }
                Err(error) => {
                    result = if left < filled { Ok(false) } else { Err(error.into()) };
                    break;
                }
            }
        }
        while left > 0 {
            left -= splice(&self.reader, None, &self.nowhere, None, left, SpliceFlags::NONBLOCK)?;
        }
        result
    }
}

/// A handle to a thread with an event loop, which receives new connections through the handle.
struct Worker {
    arrivals: mpsc::Sender<TcpStream>,
    bell: PipeWriter,
}

impl Worker {
    fn start(served: &Arc<Served>) -> Result<Self> {
        let (sender, arrivals) = mpsc::channel();
        let (rung, bell) = pipe()?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &rung, epoll::EventData::new_u64(WAKE_TOKEN), epoll::EventFlags::IN)?;
        let events = EventLoop {
            served: Arc::clone(served),
            epoll,
            arrivals,
            rung,
            pipe: Pipe::new()?,
            connections: Vec::new(),
            busy: VecDeque::new(),
        };
        thread::Builder::new().name("connections".to_owned()).spawn(move || {
            if let Err(error) = events.run() {
                eprintln!("Error: {error:#}");
            }
        })?;
        Ok(Self { arrivals: sender, bell })
    }

    fn hand_over(&self, socket: TcpStream) -> Result<()> {
        self.arrivals.send(socket)?;
        Ok((&self.bell).write_all(&[0])?)
    }
}

struct EventLoop {
    served: Arc<Served>,
    epoll: OwnedFd,
    arrivals: mpsc::Receiver<TcpStream>,
    rung: PipeReader,
    pipe: Pipe,
    /// Connections by token. `None` for closed connections.
    connections: Vec<Option<BareConnection>>,
    /// Connections that are ready to read or write.
    busy: VecDeque<u64>,
}

impl EventLoop {
    fn run(mut self) -> Result<()> {
        let mut events = Vec::with_capacity(256);
        loop {
            let timeout = (!self.busy.is_empty()).then_some(&AT_ONCE);
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            self.busy.extend(events.iter().map(|event| event.data.u64()));
            for _ in 0..self.busy.len() {
                match self.busy.pop_front() {
                    Some(WAKE_TOKEN) => self.accept_arrivals()?,
                    Some(number) => self.turn(number)?,
                    None => break,
                }
            }
        }
    }

    fn accept_arrivals(&mut self) -> Result<()> {
        // Take all waiting connections: a connection that arrives later signals again.
        let _ = self.rung.read(&mut [0; 64])?;
        for socket in self.arrivals.try_iter() {
            socket.set_nonblocking(true)?;
            socket.set_nodelay(true)?;
            let number = self.connections.len() as u64;
            let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
            epoll::add(&self.epoll, &socket, epoll::EventData::new_u64(number), flags)?;
            self.connections.push(Some(BareConnection {
                socket,
                request: Vec::new(),
                head: Vec::new(),
                rest: 0..0,
                is_corked: false,
            }));
        }
        Ok(())
    }

    fn turn(&mut self, number: u64) -> Result<()> {
        let Some(slot) = self.connections.get_mut(usize::try_from(number)?) else { return Ok(()) };
        let Some(connection) = slot else { return Ok(()) };
        match connection.turn(&self.served, &self.pipe) {
            Ok(true) => self.busy.push_back(number),
            Ok(false) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // A client that disconnects ends only its own connection.
            Err(_) => *slot = None,
        }
        Ok(())
    }
}

struct BareConnection {
    socket: TcpStream,
    request: Vec<u8>,
    /// Unsent bytes of the response head.
    head: Vec<u8>,
    rest: Range<u64>,
    is_corked: bool,
}

impl BareConnection {
    /// Reads or writes once. Returns `true` if the connection is still ready for more.
    fn turn(&mut self, served: &Served, pipe: &Pipe) -> io::Result<bool> {
        if self.head.is_empty() && self.rest.is_empty() {
            let mut piece = [0; MAX_REQUEST];
            let len = self.socket.read(&mut piece)?;
            if len == 0 || self.request.len() > MAX_REQUEST {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.request.extend_from_slice(piece.get(..len).unwrap_or_default());
            if !self.request.ends_with(b"\r\n\r\n") {
                return Ok(len == piece.len());
            }
            self.answer(served.total())?;
            self.is_corked = served.way != SendMethod::Writes && self.rest.end - self.rest.start > CORK_LEN;
            if self.is_corked {
                sockopt::set_tcp_cork(&self.socket, true)?;
            }
        }
        let took_all = served.send((&self.socket, pipe), &mut self.head, &mut self.rest)?;
        if self.is_corked && self.rest.is_empty() {
            sockopt::set_tcp_cork(&self.socket, false)?;
        }
        Ok(took_all && !self.rest.is_empty())
    }

    fn answer(&mut self, total: u64) -> io::Result<()> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let text = str::from_utf8(&self.request).map_err(|_| invalid())?;
        let range = text.lines().find_map(|line| line.strip_prefix("Range: bytes=")?.split_once('-'));
        if let Some((first, last)) = range {
            let [first, last] = [first, last].map(|text| text.parse::<u64>().ok().filter(|at| *at < total));
            let (first, last) = first.zip(last).filter(|(first, last)| first <= last).ok_or_else(invalid)?;
            self.rest = first..last + 1;
            let len = last + 1 - first;
            write!(
                self.head,
                "HTTP/1.1 206 Partial Content\r\n{DESCRIPTION}Content-Length: {len}\r\nContent-Range: bytes {first}-{last}/{total}\r\n\r\n"
            )?;
        } else {
            self.rest = 0..total;
            write!(self.head, "HTTP/1.1 200 OK\r\n{DESCRIPTION}Content-Length: {total}\r\n\r\n")?;
        }
        self.request.clear();
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::base;
    use crate::client::{Connection, Sink, Target, write_get};
    use crate::exchange::ExpectedResponse;
    use crate::fleet::{Client, Script, Until, run};
    use crate::random::Random;

    /// Starts a server for a deleted file of `total` bytes.
    pub(crate) fn serving(total: u64, way: SendMethod) -> Target {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(total).unwrap();
        target(file.path(), way)
    }

    fn target(path: &Path, way: SendMethod) -> Target {
        let address: std::net::SocketAddr = (Ipv4Addr::LOCALHOST, start(path, way).unwrap()).into();
        Target { address, authority: address.to_string(), path: "/".to_owned(), tls: None }
    }

    #[test]
    fn server_sends_the_bytes_of_the_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let bytes: Vec<u8> = (0..9_000_000_u32).map(|at| (at % 251) as u8).collect();
        file.write_all(&bytes).unwrap();
        for way in SendMethod::ALL {
            let target = target(file.path(), way);
            base::compare_ranges(&target, file.path()).unwrap();
            let mut request = Vec::new();
            write_get(&mut request, &target, None);
            let mut received = Vec::new();
            let mut keep = |piece: &[u8]| {
                received.extend_from_slice(piece);
                Ok(())
            };
            let mut connection = Connection::open(&target).unwrap();
            connection.ask(&request, ExpectedResponse::Whole(9_000_000), &mut Sink::Give(&mut keep)).unwrap();
            assert!(received == bytes, "{way:?}");
        }
    }

    /// Covers the whole client, from epoll to the checks of the response.
    #[test]
    fn clients_get_the_requested_ranges() {
        for way in SendMethod::ALL {
            let target = Arc::new(serving(3 << 20, way));
            for count in [1, 5] {
                let clients =
                    (0..count).map(|_| Client::open(&target, 3 << 20, Script::Whole).unwrap()).collect();
                let tally = run(clients, Until::Once).unwrap();
                assert_eq!((tally.requests, tally.bytes), (count, count * (3 << 20)));
                assert_eq!(tally.latencies.len(), usize::try_from(count).unwrap());
            }
            let script = Script::Random { len: 1000, random: Random::new(1) };
            let clients = (0..3).map(|_| Client::open(&target, 3 << 20, script.clone()).unwrap()).collect();
            let tally = run(clients, Until::Elapsed(Duration::from_millis(30))).unwrap();
            assert!(tally.requests > 3 && tally.bytes == tally.requests * 1000);
            let open = |reads| Client::open(&target, 3 << 20, Script::Replay { reads, asked: 0 }).unwrap();
            let clients = vec![open([(0, 9)].into()), open([(5, 2004), (70, 70)].into())];
            let tally = run(clients, Until::Replayed(3)).unwrap();
            assert_eq!((tally.requests, tally.bytes), (3 + 6, 3 * 10 + 3 * 2001));
        }
    }

    #[test]
    fn unexpected_length_ends_the_run() {
        let target = Arc::new(serving(1 << 20, SendMethod::Writes));
        for (count, script) in [(1, Script::Whole), (2, Script::Random { len: 9, random: Random::new(1) })] {
            let open = |_| Client::open(&target, (1 << 20) + 1, script.clone()).unwrap();
            let error = run((0..count).map(open).collect(), Until::Once).unwrap_err();
            assert!(error.to_string().contains(", expected "), "{error}");
        }
    }

    #[test]
    fn invalid_request_closes_the_connection() {
        let target = serving(1 << 20, SendMethod::Writes);
        for request in [
            "GET / HTTP/1.1\r\nRange: bytes=5-4\r\n\r\n",
            "GET / HTTP/1.1\r\nRange: bytes=0-1048576\r\n\r\n",
            "GET / HTTP/1.1\r\nRange: bytes=x-1\r\n\r\n",
            &"a".repeat(9000),
        ] {
            let mut socket = TcpStream::connect(target.address).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            socket.write_all(request.as_bytes()).unwrap();
            // Closing a socket with unread bytes sends a reset.
            match socket.read(&mut [0; 1]) {
                Ok(len) => assert_eq!(len, 0, "{request}"),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{request}"),
            }
        }
    }
}
