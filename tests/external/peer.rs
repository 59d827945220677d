//! What the image server calls: a service that a test writes, or one behind a proxy. Either counts the calls, and may be
//! told to fail.

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

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) target: String,
    pub(crate) headers: BTreeMap<String, String>,
    /// The status that it was answered with; none if the connection ended.
    pub(crate) status: Option<u16>,
}

impl Call {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(crate) fn is_conditional(&self) -> bool {
        self.header("if-none-match").is_some() || self.header("if-modified-since").is_some()
    }

    /// What is called, behind the path of the API.
    pub(crate) fn operation(&self) -> &str {
        self.target.strip_prefix("/api/assisted-install/v2/infra-envs/").unwrap_or(&self.target)
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

/// What goes wrong.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The connection ends.
    Down,
    /// This is answered.
    Answer(Reply),
    /// Half of the answer comes, and then the connection ends.
    Cut,
    /// Nothing comes before the gate opens.
    Held(watch::Receiver<bool>),
}

type Answer = Pin<Box<dyn Future<Output = Reply> + Send>>;
type Answers = Arc<dyn Fn(Call) -> Answer + Send + Sync>;

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    fault: Option<(String, Fault)>,
}

/// A service on a port of its own.
pub(crate) struct Peer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    work: JoinHandle<()>,
}

impl Peer {
    /// A service that answers as it is written.
    pub(crate) async fn new(answer: impl Fn(&Call) -> Reply + Send + Sync + 'static) -> Self {
        Self::with_tls(None, answer).await
    }

    pub(crate) async fn with_tls(
        tls: Option<TlsAcceptor>,
        answer: impl Fn(&Call) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::start(tls, Arc::new(move |call| Box::pin(std::future::ready(answer(&call))))).await
    }

    /// A proxy before a service.
    pub(crate) async fn before(base: &str) -> Self {
        let (base, client) = (base.to_owned(), reqwest::Client::new());
        let forward = move |call: Call| -> Answer { Box::pin(forward(client.clone(), base.clone(), call)) };
        Self::start(None, Arc::new(forward)).await
    }

    async fn start(tls: Option<TlsAcceptor>, answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<Mutex<State>>::default();
        let shared = Arc::clone(&state);
        let work = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (tls, answers, state) = (tls.clone(), Arc::clone(&answers), Arc::clone(&shared));
                tokio::spawn(greet(socket, tls, answers, state));
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

    /// The calls since this was asked for the last time.
    pub(crate) fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.state.lock().unwrap().calls)
    }

    /// What was called since.
    pub(crate) fn operations(&self) -> Vec<String> {
        self.calls().iter().map(|call| call.operation().to_owned()).collect()
    }

    /// Lets all calls fail that have a text in their target, or at its end if a `$` is behind it.
    pub(crate) fn fail(&self, what: &str, fault: Fault) {
        self.state.lock().unwrap().fault = Some((what.to_owned(), fault));
    }

    pub(crate) fn work_again(&self) {
        self.state.lock().unwrap().fault = None;
    }

    /// Waits until there were so many calls.
    pub(crate) async fn called(&self, count: usize) {
        for _ in 0..3000 {
            if self.state.lock().unwrap().calls.len() >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("not called {count} times");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.work.abort();
    }
}

async fn forward(client: reqwest::Client, base: String, call: Call) -> Reply {
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
    Reply { status, headers, body: response.bytes().await.unwrap().to_vec() }
}

async fn greet(socket: TcpStream, tls: Option<TlsAcceptor>, answers: Answers, state: Arc<Mutex<State>>) {
    let Some(tls) = tls else { return serve(socket, &answers, &state).await };
    // A client that does not trust the certificate goes away.
    if let Ok(socket) = tls.accept(socket).await {
        serve(socket, &answers, &state).await;
    }
}

/// One call, one answer. Clients go away in the middle of both.
async fn serve(mut socket: impl AsyncRead + AsyncWrite + Unpin, answers: &Answers, state: &Mutex<State>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match socket.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let call = parse(&String::from_utf8(head).unwrap());
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
    let is_cut = matches!(fault, Some(Fault::Cut));
    let reply = match fault {
        Some(Fault::Down) => return,
        Some(Fault::Answer(reply)) => reply,
        Some(Fault::Held(mut gate)) => {
            if gate.wait_for(|is_open| *is_open).await.is_err() {
                return;
            }
            answers(call).await
        }
        Some(Fault::Cut) | None => answers(call).await,
    };
    // The list may have been taken meanwhile.
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

fn parse(head: &str) -> Call {
    let mut lines = head.lines();
    let target = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    Call { target, headers, status: None }
}
