//! A proxy in front of the API server that injects faults.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::{fmt, future, io, thread};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::Hub;
use super::certificates::Certificates;
use super::faults::{CannedResponse, Fault, Rule, RuleCounts, RuleId, Rules};

/// A TLS proxy on loopback that forwards requests to the API server, except for the faults of its rules. It runs in its
/// own thread, independent of the test's runtime, and ends when it is dropped. It forwards neither upgrades, as needed
/// by `kubectl exec`, nor client certificates.
#[derive(Debug)]
pub(crate) struct FaultProxy {
    hub: &'static Hub,
    address: SocketAddr,
    state: Arc<ProxyState>,
    thread: Option<JoinHandle<()>>,
}

/// A request that has reached the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProxiedRequest {
    pub(crate) method: Method,
    /// Path and query of the URL.
    pub(crate) uri: Uri,
    pub(crate) fault: Option<Fault>,
}

/// The server's response to a request with [`Fault::Hold`] or [`Fault::WithholdResponse`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeldResponse {
    pub(crate) method: Method,
    /// Path and query of the URL.
    pub(crate) uri: Uri,
    pub(crate) status: StatusCode,
}

impl FaultProxy {
    /// Starts a proxy in front of the hub's API server.
    pub(crate) fn start(hub: &'static Hub) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(ProxyState {
            server: hub.address(),
            connector: connector(hub.certificates()),
            rules: Mutex::default(),
            requests: Mutex::default(),
            cuts: watch::Sender::new(0),
            releases: watch::Sender::new(0),
            held_responses: Mutex::default(),
            is_frozen: watch::Sender::new(false),
            is_refusing: watch::Sender::new(false),
            is_stopped: watch::Sender::new(false),
        });
        let acceptor = acceptor(hub.certificates());
        let shared = Arc::clone(&state);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut stopped = shared.is_stopped.subscribe();
                tokio::select! {
                    _ = stopped.wait_for(|is_stopped| *is_stopped) => {}
                    () = accept(TcpListener::from_std(listener).unwrap(), acceptor, &shared) => {}
                }
            });
        });
        Self { hub, address, state, thread: Some(thread) }
    }

    /// Returns the URL of the proxy, for [`Hub::client_to`] and kubeconfigs.
    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Returns a client for this proxy, bound to the current runtime. Unlike kube's default client, it does not repeat
    /// requests after responses 429, 503 or 504.
    pub(crate) fn client(&self, token: &str) -> kube::Client {
        self.hub.connection(&self.url(), token).client_without_retries()
    }

    /// Writes a kubeconfig for this proxy.
    pub(crate) fn kubeconfig(&self, token: &str) -> PathBuf {
        self.hub.kubeconfig(&self.url(), token)
    }

    /// Adds a rule. If several rules have a fault for the same request, the oldest rule applies.
    pub(crate) fn add(&self, rule: Rule) -> RuleId {
        lock(&self.state.rules).add(rule)
    }

    /// Removes a rule. Requests that already have its fault are not affected.
    pub(crate) fn remove(&self, rule: RuleId) {
        lock(&self.state.rules).remove(rule);
    }

    /// Removes all rules. Requests that already have a fault are not affected.
    pub(crate) fn remove_all(&self) {
        lock(&self.state.rules).remove_all();
    }

    /// Returns the counts of a rule, even after its removal.
    pub(crate) fn counts(&self, rule: RuleId) -> RuleCounts {
        lock(&self.state.rules).counts(rule)
    }

    /// Returns all requests that have reached the proxy, in order.
    pub(crate) fn requests(&self) -> Vec<ProxiedRequest> {
        lock(&self.state.requests).clone()
    }

    /// Returns the number of requests with this method, and with `path` in their path or query.
    pub(crate) fn count(&self, method: &str, path: &str) -> usize {
        let requests = lock(&self.state.requests);
        let matching =
            |request: &&ProxiedRequest| request.method == method && request.uri.to_string().contains(path);
        requests.iter().filter(matching).count()
    }

    /// Closes all connections, including connections of watches and of requests without a response.
    pub(crate) fn cut_all(&self) {
        self.state.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Stops forwarding in both directions. Connections stay open, as if the network dropped all packets.
    pub(crate) fn freeze(&self) {
        self.state.is_frozen.send_replace(true);
    }

    /// Forwards the held requests to the server.
    pub(crate) fn release(&self) {
        self.state.releases.send_modify(|releases| *releases += 1);
    }

    /// Returns the withheld responses and the responses to released requests, in order.
    pub(crate) fn held_responses(&self) -> Vec<HeldResponse> {
        lock(&self.state.held_responses).clone()
    }

    /// Closes all connections. Refuses new connections while `is_refusing` is `true`.
    pub(crate) fn refuse(&self, is_refusing: bool) {
        self.state.is_refusing.send_replace(is_refusing);
        self.cut_all();
    }

    /// Resumes forwarding after [`freeze`](Self::freeze).
    pub(crate) fn thaw(&self) {
        self.state.is_frozen.send_replace(false);
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.state.is_stopped.send_replace(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct ProxyState {
    server: SocketAddr,
    connector: TlsConnector,
    rules: Mutex<Rules>,
    requests: Mutex<Vec<ProxiedRequest>>,
    /// Number of times that all connections were cut.
    cuts: watch::Sender<u64>,
    /// Number of times that held requests were released.
    releases: watch::Sender<u64>,
    held_responses: Mutex<Vec<HeldResponse>>,
    is_frozen: watch::Sender<bool>,
    is_refusing: watch::Sender<bool>,
    is_stopped: watch::Sender<bool>,
}

impl fmt::Debug for ProxyState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ProxyState").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl ProxyState {
    /// Waits while the proxy is frozen.
    async fn wait_for_thaw(&self) {
        let _ = self.is_frozen.subscribe().wait_for(|is_frozen| !is_frozen).await;
    }

    fn record(&self, request: &Request<Incoming>) -> Option<Fault> {
        let (method, uri) = (request.method(), request.uri());
        let fault = lock(&self.rules).fault_of(method, uri);
        lock(&self.requests).push(ProxiedRequest { method: method.clone(), uri: uri.clone(), fault });
        fault
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn acceptor(certificates: &Certificates) -> TlsAcceptor {
    let chain = vec![CertificateDer::from(certificates.server.clone())];
    let key = PrivatePkcs8KeyDer::from(certificates.server_key.clone()).into();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    Arc::new(config).into()
}

fn connector(certificates: &Certificates) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(certificates.authority.clone())).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config).into()
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, state: &Arc<ProxyState>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        if *state.is_refusing.borrow() {
            continue;
        }
        let (acceptor, state) = (acceptor.clone(), Arc::clone(state));
        tokio::spawn(async move {
            let mut cuts = state.cuts.subscribe();
            tokio::select! {
                _ = cuts.changed() => {}
                () = serve(stream, acceptor, &state) => {}
            }
        });
    }
}

/// Serves the requests of one connection. Closes the connection if a request fails.
async fn serve(stream: TcpStream, acceptor: TlsAcceptor, state: &Arc<ProxyState>) {
    state.wait_for_thaw().await;
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = service_fn(|request| forward(Arc::clone(state), request));
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// Handles one request from the client. Returns an error if the connection to the client must be closed.
async fn forward(
    state: Arc<ProxyState>,
    request: Request<Incoming>,
) -> Result<Response<RelayedBody>, io::Error> {
    let fault = state.record(&request);
    state.wait_for_thaw().await;
    if let Some(response) = fault.and_then(Fault::canned_response) {
        return Ok(respond(&response));
    }
    match fault {
        Some(Fault::CutBeforeRequest) => return Err(cut()),
        Some(Fault::BlackHole) => future::pending().await,
        Some(Fault::Hold) => return hold(state, request).await,
        Some(Fault::Delay(duration)) => sleep(duration).await,
        _ => {}
    }
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let response = send(&state, request).await?;
    state.wait_for_thaw().await;
    match fault {
        Some(Fault::LoseResponse) => Err(cut()),
        Some(Fault::WithholdResponse) => {
            lock(&state.held_responses).push(HeldResponse { method, uri, status: response.status() });
            future::pending().await
        }
        Some(Fault::CutDuringResponse(duration)) => {
            Ok(relay(state, response, async move { sleep(duration).await }))
        }
        _ => Ok(relay(state, response, future::pending())),
    }
}

/// Waits until held requests are released. Another task then sends the request, because this task ends with the
/// connection to the client.
async fn hold(
    state: Arc<ProxyState>,
    request: Request<Incoming>,
) -> Result<Response<RelayedBody>, io::Error> {
    let mut releases = state.releases.subscribe();
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let shared = Arc::clone(&state);
    let task = tokio::spawn(async move {
        let _ = releases.changed().await;
        let (method, uri) = (head.method.clone(), head.uri.clone());
        let response = send(&shared, Request::from_parts(head, Full::new(body))).await?;
        lock(&shared.held_responses).push(HeldResponse { method, uri, status: response.status() });
        Ok::<_, io::Error>(response)
    });
    let response = task.await.map_err(io::Error::other)??;
    Ok(relay(state, response, future::pending()))
}

fn cut() -> io::Error {
    io::Error::other("fault of the proxy")
}

/// Sends a request to the server on a new connection.
async fn send<B>(state: &ProxyState, request: Request<B>) -> Result<Response<Incoming>, io::Error>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let stream = TcpStream::connect(state.server).await?;
    let name = ServerName::from(state.server.ip());
    let stream = state.connector.connect(name, stream).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    tokio::spawn(connection);
    sender.send_request(request).await.map_err(io::Error::other)
}

fn respond(canned: &CannedResponse) -> Response<RelayedBody> {
    let (sender, frames) = mpsc::channel(1);
    let text = if canned.body.is_null() { String::new() } else { format!("{}\n", canned.body) };
    sender.try_send(Ok(Frame::data(Bytes::from(text)))).unwrap();
    let mut response =
        Response::builder().status(canned.code).header(header::CONTENT_TYPE, "application/json");
    if let Some(seconds) = canned.retry_after {
        response = response.header(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response.body(RelayedBody { frames }).unwrap()
}

/// Forwards a response. Closes the connection to the client when `until` completes.
fn relay(
    state: Arc<ProxyState>,
    response: Response<Incoming>,
    until: impl Future<Output = ()> + Send + 'static,
) -> Response<RelayedBody> {
    let (mut head, mut body) = response.into_parts();
    // The proxy's HTTP server sets these headers itself.
    for name in [header::CONNECTION, header::TRANSFER_ENCODING] {
        head.headers.remove(name);
    }
    let (sender, frames) = mpsc::channel(1);
    tokio::spawn(async move {
        tokio::pin!(until);
        loop {
            let frame = tokio::select! {
                // The client or the proxy has closed the connection.
                () = sender.closed() => return,
                () = &mut until => Some(Err(cut())),
                frame = body.frame() => frame.map(|frame| frame.map_err(io::Error::other)),
            };
            let Some(frame) = frame else { return };
            state.wait_for_thaw().await;
            let is_last = frame.is_err();
            if sender.send(frame).await.is_err() || is_last {
                return;
            }
        }
    });
    Response::from_parts(head, RelayedBody { frames })
}

/// A response body that another task reads from the server.
struct RelayedBody {
    frames: mpsc::Receiver<Result<Frame<Bytes>, io::Error>>,
}

impl Body for RelayedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.frames.poll_recv(context)
    }
}
