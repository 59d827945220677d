//! The watch over a connection: who says nothing, or takes nothing, for too long.
//!
//! A [`Watched`] socket reads and writes as the one in it. It fails where a client takes nothing of an answer, or does not
//! finish a request; a connection on which nothing is asked for any more ends as if the client had ended it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::limits::Limits;
use super::socket::Direct;

/// What a connection is at, as its reader of requests and its answers tell.
#[derive(Clone, Debug)]
pub(in crate::http) struct Progress(Arc<Mutex<At>>);

#[derive(Clone, Copy, Debug)]
struct At {
    stage: Stage,
    /// Since when somebody waits for the client to go on. Mostly it does before anybody has to, and nobody looks at a clock.
    since: Option<Instant>,
    /// Whether more of an answer follows for which nobody has to wait.
    has_more: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The head of a request is coming.
    Head,
    /// The rest of a request is wanted.
    Body,
    /// A request is being answered.
    Answer,
    /// Nothing is asked for.
    Idle,
}

impl Progress {
    /// A connection whose first request is on its way.
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(At { stage: Stage::Head, since: None, has_more: false })))
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut At) -> T) -> T {
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Begins a stage where the connection was in one of others.
    fn enter(&self, stage: Stage, is_from: impl FnOnce(Stage) -> bool) {
        self.with(|at| {
            if is_from(at.stage) {
                *at = At { stage, since: None, has_more: false };
            }
        });
    }

    /// A request is there, or more of it.
    pub(in crate::http) fn asked(&self) {
        self.enter(Stage::Answer, |_| true);
    }

    /// Somebody waits for more of the request.
    pub(in crate::http) fn waits_for_body(&self) {
        self.enter(Stage::Body, |stage| stage != Stage::Body);
    }

    /// Nobody does any more.
    pub(in crate::http) fn has_enough(&self) {
        self.enter(Stage::Answer, |stage| stage == Stage::Body);
    }

    /// All of its answer was handed over.
    pub(super) fn answered(&self) {
        self.enter(Stage::Idle, |_| true);
    }

    /// A part of an answer was handed over or has to be waited for, and more is at hand or not.
    pub(super) fn goes_on(&self, has_more: bool) {
        self.with(|at| at.has_more = has_more);
    }

    fn received(&self) {
        self.with(|at| match at.stage {
            Stage::Idle => *at = At { stage: Stage::Head, since: None, has_more: false },
            Stage::Body => at.since = None,
            Stage::Head | Stage::Answer => {}
        });
    }

    /// The rest of an answer is on its way long after it was handed over, if the client is slow.
    fn sent(&self) {
        self.enter(Stage::Idle, |stage| stage == Stage::Idle);
    }

    /// Whether nothing is asked for.
    pub(super) fn is_idle(&self) -> bool {
        self.stage() == Stage::Idle
    }

    pub(super) fn has_more(&self) -> bool {
        self.with(|at| at.has_more)
    }

    fn stage(&self) -> Stage {
        self.with(|at| at.stage)
    }

    /// Since when the client is waited for: now, if it was not before.
    fn since(&self) -> Instant {
        self.with(|at| *at.since.get_or_insert_with(Instant::now))
    }
}

/// A timer that is made when it is first waited for, and moved only when it has to be.
#[derive(Debug, Default)]
struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// Ready when a time has come.
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

/// A socket that does not wait for ever.
#[derive(Debug)]
pub(super) struct Watched<S> {
    socket: S,
    progress: Progress,
    head_time: Duration,
    idle_time: Duration,
    stall_time: Duration,
    /// Since when the client has taken nothing.
    stalled: Option<Instant>,
    reads: Timer,
    writes: Timer,
}

impl<S: Direct> Watched<S> {
    pub(super) fn new(socket: S, progress: Progress, limits: &Limits) -> Self {
        Self {
            socket,
            progress,
            head_time: limits.head_time,
            idle_time: limits.idle_time,
            stall_time: limits.stall_time,
            stalled: None,
            reads: Timer::default(),
            writes: Timer::default(),
        }
    }

    /// Waits for a client that says nothing, as long as that may take.
    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.progress.stage() {
            Stage::Answer => Poll::Pending,
            Stage::Head => {
                ready!(self.reads.poll(self.progress.since() + self.head_time, context));
                Poll::Ready(Err(Late::Head.into()))
            }
            Stage::Body => {
                ready!(self.reads.poll(self.progress.since() + self.stall_time, context));
                Poll::Ready(Err(Late::Body.into()))
            }
            Stage::Idle => {
                // Whoever still has an answer to take is not idle.
                let since = if self.stalled.is_some() { Instant::now() } else { self.progress.since() };
                self.reads.poll(since + self.idle_time, context).map(Ok)
            }
        }
    }

    /// What became of a write; where nothing did, this waits as long as it may take.
    fn poll_written(
        &mut self,
        written: Poll<io::Result<usize>>,
        slices: &[IoSlice<'_>],
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            self.progress.sent();
            return written;
        }
        let since = *self.stalled.get_or_insert_with(Instant::now);
        ready!(self.writes.poll(since + self.stall_time, context));
        match self.socket.write_now(slices) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.socket.forget_unsent();
                Poll::Ready(Err(Late::Answer.into()))
            }
            written => {
                self.stalled = None;
                self.progress.sent();
                Poll::Ready(written)
            }
        }
    }
}

/// What a client was too late with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Late {
    /// Browsers and scanners connect and say nothing.
    #[error("the head of a request did not come in time")]
    Head,
    /// It said that there would be more.
    #[error("the rest of a request did not come")]
    Body,
    /// It takes nothing any more.
    #[error("the client took nothing for too long")]
    Answer,
}

impl From<Late> for io::Error {
    fn from(late: Late) -> Self {
        Self::new(io::ErrorKind::TimedOut, late)
    }
}

impl<S: AsyncRead + Direct + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let Poll::Ready(done) = Pin::new(&mut this.socket).poll_read(context, buf) else {
            return this.poll_silence(context);
        };
        if buf.filled().len() > before {
            this.progress.received();
        }
        Poll::Ready(done)
    }
}

impl<S: AsyncWrite + Direct + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write(context, bytes);
        this.poll_written(written, &[IoSlice::new(bytes)], context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write_vectored(context, slices);
        this.poll_written(written, slices, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    /// hyper flushes between the parts of an answer too, which may go out together.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.progress.has_more() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.socket).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(context)
    }
}
