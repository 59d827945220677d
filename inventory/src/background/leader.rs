//! Leader election: whether this replica runs the tasks that only one replica of a deployment must run.
//!
//! Two leaders, for example after a process was suspended, do no harm, because each change by a task requires that its
//! reason still applies.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use crate::Inventory;
use crate::error::Error;
use crate::service::{LEASE_DURATION, TaskStates};

/// Interval at which a replica takes or renews the lease.
pub(super) const RENEWAL_INTERVAL: Duration = Duration::from_secs(3);
/// Maximum time without progress in a run of the leader. After that, another replica may take over.
const MAX_STALL: Duration = Duration::from_secs(120);

/// The leader's lease in the database.
#[async_trait]
pub(super) trait Lease: fmt::Debug + Send + Sync {
    /// Takes or renews the lease. Returns `false` if another replica holds it.
    async fn hold(&self) -> Result<bool, Error>;

    async fn release(&self);
}

#[async_trait]
impl Lease for Inventory {
    async fn hold(&self) -> Result<bool, Error> {
        Ok(self.hold_lease().await?)
    }

    async fn release(&self) {
        // The next leader decides based on the stored check-ins. After an error, another task stores the check-ins
        // again and logs the error.
        let _ = self.records().store_check_ins().await;
        self.release_lease().await;
    }
}

/// This replica's part in the election of the leader.
#[derive(Debug)]
pub(super) struct Leader {
    lease: Box<dyn Lease>,
    states: TaskStates,
    renewed_at: Mutex<Option<Instant>>,
    is_leader: watch::Sender<bool>,
}

impl Leader {
    pub(super) fn new(lease: Box<dyn Lease>, states: TaskStates) -> Self {
        states.confirm_leadership(false);
        Self { lease, states, renewed_at: Mutex::default(), is_leader: watch::Sender::new(false) }
    }

    /// Takes or renews the lease at intervals. Never returns.
    pub(super) async fn keep(&self) {
        let mut is_failing = false;
        loop {
            match self.is_confirmed().await {
                Ok(_) if is_failing => {
                    tracing::info!("the leader is known again");
                    is_failing = false;
                }
                Ok(_) => {}
                // An outage is logged only once.
                Err(_) if is_failing => {}
                Err(error) => {
                    tracing::warn!(%error, "could not determine the leader, will retry");
                    is_failing = true;
                }
            }
            tokio::time::sleep(RENEWAL_INTERVAL).await;
        }
    }

    /// Returns `true` if this replica is the leader. Queries the database, unless the lease was renewed a moment ago.
    pub(super) async fn is_confirmed(&self) -> Result<bool, Error> {
        let mut renewed_at = self.renewed_at.lock().await;
        let now = Instant::now();
        if renewed_at.is_some_and(|renewed_at| now - renewed_at < RENEWAL_INTERVAL) {
            return Ok(true);
        }
        if self.states.is_leader_stalled(MAX_STALL) {
            return Ok(self.step_down(&mut renewed_at).await);
        }
        let is_held = match self.lease.hold().await {
            Ok(is_held) => is_held,
            Err(error) => {
                self.states.fail_leadership();
                return Err(error);
            }
        };
        *renewed_at = is_held.then_some(now);
        // The lease in the database starts later than `now`, so it does not end before the time computed here.
        self.states.set_lease_end(is_held.then(|| now + LEASE_DURATION));
        self.states.confirm_leadership(is_held);
        if self.is_leader.send_replace(is_held) != is_held {
            let message =
                if is_held { "this replica is the leader now" } else { "another replica is the leader now" };
            tracing::info!("{message}");
        }
        Ok(is_held)
    }

    /// Releases the lease because a run makes no progress. Returns `false`: this replica is no longer the leader.
    async fn step_down(&self, renewed_at: &mut Option<Instant>) -> bool {
        if renewed_at.take().is_some() {
            self.states.set_lease_end(None);
            tracing::error!("a task of the leader makes no progress; another replica can take over");
            self.lease.release().await;
        }
        self.is_leader.send_replace(false);
        false
    }

    /// Waits until this replica is the leader.
    pub(super) async fn wait_until_leader(&self) {
        // The sender lives as long as `self`, so this cannot fail.
        let _ = self.is_leader.subscribe().wait_for(|is_leader| *is_leader).await;
    }

    pub(super) async fn release(&self) {
        let mut renewed_at = self.renewed_at.lock().await;
        if renewed_at.take().is_some() {
            // Writers must stop before another replica can take over.
            self.states.set_lease_end(None);
            self.lease.release().await;
        }
        self.is_leader.send_replace(false);
    }
}
