//! A server whose replies a test defines: right, wrong, slow or incomplete.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    /// The path with the query.
    pub(crate) target: String,
    headers: BTreeMap<String, String>,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Returns the first requested byte. All range requests are open-ended.
    pub(crate) fn range_start(&self) -> Option<usize> {
        let range = self.header("range")?.strip_prefix("bytes=").unwrap();
        Some(range.split_once('-').unwrap().0.parse().unwrap())
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ImageReply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// Number of body bytes before the reply waits for the gate or closes the connection.
    until: usize,
    gate: Option<watch::Receiver<bool>>,
    /// Sends the rest of the body in single bytes, at most a hundred per second.
    is_slow: bool,
}

impl ImageReply {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let headers = vec![("content-length", body.len().to_string())];
        Self { status, headers, until: body.len(), body, gate: None, is_slow: false }
    }

    /// Returns the reply of a correct server for a file.
    pub(crate) fn from_file(request: &ReceivedRequest, bytes: &[u8], etag: &str) -> Self {
        let is_same = request.header("if-range").is_none_or(|tag| tag == etag);
        let Some(from) = request.range_start().filter(|_| is_same) else {
            return Self::new(200, bytes).with_header("etag", etag).with_header("accept-ranges", "bytes");
        };
        if from >= bytes.len() {
            return Self::new(416, "").with_header("content-range", &format!("bytes */{}", bytes.len()));
        }
        Self::new(206, &bytes[from..])
            .with_header("etag", etag)
            .with_header("content-range", &format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len()))
    }

    /// Adds a header, or replaces its value.
    pub(crate) fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(key, _)| *key != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn without_header(mut self, name: &str) -> Self {
        self.headers.retain(|(key, _)| *key != name);
        self
    }

    /// Closes the connection after `len` bytes of the body.
    pub(crate) fn close_after(mut self, len: usize) -> Self {
        self.until = len.min(self.body.len());
        self
    }

    /// Sends the bytes after the first `len` bytes of the body one by one.
    pub(crate) fn slow_after(mut self, len: usize) -> Self {
        self.until = len.min(self.body.len());
        self.is_slow = true;
        self
    }

    /// Sends `len` bytes of the body, and the rest after the gate opens.
    pub(crate) fn wait_after(mut self, len: usize, gate: &ReplyGate) -> Self {
        self.until = len.min(self.body.len());
        self.gate = Some(gate.0.subscribe());
        self
    }
}

/// A gate, which delays replies until the test opens it.
#[derive(Clone, Debug)]
pub(crate) struct ReplyGate(watch::Sender<bool>);

impl ReplyGate {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    pub(crate) fn open(&self) {
        self.0.send_replace(true);
    }
}

type ReplyFunction = dyn Fn(&ReceivedRequest, usize) -> ImageReply + Send + Sync;

/// A server on its own port.
pub(crate) struct ImageFileServer {
    address: SocketAddr,
    scheme: &'static str,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
    work: JoinHandle<()>,
}

impl ImageFileServer {
    /// Starts a server whose replies depend on the request and its number, counted from 0.
    pub(crate) async fn new(
        answer: impl Fn(&ReceivedRequest, usize) -> ImageReply + Send + Sync + 'static,
    ) -> Self {
        Self::start(answer, None).await
    }

    /// Starts a server like [`new`](Self::new), with TLS.
    pub(crate) async fn with_tls(
        tls: TlsAcceptor,
        answer: impl Fn(&ReceivedRequest, usize) -> ImageReply + Send + Sync + 'static,
    ) -> Self {
        Self::start(answer, Some(tls)).await
    }

    /// Starts a server that returns the same file for every path.
    pub(crate) async fn with_file(bytes: &[u8]) -> Self {
        let bytes = bytes.to_vec();
        Self::new(move |request, _| ImageReply::from_file(request, &bytes, "\"one\"")).await
    }

    async fn start(
        answer: impl Fn(&ReceivedRequest, usize) -> ImageReply + Send + Sync + 'static,
        tls: Option<TlsAcceptor>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::<Mutex<Vec<ReceivedRequest>>>::default();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let answer: Arc<ReplyFunction> = Arc::new(answer);
        let work = tokio::spawn(accept_connections(listener, tls, answer, Arc::clone(&requests)));
        Self { address, scheme, requests, work }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}/{path}", self.scheme, self.address)
    }

    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns the first requested byte of each request.
    pub(crate) fn download_offsets(&self) -> Vec<Option<usize>> {
        self.requests().iter().map(ReceivedRequest::range_start).collect()
    }

    /// Waits until this many requests have arrived.
    pub(crate) async fn wait_for_requests(&self, count: usize) {
        for _ in 0..3000 {
            if self.requests.lock().unwrap().len() >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("fewer than {count} requests: {:?}", self.requests());
    }
}

impl Drop for ImageFileServer {
    fn drop(&mut self) {
        self.work.abort();
    }
}

async fn accept_connections(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    answer: Arc<ReplyFunction>,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
) {
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let (tls, answer, requests) = (tls.clone(), Arc::clone(&answer), Arc::clone(&requests));
        tokio::spawn(async move {
            match tls {
                None => serve_request(socket, &answer, &requests).await,
                // A client that does not trust the certificate disconnects.
                Some(tls) => {
                    if let Ok(socket) = tls.accept(socket).await {
                        serve_request(socket, &answer, &requests).await;
                    }
                }
            }
        });
    }
}

/// Handles one request with one reply. Clients may disconnect in the middle of both.
async fn serve_request(
    mut socket: impl AsyncRead + AsyncWrite + Unpin,
    answer: &Arc<ReplyFunction>,
    requests: &Mutex<Vec<ReceivedRequest>>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match socket.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let request = parse_head(&String::from_utf8(head).unwrap());
    let number = {
        let mut requests = requests.lock().unwrap();
        requests.push(request.clone());
        requests.len() - 1
    };
    let reply = answer(&request, number);
    let mut head = format!("HTTP/1.1 {} X\r\nconnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let (first, rest) = reply.body.split_at(reply.until);
    if socket.write_all(head.as_bytes()).await.is_err() || socket.write_all(first).await.is_err() {
        return;
    }
    let _ = socket.flush().await;
    if let Some(mut gate) = reply.gate {
        if gate.wait_for(|is_open| *is_open).await.is_err() {
            return;
        }
        let _ = socket.write_all(rest).await;
    }
    for byte in rest.iter().filter(|_| reply.is_slow) {
        if socket.write_all(&[*byte]).await.is_err() || socket.flush().await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let _ = socket.shutdown().await;
}

fn parse_head(head: &str) -> ReceivedRequest {
    let mut lines = head.lines();
    let target = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    ReceivedRequest { target, headers }
}
