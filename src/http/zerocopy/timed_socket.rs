//! Timeouts of a connection: clients that send nothing, or read nothing, for too long.
//!
//! A [`TimedSocket`] reads and writes like the socket in it. It fails if a client reads nothing of a response, or
//! does not finish a request. An idle connection ends as if the client had closed it.
//!
//! The state of a connection is one atomic number. A mutex around a plain struct was measured: a range of 2 KiB over a
//! kept connection then took 11,154 instructions instead of 10,879 (2.5 % more,
//! `.ci/instructions connection-image-2KiB`), and 23,238 instead of 22,800 through hyper (1.9 % more,
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

/// The state of a connection, as its reader of requests and its responses report it. Clones are the same state.
#[derive(Clone, Debug)]
pub(in crate::http) struct ConnectionProgress(Arc<SharedProgress>);

#[derive(Debug)]
struct SharedProgress {
    begun: Instant,
    /// A [`ConnectionState`], as a number.
    at: AtomicU64,
    /// The task of the connection. It starts to wait for the client when the reader of a body does.
    connection: AtomicWaker,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ConnectionState {
    stage: ConnectionStage,
    /// Whether more of the response follows at once.
    has_more: bool,
    /// The time since when the connection has waited for the client, counted from its start. `None` until it waits:
    /// clients are usually faster, and then no clock is read.
    since: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionStage {
    /// The head of a request is being received.
    Head,
    /// A reader waits for the rest of a request.
    Body,
    /// A request is being answered.
    Answer,
    /// No request is open.
    Idle,
}

impl ConnectionState {
    fn from_stage(stage: ConnectionStage) -> Self {
        Self { stage, has_more: false, since: None }
    }

    /// Encodes the state: the stage in two bits, `has_more` in one bit, and above them the nanoseconds of `since` plus
    /// one, which are enough for 73 years.
    fn encode(self) -> u64 {
        const MAX_NANOS: u64 = (u64::MAX >> 3) - 1;
        let nanos = |since: Duration| u64::try_from(since.as_nanos()).unwrap_or(MAX_NANOS).min(MAX_NANOS);
        let since = self.since.map_or(0, |since| nanos(since) + 1);
        since << 3 | u64::from(self.has_more) << 2 | self.stage as u64
    }

    fn decode(number: u64) -> Self {
        let stage = match number & 3 {
            0 => ConnectionStage::Head,
            1 => ConnectionStage::Body,
            2 => ConnectionStage::Answer,
            _ => ConnectionStage::Idle,
        };
        let since = (number >> 3).checked_sub(1).map(Duration::from_nanos);
        Self { stage, has_more: number & 4 != 0, since }
    }
}

impl ConnectionProgress {
    /// Returns the state of a new connection, whose first request is on its way.
    pub(in crate::http) fn new() -> Self {
        let at = AtomicU64::new(ConnectionState::from_stage(ConnectionStage::Head).encode());
        Self(Arc::new(SharedProgress { begun: Instant::now(), at, connection: AtomicWaker::new() }))
    }

    fn state(&self) -> ConnectionState {
        ConnectionState::decode(self.0.at.load(Ordering::Acquire))
    }

    /// Applies a change, and returns the state after it.
    fn update_state(&self, change: impl Fn(ConnectionState) -> ConnectionState) -> ConnectionState {
        let mut before = self.0.at.load(Ordering::Acquire);
        loop {
            let after = change(ConnectionState::decode(before));
            let number = after.encode();
            if number == before {
                return after;
            }
            match self.0.at.compare_exchange_weak(before, number, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return after,
                Err(other) => before = other,
            }
        }
    }

    /// Begins a stage if `is_from` holds for the current one.
    fn enter_stage(&self, stage: ConnectionStage, is_from: impl Fn(ConnectionStage) -> bool) {
        self.update_state(|at| if is_from(at.stage) { ConnectionState::from_stage(stage) } else { at });
    }

    /// Records that a request, or more of its body, was received.
    pub(in crate::http) fn record_request(&self) {
        self.enter_stage(ConnectionStage::Answer, |_| true);
    }

    /// Records that a reader waits for more of the request body. It may be on another thread than the connection.
    pub(in crate::http) fn record_body_wait(&self) {
        self.enter_stage(ConnectionStage::Body, |stage| stage != ConnectionStage::Body);
        self.0.connection.wake();
    }

    /// Reports whether a reader waits for more of the request body.
    pub(in crate::http) fn is_waiting_for_body(&self) -> bool {
        self.state().stage == ConnectionStage::Body
    }

    /// Records that no reader waits for the request body any more.
    pub(in crate::http) fn end_body_wait(&self) {
        self.enter_stage(ConnectionStage::Answer, |stage| stage == ConnectionStage::Body);
    }

    /// Records that the whole response was handed to the connection.
    pub(in crate::http) fn record_answered(&self) {
        self.enter_stage(ConnectionStage::Idle, |_| true);
    }

    /// Lets the connection start its idle time, if it has looked for the next request before the response was complete.
    pub(in crate::http) fn wake_connection(&self) {
        self.0.connection.wake();
    }

    /// Records a poll for the next part of a response, and whether more of it is available at once.
    pub(in crate::http) fn record_frame_poll(&self, has_more: bool) {
        self.update_state(|at| ConnectionState { has_more, ..at });
    }

    fn record_received(&self) {
        self.update_state(|at| match at.stage {
            ConnectionStage::Idle => ConnectionState::from_stage(ConnectionStage::Head),
            ConnectionStage::Body => ConnectionState { since: None, ..at },
            ConnectionStage::Head | ConnectionStage::Answer => at,
        });
    }

    /// Restarts the idle time. A slow client reads the rest of a response long after it was handed over.
    fn record_sent(&self) {
        self.enter_stage(ConnectionStage::Idle, |stage| stage == ConnectionStage::Idle);
    }

    /// Reports whether a whole request head was received whose response is not yet complete.
    pub(in crate::http) fn is_answering(&self) -> bool {
        matches!(self.state().stage, ConnectionStage::Body | ConnectionStage::Answer)
    }

    /// Reports whether no request is open.
    pub(in crate::http) fn is_idle(&self) -> bool {
        self.state().stage == ConnectionStage::Idle
    }

    pub(in crate::http) fn has_more(&self) -> bool {
        self.state().has_more
    }

    /// Returns the stage and the time since when the connection waits for the client: now, if it did not wait before.
    /// In [`ConnectionStage::Answer`] it does not wait, and the time has no meaning.
    fn waiting_since(&self) -> (ConnectionStage, Instant) {
        let mut at = self.state();
        // While the server answers, it does not wait for the client.
        if at.since.is_none() && at.stage != ConnectionStage::Answer {
            let now = self.0.begun.elapsed();
            at = self.update_state(|at| ConnectionState { since: at.since.or(Some(now)), ..at });
        }
        (at.stage, self.0.begun + at.since.unwrap_or_default())
    }
}

/// A timer that is created when it is first polled, and moved only if necessary.
#[derive(Debug, Default)]
struct LazyTimer(Option<Pin<Box<Sleep>>>);

impl LazyTimer {
    /// Completes at `time`.
    fn poll(&mut self, time: Instant, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.0.get_or_insert_with(|| Box::pin(sleep_until(time)));
        if timer.deadline() > time {
            timer.as_mut().reset(time);
        }
        while timer.as_mut().poll(context).is_ready() {
            if Instant::now() >= time {
                return Poll::Ready(());
            }
            timer.as_mut().reset(time);
        }
        Poll::Pending
    }
}

/// A socket whose reads and writes time out.
#[derive(Debug)]
pub(in crate::http) struct TimedSocket<S> {
    socket: S,
    progress: ConnectionProgress,
    head_time: Duration,
    idle_time: Duration,
    stall_time: Duration,
    /// The time since when the client has taken nothing.
    stalled: Option<Instant>,
    /// The number of unacknowledged bytes at the last check, and the time since when it is unchanged.
    rest: Option<(usize, Instant)>,
    /// The number of unacknowledged bytes after the last write that succeeded only when it was tried again.
    unsent_after_retry: Option<usize>,
    /// Whether the client has taken nothing for the stall time. Nothing more is sent to it, not even the end of TLS.
    has_stalled: bool,
    reads: LazyTimer,
    writes: LazyTimer,
}

impl<S: DirectSocket> TimedSocket<S> {
    pub(in crate::http) fn new(socket: S, progress: ConnectionProgress, limits: &ServerLimits) -> Self {
        Self {
            socket,
            progress,
            head_time: limits.head_time,
            idle_time: limits.idle_time,
            stall_time: limits.stall_time,
            stalled: None,
            rest: None,
            unsent_after_retry: None,
            has_stalled: false,
            reads: LazyTimer::default(),
            writes: LazyTimer::default(),
        }
    }

    /// Waits for a client that sends nothing, up to the timeout of the current stage.
    fn poll_client_silence(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (mut stage, mut since) = self.progress.waiting_since();
        if stage == ConnectionStage::Answer {
            self.progress.0.connection.register(context.waker());
            (stage, since) = self.progress.waiting_since();
        }
        match stage {
            ConnectionStage::Answer => Poll::Pending,
            ConnectionStage::Head => {
                ready!(self.reads.poll(since + self.head_time, context));
                Poll::Ready(Err(ClientTimeout::Head.into()))
            }
            ConnectionStage::Body => {
                ready!(self.reads.poll(since + self.stall_time, context));
                Poll::Ready(Err(ClientTimeout::Body.into()))
            }
            ConnectionStage::Idle => {
                // A client that has not yet read a whole response is not idle.
                let since = if self.stalled.is_some() { Instant::now() } else { since };
                ready!(self.reads.poll(since + self.idle_time.min(self.stall_time), context));
                self.poll_idle(since + self.idle_time, context)
            }
        }
    }

    /// Waits until a connection has been idle for long enough. Fails earlier if the client acknowledges nothing of the
    /// last response.
    fn poll_idle(&mut self, until: Instant, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if Instant::now() < until {
            ready!(self.poll_acknowledged(context))?;
        }
        self.reads.poll(until, context).map(Ok)
    }

    /// Waits until the client has acknowledged everything. Fails if it acknowledges nothing for the stall time.
    fn poll_acknowledged(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ClientTimeout>> {
        loop {
            let unsent = self.socket.unsent_len();
            if unsent == 0 {
                self.rest = None;
                return Poll::Ready(Ok(()));
            }
            let now = Instant::now();
            let since = self.rest.filter(|(before, _)| *before == unsent).map_or(now, |(_, since)| since);
            self.rest = Some((unsent, since));
            if now >= since + self.stall_time {
                return Poll::Ready(Err(self.give_up()));
            }
            ready!(self.writes.poll(since + self.stall_time, context));
        }
    }

    /// Handles the result of a write. If the socket took nothing, waits up to the stall time and tries once more.
    fn poll_write_result(
        &mut self,
        written: Poll<io::Result<usize>>,
        slices: &[IoSlice<'_>],
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.restart_stall_timer();
            return written;
        }
        let since = *self.stalled.get_or_insert_with(Instant::now);
        ready!(self.writes.poll(since + self.stall_time, context));
        // The socket may have had some room all the time.
        if self.unsent_after_retry.is_some_and(|len| len > 0 && len == self.socket.unsent_len()) {
            return Poll::Ready(Err(self.give_up().into()));
        }
        match self.socket.write_now(slices) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Poll::Ready(Err(self.give_up().into()))
            }
            written => {
                self.restart_stall_timer();
                self.unsent_after_retry = Some(self.socket.unsent_len());
                Poll::Ready(written)
            }
        }
    }

    /// Records that the client has stalled, and returns the error.
    fn give_up(&mut self) -> ClientTimeout {
        self.has_stalled = true;
        self.socket.discard_unsent_on_close();
        ClientTimeout::Answer
    }

    fn require_not_stalled(&self) -> io::Result<()> {
        if self.has_stalled { Err(ClientTimeout::Answer.into()) } else { Ok(()) }
    }

    fn restart_stall_timer(&mut self) {
        (self.stalled, self.rest) = (None, None);
        self.progress.record_sent();
    }
}

/// The timeout that a client exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::http) enum ClientTimeout {
    /// For a request head. Browsers and scanners often connect without a request.
    #[error("request head not received in time")]
    Head,
    /// For the rest of an announced request body.
    #[error("request body not received in time")]
    Body,
    /// For reading the response.
    #[error("client read nothing for too long")]
    Answer,
}

impl From<ClientTimeout> for io::Error {
    fn from(late: ClientTimeout) -> Self {
        Self::new(io::ErrorKind::TimedOut, late)
    }
}

impl<S: AsyncRead + DirectSocket + Unpin> AsyncRead for TimedSocket<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let Poll::Ready(done) = Pin::new(&mut this.socket).poll_read(context, buf) else {
            return this.poll_client_silence(context);
        };
        if buf.filled().len() > before {
            this.progress.record_received();
        }
        Poll::Ready(done)
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
        let written = Pin::new(&mut this.socket).poll_write_vectored(context, slices);
        this.poll_write_result(written, slices, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    /// hyper flushes between the parts of a response too. They are sent together if more follows at once.
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
        // hyper treats the error of an idle connection as its end, and shuts it down.
        if this.rest.is_some()
            && let Poll::Ready(Err(late)) = this.poll_acknowledged(context)
        {
            return Poll::Ready(Err(late.into()));
        }
        match Pin::new(&mut this.socket).poll_shutdown(context) {
            Poll::Pending => this.poll_acknowledged(context).map_err(Into::into),
            done => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[test]
    fn connection_state_survives_its_encoding() {
        let long = Duration::from_secs(60 * 60 * 24 * 365 * 70);
        for stage in
            [ConnectionStage::Head, ConnectionStage::Body, ConnectionStage::Answer, ConnectionStage::Idle]
        {
            for has_more in [false, true] {
                for since in [None, Some(Duration::ZERO), Some(Duration::from_nanos(1)), Some(long)] {
                    let at = ConnectionState { stage, has_more, since };
                    assert_eq!(ConnectionState::decode(at.encode()), at);
                }
            }
        }
        let at = ConnectionState {
            since: Some(Duration::MAX),
            ..ConnectionState::from_stage(ConnectionStage::Body)
        };
        assert!(ConnectionState::decode(at.encode()).since > Some(long), "a clock that has gone mad");
    }

    #[test]
    fn wait_is_counted_from_its_first_check() {
        let progress = ConnectionProgress::new();
        let (stage, since) = progress.waiting_since();
        assert_eq!((stage, progress.waiting_since().1), (ConnectionStage::Head, since));
        progress.record_received();
        assert_eq!(progress.waiting_since().1, since, "the head is as long in coming");
        progress.record_request();
        assert_eq!((progress.waiting_since().0, progress.state().since), (ConnectionStage::Answer, None));
        progress.record_body_wait();
        let (stage, since) = progress.waiting_since();
        progress.record_body_wait();
        assert_eq!((stage, progress.waiting_since().1), (ConnectionStage::Body, since));
        progress.record_received();
        assert_eq!(progress.state(), ConnectionState::from_stage(ConnectionStage::Body));
        progress.end_body_wait();
        progress.record_frame_poll(true);
        assert!(progress.has_more() && !progress.is_idle());
        progress.record_answered();
        assert!(progress.is_idle() && !progress.has_more());
        let (stage, since) = progress.waiting_since();
        assert_eq!((stage, progress.waiting_since().1), (ConnectionStage::Idle, since));
        progress.record_sent();
        assert_eq!(
            progress.state(),
            ConnectionState::from_stage(ConnectionStage::Idle),
            "a client that reads is not idle"
        );
        progress.record_received();
        assert_eq!(progress.state(), ConnectionState::from_stage(ConnectionStage::Head));
    }

    /// A socket with room for one more byte that the kernel never reports as writable. Its client acknowledges nothing.
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
    async fn client_that_acknowledges_nothing_stalls_although_its_socket_has_room() {
        let limits = ServerLimits { stall_time: Duration::from_millis(1), ..ServerLimits::default() };
        let mut socket = TimedSocket::new(StalledSocket, ConnectionProgress::new(), &limits);
        assert_eq!(socket.write(b"part").await.unwrap(), 1);
        for _ in 0..2 {
            let error = socket.write(b"part").await.unwrap_err();
            assert_eq!(error.to_string(), ClientTimeout::Answer.to_string());
        }
        assert!(socket.shutdown().await.is_err());
    }
}
