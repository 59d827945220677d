//! Removes incomplete uploads that a killed process left in a bucket.

use std::time::Duration;

use async_trait::async_trait;

use super::super::task::{Task, TaskRun};
use super::retention::{FIRST_PAUSE, INTERVAL};
use crate::Inventory;
use crate::error::Error;

/// The task that removes incomplete uploads. Every replica runs it, because replicas may use different buckets.
#[derive(Debug)]
pub(super) struct Uploads(pub(super) Inventory);

#[async_trait]
impl Task for Uploads {
    fn name(&self) -> &'static str {
        "uploads"
    }

    fn interval(&self) -> Duration {
        INTERVAL
    }

    fn first_pause(&self) -> Duration {
        FIRST_PAUSE
    }

    fn is_leader_only(&self) -> bool {
        false
    }

    async fn run(&self, _: &TaskRun) -> Result<Option<Duration>, Error> {
        self.0.files().remove_abandoned_uploads(self.0.now()).await?;
        Ok(None)
    }
}
