//! Requests to the service: retries, and a limit for concurrent requests.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use assisted::client::ClientError;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use crate::jitter::Jitter;
use crate::observer::{AgentEvent, AgentObserver, RequestKind};

/// Maximum number of retries of a request.
const RETRIES: u32 = 3;
/// Maximum pause before the first retry. The maximum doubles with each retry, up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The future of a response. The future is boxed because it is large, and an agent spends most of its time waiting for
/// the next poll.
pub(crate) type Response<'a, T> = Pin<Box<dyn Future<Output = Result<T, ClientError>> + Send + 'a>>;

/// Sender of all requests of an agent.
#[derive(Clone)]
pub(crate) struct Requests {
    pub(crate) slots: Option<Arc<Semaphore>>,
    pub(crate) observer: Arc<dyn AgentObserver>,
    pub(crate) jitter: Arc<Jitter>,
}

impl Requests {
    /// Sends a request, and retries it up to three times if the connection fails or the service is overloaded. A
    /// refused connection is not retried.
    pub(crate) async fn send<'a, T>(
        &self,
        kind: RequestKind,
        request: impl Fn() -> Response<'a, T> + Send,
    ) -> Result<T, ClientError> {
        let mut max_pause = FIRST_PAUSE;
        for _ in 0..RETRIES {
            match self.send_once(kind, request()).await {
                Err(error) if is_temporary(&error) => tracing::debug!(%error, "request failed, retrying"),
                result => return result,
            }
            sleep(self.jitter.up_to(max_pause)).await;
            max_pause = (max_pause * 2).min(LONGEST_PAUSE);
        }
        self.send_once(kind, request()).await
    }

    async fn send_once<T>(&self, kind: RequestKind, request: Response<'_, T>) -> Result<T, ClientError> {
        // The semaphore is never closed. If it were, the request would be sent without a slot.
        let _slot = match &self.slots {
            Some(slots) => slots.acquire().await.ok(),
            None => None,
        };
        let start = Instant::now();
        let result = request.await;
        let outcome = result.as_ref().map(|_| ());
        self.observer.observe(&AgentEvent::Request { kind, took: start.elapsed(), outcome });
        result
    }
}

/// Returns `true` if the same request can succeed within seconds.
fn is_temporary(error: &ClientError) -> bool {
    match error {
        ClientError::Timeout { .. } | ClientError::Connection { .. } => true,
        other => matches!(other.status(), Some(503 | 504)),
    }
}
