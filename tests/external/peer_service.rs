//! The peer of the image server: a service with replies from a test, or a proxy in front of a real service. Both count
//! the calls and can inject faults.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

#[derive(Clone, Debug)]
pub(crate) struct ServiceCall {
    pub(crate) target: String,
    pub(crate) headers: BTreeMap<String, String>,
    /// The status of the response; `None` if the connection ended first.
    pub(crate) status: Option<u16>,
}

impl ServiceCall {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(crate) fn is_conditional(&self) -> bool {
        self.header("if-none-match").is_some() || self.header("if-modified-since").is_some()
    }

    /// Returns the part of the target after the path of the API.
    pub(crate) fn operation(&self) -> &str {
        self.target.strip_prefix("/api/assisted-install/v2/infra-envs/").unwrap_or(&self.target)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ServiceReply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl ServiceReply {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

#[derive(Clone, Debug)]
pub(crate) enum InjectedFault {
    /// Closes the connection.
    Down,
    /// Sends this response.
    Answer(ServiceReply),
    /// Sends half of the response, then closes the connection.
    Cut,
    /// Sends nothing until the gate opens.
    Held(watch::Receiver<bool>),
}

type ReplyFuture = Pin<Box<dyn Future<Output = ServiceReply> + Send>>;
type CallHandler = Arc<dyn Fn(ServiceCall) -> ReplyFuture + Send + Sync>;

#[derive(Default)]
struct PeerState {
    calls: Vec<ServiceCall>,
    fault: Option<(String, InjectedFault)>,
}

/// A service on its own port.
pub(crate) struct PeerService {
    address: SocketAddr,
    state: Arc<Mutex<PeerState>>,
    work: JoinHandle<()>,
}

impl PeerService {
    /// Starts a service whose replies a test defines.
    pub(crate) async fn new(answer: impl Fn(&ServiceCall) -> ServiceReply + Send + Sync + 'static) -> Self {
        Self::with_tls(None, answer).await
    }

    pub(crate) async fn with_tls(
        tls: Option<TlsAcceptor>,
        answer: impl Fn(&ServiceCall) -> ServiceReply + Send + Sync + 'static,
    ) -> Self {
        Self::start(tls, Arc::new(move |call| Box::pin(std::future::ready(answer(&call))))).await
    }

    /// Starts a proxy in front of a service.
    pub(crate) async fn proxy_for(base: &str) -> Self {
        let (base, client) = (base.to_owned(), reqwest::Client::new());
        let forward = move |call: ServiceCall| -> ReplyFuture {
            Box::pin(forward_call(client.clone(), base.clone(), call))
        };
        Self::start(None, Arc::new(forward)).await
    }

    async fn start(tls: Option<TlsAcceptor>, answers: CallHandler) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<Mutex<PeerState>>::default();
        let shared = Arc::clone(&state);
        let work = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (tls, answers, state) = (tls.clone(), Arc::clone(&answers), Arc::clone(&shared));
                tokio::spawn(accept_connection(socket, tls, answers, state));
            }
        });
        Self { address, state, work }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the calls since the previous `take_calls`.
    pub(crate) fn take_calls(&self) -> Vec<ServiceCall> {
        std::mem::take(&mut self.state.lock().unwrap().calls)
    }

    /// Returns the operations of the calls since the previous `take_calls`.
    pub(crate) fn take_operations(&self) -> Vec<String> {
        self.take_calls().iter().map(|call| call.operation().to_owned()).collect()
    }

    /// Injects a fault into all calls whose target contains `what`, or ends with it if `what` ends with `$`.
    pub(crate) fn inject_fault(&self, what: &str, fault: InjectedFault) {
        self.state.lock().unwrap().fault = Some((what.to_owned(), fault));
    }

    pub(crate) fn clear_faults(&self) {
        self.state.lock().unwrap().fault = None;
    }

    /// Waits until this many calls have arrived.
    pub(crate) async fn wait_for_calls(&self, count: usize) {
        for _ in 0..3000 {
            if self.state.lock().unwrap().calls.len() >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("fewer than {count} calls");
    }
}

impl Drop for PeerService {
    fn drop(&mut self) {
        self.work.abort();
    }
}

async fn forward_call(client: reqwest::Client, base: String, call: ServiceCall) -> ServiceReply {
    let mut request = client.get(format!("{base}{}", call.target));
    for (name, value) in call.headers.iter().filter(|(name, _)| *name != "host" && *name != "connection") {
        request = request.header(name, value);
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let of_body = ["content-length", "connection", "transfer-encoding"];
    let headers = response.headers().iter().filter(|(name, _)| !of_body.contains(&name.as_str()));
    let headers =
        headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    ServiceReply { status, headers, body: response.bytes().await.unwrap().to_vec() }
}

async fn accept_connection(
    socket: TcpStream,
    tls: Option<TlsAcceptor>,
    answers: CallHandler,
    state: Arc<Mutex<PeerState>>,
) {
    let Some(tls) = tls else { return serve_call(socket, &answers, &state).await };
    // A client that does not trust the certificate disconnects.
    if let Ok(socket) = tls.accept(socket).await {
        serve_call(socket, &answers, &state).await;
    }
}

/// Handles one call with one response. Clients may disconnect in the middle of both.
async fn serve_call(
    mut socket: impl AsyncRead + AsyncWrite + Unpin,
    answers: &CallHandler,
    state: &Mutex<PeerState>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match socket.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let call = parse_head(&String::from_utf8(head).unwrap());
    let (number, fault) = {
        let mut state = state.lock().unwrap();
        state.calls.push(call.clone());
        let is_meant = |what: &str| match what.strip_suffix('$') {
            Some(end) => call.target.ends_with(end),
            None => call.target.contains(what),
        };
        let fault = state.fault.clone().filter(|(what, _)| is_meant(what));
        (state.calls.len() - 1, fault.map(|(_, fault)| fault))
    };
    let is_cut = matches!(fault, Some(InjectedFault::Cut));
    let reply = match fault {
        Some(InjectedFault::Down) => return,
        Some(InjectedFault::Answer(reply)) => reply,
        Some(InjectedFault::Held(mut gate)) => {
            if gate.wait_for(|is_open| *is_open).await.is_err() {
                return;
            }
            answers(call).await
        }
        Some(InjectedFault::Cut) | None => answers(call).await,
    };
    // The test may have taken the call from the list before this response.
    if let Some(call) = state.lock().unwrap().calls.get_mut(number) {
        call.status = Some(reply.status);
    }
    let mut text = format!("HTTP/1.1 {} X\r\nconnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !matches!(reply.status, 204 | 304) {
        text.push_str(&format!("content-length: {}\r\n", reply.body.len()));
    }
    text.push_str("\r\n");
    let end = if is_cut { reply.body.len() / 2 } else { reply.body.len() };
    let _ = socket.write_all(text.as_bytes()).await;
    let _ = socket.write_all(&reply.body[..end]).await;
    let _ = socket.shutdown().await;
}

fn parse_head(head: &str) -> ServiceCall {
    let mut lines = head.lines();
    let target = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    ServiceCall { target, headers, status: None }
}
