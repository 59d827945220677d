//! Leases, which elect the replica that runs tasks for all replicas.

use std::time::Duration;

use uuid::Uuid;

use crate::store::statements::leases;
use crate::store::{Store, StoreError};

impl dyn Store + '_ {
    /// Takes or renews a lease for `duration`. Returns `false` if another replica holds the lease. A lease ends when it
    /// is released or expires.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn hold_lease(&self, name: &str, holder: Uuid, duration: Duration) -> Result<bool, StoreError> {
        if self.is_alone() {
            return Ok(true);
        }
        self.has_row("renewing a lease", |_| leases::hold(name, holder, duration)).await
    }

    /// Releases a lease if `holder` holds it.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn release_lease(&self, name: &str, holder: Uuid) -> Result<(), StoreError> {
        if !self.is_alone() {
            self.has_row("releasing a lease", |_| leases::release(name, holder)).await?;
        }
        Ok(())
    }
}
