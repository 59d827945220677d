//! One connection, from its first byte to its last.

use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
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
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::bypass::Bypass;
use super::coding;
use super::followed::Followed;
use super::hangup::Hangup;
use super::host;
use super::lending::Lending;
use super::limits::Limits;
use super::paged::Paged;
use super::peer::{Peer, Reach};
use super::records::Records;
use super::socket::{Direct, Socket};
use super::stall::{Late, Progress, Watched};
use crate::api_error::ApiError;
use crate::http::App;
use crate::http::body::Finished;
use crate::http::content::Date;
use crate::http::images::{self, Asker};

/// What a client hears for whom there is no place.
const NO_PLACE: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
/// How long it may take to hear that.
const PATIENCE: Duration = Duration::from_secs(2);

/// How far the end of a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ending {
    /// It is not asked for.
    NotYet,
    /// What is under way is finished.
    Orderly,
    /// What is under way is cut.
    Now,
}

/// What all connections of a listener have in common.
pub(super) struct Terms {
    pub(super) limits: Limits,
    pub(super) app: App,
    /// Where requests are answered that may take longer.
    pub(super) routes: Handle,
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) lending: Option<Lending>,
    pub(super) ending: watch::Receiver<Ending>,
}

/// Serves the requests of a connection until it ends.
pub(super) async fn serve(terms: Arc<Terms>, socket: Socket, peer: Peer) {
    let progress = Progress::new();
    let socket = Watched::new(Paged::new(socket, terms.lending.clone()), progress.clone(), &terms.limits);
    let asker = Asker::new(peer.client(), peer.transport.body_mode());
    let answers = Answers { terms: &terms, peer, asker, progress };
    let Some(acceptor) = &terms.tls else { return converse(answers, socket).await };
    let handshake = tokio::time::timeout(terms.limits.handshake_time, Records::accept(acceptor, socket));
    let mut ending = terms.ending.clone();
    let now = async {
        // No server any more is the end as well.
        let _ = ending.wait_for(|ending| *ending == Ending::Now).await;
    };
    tokio::select! {
        biased;
        stream = handshake => match stream {
            Ok(Ok(stream)) => converse(answers, stream).await,
            Ok(Err(error)) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
            Err(_) => tracing::debug!(%peer, "a TLS handshake took too long"),
        },
        () = now => cut(peer),
    }
}

/// Reads requests and writes answers.
async fn converse<S>(answers: Answers<'_>, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (terms, peer) = (answers.terms, answers.peer);
    let mut date = Date::default();
    let again = |range: (&str, &[u8]), head: &mut Vec<u8>| {
        let now = Instant::now();
        answers.range_again(range, now, (date.now(now), head))
    };
    let stream = Bypass::new(stream, again, answers.progress.clone());
    let mut http = http1::Builder::new();
    // The watch over the connection knows better what it waits for.
    http.header_read_timeout(None);
    http.max_header_size(terms.limits.head_bytes);
    // A client that leaves ends its request. `Hangup` tells it from one that only sends nothing more.
    http.half_close(false);
    let answer = service_fn(|request| answers.answer(request));
    let mut connection =
        pin!(http.serve_connection(TokioIo::new(Hangup::new(stream, answers.progress.clone())), answer));
    let mut ending = terms.ending.clone();
    let mut reached = Ending::NotYet;
    loop {
        match reached {
            Ending::NotYet => {}
            Ending::Orderly => connection.as_mut().graceful_shutdown(),
            Ending::Now => return cut(peer),
        }
        // One that is watched, not one for each way to end: they are looked at with every request.
        tokio::select! {
            biased;
            done = connection.as_mut() => {
                return done.unwrap_or_else(|error| log(peer, &error));
            }
            changed = ending.changed() => {
                // No server any more is the end as well.
                reached = changed.map_or(Ending::Now, |()| *ending.borrow_and_update());
            }
        }
    }
}

fn cut(peer: Peer) {
    tracing::info!(%peer, "a connection was cut at the end of the service");
}

/// Tells why a connection ended that did not end well. Most of it is the business of clients.
fn log(peer: Peer, error: &hyper::Error) {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    let late: Option<&Late> = cause.and_then(io::Error::get_ref).and_then(|cause| cause.downcast_ref());
    let error = error as &dyn std::error::Error;
    if matches!(late, Some(Late::Body | Late::Answer)) {
        tracing::warn!(%peer, error, "a connection was closed");
    } else {
        tracing::debug!(%peer, error, "a connection ended");
    }
}

/// What answers the requests of a connection.
struct Answers<'a> {
    terms: &'a Terms,
    peer: Peer,
    asker: Asker,
    progress: Progress,
}

impl Answers<'_> {
    /// What may answer without a look at the routes. Where not everything may be had, those say what.
    fn known(&self) -> Option<&App> {
        (self.peer.reach == Reach::All).then_some(&self.terms.app)
    }

    /// The answer to a request that the bypass has read.
    fn range_again(
        &self,
        range: (&str, &[u8]),
        now: Instant,
        head: (&Date, &mut Vec<u8>),
    ) -> Option<images::Watched> {
        let body = self.known()?.range_again(range, (&self.asker, now), head)?;
        self.progress.asked();
        Some(body)
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Followed>, std::convert::Infallible> {
        let Self { terms: Terms { app, routes, .. }, peer, progress, .. } = self;
        progress.asked();
        let refusal = refusal(&request);
        // Where there is more of a request, somebody has to read it.
        let known = self.known().filter(|_| request.body().is_end_stream() && refusal.is_none());
        let again = known.and_then(|known| known.again(&request, &self.asker));
        let response = match (again, refusal) {
            (Some(response), _) => response,
            (None, Some(refusal)) => {
                // A client that is still sending would not see the refusal if the rest were not read.
                drop(Finished::of(request, progress.clone()));
                refusal
            }
            (None, None) => {
                let mut request = Finished::of(request, progress.clone()).map(Body::new);
                request.extensions_mut().insert(*peer);
                request.extensions_mut().insert(peer.client());
                request.extensions_mut().insert(peer.transport.body_mode());
                Elsewhere(routes.spawn(app.clone().answer(request))).await
            }
        };
        Ok(response.map(|body| Followed::new(body, progress.clone())))
    }
}

/// The refusal of a request whose head is at fault, whatever it asks for.
fn refusal<B: HttpBody>(request: &Request<B>) -> Option<Response<Body>> {
    if let Some(fault) = host::fault(request) {
        return Some(ApiError::at_gate(StatusCode::BAD_REQUEST, fault).into_response());
    }
    if request.body().is_end_stream() || !coding::is_unknown(request.headers()) {
        return None;
    }
    let reason = "the only transfer coding of a request that this server decodes is chunked";
    let mut response = ApiError::at_gate(StatusCode::NOT_IMPLEMENTED, reason).into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    Some(response)
}

/// An answer that is made on another runtime, as long as somebody waits for it.
struct Elsewhere(JoinHandle<Response<Body>>);

impl Future for Elsewhere {
    type Output = Response<Body>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response<Body>> {
        Pin::new(&mut self.0).poll(context).map(|answer| {
            // Routes answer also where an operation panics. What is left is the end of that runtime.
            answer.unwrap_or_else(|_| {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                response
            })
        })
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Tells a client that there is no place for it, as far as it wants to hear that.
pub(super) async fn refuse(mut socket: Socket) {
    if socket.write_now(&[IoSlice::new(NO_PLACE)]).is_err() || socket.shutdown().await.is_err() {
        return;
    }
    // An end before its request was read would take the answer away from it.
    let mut rest = [0; 4096];
    let read = async { while matches!(socket.read(&mut rest).await, Ok(len) if len > 0) {} };
    let _ = tokio::time::timeout(PATIENCE, read).await;
}
