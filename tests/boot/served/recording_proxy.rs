//! A proxy between machines and the server. It passes every byte on, and records the requested ranges.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Instant;

/// A response that a client received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedAnswer {
    /// The last part of the path.
    pub(crate) file: String,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// Time of the head since the start of the boot.
    pub(crate) milliseconds: u128,
}

#[derive(Debug)]
struct RecordedTraffic {
    server: OnceLock<u16>,
    noted: Mutex<(Instant, Vec<RecordedAnswer>)>,
}

/// A proxy in front of a server. It accepts connections as long as the process runs.
#[derive(Debug, Clone)]
pub(crate) struct RecordingProxy {
    pub(crate) port: u16,
    shared: Arc<RecordedTraffic>,
}

impl RecordingProxy {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let noted = Mutex::new((Instant::now(), Vec::new()));
        let shared = Arc::new(RecordedTraffic { server: OnceLock::new(), noted });
        let tap = Self { port, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            while let Ok((machine, _)) = listener.accept() {
                let server = TcpStream::connect(("127.0.0.1", *shared.server.wait()));
                // If the server is unreachable, the client gets a closed connection.
                if let Ok(server) = server {
                    forward_connection(&machine, &server, &shared);
                }
            }
        });
        tap
    }

    pub(crate) fn set_server(&self, port: u16) {
        self.shared.server.set(port).unwrap();
    }

    /// Starts the clock and clears the recorded responses.
    pub(crate) fn begin_recording(&self) {
        *self.shared.noted.lock().unwrap() = (Instant::now(), Vec::new());
    }

    pub(crate) fn recorded_answers(&self) -> Vec<RecordedAnswer> {
        self.shared.noted.lock().unwrap().1.clone()
    }
}

/// Copies both directions of a connection.
fn forward_connection(machine: &TcpStream, server: &TcpStream, shared: &Arc<RecordedTraffic>) {
    let pending = Arc::new(Mutex::new(VecDeque::new()));
    let both = || (machine.try_clone().unwrap(), server.try_clone().unwrap());
    let (from, to) = both();
    let requests = Arc::clone(&pending);
    let mut heads = HeadParser::default();
    thread::spawn(move || {
        copy_and_inspect(from, to, |bytes| {
            heads.parse(bytes, |head| {
                requests.lock().unwrap().push_back(request_line(head));
                0
            });
        });
    });
    let (to, from) = both();
    let shared = Arc::clone(shared);
    let mut heads = HeadParser::default();
    thread::spawn(move || {
        copy_and_inspect(from, to, |bytes| {
            heads.parse(bytes, |head| {
                let (is_head, file) = pending.lock().unwrap().pop_front().unwrap_or_default();
                let (offset, len) = body_extent(head);
                if is_head {
                    return 0;
                }
                let mut noted = shared.noted.lock().unwrap();
                let milliseconds = noted.0.elapsed().as_millis();
                noted.1.push(RecordedAnswer { file, offset, len, milliseconds });
                len
            });
        });
    });
}

fn copy_and_inspect(mut from: TcpStream, mut to: TcpStream, mut look: impl FnMut(&[u8])) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        look(&buffer[..len]);
        if to.write_all(&buffer[..len]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// A parser that finds the heads of messages in a stream and skips their bodies.
#[derive(Debug, Default)]
struct HeadParser {
    head: Vec<u8>,
    body: u64,
}

impl HeadParser {
    /// Parses the next bytes of the stream. Calls `on_head` with each message head; `on_head` returns the length of the
    /// message body.
    fn parse(&mut self, mut bytes: &[u8], mut on_head: impl FnMut(&str) -> u64) {
        while !bytes.is_empty() {
            if self.body > 0 {
                let passed = bytes.len().min(usize::try_from(self.body).unwrap());
                self.body -= passed as u64;
                bytes = &bytes[passed..];
                continue;
            }
            self.head.push(bytes[0]);
            bytes = &bytes[1..];
            if self.head.ends_with(b"\r\n\r\n") {
                self.body = on_head(&String::from_utf8_lossy(&self.head));
                self.head.clear();
            }
        }
    }
}

/// Parses the head of a request. Returns `true` if the method is HEAD, and the last part of the path.
fn request_line(head: &str) -> (bool, String) {
    let target = head.split(' ').nth(1).unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default();
    (head.starts_with("HEAD "), path.rsplit('/').next().unwrap_or_default().to_owned())
}

/// Returns the offset of a response body in its file, and the length of the body.
fn body_extent(head: &str) -> (u64, u64) {
    let field = |name: &str| {
        let fields = head.lines().filter_map(|line| line.split_once(": "));
        fields.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    };
    let offset = || field("content-range")?.strip_prefix("bytes ")?.split('-').next()?.parse().ok();
    let len = || field("content-length")?.parse().ok();
    (offset().unwrap_or(0), len().unwrap_or(0))
}

#[test]
fn request_heads_are_found_in_any_fragmentation() {
    let stream =
        b"HTTP/1.1 206 Partial Content\r\nContent-Length: 6\r\ncontent-range: bytes 10-15/99\r\n\r\n\
                   ab\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    for size in [1, 7, stream.len()] {
        let (mut heads, mut lines) = (HeadParser::default(), Vec::new());
        for part in stream.chunks(size) {
            heads.parse(part, |head| {
                lines.push(body_extent(head));
                body_extent(head).1
            });
        }
        assert_eq!(lines, [(10, 6), (0, 0)], "in parts of {size}");
    }
    assert_eq!(request_line("HEAD /i/1/full.iso?a=/b HTTP/1.1\r\n\r\n"), (true, "full.iso".to_owned()));
}
