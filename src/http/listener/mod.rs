//! Accepts connections: listening sockets, TLS certificates, connection limits, and shutdown.
//!
//! An [`Acceptor`] accepts the connections of any number of [`Listener`]s within its [`ServerLimits`]. It passes each
//! connection to a [`ServeConnection`], and does not depend on HTTP.

mod client;
mod client_quota;
mod inherited;
mod limits;
mod listen;
mod peer;
mod socket;
mod threads;
mod tls;
mod unix;
mod validity;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

pub use client::ClientAddress;
use client_quota::{ConnectionSlots, TakenSlot};
pub use inherited::InheritedListener;
pub use limits::ServerLimits;
pub use listen::{ListenAddr, Listener};
pub use peer::{AllowedRequests, Peer, PeerTransport};
use socket::DetachedSocket;
pub(in crate::http) use socket::{Socket, charge_task_budget};
use threads::ConnectionThreads;
pub use tls::{Certificate, CertificateError, TlsRules, TlsVersion};

/// The pause after a failed `accept`. It usually fails for lack of file descriptors, until other connections end.
const PAUSE: Duration = Duration::from_millis(50);
/// Maximum number of concurrent responses to clients with too many connections. Beyond this number, connections are
/// closed without a response.
const MAX_REFUSALS: usize = 64;
/// Minimum interval between two log messages about the same limit.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// A handler of accepted connections.
pub(in crate::http) trait ServeConnection: Send + Sync + 'static {
    /// Serves a connection until it ends.
    fn serve(&self, accepted: AcceptedConnection) -> impl Future<Output = ()> + Send;

    /// Sends a refusal to a client with too many connections.
    fn refuse(socket: Socket) -> impl Future<Output = ()> + Send;
}

/// An accepted connection.
pub(in crate::http) struct AcceptedConnection {
    pub(in crate::http) socket: Socket,
    pub(in crate::http) peer: Peer,
    /// The TLS configuration of the listener. `None` without TLS.
    pub(in crate::http) tls: Option<TlsAcceptor>,
    /// The current phase of the shutdown. The server waits until all receivers are dropped.
    pub(in crate::http) shutdown: watch::Receiver<ShutdownPhase>,
}

/// The phase of a server's shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::http) enum ShutdownPhase {
    /// No shutdown was requested.
    Running,
    /// The server finishes requests in progress, and reads no new ones.
    Draining,
    /// The server closes the remaining connections.
    Closing,
}

/// Notifies a long request of the shutdown. The extensions of each request contain one.
#[derive(Clone, Debug)]
pub(in crate::http) struct ShutdownSignal(pub(in crate::http) watch::Receiver<ShutdownPhase>);

impl ShutdownSignal {
    /// Waits until the shutdown begins.
    pub(in crate::http) async fn begun(mut self) {
        // An error means that the server was dropped. That closes its connections too.
        let _ = self.0.wait_for(|phase| *phase > ShutdownPhase::Running).await;
    }
}

/// Accepts connections. Clones share the limits.
#[derive(Clone, Debug)]
pub(in crate::http) struct Acceptor {
    limits: ServerLimits,
    slots: ConnectionSlots,
    threads: ConnectionThreads,
    refusals: Arc<Semaphore>,
    is_full: LogThrottle,
    has_too_many: LogThrottle,
}

/// The state shared by all connections of a listener.
struct ListenerState<H> {
    handler: H,
    tls: Option<TlsAcceptor>,
    shutdown: watch::Receiver<ShutdownPhase>,
}

impl Acceptor {
    pub(in crate::http) fn new(limits: ServerLimits) -> Self {
        Self {
            limits,
            slots: ConnectionSlots::new(&limits),
            threads: ConnectionThreads::start(),
            refusals: Arc::new(Semaphore::new(MAX_REFUSALS)),
            is_full: LogThrottle::default(),
            has_too_many: LogThrottle::default(),
        }
    }

    pub(in crate::http) fn limits(&self) -> &ServerLimits {
        &self.limits
    }

    /// Serves the connections of a listener until `shutdown` completes. Then closes the listener, waits for the grace
    /// period, and closes the remaining connections.
    pub(in crate::http) async fn serve(
        &self,
        listener: Listener,
        handler: impl ServeConnection,
        shutdown: impl Future<Output = ()>,
    ) {
        let (phase, receiver) = watch::channel(ShutdownPhase::Running);
        let shared = Arc::new(ListenerState { handler, tls: listener.tls().cloned(), shutdown: receiver });
        let open = Arc::downgrade(&shared);
        tokio::select! {
            () = self.accept(&listener, &shared) => {}
            () = shutdown => {}
        }
        drop((listener, shared));
        phase.send_replace(ShutdownPhase::Draining);
        if tokio::time::timeout(self.limits.grace, phase.closed()).await.is_err() {
            tracing::warn!(
                connections = open.strong_count(),
                "shutdown grace period expired, closing connections"
            );
            phase.send_replace(ShutdownPhase::Closing);
            phase.closed().await;
        }
    }

    async fn accept<H: ServeConnection>(&self, listener: &Listener, shared: &Arc<ListenerState<H>>) {
        loop {
            if self.slots.are_all_taken() && self.is_full.is_due() {
                tracing::warn!(limit = self.limits.connections, "connection limit reached, new clients wait");
            }
            let slot = match self.slots.acquire_free().await {
                Ok(slot) => slot,
                Err(error) => {
                    tracing::error!(%error, "connection slots are gone, no more connections are accepted");
                    return;
                }
            };
            match listener.accept().await {
                Ok((socket, peer)) => match self.slots.assign(slot, peer.address.map(|address| address.ip()))
                {
                    Some(slot) => self.start_connection(slot, socket, peer, shared),
                    None => self.refuse_client::<H>(socket, peer),
                },
                Err(error) if concerns_one_connection(&error) => {}
                // Such a failure is temporary, so the server continues.
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Serves a connection on one of the connection threads.
    fn start_connection(
        &self,
        slot: TakenSlot,
        socket: Socket,
        peer: Peer,
        shared: &Arc<ListenerState<impl ServeConnection>>,
    ) {
        let shared = Arc::clone(shared);
        let detached = DetachedSocket::from_socket(socket);
        self.threads.spawn(async move {
            match detached.and_then(DetachedSocket::attach) {
                Ok(socket) => {
                    let (tls, shutdown) = (shared.tls.clone(), shared.shutdown.clone());
                    shared.handler.serve(AcceptedConnection { socket, peer, tls, shutdown }).await;
                }
                Err(error) => tracing::warn!(%peer, %error, "cannot serve a connection"),
            }
            drop(slot);
        });
    }

    /// Refuses a client that has more connections than its quota. Sends a response, unless that needs a TLS handshake.
    ///
    /// The client does not wait for a slot, because it would wait for its own connections.
    fn refuse_client<H: ServeConnection>(&self, socket: Socket, peer: Peer) {
        if self.has_too_many.is_due() {
            tracing::warn!(%peer, "client exceeds its connection quota");
        }
        if peer.transport == PeerTransport::Tls {
            return;
        }
        if let Ok(permit) = Arc::clone(&self.refusals).try_acquire_owned() {
            tokio::spawn(async move {
                H::refuse(socket).await;
                drop(permit);
            });
        }
    }
}

/// Limits a log message to one per [`LOG_INTERVAL`].
#[derive(Clone, Debug, Default)]
struct LogThrottle(Arc<Mutex<Option<Instant>>>);

impl LogThrottle {
    /// Returns `true` if the message may be logged now, and starts the next interval.
    fn is_due(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| last.elapsed() >= LOG_INTERVAL);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

/// Returns `true` if a failed `accept` concerns only one connection, not the listener.
fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
}
