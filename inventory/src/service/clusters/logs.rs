//! Records the state of log uploads by the controllers of clusters.

use super::queries::stored_cluster;
use crate::Inventory;
use crate::cluster::{ClusterRecord, event};
use crate::error::Error;
use crate::host::LogsState;
use crate::id::ClusterId;
use crate::journal::Journal;
use crate::request_id::RequestId;
use crate::store::{Change, ReadSet};

impl Inventory {
    /// Records the state of the log upload by a cluster's controller.
    ///
    /// # Errors
    ///
    /// Returns an error if the cluster does not exist.
    pub(crate) async fn set_cluster_logs_state(
        &self,
        id: ClusterId,
        state: LogsState,
        request: Option<RequestId>,
    ) -> Result<(), Error> {
        self.change_cluster(id, request, |cluster, journal| {
            if state == LogsState::Requested {
                cluster.controller_logs_started_at = journal.millis();
            }
            state.as_str().clone_into(&mut cluster.logs_info);
        })
        .await
    }

    /// Records that the controller of a cluster has uploaded logs.
    ///
    /// # Errors
    ///
    /// Returns an error if the cluster does not exist.
    pub(crate) async fn record_controller_logs(
        &self,
        id: ClusterId,
        request: Option<RequestId>,
    ) -> Result<(), Error> {
        self.change_cluster(id, request, |cluster, journal| {
            cluster.controller_logs_collected_at = journal.millis();
            journal.add(event::logs_uploaded(id, journal));
        })
        .await
    }

    async fn change_cluster(
        &self,
        id: ClusterId,
        request: Option<RequestId>,
        apply: impl Fn(&mut ClusterRecord, &mut Journal) + Send + Sync,
    ) -> Result<(), Error> {
        let apply = &apply;
        self.records()
            .change(|reads: ReadSet| async move {
                let (mut change, mut journal) = (Change::new(), self.journal(request));
                let mut stored = stored_cluster(&reads, id).await?;
                apply(&mut stored.record, &mut journal);
                stored.record.updated_at = journal.micros();
                change.replace(&stored.record, stored.generation)?;
                journal.write(&mut change)?;
                Ok((change, ()))
            })
            .await
    }
}
