//! The leader's lease. The leader is the replica that runs the tasks for all replicas with the same database.

use std::time::Duration;

use super::Inventory;
use crate::store::StoreError;

/// The name of the lease in the database. Must stay the same for compatibility with older releases.
const LEASE: &str = "monitor";
/// Duration of the lease, after which another replica can replace a killed leader.
pub(crate) const LEASE_DURATION: Duration = Duration::from_secs(9);

impl Inventory {
    /// Takes or renews the lease. Returns `false` if another replica holds it.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub(crate) async fn hold_lease(&self) -> Result<bool, StoreError> {
        self.records().store().hold_lease(LEASE, self.replica(), LEASE_DURATION).await
    }

    /// Releases the lease if this process holds it, so that another replica can take over immediately.
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
