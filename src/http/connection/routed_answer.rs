//! Runs the handler of a request on the thread of the connection, and moves it to another thread only if it must wait.
//!
//! The server responds from memory to most polls and repeated reports of agents. For such a response, waking another
//! thread and then the thread of the connection again would take longer than the handler itself. So the thread of the
//! connection polls the handler first. If the handler waits for anything except a short request body, the runtime of
//! the routes continues it. Handlers move long computations to other threads, and they yield before they parse a body.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{Response, StatusCode};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::http::zerocopy::ConnectionProgress;

/// Maximum length of a request body to wait for on the thread of the connection. A typical inventory report is shorter.
const MAX_BODY_LEN: u64 = 64 << 10;

type Answer = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// The future of a response. Dropping it cancels the work for it.
pub(super) struct RoutedAnswer {
    state: AnswerState,
    routes: Handle,
    progress: ConnectionProgress,
}

enum AnswerState {
    /// On the thread of the connection.
    Here { answer: Answer, has_short_body: bool },
    /// On the runtime of the routes.
    There(JoinHandle<Response<Body>>),
}

impl RoutedAnswer {
    /// Creates the future. `body_len` is the maximum length of the request body, if it is known.
    pub(super) fn new(
        answer: impl Future<Output = Response<Body>> + Send + 'static,
        body_len: Option<u64>,
        routes: &Handle,
        progress: &ConnectionProgress,
    ) -> Self {
        let has_short_body = body_len.is_some_and(|len| len <= MAX_BODY_LEN);
        let state = AnswerState::Here { answer: Box::pin(answer), has_short_body };
        Self { state, routes: routes.clone(), progress: progress.clone() }
    }
}

impl Future for RoutedAnswer {
    type Output = Response<Body>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response<Body>> {
        let Self { state, routes, progress } = &mut *self;
        let polled = match state {
            AnswerState::Here { answer, has_short_body } => {
                // Tasks, timers and sockets that the handler creates must belong to the runtime that may continue it.
                let entered = routes.enter();
                let polled = answer.as_mut().poll(context);
                drop(entered);
                if polled.is_ready() || *has_short_body && progress.is_waiting_for_body() {
                    return polled;
                }
                let mut task = routes.spawn(std::mem::replace(answer, Box::pin(std::future::pending())));
                let polled = Pin::new(&mut task).poll(context);
                *state = AnswerState::There(task);
                polled
            }
            AnswerState::There(task) => Pin::new(task).poll(context),
        };
        polled.map(|answer| {
            // The routes turn a panic into a response, so an error here means that the runtime of the routes has ended.
            answer.unwrap_or_else(|_| {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                response
            })
        })
    }
}

impl Drop for RoutedAnswer {
    fn drop(&mut self) {
        match &mut self.state {
            // Enter the runtime of the routes, so that the destructors of the handler's values run in it too.
            AnswerState::Here { answer, .. } => {
                let _entered = self.routes.enter();
                *answer = Box::pin(std::future::pending());
            }
            AnswerState::There(task) => task.abort(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread::{self, ThreadId};
    use std::time::Duration;

    use tokio::runtime::{Builder, Runtime};
    use tokio::time::{sleep, timeout};

    use super::*;

    fn routes() -> Runtime {
        Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    }

    /// Returns the threads on which a handler ran before and after `wait`.
    fn threads_of(
        wait: impl Future<Output = ()> + Send + 'static,
        body_len: u64,
        progress: &ConnectionProgress,
    ) -> (ThreadId, ThreadId) {
        let (sender, receiver) = std::sync::mpsc::channel();
        let answer = async move {
            let before = thread::current().id();
            wait.await;
            sender.send((before, thread::current().id())).unwrap();
            Response::new(Body::empty())
        };
        let routes = routes();
        // A runtime without timers, so the handler must use the timers of the routes.
        let connection = Builder::new_current_thread().build().unwrap();
        let answer = RoutedAnswer::new(answer, Some(body_len), routes.handle(), progress);
        assert_eq!(connection.block_on(answer).status(), StatusCode::OK);
        receiver.recv().unwrap()
    }

    #[test]
    fn handler_that_does_not_wait_stays_on_the_connection_thread() {
        let here = thread::current().id();
        assert_eq!(threads_of(async {}, 0, &ConnectionProgress::new()), (here, here));
    }

    #[test]
    fn waiting_handler_continues_on_the_runtime_of_the_routes() {
        let here = thread::current().id();
        let wait = async { sleep(Duration::from_millis(1)).await };
        let (before, after) = threads_of(wait, 0, &ConnectionProgress::new());
        assert_eq!(before, here);
        assert_ne!(after, here);
    }

    #[test]
    fn short_request_body_is_awaited_on_the_connection_thread() {
        let here = thread::current().id();
        for (len, stays) in [(MAX_BODY_LEN, true), (MAX_BODY_LEN + 1, false)] {
            let progress = ConnectionProgress::new();
            let reader = progress.clone();
            let body = async move {
                reader.record_body_wait();
                tokio::task::yield_now().await;
                reader.record_request();
            };
            let (before, after) = threads_of(body, len, &progress);
            assert_eq!((before, after == here), (here, stays), "{len} bytes");
        }
    }

    #[test]
    fn dropped_response_future_cancels_the_handler() {
        let routes = routes();
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let answer = async move {
            std::future::pending::<()>().await;
            drop(sender);
            Response::new(Body::empty())
        };
        let mut answer = RoutedAnswer::new(answer, Some(0), routes.handle(), &ConnectionProgress::new());
        let connection = Builder::new_current_thread().enable_all().build().unwrap();
        let polled = connection.block_on(async { timeout(Duration::from_millis(1), &mut answer).await });
        assert!(polled.is_err());
        drop(answer);
        let ended = receiver.recv_timeout(Duration::from_secs(60));
        assert_eq!(ended, Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
    }
}
