//! RequestSlots at making answers.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many requests for images are answered at a time, unless it is set. It bounds what the inventory is asked, and how many
/// images are planned at once; the service that this one stands in for has the same number.
pub const MAX_REQUESTS: usize = 400;

/// RequestSlots of requests. A turn is over when the head of the answer is made: bodies take as long as their readers do, and would
/// leave no turn to anybody else.
#[derive(Clone, Debug)]
pub(super) struct RequestSlots(Arc<Semaphore>);

impl RequestSlots {
    /// So many at a time.
    pub(super) fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS))))
    }

    /// The next turn, which lasts until it is dropped.
    pub(super) async fn next(&self) -> Option<OwnedSemaphorePermit> {
        // Nobody closes the semaphore.
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
    async fn requests_take_turns() {
        let turns = RequestSlots::new(2);
        let (first, _second) = (turns.next().await, turns.next().await);
        let third = tokio::spawn({
            let turns = turns.clone();
            async move { turns.next().await.is_some() }
        });
        tokio::task::yield_now().await;
        assert!(!third.is_finished());
        drop(first);
        assert!(third.await.unwrap());
    }
}
