//! A server that answers as a test tells it: right, wrong, slowly or not to the end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The path with the parameters.
    pub(crate) target: String,
    headers: BTreeMap<String, String>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The first byte that it asks for.
    pub(crate) fn from(&self) -> Option<usize> {
        let range = self.header("range")?.strip_prefix("bytes=").unwrap();
        Some(range.split_once('-').unwrap().0.parse().unwrap())
    }

    /// The byte behind the last that it asks for, if it says so.
    pub(crate) fn to(&self) -> Option<usize> {
        let last = self.header("range")?.split_once('-').unwrap().1;
        last.parse::<usize>().ok().map(|last| last + 1)
    }
}

/// What is answered.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// So many bytes of the body come, and then, if there is no gate, the connection ends.
    until: usize,
    gate: Option<watch::Receiver<bool>>,
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let headers = vec![("content-length", body.len().to_string())];
        Self { status, headers, until: body.len(), body, gate: None }
    }

    /// A file as good servers send it.
    pub(crate) fn file(request: &Request, bytes: &[u8], etag: &str) -> Self {
        let is_same = request.header("if-range").is_none_or(|tag| tag == etag);
        let Some(from) = request.from().filter(|_| is_same) else {
            return Self::new(200, bytes).header("etag", etag).header("accept-ranges", "bytes");
        };
        if from >= bytes.len() {
            return Self::new(416, "").header("content-range", &format!("bytes */{}", bytes.len()));
        }
        let to = request.to().unwrap_or(bytes.len());
        Self::new(206, &bytes[from..to])
            .header("etag", etag)
            .header("content-range", &format!("bytes {from}-{}/{}", to - 1, bytes.len()))
    }

    /// With another header, or another value of one.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self
    }

    /// The connection ends after so many bytes of the body.
    pub(crate) fn cut(mut self, len: usize) -> Self {
        self.until = len.min(self.body.len());
        self
    }

    /// After so many bytes of the body, nothing comes until the gate opens.
    pub(crate) fn hold(mut self, len: usize, gate: &Gate) -> Self {
        self.until = len.min(self.body.len());
        self.gate = Some(gate.0.subscribe());
        self
    }
}

/// What holds up a reply.
#[derive(Clone, Debug)]
pub(crate) struct Gate(watch::Sender<bool>);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    pub(crate) fn open(&self) {
        self.0.send_replace(true);
    }
}

type Answer = dyn Fn(&Request, usize) -> Reply + Send + Sync;

/// A server on a port of its own.
pub(crate) struct Server {
    address: SocketAddr,
    scheme: &'static str,
    requests: Arc<Mutex<Vec<Request>>>,
    work: JoinHandle<()>,
}

impl Server {
    /// A server that answers each request, of which it is told the number, counted from 0.
    pub(crate) async fn new(answer: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> Self {
        Self::start(answer, None).await
    }

    /// As [`new`](Self::new), with TLS.
    pub(crate) async fn with_tls(
        tls: TlsAcceptor,
        answer: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::start(answer, Some(tls)).await
    }

    /// A server that has one file, at whatever path.
    pub(crate) async fn of(bytes: &[u8]) -> Self {
        let bytes = bytes.to_vec();
        Self::new(move |request, _| Reply::file(request, &bytes, "\"one\"")).await
    }

    async fn start(
        answer: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static,
        tls: Option<TlsAcceptor>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::<Mutex<Vec<Request>>>::default();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let answer: Arc<Answer> = Arc::new(answer);
        let work = tokio::spawn(accept(listener, tls, answer, Arc::clone(&requests)));
        Self { address, scheme, requests, work }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}/{path}", self.scheme, self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Where each download began. What is asked for with an end is for a reader, out of order.
    pub(crate) fn downloads(&self) -> Vec<Option<usize>> {
        let requests = self.requests();
        requests.iter().filter(|request| request.to().is_none()).map(Request::from).collect()
    }

    /// Waits until so many requests have come.
    pub(crate) async fn asked(&self, count: usize) {
        for _ in 0..3000 {
            if self.requests.lock().unwrap().len() >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("not asked {count} times: {:?}", self.requests());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.work.abort();
    }
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    answer: Arc<Answer>,
    requests: Arc<Mutex<Vec<Request>>>,
) {
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let (tls, answer, requests) = (tls.clone(), Arc::clone(&answer), Arc::clone(&requests));
        tokio::spawn(async move {
            match tls {
                None => serve(socket, &answer, &requests).await,
                // A client that does not trust the certificate goes away.
                Some(tls) => {
                    if let Ok(socket) = tls.accept(socket).await {
                        serve(socket, &answer, &requests).await;
                    }
                }
            }
        });
    }
}

/// One request, one answer. Clients go away in the middle of both.
async fn serve(
    mut socket: impl AsyncRead + AsyncWrite + Unpin,
    answer: &Arc<Answer>,
    requests: &Mutex<Vec<Request>>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match socket.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let request = parse(&String::from_utf8(head).unwrap());
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
    let _ = socket.shutdown().await;
}

fn parse(head: &str) -> Request {
    let mut lines = head.lines();
    let target = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    Request { target, headers }
}
