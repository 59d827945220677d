//! A small server of one file. Its responses are correct unless a test changes them.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

pub(crate) const ETAG: &str = "\"image-1\"";
const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

#[derive(Debug)]
pub(crate) struct DoctorRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) version: String,
    headers: HashMap<String, String>,
}

impl DoctorRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(crate) fn is_for_whole_file(&self) -> bool {
        self.method == "GET" && self.header("range").is_none()
    }
}

#[derive(Debug)]
pub(crate) struct DoctoredReply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Whether the response to a HEAD request has a body.
    pub(crate) body_anyway: bool,
    /// Whether the connection closes after the response.
    pub(crate) closes: bool,
    /// The separator between header names and values.
    pub(crate) colon: &'static str,
    /// Bytes to send instead of the whole response.
    pub(crate) bytes: Option<Vec<u8>>,
}

impl DoctoredReply {
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.remove(name);
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.headers.retain(|(key, _)| key != name);
    }

    /// Replaces the body and its length.
    pub(crate) fn replace(&mut self, body: Vec<u8>) {
        self.set("Content-Length", &body.len().to_string());
        self.body = body;
    }

    pub(crate) fn status(&mut self, status: u16) {
        self.status = status;
        self.headers.clear();
        self.replace(Vec::new());
    }
}

/// A function that turns a correct response into a wrong one.
pub(crate) type SharedReplyChange = Arc<dyn Fn(&DoctorRequest, &mut DoctoredReply) + Send + Sync>;

/// Serves a file from threads that end with the test program.
pub(crate) fn serve_file(
    file: &'static [u8],
    change: SharedReplyChange,
    tls: Option<Arc<ServerConfig>>,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, change, tls) = (stream.unwrap(), Arc::clone(&change), tls.clone());
            // Clients close connections at any time.
            thread::spawn(move || match tls {
                Some(config) => {
                    let connection = ServerConnection::new(config).unwrap();
                    serve_connection(StreamOwned::new(connection, stream), file, &change)
                }
                None => serve_connection(stream, file, &change),
            });
        }
    });
    address
}

/// Calls a test's function with each connection.
pub(crate) fn serve_raw(talk: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, talk) = (stream.unwrap(), talk.clone());
            thread::spawn(move || talk(stream));
        }
    });
    address
}

fn serve_connection(stream: impl Read + Write, file: &[u8], change: &SharedReplyChange) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let request = read_request(&mut stream)?;
        let mut reply = correct_reply(&request, file);
        change(&request, &mut reply);
        let bytes = reply.bytes.take().unwrap_or_else(|| serialize_reply(&request, &reply));
        stream.get_mut().write_all(&bytes).ok()?;
        stream.get_mut().flush().ok()?;
        if reply.closes || request.header("connection") == Some("close") || request.version == "HTTP/1.0" {
            return None;
        }
    }
}

fn read_request(stream: &mut impl BufRead) -> Option<DoctorRequest> {
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path, version) = (words.next()?, words.next()?, words.next()?);
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.insert(name.to_lowercase(), value.to_owned()),
            None => return Some(DoctorRequest { method, path, version, headers }),
        };
    }
}

fn serialize_reply(request: &DoctorRequest, reply: &DoctoredReply) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {} Said\r\n", reply.status).into_bytes();
    for (name, value) in &reply.headers {
        bytes.extend_from_slice(format!("{name}{}{value}\r\n", reply.colon).as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    if request.method != "HEAD" || reply.body_anyway {
        bytes.extend_from_slice(&reply.body);
    }
    bytes
}

/// Returns the correct response, without code that is under test.
fn correct_reply(request: &DoctorRequest, file: &[u8]) -> DoctoredReply {
    let headers = [
        ("Content-Type", "application/octet-stream"),
        ("Accept-Ranges", "bytes"),
        ("ETag", ETAG),
        ("Last-Modified", MODIFIED),
    ];
    let mut reply = DoctoredReply {
        status: 200,
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        body: Vec::new(),
        body_anyway: false,
        closes: false,
        colon: ": ",
        bytes: None,
    };
    let is_same = request.header("if-none-match") == Some(ETAG)
        || request.header("if-modified-since") == Some(MODIFIED);
    if is_same {
        reply.status = 304;
        return reply;
    }
    let is_other = request.header("if-range").is_some_and(|value| value != ETAG && value != MODIFIED);
    match request.header("range").filter(|_| !is_other).and_then(|range| range.strip_prefix("bytes=")) {
        Some(ranges) if ranges.contains(',') => multipart_reply(&mut reply, ranges, file),
        Some(range) => match range_bounds(range, file.len()) {
            Some((first, end)) => {
                reply.status = 206;
                reply.set("Content-Range", &format!("bytes {first}-{}/{}", end - 1, file.len()));
                reply.replace(file[first..end].to_vec());
            }
            None => {
                reply.status(416);
                reply.set("Content-Range", &format!("bytes */{}", file.len()));
            }
        },
        None => reply.replace(file.to_vec()),
    }
    reply
}

fn multipart_reply(reply: &mut DoctoredReply, ranges: &str, file: &[u8]) {
    let mut body = Vec::new();
    for range in ranges.split(',') {
        let (first, end) = range_bounds(range, file.len()).unwrap();
        let head = format!("\r\n--part\r\nContent-Range: bytes {first}-{}/{}\r\n\r\n", end - 1, file.len());
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(&file[first..end]);
    }
    body.extend_from_slice(b"\r\n--part--\r\n");
    reply.status = 206;
    reply.set("Content-Type", "multipart/byteranges; boundary=part");
    reply.replace(body);
}

fn range_bounds(range: &str, len: usize) -> Option<(usize, usize)> {
    let (first, last) = range.split_once('-').unwrap();
    let (first, end) = match (first.parse().ok(), last.parse::<usize>().ok()) {
        (Some(first), last) => (first, last.map_or(len, |last| len.min(last + 1))),
        (None, suffix) => (len.saturating_sub(suffix.unwrap()), len),
    };
    (first < end).then_some((first, end))
}
