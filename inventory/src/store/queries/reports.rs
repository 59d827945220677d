//! Reading the reports of a single host.

use crate::store::statements::reports::{report, select};
use crate::store::{Key, ReportKinds, Reports, Store, StoreError};

impl dyn Store + '_ {
    /// Returns the stored reports of a host that have one of `kinds`.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn reports(&self, host: Key, kinds: ReportKinds) -> Result<Reports, StoreError> {
        if kinds.is_empty() {
            return Ok(Reports::default());
        }
        let reports = self.rows("reading reports", |_| select(host, kinds), report).await?;
        Ok(Reports(reports.into_iter().collect()))
    }
}
