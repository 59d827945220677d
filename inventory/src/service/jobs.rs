//! Cancels background jobs.

use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::Inventory;
use crate::error::Error;
use crate::job::JobRecord;
use crate::store::{Change, ReadSet, Reader as _, Stored};

impl Inventory {
    /// Cancels a job. A running attempt stops, and no further attempt begins. Returns `false` if the job has already
    /// ended.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub fn cancel_job(&self, id: Uuid) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async move {
            let plan = |reads: ReadSet| async move {
                let mut change = Change::new();
                let job: Option<Stored<JobRecord>> = reads.find(None, id).await?;
                if let Some(stored) = &job {
                    change.remove(stored);
                }
                Ok((change, job.is_some()))
            };
            self.records().change(plan).await
        })
    }
}
