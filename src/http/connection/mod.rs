//! One HTTP/1.1 connection, from the TLS handshake to the last response.
//!
//! hyper reads requests and writes responses. Each layer below hyper adds one function. From the socket up: sending
//! pages instead of copies ([`PagedSocket`]), timeouts ([`TimedSocket`]), TLS ([`RecordStream`]), the fast path for
//! ranges of cached images ([`RangeBypass`]), and the handling of clients that disconnect ([`DelayedEnd`]).

mod bypass;
mod delayed_end;
mod host_header;
mod request_body;
mod routed_answer;
mod tracked_body;
mod transfer_coding;

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::pin;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use hyper::body::{Body as HttpBody, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::runtime::Handle;
use tokio::sync::watch;

pub(super) use bypass::FastPathSwitch;
use bypass::RangeBypass;
use delayed_end::DelayedEnd;
use request_body::DrainedBody;
use routed_answer::RoutedAnswer;
use tracked_body::TrackedBody;

use super::app_service::App;
use super::content::DateHeader;
use super::images::{self, Requester};
use super::listener::{
    AcceptedConnection, AllowedRequests, Peer, ServeConnection, ServerLimits, ShutdownPhase, ShutdownSignal,
    Socket,
};
use super::zerocopy::{
    BodyMode, ClientTimeout, ConnectionProgress, DirectSocket, PagedSocket, RecordBursts, RecordStream,
    SendingFile, TimedSocket,
};
use crate::base_files::{BaseFile, PageLending};
use inventory::api::ApiError;

/// The response to a client with too many connections.
const TOO_MANY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
/// How long the client may take to read [`TOO_MANY`].
const PATIENCE: Duration = Duration::from_secs(2);

/// The settings and shared state for all connections of a listener.
pub(super) struct HttpConnections {
    pub(super) limits: ServerLimits,
    pub(super) app: App,
    /// The runtime for requests that may take long.
    pub(super) routes: Handle,
    pub(super) lending: Option<PageLending>,
    pub(super) bursts: RecordBursts,
    pub(super) fast_path: FastPathSwitch,
}

impl ServeConnection for HttpConnections {
    async fn serve(&self, accepted: AcceptedConnection) {
        let AcceptedConnection { socket, peer, tls, shutdown } = accepted;
        let progress = ConnectionProgress::new();
        let sending = SendingFile::default();
        let socket = PagedSocket::new(socket, self.lending.clone(), sending.clone());
        let socket = TimedSocket::new(socket, progress.clone(), &self.limits);
        let requester = Requester::new(peer.client(), BodyMode::for_transport(peer.transport));
        let signal = ShutdownSignal(shutdown.clone());
        let answers = ConnectionAnswers { connections: self, peer, requester, progress, sending, signal };
        let Some(acceptor) = tls else { return serve_requests(answers, socket, shutdown).await };
        let handshake = tokio::time::timeout(
            self.limits.handshake_time,
            RecordStream::accept(&acceptor, socket, self.bursts.clone()),
        );
        let mut closing = shutdown.clone();
        let closing = async {
            // No request is in progress, so every phase of the shutdown closes the connection. An error means that the
            // server was dropped.
            let _ = closing.wait_for(|phase| *phase != ShutdownPhase::Running).await;
        };
        tokio::select! {
            biased;
            stream = handshake => match stream {
                Ok(Ok(stream)) => serve_requests(answers, stream, shutdown).await,
                Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
                Err(_) => tracing::debug!(%peer, "TLS handshake timed out"),
            },
            () = closing => log_shutdown_close(peer),
        }
    }

    /// Sends [`TOO_MANY`], and waits until the client has read it or [`PATIENCE`] is over.
    async fn refuse(mut socket: Socket) {
        if socket.write_now(&[IoSlice::new(TOO_MANY)]).is_err() || socket.shutdown().await.is_err() {
            return;
        }
        // Read the request before the socket is closed. Otherwise the kernel would reset the connection, and the client
        // would lose the response.
        let mut rest = [0; 4096];
        let read = async { while matches!(socket.read(&mut rest).await, Ok(len) if len > 0) {} };
        let _ = tokio::time::timeout(PATIENCE, read).await;
    }
}

async fn serve_requests<S>(
    answers: ConnectionAnswers<'_>,
    stream: S,
    mut shutdown: watch::Receiver<ShutdownPhase>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let peer = answers.peer;
    let has_requested = AtomicBool::new(false);
    let mut date = DateHeader::default();
    let cached_range = |range: (&str, &[u8]), head: &mut Vec<u8>| {
        has_requested.store(true, Ordering::Relaxed);
        let now = Instant::now();
        answers.cached_range(range, now, (date.update(now), head))
    };
    let stream =
        RangeBypass::new(stream, answers.connections.fast_path, cached_range, answers.progress.clone());
    let mut http = http1::Builder::new();
    // Turn off hyper's own timeout. The timeouts of [`TimedSocket`] also cover request bodies and responses.
    http.header_read_timeout(None);
    http.max_header_size(answers.connections.limits.head_bytes);
    // With this setting, hyper drops the request of a client that disconnects. [`DelayedEnd`] hides the end of the
    // stream from hyper while the client may still be waiting for the response.
    http.half_close(false);
    let answer = service_fn(|request| {
        has_requested.store(true, Ordering::Relaxed);
        // Record the request here, and not in the future of the response, because hyper reads from the connection again
        // before it first polls that future.
        answers.progress.record_request();
        answers.answer_request(request)
    });
    let mut connection =
        pin!(http.serve_connection(TokioIo::new(DelayedEnd::new(stream, answers.progress.clone())), answer));
    let mut phase = ShutdownPhase::Running;
    loop {
        match phase {
            ShutdownPhase::Running => {}
            ShutdownPhase::Draining => {
                connection.as_mut().graceful_shutdown();
                // Poll with the waker of this task, because an idle connection keeps the waker of the last poll.
                let polled = poll_fn(|context| Poll::Ready(connection.as_mut().poll(context))).await;
                if let Poll::Ready(done) = polled {
                    return done.unwrap_or_else(|error| log_failure(peer, &error));
                }
                // The first request head is incomplete, and hyper would wait for the rest.
                if !has_requested.load(Ordering::Relaxed) {
                    return log_shutdown_close(peer);
                }
            }
            ShutdownPhase::Closing => return log_shutdown_close(peer),
        }
        // Use one channel for all phases, because each additional future here would be polled for every request.
        tokio::select! {
            biased;
            done = connection.as_mut() => {
                return done.unwrap_or_else(|error| log_failure(peer, &error));
            }
            changed = shutdown.changed() => {
                // An error means that the server was dropped. That closes its connections too.
                phase = changed.map_or(ShutdownPhase::Closing, |()| *shutdown.borrow_and_update());
            }
        }
    }
}

fn log_shutdown_close(peer: Peer) {
    tracing::info!(%peer, "connection closed at shutdown");
}

/// Logs why a connection failed. The level is `warn` after a timeout for a request body or a response. Other failures
/// are logged at `debug`, because clients cause most of them.
fn log_failure(peer: Peer, error: &hyper::Error) {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    let timeout: Option<&ClientTimeout> =
        cause.and_then(io::Error::get_ref).and_then(|cause| cause.downcast_ref());
    let error = error as &dyn std::error::Error;
    if matches!(timeout, Some(ClientTimeout::Body | ClientTimeout::Response)) {
        tracing::warn!(%peer, error, "connection closed, client too slow");
    } else {
        tracing::debug!(%peer, error, "connection failed");
    }
}

/// Creates the responses for the requests of a connection.
struct ConnectionAnswers<'a> {
    connections: &'a HttpConnections,
    peer: Peer,
    requester: Requester,
    progress: ConnectionProgress,
    sending: SendingFile,
    signal: ShutdownSignal,
}

impl ConnectionAnswers<'_> {
    /// Returns the app if responses may bypass the routes. On a listener that restricts requests, they may not, because
    /// the routes check the restriction.
    fn bypass_app(&self) -> Option<&App> {
        (self.peer.reach == AllowedRequests::All).then_some(&self.connections.app)
    }

    /// Returns the response body for a range request from the bypass, and writes the response head. Returns `None` if
    /// the range is not cached.
    fn cached_range(
        &self,
        range: (&str, &[u8]),
        now: Instant,
        head: (&DateHeader, &mut Vec<u8>),
    ) -> Option<images::CountedBody> {
        let body = self.bypass_app()?.cached_range(range, (&self.requester, now), head)?;
        if let Some(file) = body.base_file() {
            self.sending.begin_answer(file);
        }
        self.progress.record_request();
        Some(body)
    }

    async fn answer_request(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<TrackedBody>, std::convert::Infallible> {
        let Self { connections: HttpConnections { app, routes, .. }, peer, progress, .. } = self;
        let refusal = refuse_invalid_head(&request);
        // A request with a body goes to the routes, which read the body.
        let bypass_app = self.bypass_app().filter(|_| request.body().is_end_stream() && refusal.is_none());
        let cached = bypass_app.and_then(|app| app.cached_response(&request, &self.requester));
        let response = match (cached, refusal) {
            (Some(response), _) => response,
            (None, Some(refusal)) => {
                // Read the rest of the request. Otherwise a client that is still sending would not see the refusal.
                drop(DrainedBody::wrap_request(request, progress.clone()));
                refusal
            }
            (None, None) => {
                let mut request = DrainedBody::wrap_request(request, progress.clone()).map(Body::new);
                request.extensions_mut().insert(*peer);
                request.extensions_mut().insert(peer.client());
                request.extensions_mut().insert(BodyMode::for_transport(peer.transport));
                request.extensions_mut().insert(self.signal.clone());
                let body_len = request.body().size_hint().upper();
                RoutedAnswer::new(app.clone().answer(request), body_len, routes, progress).await
            }
        };
        if let Some(file) = response.extensions().get::<Weak<BaseFile>>() {
            self.sending.begin_answer(Weak::clone(file));
        }
        Ok(response.map(|body| TrackedBody::new(body, progress.clone())))
    }
}

/// Returns an error response if the request head is invalid for every resource.
fn refuse_invalid_head<B: HttpBody>(request: &Request<B>) -> Option<Response<Body>> {
    if let Some(fault) = host_header::host_fault(request) {
        return Some(ApiError::infra_error(StatusCode::BAD_REQUEST, fault).into_response());
    }
    if request.body().is_end_stream() || !transfer_coding::has_unknown_transfer_coding(request.headers()) {
        return None;
    }
    let reason = "unsupported transfer coding of the request, only chunked is supported";
    let mut response = ApiError::infra_error(StatusCode::NOT_IMPLEMENTED, reason).into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    Some(response)
}
