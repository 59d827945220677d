//! Read and write timeouts of one HTTP connection.
//!
//! A [`TimedSocket`] wraps the socket of a connection. The timeout depends on what the server waits for:
//!
//! | the server waits for | timeout in [`ServerLimits`] | after the timeout |
//! |---|---|---|
//! | a request head | `head_time` | reading fails with [`ClientTimeout::Head`] |
//! | more of a request body | `stall_time` | reading fails with [`ClientTimeout::Body`] |
//! | the client to read the response | `stall_time` | reading or writing fails with [`ClientTimeout::Response`] |
//! | the next request | `idle_time` | the stream ends, as if the client had closed the connection |
//!
//! The code that reads requests and the code that sends responses record the current stage in a
//! [`ConnectionProgress`]. The socket alone cannot distinguish the stages.
//!
//! The state of a connection is packed into one atomic integer, because a mutex needs more instructions. With a mutex
//! around a plain struct, a range of 2 KiB over a keep-alive connection took 11,154 instructions instead of 10,879
//! (2.5 % more, `.ci/instructions connection-image-2KiB`). Through hyper, it took 23,238 instead of 22,800 (1.9 % more,
//! `connection-2KiB-hyper`).

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::direct_socket::DirectSocket;
use crate::http::listener::ServerLimits;

/// The stage of a connection: what the server receives, sends or waits for. Clones share the state.
#[derive(Clone, Debug)]
pub(in crate::http) struct ConnectionProgress(Arc<SharedProgress>);

#[derive(Debug)]
struct SharedProgress {
    start: Instant,
    /// The encoded [`ConnectionState`].
    state: AtomicU64,
    /// The task that polls the connection. It is woken when the connection begins to wait for the client, so that it
    /// starts the timer.
    task: AtomicWaker,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ConnectionState {
    stage: ConnectionStage,
    /// Whether the next part of the response is expected immediately.
    has_more: bool,
    /// When the current wait for the client began, counted from the start of the connection. `None` until a read finds
    /// no bytes. Usually bytes have already arrived, and then the clock is not read.
    wait_start: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionStage {
    /// The server waits for the rest of a request head.
    Head,
    /// A handler waits for more of the request body.
    Body,
    /// The server prepares or sends the response, and waits for no bytes from the client.
    Response,
    /// No request is in progress. The kernel may still be sending the last response.
    Idle,
}

impl ConnectionState {
    fn from_stage(stage: ConnectionStage) -> Self {
        Self { stage, has_more: false, wait_start: None }
    }

    /// Packs the state into an integer. From the lowest bit: two bits for the stage, one bit for `has_more`, and 61
    /// bits for `wait_start`. The 61 bits are 0 for `None`, and otherwise one more than the nanoseconds (up to 73
    /// years).
    fn encode(self) -> u64 {
        const MAX_NANOS: u64 = (u64::MAX >> 3) - 1;
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(MAX_NANOS).min(MAX_NANOS);
        let wait_start = self.wait_start.map_or(0, |time| nanos(time) + 1);
        wait_start << 3 | u64::from(self.has_more) << 2 | self.stage as u64
    }

    fn decode(bits: u64) -> Self {
        let stage = match bits & 3 {
            0 => ConnectionStage::Head,
            1 => ConnectionStage::Body,
            2 => ConnectionStage::Response,
            _ => ConnectionStage::Idle,
        };
        let wait_start = (bits >> 3).checked_sub(1).map(Duration::from_nanos);
        Self { stage, has_more: bits & 4 != 0, wait_start }
    }
}

impl ConnectionProgress {
    /// Returns the state of a new connection, which waits for its first request.
    pub(in crate::http) fn new() -> Self {
        let state = AtomicU64::new(ConnectionState::from_stage(ConnectionStage::Head).encode());
        Self(Arc::new(SharedProgress { start: Instant::now(), state, task: AtomicWaker::new() }))
    }

    fn state(&self) -> ConnectionState {
        ConnectionState::decode(self.0.state.load(Ordering::Acquire))
    }

    /// Changes the state in one atomic step, and returns the new state. `change` runs again if another thread changes
    /// the state at the same time.
    fn update_state(&self, change: impl Fn(ConnectionState) -> ConnectionState) -> ConnectionState {
        let mut old_bits = self.0.state.load(Ordering::Acquire);
        loop {
            let new = change(ConnectionState::decode(old_bits));
            let new_bits = new.encode();
            if new_bits == old_bits {
                return new;
            }
            match self.0.state.compare_exchange_weak(old_bits, new_bits, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return new,
                Err(current_bits) => old_bits = current_bits,
            }
        }
    }

    /// Starts `stage` if `may_leave` returns `true` for the current stage.
    fn enter_stage(&self, stage: ConnectionStage, may_leave: impl Fn(ConnectionStage) -> bool) {
        self.update_state(|old| if may_leave(old.stage) { ConnectionState::from_stage(stage) } else { old });
    }

    /// Records that the server has received a request head or a part of a request body.
    pub(in crate::http) fn record_request(&self) {
        self.enter_stage(ConnectionStage::Response, |_| true);
    }

    /// Records that a handler waits for more of the request body, and starts the timeout for it. The handler may run on
    /// another thread than the connection.
    pub(in crate::http) fn record_body_wait(&self) {
        self.enter_stage(ConnectionStage::Body, |stage| stage != ConnectionStage::Body);
        self.0.task.wake();
    }

    /// Returns `true` if a handler waits for more of the request body.
    pub(in crate::http) fn is_waiting_for_body(&self) -> bool {
        self.state().stage == ConnectionStage::Body
    }

    /// Records that no handler waits for the request body any more.
    pub(in crate::http) fn end_body_wait(&self) {
        self.enter_stage(ConnectionStage::Response, |stage| stage == ConnectionStage::Body);
    }

    /// Records the end of the response body. The last bytes may not be sent yet.
    pub(in crate::http) fn record_response_end(&self) {
        self.enter_stage(ConnectionStage::Idle, |_| true);
    }

    /// Wakes the task of the connection to start the idle timeout. The task may already have tried to read the next
    /// request while the response was incomplete, when there was no timeout.
    pub(in crate::http) fn wake_connection(&self) {
        self.0.task.wake();
    }

    /// Records a poll of the response body by hyper. `has_more` is `true` if the poll returned a part that is not the
    /// last one. The next part is then expected immediately.
    pub(in crate::http) fn record_frame_poll(&self, has_more: bool) {
        self.update_state(|old| ConnectionState { has_more, ..old });
    }

    fn record_received(&self) {
        self.update_state(|old| match old.stage {
            ConnectionStage::Idle => ConnectionState::from_stage(ConnectionStage::Head),
            ConnectionStage::Body => ConnectionState { wait_start: None, ..old },
            ConnectionStage::Head | ConnectionStage::Response => old,
        });
    }

    /// Restarts the idle timeout after each write. A slow client may still be receiving a response that hyper completed
    /// long ago.
    fn record_sent(&self) {
        self.enter_stage(ConnectionStage::Idle, |stage| stage == ConnectionStage::Idle);
    }

    /// Returns `true` if the server has received a request head, and the response is incomplete.
    pub(in crate::http) fn is_responding(&self) -> bool {
        matches!(self.state().stage, ConnectionStage::Body | ConnectionStage::Response)
    }

    /// Returns `true` if no request is in progress.
    pub(in crate::http) fn is_idle(&self) -> bool {
        self.state().stage == ConnectionStage::Idle
    }

    pub(in crate::http) fn has_more(&self) -> bool {
        self.state().has_more
    }

    /// Returns the stage, and the time when the current wait for the client began. The wait begins now if none was in
    /// progress. In [`ConnectionStage::Response`], the connection does not wait, and the time has no meaning.
    fn stage_and_wait_start(&self) -> (ConnectionStage, Instant) {
        let mut state = self.state();
        if state.wait_start.is_none() && state.stage != ConnectionStage::Response {
            let now = self.0.start.elapsed();
            state =
                self.update_state(|old| ConnectionState { wait_start: old.wait_start.or(Some(now)), ..old });
        }
        (state.stage, self.0.start + state.wait_start.unwrap_or_default())
    }
}

/// A timer for a deadline that often moves into the future. It is allocated on the first poll. A later deadline does
/// not reset the timer before it expires, so most polls leave the timer unchanged.
#[derive(Debug, Default)]
struct LazyTimer(Option<Pin<Box<Sleep>>>);

impl LazyTimer {
    /// Completes at `deadline`.
    fn poll(&mut self, deadline: Instant, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.0.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        while timer.as_mut().poll(context).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

/// A socket whose reads and writes fail if the client is silent for too long. The [module](self) lists the timeouts.
#[derive(Debug)]
pub(in crate::http) struct TimedSocket<S> {
    socket: S,
    progress: ConnectionProgress,
    head_time: Duration,
    idle_time: Duration,
    stall_time: Duration,
    /// When the current write began to wait for room in the socket. `None` if no write waits.
    blocked_since: Option<Instant>,
    /// The number of unacknowledged bytes, and the time of the first check that found this number. `None` while no such
    /// check is in progress.
    unacked: Option<(usize, Instant)>,
    /// The number of unacknowledged bytes after the last successful retry of a blocked write.
    unacked_after_retry: Option<usize>,
    /// Whether the client has read nothing for `stall_time`. The server then sends it nothing more, not even the end of
    /// the TLS session.
    has_stalled: bool,
    read_timer: LazyTimer,
    write_timer: LazyTimer,
}

impl<S: DirectSocket> TimedSocket<S> {
    pub(in crate::http) fn new(socket: S, progress: ConnectionProgress, limits: &ServerLimits) -> Self {
        Self {
            socket,
            progress,
            head_time: limits.head_time,
            idle_time: limits.idle_time,
            stall_time: limits.stall_time,
            blocked_since: None,
            unacked: None,
            unacked_after_retry: None,
            has_stalled: false,
            read_timer: LazyTimer::default(),
            write_timer: LazyTimer::default(),
        }
    }

    /// Waits for the timeout of the current stage, after a read that found no bytes. Returns an error at the timeout
    /// for a request, and `Ok` at the end of the idle time.
    fn poll_read_timeout(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (mut stage, mut wait_start) = self.progress.stage_and_wait_start();
        if stage == ConnectionStage::Response {
            self.progress.0.task.register(context.waker());
            // The stage may have changed before the task was registered.
            (stage, wait_start) = self.progress.stage_and_wait_start();
        }
        match stage {
            ConnectionStage::Response => Poll::Pending,
            ConnectionStage::Head => {
                ready!(self.read_timer.poll(wait_start + self.head_time, context));
                Poll::Ready(Err(ClientTimeout::Head.into()))
            }
            ConnectionStage::Body => {
                ready!(self.read_timer.poll(wait_start + self.stall_time, context));
                Poll::Ready(Err(ClientTimeout::Body.into()))
            }
            ConnectionStage::Idle => {
                // While a write is blocked, the client is still receiving a response, so the connection is not idle.
                let idle_start = if self.blocked_since.is_some() { Instant::now() } else { wait_start };
                ready!(self.read_timer.poll(idle_start + self.idle_time.min(self.stall_time), context));
                self.poll_idle(idle_start + self.idle_time, context)
            }
        }
    }

    /// Waits until `idle_end`. Returns an error earlier if the client has not acknowledged the whole last response, and
    /// acknowledges nothing for `stall_time`.
    fn poll_idle(&mut self, idle_end: Instant, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if Instant::now() < idle_end {
            ready!(self.poll_acknowledged(context))?;
        }
        self.read_timer.poll(idle_end, context).map(Ok)
    }

    /// Waits until the client has acknowledged all bytes. Returns an error if it acknowledges nothing for `stall_time`.
    fn poll_acknowledged(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ClientTimeout>> {
        loop {
            let len = self.socket.unsent_len();
            if len == 0 {
                self.unacked = None;
                return Poll::Ready(Ok(()));
            }
            let now = Instant::now();
            let since = self.unacked.filter(|(old_len, _)| *old_len == len).map_or(now, |(_, since)| since);
            self.unacked = Some((len, since));
            if now >= since + self.stall_time {
                return Poll::Ready(Err(self.mark_stalled()));
            }
            ready!(self.write_timer.poll(since + self.stall_time, context));
        }
    }

    /// Handles the result of a write. If the socket is full, waits up to `stall_time` and then retries the write once:
    /// the kernel may have room for a few bytes before it reports the socket as writable.
    fn poll_write_result(
        &mut self,
        result: Poll<io::Result<usize>>,
        slices: &[IoSlice<'_>],
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if result.is_ready() {
            self.restart_stall_timer();
            return result;
        }
        let since = *self.blocked_since.get_or_insert_with(Instant::now);
        ready!(self.write_timer.poll(since + self.stall_time, context));
        // A retry can also succeed because the send buffer was not quite full before. So the client has stalled if it
        // has acknowledged nothing since the last retry.
        if self.unacked_after_retry.is_some_and(|len| len > 0 && len == self.socket.unsent_len()) {
            return Poll::Ready(Err(self.mark_stalled().into()));
        }
        match self.socket.write_now(slices) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Poll::Ready(Err(self.mark_stalled().into()))
            }
            retried => {
                self.restart_stall_timer();
                self.unacked_after_retry = Some(self.socket.unsent_len());
                Poll::Ready(retried)
            }
        }
    }

    /// Ends all sending to a client that has stalled, and returns the error to report.
    fn mark_stalled(&mut self) -> ClientTimeout {
        self.has_stalled = true;
        self.socket.discard_unsent_on_close();
        ClientTimeout::Response
    }

    fn require_not_stalled(&self) -> io::Result<()> {
        if self.has_stalled { Err(ClientTimeout::Response.into()) } else { Ok(()) }
    }

    fn restart_stall_timer(&mut self) {
        (self.blocked_since, self.unacked) = (None, None);
        self.progress.record_sent();
    }
}

/// The timeout that a client exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::http) enum ClientTimeout {
    /// The request head was incomplete. Browsers and scanners often connect and send no request.
    #[error("request head not received in time")]
    Head,
    /// The announced request body was incomplete, and no more of it arrived.
    #[error("request body not received in time")]
    Body,
    /// The client stopped reading the response.
    #[error("client read nothing for too long")]
    Response,
}

impl From<ClientTimeout> for io::Error {
    fn from(timeout: ClientTimeout) -> Self {
        Self::new(io::ErrorKind::TimedOut, timeout)
    }
}

impl<S: AsyncRead + DirectSocket + Unpin> AsyncRead for TimedSocket<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let old_len = buf.filled().len();
        let Poll::Ready(result) = Pin::new(&mut this.socket).poll_read(context, buf) else {
            return this.poll_read_timeout(context);
        };
        if buf.filled().len() > old_len {
            this.progress.record_received();
        }
        Poll::Ready(result)
    }
}

impl<S: AsyncWrite + DirectSocket + Unpin> AsyncWrite for TimedSocket<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.require_not_stalled()?;
        let result = Pin::new(&mut this.socket).poll_write_vectored(context, slices);
        this.poll_write_result(result, slices, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    /// Flushes the socket, unless the next part of the response is expected immediately. hyper also flushes between two
    /// parts of a response, and without that flush the parts are sent together.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.progress.has_more() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.socket).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.require_not_stalled()?;
        // If reading fails while the connection is idle, hyper reports no error and shuts the connection down. Check
        // here again whether the client has stalled.
        if this.unacked.is_some()
            && let Poll::Ready(Err(timeout)) = this.poll_acknowledged(context)
        {
            return Poll::Ready(Err(timeout.into()));
        }
        match Pin::new(&mut this.socket).poll_shutdown(context) {
            Poll::Pending => this.poll_acknowledged(context).map_err(Into::into),
            result => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[test]
    fn connection_state_survives_encoding() {
        let long = Duration::from_secs(60 * 60 * 24 * 365 * 70);
        for stage in
            [ConnectionStage::Head, ConnectionStage::Body, ConnectionStage::Response, ConnectionStage::Idle]
        {
            for has_more in [false, true] {
                for wait_start in [None, Some(Duration::ZERO), Some(Duration::from_nanos(1)), Some(long)] {
                    let state = ConnectionState { stage, has_more, wait_start };
                    assert_eq!(ConnectionState::decode(state.encode()), state);
                }
            }
        }
        let state = ConnectionState {
            wait_start: Some(Duration::MAX),
            ..ConnectionState::from_stage(ConnectionStage::Body)
        };
        assert!(
            ConnectionState::decode(state.encode()).wait_start > Some(long),
            "out-of-range times are clamped"
        );
    }

    #[test]
    fn wait_starts_at_the_first_check() {
        let progress = ConnectionProgress::new();
        let (stage, wait_start) = progress.stage_and_wait_start();
        assert_eq!((stage, progress.stage_and_wait_start().1), (ConnectionStage::Head, wait_start));
        progress.record_received();
        assert_eq!(
            progress.stage_and_wait_start().1,
            wait_start,
            "received bytes do not restart the timeout for a head"
        );
        progress.record_request();
        assert_eq!(
            (progress.stage_and_wait_start().0, progress.state().wait_start),
            (ConnectionStage::Response, None)
        );
        progress.record_body_wait();
        let (stage, wait_start) = progress.stage_and_wait_start();
        progress.record_body_wait();
        assert_eq!((stage, progress.stage_and_wait_start().1), (ConnectionStage::Body, wait_start));
        progress.record_received();
        assert_eq!(progress.state(), ConnectionState::from_stage(ConnectionStage::Body));
        progress.end_body_wait();
        progress.record_frame_poll(true);
        assert!(progress.has_more() && !progress.is_idle());
        progress.record_response_end();
        assert!(progress.is_idle() && !progress.has_more());
        let (stage, wait_start) = progress.stage_and_wait_start();
        assert_eq!((stage, progress.stage_and_wait_start().1), (ConnectionStage::Idle, wait_start));
        progress.record_sent();
        assert_eq!(
            progress.state(),
            ConnectionState::from_stage(ConnectionStage::Idle),
            "a write restarts the idle timeout"
        );
        progress.record_received();
        assert_eq!(progress.state(), ConnectionState::from_stage(ConnectionStage::Head));
    }

    /// A socket that is never reported as writable but always accepts one more byte, for a client that acknowledges
    /// nothing.
    struct StalledSocket;

    impl AsyncWrite for StalledSocket {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Pending
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl DirectSocket for StalledSocket {
        fn write_now(&self, _: &[IoSlice<'_>]) -> io::Result<usize> {
            Ok(1)
        }

        fn unsent_len(&self) -> usize {
            7
        }

        fn discard_unsent_on_close(&self) {}
    }

    #[tokio::test]
    async fn client_that_acknowledges_nothing_stalls_even_if_the_socket_has_room() {
        let limits = ServerLimits { stall_time: Duration::from_millis(1), ..ServerLimits::default() };
        let mut socket = TimedSocket::new(StalledSocket, ConnectionProgress::new(), &limits);
        assert_eq!(socket.write(b"part").await.unwrap(), 1);
        for _ in 0..2 {
            let error = socket.write(b"part").await.unwrap_err();
            assert_eq!(error.to_string(), ClientTimeout::Response.to_string());
        }
        assert!(socket.shutdown().await.is_err());
    }
}
