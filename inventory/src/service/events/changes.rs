//! Subscriptions to changes of records.

use crate::Inventory;
use crate::error::Error;
use crate::id::InfraEnvId;
use crate::store::{FeedPosition, FeedReader};

/// A subscription to changes.
pub(crate) struct ChangeSubscription {
    /// Reads the changes.
    pub(crate) reader: FeedReader,
    /// Whether the reader continues at the requested position. Otherwise changes may have been missed.
    pub(crate) is_continued: bool,
}

impl Inventory {
    /// Subscribes to changes of records, after a position if the feed still knows it.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist.
    pub(crate) async fn subscribe_to_changes(
        &self,
        infra_env: Option<InfraEnvId>,
        position: Option<FeedPosition>,
    ) -> Result<ChangeSubscription, Error> {
        let feed = self.records().store().feed();
        let continued = position.and_then(|position| feed.subscribe_after(position));
        let is_continued = continued.is_some();
        let reader = continued.unwrap_or_else(|| feed.subscribe());
        // After the subscription: if the infra-env is removed from now on, the reader reports it.
        if let Some(id) = infra_env {
            self.stored_infra_env(id).await?;
        }
        Ok(ChangeSubscription { reader, is_continued })
    }
}
