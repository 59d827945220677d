//! Listeners and connections, and how they end.
//!
//! A [`Server`] takes connections of any number of [`Listener`]s within its [`Limits`]. What each may take is watched at its
//! socket; how its bytes are sent, and whose they are, goes with each request as a [`Peer`] and a
//! [`BodyMode`](super::BodyMode).

mod bypass;
mod closing;
mod coding;
mod connection;
mod followed;
mod hangup;
mod host;
mod inherited;
mod lending;
mod limits;
mod listener;
mod paged;
mod peer;
mod pipe;
mod records;
mod share;
mod socket;
mod stall;
mod threads;
mod tls;
mod unix;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use connection::{Ending, Terms};
pub use inherited::Inherited;
use lending::Lending;
pub use limits::{Limits, MIN_SHARE};
pub use listener::{Listener, Place};
pub use peer::{Peer, Reach, Transport};
use share::{Places, Taken};
use socket::{Detached, Socket};
pub(super) use stall::Progress;
use threads::Threads;
pub use tls::{Certificate, CertificateError, TlsRules, TlsVersion};

use super::App;

/// How long the server waits after it could not take a connection, for lack of file descriptors mostly: others have to end
/// before one can begin.
const PAUSE: Duration = Duration::from_millis(50);
/// How many clients at a time are told that there is no place for them. Others find their connection closed.
const MAX_REFUSED: usize = 64;
/// How often the log says the same thing about connections.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Takes connections, of all its listeners within the same limits. Clones are the same server.
#[derive(Clone, Debug)]
pub struct Server {
    limits: Limits,
    places: Places,
    threads: Threads,
    lending: Option<Lending>,
    refused: Arc<Semaphore>,
    is_full: Seldom,
    has_too_many: Seldom,
}

/// Serves plain connections until `shutdown` is done, then waits for those that are under way. What else there is to listen
/// on is for a [`Server`].
///
/// # Errors
///
/// When the listener itself is no good. Connections that fail end alone.
pub async fn serve(
    listener: TcpListener,
    app: impl Into<App>,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    serve_within(Limits::default(), listener, app, shutdown).await
}

/// As [`serve`], with other limits.
///
/// # Errors
///
/// When the listener itself is no good.
pub async fn serve_within(
    limits: Limits,
    listener: TcpListener,
    app: impl Into<App>,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    Server::new(limits).serve(listener.try_into()?, app, shutdown).await;
    Ok(())
}

impl Server {
    /// A server with these limits.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            places: Places::new(&limits),
            threads: Threads::start(),
            lending: Some(Lending::default()),
            refused: Arc::new(Semaphore::new(MAX_REFUSED)),
            is_full: Seldom::default(),
            has_too_many: Seldom::default(),
        }
    }

    /// The same without lending: all bytes are copied. Pages of live images are not lent to the kernel, and the server has no leases.
    #[must_use]
    pub fn copying(self) -> Self {
        Self { lending: None, ..self }
    }

    /// Serves the connections of a listener until `shutdown` is done. The listener is closed then, and connections have their
    /// time to end before they are cut.
    pub async fn serve(&self, listener: Listener, app: impl Into<App>, shutdown: impl Future<Output = ()>) {
        let (ending, seen) = watch::channel(Ending::NotYet);
        let app = app.into();
        let (limits, tls, routes) = (self.limits, listener.tls().cloned(), Handle::current());
        let lending = self.lending.clone();
        let terms = Terms { limits, app, routes, tls, lending, ending: seen };
        // Every connection has them for as long as it is open.
        let terms = Arc::new(terms);
        let open = Arc::downgrade(&terms);
        tokio::select! {
            () = self.accept(&listener, &terms) => {}
            () = shutdown => {}
        }
        drop((listener, terms));
        ending.send_replace(Ending::Orderly);
        if tokio::time::timeout(self.limits.grace, ending.closed()).await.is_err() {
            tracing::warn!(connections = open.strong_count(), "the time to end is over: connections are cut");
            ending.send_replace(Ending::Now);
            ending.closed().await;
        }
    }

    async fn accept(&self, listener: &Listener, terms: &Arc<Terms>) {
        loop {
            if self.places.are_taken() && self.is_full.is_due() {
                tracing::warn!(limit = self.limits.connections, "there are no more connections: others wait");
            }
            let Some(place) = self.places.free().await else { return };
            match listener.accept().await {
                Ok((socket, peer)) => {
                    match self.places.take(place, peer.address.map(|address| address.ip())) {
                        Some(taken) => self.begin(taken, socket, peer, terms),
                        None => self.refuse(socket, peer),
                    }
                }
                Err(error) if is_of_one_connection(&error) => {}
                // Nothing of this lasts, and an end of the server would help nobody.
                Err(error) => {
                    tracing::warn!(%error, "a connection cannot be taken");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Serves a connection beside all others, on a thread of its own choice.
    fn begin(&self, taken: Taken, socket: Socket, peer: Peer, terms: &Arc<Terms>) {
        let terms = Arc::clone(terms);
        let detached = Detached::of(socket);
        self.threads.spawn(async move {
            match detached.and_then(Detached::attach) {
                Ok(socket) => connection::serve(terms, socket, peer).await,
                Err(error) => tracing::warn!(%peer, %error, "a connection cannot be served"),
            }
            drop(taken);
        });
    }

    /// Turns a client away that has more connections than its share. It is told so, where it can be told without TLS.
    ///
    /// It does not wait, since those that it waits for are its own; and what it has already is served as well as ever.
    fn refuse(&self, socket: Socket, peer: Peer) {
        if self.has_too_many.is_due() {
            tracing::warn!(%peer, "a client has more connections than its share");
        }
        if peer.transport == Transport::Tls {
            return;
        }
        if let Ok(turn) = Arc::clone(&self.refused).try_acquire_owned() {
            tokio::spawn(async move {
                connection::refuse(socket).await;
                drop(turn);
            });
        }
    }
}

/// Something that the log says now and then.
#[derive(Clone, Debug, Default)]
struct Seldom(Arc<Mutex<Option<Instant>>>);

impl Seldom {
    /// Whether it is time to say it again.
    fn is_due(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| last.elapsed() >= LOG_INTERVAL);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
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
    use tokio::net::TcpStream;
    use tokio::sync::{Notify, oneshot};
    use tokio::task::JoinHandle;

    use axum::Router;

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
