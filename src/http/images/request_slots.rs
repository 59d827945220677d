//! Request slots limit the number of concurrent image requests.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use inventory::api::ApiError;

/// The default number of concurrent image requests. It limits the load on the inventory and the number of plans in
/// creation. The Assisted Image Service has the same limit.
pub(crate) const MAX_REQUESTS: usize = 400;

/// The request slots. A request releases its slot before the response body is sent. Otherwise, slow clients could hold
/// all slots and block other clients.
#[derive(Clone, Debug)]
pub(super) struct RequestSlots(Arc<Semaphore>);

impl RequestSlots {
    /// Creates `count` slots.
    pub(super) fn new(count: usize) -> Self {
        Self(Arc::new(Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS))))
    }

    /// Waits for a slot. The slot is released when it is dropped. Returns an error if the semaphore is closed, because
    /// no request may run without a slot.
    pub(super) async fn acquire(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        Arc::clone(&self.0).acquire_owned().await.map_err(|error| {
            tracing::error!(%error, "cannot take a request slot");
            ApiError::internal("no request slot available; see the service's log")
        })
    }
}

impl Default for RequestSlots {
    fn default() -> Self {
        Self::new(MAX_REQUESTS)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    #[tokio::test]
    async fn third_request_waits_for_a_free_slot() {
        let slots = RequestSlots::new(2);
        let (first, _second) = (slots.acquire().await, slots.acquire().await);
        let third = tokio::spawn({
            let slots = slots.clone();
            async move { slots.acquire().await.is_ok() }
        });
        tokio::task::yield_now().await;
        assert!(!third.is_finished());
        drop(first);
        assert!(third.await.unwrap());
    }

    #[tokio::test]
    async fn no_request_runs_without_a_slot() {
        let slots = RequestSlots::new(2);
        slots.0.close();
        assert_eq!(slots.acquire().await.unwrap_err().status(), StatusCode::INTERNAL_SERVER_ERROR);
    }
}
