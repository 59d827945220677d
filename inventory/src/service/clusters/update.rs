//! Changes the settings of clusters.

use assisted::cluster::ClusterUpdateParams;
use futures_util::future::BoxFuture;

use super::queries::stored_cluster;
use crate::Inventory;
use crate::cluster::{ClusterRecord, event, update};
use crate::error::Error;
use crate::id::ClusterId;
use crate::request_id::RequestId;
use crate::store::{Change, ReadSet};

impl Inventory {
    /// Changes the settings of a cluster, assesses it, and returns the resulting record. A request without changes
    /// writes nothing.
    ///
    /// # Errors
    ///
    /// Returns an error if the cluster does not exist, if its status does not allow changes, or if a value is invalid.
    pub fn update_cluster(
        &self,
        id: ClusterId,
        params: ClusterUpdateParams,
        request: Option<RequestId>,
    ) -> BoxFuture<'_, Result<ClusterRecord, Error>> {
        Box::pin(async move {
            let params = &params;
            let (is_changed, record) = self
                .records()
                .change(|reads: ReadSet| async move {
                    let (mut change, mut journal) = (Change::new(), self.journal(request));
                    let stored = stored_cluster(&reads, id).await?;
                    let before = &stored.record;
                    let record = update::update(before, params.clone(), self.settings(), journal.micros())?;
                    let is_changed = record != *before;
                    if is_changed {
                        change.replace(&record, stored.generation)?;
                    }
                    if record.spec.proxies() != before.spec.proxies() {
                        journal.add(event::proxy_changed(id, &journal));
                    }
                    journal.write(&mut change)?;
                    Ok((change, (is_changed, record)))
                })
                .await?;
            if !is_changed {
                return Ok(record);
            }
            Ok(self.assessed_cluster(record).await)
        })
    }
}
