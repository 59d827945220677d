//! Reports to other parts of the program whether this process is the leader, and until when.

use std::future::pending;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::Inventory;

/// The leadership of this process. Clones observe the same lease independently.
///
/// The lease in the database lasts nine seconds and is renewed every few seconds. If it cannot be renewed, for example
/// because the database does not respond, [`valid_until`](Self::valid_until) passes before another replica can take
/// over. A writer must not start a request that can take effect after that.
#[derive(Clone, Debug)]
pub struct Leadership(watch::Receiver<Option<Instant>>);

impl Leadership {
    pub(super) fn new(lease_end: watch::Receiver<Option<Instant>>) -> Self {
        Self(lease_end)
    }

    /// Returns the instant until which no other process can be the leader. Returns `None` if this process is not the
    /// leader. Each renewal moves the instant forward.
    #[must_use]
    pub fn valid_until(&self) -> Option<Instant> {
        self.0.borrow().filter(|end| *end > Instant::now())
    }

    /// Returns `true` if this process is the leader.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.valid_until().is_some()
    }

    /// Waits until this process is the leader. Returns the instant until which no other process can be the leader.
    pub async fn acquired(&mut self) -> Instant {
        loop {
            if let Some(end) = self.valid_until() {
                return end;
            }
            if self.0.changed().await.is_err() {
                // The inventory has been dropped.
                return pending().await;
            }
        }
    }

    /// Waits until this process is not the leader: it has released the lease, has lost it to another process, or could
    /// not renew it in time.
    pub async fn lost(&mut self) {
        while let Some(end) = self.valid_until() {
            tokio::select! {
                () = sleep_until(end) => {}
                // After the inventory has been dropped, the lease is not renewed any more.
                () = async { if self.0.changed().await.is_err() { pending::<()>().await; } } => {}
            }
        }
    }
}

impl Inventory {
    /// Returns the leadership of this process. It depends on the lease in the database. With SQLite, the only process
    /// is always the leader. Only [`background::run`](crate::background::run) takes the lease, so this process is never
    /// the leader unless that function runs.
    ///
    /// The leader releases the lease when the process ends, and when one of its tasks makes no progress.
    ///
    /// # Examples
    ///
    /// ```
    /// # async fn lead(inventory: inventory::Inventory) {
    /// let mut leadership = inventory.leadership();
    /// loop {
    ///     leadership.acquired().await;
    ///     tokio::select! {
    ///         () = leadership.lost() => println!("stop writing"),
    ///         () = std::future::pending() => println!("reconcile"),
    ///     }
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        Leadership::new(self.tasks().subscribe_to_lease())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;

    use super::*;
    use crate::service::TaskStates;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn leadership_ends_when_the_lease_is_not_renewed() {
        let states = TaskStates::default();
        let mut leadership = Leadership::new(states.subscribe_to_lease());
        assert!(leadership.acquired().now_or_never().is_none() && !leadership.is_leader());
        let end = Instant::now() + 9 * SECOND;
        states.set_lease_end(Some(end));
        assert_eq!(leadership.acquired().now_or_never(), Some(end));
        tokio::time::advance(6 * SECOND).await;
        let renewed = Instant::now() + 9 * SECOND;
        states.set_lease_end(Some(renewed));
        assert_eq!(leadership.valid_until(), Some(renewed));
        leadership.lost().await;
        assert_eq!(Instant::now().duration_since(renewed).as_secs(), 0);
        assert!(!leadership.is_leader());
    }

    #[tokio::test(start_paused = true)]
    async fn leadership_ends_when_the_lease_is_released() {
        let states = TaskStates::default();
        let mut leadership = Leadership::new(states.subscribe_to_lease());
        states.set_lease_end(Some(Instant::now() + 9 * SECOND));
        assert!(leadership.lost().now_or_never().is_none());
        states.set_lease_end(None);
        assert_eq!(leadership.lost().now_or_never(), Some(()));
        drop(states);
        assert!(leadership.acquired().now_or_never().is_none());
    }
}
