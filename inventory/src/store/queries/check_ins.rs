//! Storing check-ins, and replacing check-ins in the future.

use crate::store::statements::check_ins::select_after;
use crate::store::{Changes, CheckIn, CheckInLimit, Step, Store, StoreError};

impl dyn Store + '_ {
    /// Stores check-ins without changing the generations of hosts, as [`Step::StoreCheckIns`] does.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn store_check_ins(&self, check_ins: &[CheckIn]) -> Result<(), StoreError> {
        self.commit(Changes::from_step(Step::StoreCheckIns(check_ins.to_vec()))).await?.require_done()
    }

    /// Replaces check-ins later than a limit without changing the generations of their hosts.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn limit_check_ins(&self, limit: CheckInLimit) -> Result<(), StoreError> {
        // The search runs before the change, so that it does not block other changes.
        let exceeds = self.has_row("looking for check-ins", |dialect| select_after(dialect, &limit)).await?;
        if exceeds {
            self.commit(Changes::from_step(Step::LimitCheckIns(limit))).await?.require_done()?;
        }
        Ok(())
    }
}
