//! The lease of the leader: the replica of a deployment that runs the tasks which only one replica must run.

use std::time::Duration;

use super::Inventory;
use crate::store::StoreError;

/// The name of the lease in the database, which older releases also use.
const LEASE: &str = "monitor";
/// How long a lease outlives a replica that was killed.
pub(crate) const LEASE_DURATION: Duration = Duration::from_secs(9);

impl Inventory {
    /// Takes or renews the lease. Returns `false` if another replica has it.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub(crate) async fn hold_lease(&self) -> Result<bool, StoreError> {
        self.records().store().hold_lease(LEASE, self.replica(), LEASE_DURATION).await
    }

    /// Gives up the lease if this process has it, so that another replica takes over immediately.
    pub(crate) async fn release_lease(&self) {
        self.tasks().set_lease_end(None);
        if !self.tasks().is_leader() {
            return;
        }
        match self.records().store().release_lease(LEASE, self.replica()).await {
            Ok(()) => self.tasks().confirm_leadership(false),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    error,
                    "could not release the lease of the leader; it ends after a few seconds"
                );
            }
        }
    }
}
