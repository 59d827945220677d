//! Listeners and connections, and how they end.

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

use super::Client;
use super::body::Finished;

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
    let client = Client(stream.peer_addr().ok().map(|address| address.ip()));
    let service = service_fn(move |mut request: Request<Incoming>| {
        let mut router = router.clone();
        request.extensions_mut().insert(client);
        async move { router.call(Finished::of(request).map(axum::body::Body::new)).await }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_header_size(limits.head_bytes)
        // Who sends no more (`nc -N`) still wants the answer.
        .half_close(true)
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::routing::{get, post};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::{Notify, oneshot};
    use tokio::task::JoinHandle;

    use super::*;

    /// A server whose `/slow` answers when it is told to.
    struct Server {
        address: std::net::SocketAddr,
        begun: Arc<Notify>,
        answer: Arc<Notify>,
        end: oneshot::Sender<()>,
        task: JoinHandle<io::Result<()>>,
    }

    async fn start(limits: Limits) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (begun, answer) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let slow = {
            let (begun, answer) = (Arc::clone(&begun), Arc::clone(&answer));
            move || async move {
                begun.notify_one();
                answer.notified().await;
                "done"
            }
        };
        let refuse = || async { axum::http::StatusCode::FORBIDDEN };
        let router = Router::new().route("/slow", get(slow)).route("/refuse", post(refuse));
        let (end, ended) = oneshot::channel::<()>();
        let task = tokio::spawn(serve_within(limits, listener, router, async {
            let _ = ended.await;
        }));
        Server { address, begun, answer, end, task }
    }

    async fn send(address: std::net::SocketAddr, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    async fn rest(mut stream: TcpStream) -> String {
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn what_is_under_way_is_finished_at_the_end() {
        let server = start(Limits::default()).await;
        let stream = send(server.address, "GET /slow HTTP/1.1\r\nHost: test\r\n\r\n").await;
        server.begun.notified().await;
        server.end.send(()).unwrap();
        // Once nobody listens any more, the end has begun.
        while TcpStream::connect(server.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        assert!(!server.task.is_finished());
        server.answer.notify_one();
        let answer = rest(stream).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\ndone"), "{answer}");
        server.task.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn who_takes_too_long_is_not_waited_for() {
        let grace = Duration::from_millis(50);
        let server = start(Limits { grace, ..Limits::default() }).await;
        let _stream = send(server.address, "GET /slow HTTP/1.1\r\nHost: test\r\n\r\n").await;
        server.begun.notified().await;
        server.end.send(()).unwrap();
        tokio::time::timeout(Duration::from_secs(10), server.task).await.unwrap().unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_head_has_to_come_in_time_and_in_size() {
        let head_time = Duration::from_millis(100);
        let server = start(Limits { head_time, head_bytes: 10_000, ..Limits::default() }).await;
        let stream = send(server.address, "GET /slow HTTP/1.1\r\nHost").await;
        let answer = tokio::time::timeout(Duration::from_secs(10), rest(stream)).await.unwrap();
        assert!(!answer.contains(" 200 "), "{answer}");
        let large = format!("GET /slow HTTP/1.1\r\nHost: test\r\nA: {}\r\n\r\n", "a".repeat(10_000));
        let answer = rest(send(server.address, &large).await).await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }

    #[tokio::test]
    async fn a_client_that_is_still_sending_sees_its_refusal() {
        let server = start(Limits::default()).await;
        let head = "POST /refuse HTTP/1.1\r\nHost: test\r\nContent-Length: 33000000\r\n\r\n";
        let mut stream = send(server.address, head).await;
        stream.write_all(&vec![b'a'; 33_000_000]).await.unwrap();
        // The connection is as good as before.
        let next = "POST /refuse HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
        stream.write_all(next.as_bytes()).await.unwrap();
        assert_eq!(rest(stream).await.matches("HTTP/1.1 403 Forbidden").count(), 2);
        // Whoever waits for a word gets the answer, and no other word.
        let head = "POST /refuse HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n";
        let answer = rest(send(server.address, head).await).await;
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden") && !answer.contains("100"), "{answer}");
    }
}
