//! Request slots: the limit on concurrent image requests.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The default number of image requests that are answered at a time. It limits the load on the inventory and the number
/// of concurrent plans. The Assisted Image Service has the same limit.
pub const MAX_REQUESTS: usize = 400;

/// The request slots. A slot is released when the head of the answer is made: a body takes as long as its reader does,
/// and would block all other clients.
#[derive(Clone, Debug)]
pub(super) struct RequestSlots(Arc<Semaphore>);

impl RequestSlots {
    /// Creates `most` slots.
    pub(super) fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS))))
    }

    /// Waits for a slot, which is released when it is dropped.
    pub(super) async fn next(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.0).acquire_owned().await.ok()
    }
}

impl Default for RequestSlots {
    fn default() -> Self {
        Self::new(MAX_REQUESTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn third_request_waits_for_a_free_slot() {
        let slots = RequestSlots::new(2);
        let (first, _second) = (slots.next().await, slots.next().await);
        let third = tokio::spawn({
            let slots = slots.clone();
            async move { slots.next().await.is_some() }
        });
        tokio::task::yield_now().await;
        assert!(!third.is_finished());
        drop(first);
        assert!(third.await.unwrap());
    }
}
