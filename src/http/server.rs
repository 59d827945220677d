//! Listeners and connections, and how they end.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tower::{Service, service_fn};

/// How long the server waits after it could not take a connection, for lack of file descriptors mostly: others have to end
/// before one can begin.
const PAUSE: Duration = Duration::from_millis(50);

/// What one connection may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long the head of a request may take to come, from the end of the request before it on.
    pub head_time: Duration,
    /// How many bytes it may have. Tokens in headers and URLs have hundreds.
    pub head_bytes: usize,
    /// How long connections may go on after the end was asked for.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { head_time: Duration::from_secs(30), head_bytes: 64 << 10, grace: Duration::from_secs(30) }
    }
}

/// Serves connections until `shutdown` is done, then waits for those that are under way.
///
/// # Errors
///
/// When the listener itself fails. Connections that fail end alone.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    serve_within(Limits::default(), listener, router, shutdown).await
}

/// As [`serve`], with other limits.
///
/// # Errors
///
/// When the listener itself fails.
pub async fn serve_within(
    limits: Limits,
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    listener.local_addr()?;
    let graceful = GracefulShutdown::new();
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => begin(limits, stream, &router, &graceful),
                Err(error) if is_of_one_connection(&error) => {}
                // Nothing of this lasts, and an end of the server would help nobody.
                Err(error) => {
                    tracing::warn!(%error, "a connection cannot be taken");
                    tokio::time::sleep(PAUSE).await;
                }
            },
            () = &mut shutdown => break,
        }
    }
    drop(listener);
    if tokio::time::timeout(limits.grace, graceful.shutdown()).await.is_err() {
        tracing::warn!("connections were still open when the time for them was over");
    }
    Ok(())
}

/// Serves the requests of a connection, beside all others.
fn begin(limits: Limits, stream: TcpStream, router: &Router, graceful: &GracefulShutdown) {
    let _ = stream.set_nodelay(true);
    let router = router.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let mut router = router.clone();
        async move { Ok::<_, Infallible>(router.call(request.map(axum::body::Body::new)).await?) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_header_size(limits.head_bytes)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection ended");
        }
    });
}

/// Whether a failed accept says nothing about the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
}
