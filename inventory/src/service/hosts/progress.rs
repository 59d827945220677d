//! Records the progress of installations and of log uploads.

use assisted::host::HostProgressParams;

use crate::Inventory;
use crate::error::Error;
use crate::event::Severity;
use crate::host::cluster::require_bound_to;
use crate::host::draft::HostDraft;
use crate::host::progress::{update_logs_state, update_progress};
use crate::host::{HostRecord, LogsState};
use crate::id::{ClusterId, HostKey};
use crate::journal::Journal;
use crate::request_id::RequestId;
use crate::store::ReportKinds;

impl Inventory {
    /// Records the installation progress that the installer on a host reports.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not exist, or if the stage is invalid for the host.
    pub(crate) async fn update_host_progress(
        &self,
        key: HostKey,
        params: &HostProgressParams,
        request: Option<RequestId>,
    ) -> Result<(), Error> {
        let edit = |draft: &mut HostDraft, journal: &mut Journal| {
            update_progress(&mut draft.record, params, journal)
        };
        key.change_if_edited(self, request, ReportKinds::NONE, edit).await?;
        Ok(())
    }

    /// Records the state of a host's log upload.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not exist.
    pub(crate) async fn update_host_logs_state(
        &self,
        key: HostKey,
        state: LogsState,
        request: Option<RequestId>,
    ) -> Result<(), Error> {
        let edit = |draft: &mut HostDraft, journal: &mut Journal| {
            update_logs_state(&mut draft.record, state, journal);
            Ok(())
        };
        key.change_if_edited(self, request, ReportKinds::NONE, edit).await?;
        Ok(())
    }

    /// Records that a host has uploaded logs.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not exist, or if it is not bound to the cluster.
    pub(crate) async fn record_log_upload(
        &self,
        cluster: ClusterId,
        key: HostKey,
        request: Option<RequestId>,
    ) -> Result<(), Error> {
        let edit = |host: &mut HostRecord, journal: &mut Journal| {
            require_bound_to(cluster, host)?;
            host.logs.collected_at = journal.millis();
            let message = format!("Uploaded logs for host {} cluster {cluster}", host.name());
            journal.add_event(host, "host_logs_uploaded", Severity::Info, message);
            Ok(())
        };
        key.change(self, request, edit).await?;
        Ok(())
    }
}
