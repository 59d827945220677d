//! The HTTP server, which serves an [`App`] on any number of listeners.

use std::io;

use tokio::net::TcpListener;
use tokio::runtime::Handle;

use super::app_service::App;
use super::connection::{FastPathSwitch, HttpConnections};
use super::listener::{Acceptor, Listener, ServerLimits};
use super::zerocopy::RecordBursts;
use crate::base_files::PageLending;

/// An HTTP/1.1 server. Clones share the connection limits.
#[derive(Clone, Debug)]
pub struct Server {
    acceptor: Acceptor,
    lending: Option<PageLending>,
    fast_path: FastPathSwitch,
}

/// Serves connections without TLS until `shutdown` completes, then waits for requests in progress. Use a [`Server`] for
/// TLS or several listeners.
///
/// # Errors
///
/// Returns an error if the listener cannot be used. A failed connection does not affect the others.
pub async fn serve(
    listener: TcpListener,
    app: impl Into<App>,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    Server::new(ServerLimits::default()).serve(listener.try_into()?, app, shutdown).await;
    Ok(())
}

impl Server {
    /// Creates a server with these limits.
    #[must_use]
    pub fn new(limits: ServerLimits) -> Self {
        Self {
            acceptor: Acceptor::new(limits),
            lending: Some(PageLending::default()),
            fast_path: FastPathSwitch::On,
        }
    }

    /// Disables zero-copy: the server copies all bytes, and takes no leases of base images.
    #[must_use]
    pub fn without_zero_copy(self) -> Self {
        Self { lending: None, ..self }
    }

    /// Disables the fast path: hyper handles every request. The responses are the same.
    #[must_use]
    pub fn without_fast_path(self) -> Self {
        Self { fast_path: FastPathSwitch::Off, ..self }
    }

    /// Serves the connections of a listener until `shutdown` completes. Then closes the listener, waits up to the grace
    /// period for requests in progress, and closes the remaining connections.
    pub async fn serve(&self, listener: Listener, app: impl Into<App>, shutdown: impl Future<Output = ()>) {
        let (limits, routes) = (*self.acceptor.limits(), Handle::current());
        let (lending, fast_path) = (self.lending.clone(), self.fast_path);
        let bursts = RecordBursts::default();
        let connections = HttpConnections { limits, app: app.into(), routes, lending, bursts, fast_path };
        self.acceptor.serve(listener, connections, shutdown).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use axum::routing::{get, post};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::{Notify, oneshot};
    use tokio::task::JoinHandle;

    use axum::Router;

    use super::*;

    /// A server whose route `/slow` responds only after `answer` was notified.
    struct SlowServer {
        address: std::net::SocketAddr,
        begun: Arc<Notify>,
        answer: Arc<Notify>,
        end: oneshot::Sender<()>,
        task: JoinHandle<()>,
    }

    async fn start_server(limits: ServerLimits) -> SlowServer {
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
        let listener: Listener = listener.try_into().unwrap();
        let task = tokio::spawn(async move {
            let ended = async {
                let _ = ended.await;
            };
            super::Server::new(limits).serve(listener, router, ended).await;
        });
        SlowServer { address, begun, answer, end, task }
    }

    async fn send_text(address: std::net::SocketAddr, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    async fn read_to_end(mut stream: TcpStream) -> String {
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn request_in_progress_is_finished_at_shutdown() {
        let server = start_server(ServerLimits::default()).await;
        let stream = send_text(server.address, "GET /slow HTTP/1.1\r\nHost: test\r\n\r\n").await;
        server.begun.notified().await;
        server.end.send(()).unwrap();
        // When connections are refused, the shutdown has begun.
        while TcpStream::connect(server.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        assert!(!server.task.is_finished());
        server.answer.notify_one();
        let answer = read_to_end(stream).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\ndone"), "{answer}");
        server.task.await.unwrap();
    }

    #[tokio::test]
    async fn grace_period_bounds_the_shutdown() {
        let grace = Duration::from_millis(50);
        let server = start_server(ServerLimits { grace, ..ServerLimits::default() }).await;
        let _stream = send_text(server.address, "GET /slow HTTP/1.1\r\nHost: test\r\n\r\n").await;
        server.begun.notified().await;
        server.end.send(()).unwrap();
        tokio::time::timeout(Duration::from_secs(10), server.task).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn rejects_a_slow_or_large_request_head() {
        let head_time = Duration::from_millis(100);
        let server =
            start_server(ServerLimits { head_time, head_bytes: 10_000, ..ServerLimits::default() }).await;
        let stream = send_text(server.address, "GET /slow HTTP/1.1\r\nHost").await;
        let answer = tokio::time::timeout(Duration::from_secs(10), read_to_end(stream)).await.unwrap();
        assert!(!answer.contains(" 200 "), "{answer}");
        let large = format!("GET /slow HTTP/1.1\r\nHost: test\r\nA: {}\r\n\r\n", "a".repeat(10_000));
        let answer = read_to_end(send_text(server.address, &large).await).await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }

    #[tokio::test]
    async fn client_that_is_still_sending_gets_its_refusal() {
        let server = start_server(ServerLimits::default()).await;
        let head = "POST /refuse HTTP/1.1\r\nHost: test\r\nContent-Length: 33000000\r\n\r\n";
        let mut stream = send_text(server.address, head).await;
        stream.write_all(&vec![b'a'; 33_000_000]).await.unwrap();
        // The connection stays usable after a refusal.
        let next = "POST /refuse HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
        stream.write_all(next.as_bytes()).await.unwrap();
        assert_eq!(read_to_end(stream).await.matches("HTTP/1.1 403 Forbidden").count(), 2);
        // A client that waits for `100 Continue` gets the final response instead.
        let head = "POST /refuse HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n";
        let answer = read_to_end(send_text(server.address, head).await).await;
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden") && !answer.contains("100"), "{answer}");
    }
}
