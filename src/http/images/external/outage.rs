//! The outage state of the external service: whether it can be reached, and when to try again.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use inventory::api::ApiError;

/// Why a call failed.
#[derive(Clone, Debug)]
pub(super) enum CallError {
    /// The service sent no response, or a gateway reported that it is unavailable.
    Unavailable(ApiError),
    /// The service refused the call, or its response is invalid.
    Refused(ApiError),
}

impl From<CallError> for ApiError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Unavailable(error) | CallError::Refused(error) => error,
        }
    }
}

impl From<ApiError> for CallError {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

/// The current outage of the service, if there is one.
#[derive(Debug)]
pub(super) struct OutageState {
    outage: Mutex<Option<Outage>>,
    retry: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Outage {
    since: Instant,
    /// The time from which the next call is allowed.
    retry_at: Instant,
}

impl OutageState {
    pub(super) fn new(retry: Duration) -> Self {
        Self { outage: Mutex::new(None), retry }
    }

    fn with_outage<T>(&self, use_it: impl FnOnce(&mut Option<Outage>) -> T) -> T {
        // A panic leaves the state valid, because it changes only by assignment.
        use_it(&mut self.outage.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records that a call did not reach the service.
    pub(super) fn begin(&self) {
        let now = Instant::now();
        let is_new = self.with_outage(|outage| {
            let since = outage.map_or(now, |outage| outage.since);
            outage.replace(Outage { since, retry_at: now + self.retry }).is_none()
        });
        if is_new {
            tracing::error!("external inventory unreachable, serving known images");
        }
    }

    /// Records that the service sent a response.
    pub(super) fn end(&self) {
        if let Some(outage) = self.with_outage(Option::take) {
            tracing::info!(outage = ?outage.since.elapsed(), "external inventory reachable again");
        }
    }

    /// Returns how long the outage has lasted. `None` if the last call reached the service.
    pub(super) fn length(&self) -> Option<Duration> {
        self.with_outage(|outage| outage.map(|outage| outage.since.elapsed()))
    }

    /// Returns an error during an outage, until the next call is allowed.
    pub(super) fn require_due(&self) -> Result<(), CallError> {
        let is_due = self.with_outage(|outage| outage.is_none_or(|outage| Instant::now() >= outage.retry_at));
        if is_due { Ok(()) } else { Err(unreachable_error("cannot reach the external inventory; try again")) }
    }

    /// Returns `true` if there is an outage and the next call is allowed. The caller must then make that call, because
    /// other callers have to wait for a while.
    pub(super) fn take_retry(&self) -> bool {
        let now = Instant::now();
        self.with_outage(|outage| match outage {
            Some(outage) if now >= outage.retry_at => {
                outage.retry_at = now + self.retry;
                true
            }
            _ => false,
        })
    }
}

/// Returns the error for a call that did not reach the service.
pub(super) fn unreachable_error(reason: &str) -> CallError {
    CallError::Unavailable(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_call_during_an_outage_is_due_after_a_pause_and_made_once() {
        let state = OutageState::new(Duration::from_secs(3600));
        assert!(state.length().is_none() && !state.take_retry());
        state.require_due().unwrap();
        state.begin();
        assert!(state.length().is_some() && !state.take_retry());
        let error = ApiError::from(state.require_due().unwrap_err());
        assert_eq!(error.status(), StatusCode::SERVICE_UNAVAILABLE);
        state.with_outage(|outage| outage.as_mut().unwrap().retry_at = Instant::now());
        state.require_due().unwrap();
        assert!(state.take_retry() && !state.take_retry());
        state.end();
        assert!(state.length().is_none());
    }
}
