//! Check-ins, in which agents poll for their next steps.
//!
//! Nearly all polls change only the time of the last check-in. This time is kept in memory, and stored together with
//! the check-ins of other hosts. A poll writes the host only if it changes the status or the agent version, or adds an
//! event.

use std::sync::Arc;
use std::time::Duration;

use assisted::step::Steps;
use futures_util::future::BoxFuture;
use rules::steps::{PlannedSteps, StepInput, must_upgrade};
use rules::view::HostView;
use uuid::Uuid;

use crate::Inventory;
use crate::error::{Error, ErrorKind};
use crate::event::Severity;
use crate::host::HostRecord;
use crate::host::assessment::assess_unbound;
use crate::host::connection::{record_clock_skew, set_silent};
use crate::host::draft::{ASSESSED, HostDraft};
use crate::host::facts::host_view;
use crate::id::HostKey;
use crate::infra_env::{ImageSource, InfraEnvRecord};
use crate::journal::Journal;
use crate::request_id::RequestId;
use crate::service::cluster_views::CurrentView;
use crate::store::{CheckIn, Record as _, Records, StoreError};

/// Maximum time that a check-in stays only in memory. If the process is killed, it loses the check-ins of this period.
const STORE_INTERVAL: Duration = Duration::from_secs(3);

/// The poll of an agent.
#[derive(Debug)]
pub(crate) struct Poll {
    pub(crate) key: HostKey,
    pub(crate) request: Option<RequestId>,
    /// The host's clock, in seconds since 1970. `None` if the agent does not send it.
    pub(crate) clock: Option<i64>,
    /// The container image of the agent. `None` if the agent does not send it.
    pub(crate) agent_version: Option<String>,
}

impl Poll {
    /// Records the check-in of the host, and returns the steps for its agent.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not exist, or if the database fails.
    async fn check_in(&self, inventory: &Inventory) -> Result<Steps, Error> {
        let cached = self.key.find_cached(inventory).await?;
        let stored = cached.record();
        let infra_env = inventory.current_infra_env(self.key.infra_env_id).await;
        let infra_env = infra_env.map_err(|refusal| self.missing_infra_env(refusal))?;
        let view = inventory.cluster_view(stored.cluster_id).await?;
        let mut journal = inventory.journal(self.request);
        let mut host = HostRecord::clone(stored);
        self.update(&mut host, &journal);
        let viewed = host_in(&host, view.as_deref());
        report_upgrade(&mut host, &viewed, inventory, &mut journal);
        let steps = steps_of(&viewed, infra_env.record(), view.as_deref(), inventory);
        host.checked_in_at = stored.checked_in_at;
        host.clock = stored.clock;
        let is_assessed =
            stored.cluster_id.is_some() || stored.findings.assessed_by == inventory.assessment_basis();
        let changed = if journal.is_empty() && host == **stored && is_assessed {
            Ok(())
        } else {
            self.change(view.as_deref(), inventory).await
        };
        // The check-in is effective immediately, even if the database is currently unavailable.
        inventory.add_check_in(CheckIn {
            host: self.key.record_key(),
            at: journal.now().timestamp_micros(),
            clock: self.clock,
        });
        changed.map(|()| steps)
    }

    /// Updates the stored host. A host without a cluster is assessed too.
    async fn change(&self, view: Option<&CurrentView>, inventory: &Inventory) -> Result<(), Error> {
        let context = inventory.host_context(self.key).await?;
        let edit = |draft: &mut HostDraft, journal: &mut Journal| {
            self.update(&mut draft.record, journal);
            let viewed = host_in(&draft.record, view);
            report_upgrade(&mut draft.record, &viewed, inventory, journal);
            assess_unbound(draft, &context, journal)
        };
        self.key.change_with_reports(inventory, self.request, ASSESSED, edit).await?;
        Ok(())
    }

    /// Updates the host with the data from the poll.
    fn update(&self, host: &mut HostRecord, journal: &Journal) {
        host.checked_in_at = journal.millis();
        set_silent(host, false);
        if let Some(clock) = self.clock {
            host.clock = clock;
            record_clock_skew(host, clock, journal.now());
        }
        if let Some(version) = &self.agent_version {
            host.agent_version.clone_from(version);
        }
    }

    /// Converts a missing infra-env into an internal error. The infra-env of an existing host is only missing if data
    /// is damaged.
    fn missing_infra_env(&self, refusal: Error) -> Error {
        if refusal.kind() != ErrorKind::NotFound {
            return refusal;
        }
        let HostKey { infra_env_id, host_id } = self.key;
        Error::broken(format_args!("infra-env {infra_env_id} of host {host_id} does not exist"))
    }
}

/// Adds an event that the agent of a host is being upgraded, at most once an hour.
fn report_upgrade(host: &mut HostRecord, viewed: &HostView, inventory: &Inventory, journal: &mut Journal) {
    let settings = inventory.step_settings();
    if must_upgrade(viewed, settings) {
        let message =
            format!("Agent has been instructed to download image '{}' and restart", settings.agent_image);
        journal.add_hourly_event(host, "upgrade_agent_started", Severity::Info, &message);
    }
}

/// Returns the facts about a host that is checking in. `view` is the view of its cluster.
fn host_in(host: &HostRecord, view: Option<&CurrentView>) -> HostView {
    // A host without a cluster needs no summary, because none of its steps depend on its reports.
    let viewed = view.and_then(|view| view.host(&host.key()));
    host_view(host, true, viewed.map(|viewed| Arc::clone(&viewed.view.summary)).unwrap_or_default())
}

fn steps_of(
    host: &HostView,
    infra_env: &InfraEnvRecord,
    view: Option<&CurrentView>,
    inventory: &Inventory,
) -> Steps {
    let may_check = |view: &&CurrentView| inventory.cluster_views().may_check(view, host, inventory.now());
    let input = StepInput {
        host,
        cluster: view.map(|view| &**view.facts()),
        pool_ntp_sources: time_servers(&infra_env.image),
        targets: view.filter(may_check).map(CurrentView::targets),
        settings: inventory.step_settings(),
    };
    let mut step_id = |step_type| format!("{step_type}-{:08x}", Uuid::new_v4().as_fields().0);
    let PlannedSteps { steps, skipped } = rules::steps::steps(&input, &mut step_id);
    for (step, reason) in skipped {
        tracing::debug!(host = %host.id, %step, reason, "a step of a host is left out");
    }
    steps
}

/// Returns the time servers of an infra-env. Only one of the two settings for time servers can be non-empty.
fn time_servers(source: &ImageSource) -> &str {
    if source.ntp_sources.is_empty() { &source.additional_ntp_sources } else { &source.ntp_sources }
}

impl Inventory {
    /// Records the check-in of a host, and returns the steps for its agent.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not exist, or if the database fails.
    pub(crate) async fn check_in(&self, poll: &Poll) -> Result<Steps, Error> {
        poll.check_in(self).await
    }

    /// Queues a check-in. If the task that stores check-ins is not running, starts it.
    fn add_check_in(&self, check_in: CheckIn) {
        if self.records().add_check_in(check_in) {
            tokio::spawn(store_pending_check_ins(self.records().clone()));
        }
    }

    /// Stores the pending check-ins, releases the leader's lease, and closes the database.
    pub fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Err(error) = self.records().store_check_ins().await {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "the last check-ins of hosts could not be stored");
            }
            // The lease is released after the check-ins are stored, because the next leader uses them to find silent
            // hosts.
            self.release_lease().await;
            self.records().store().close().await;
        })
    }
}

/// Stores the pending check-ins at intervals until none are left.
async fn store_pending_check_ins(records: Records) {
    let mut is_failing = false;
    loop {
        tokio::time::sleep(STORE_INTERVAL).await;
        match records.store_check_ins().await {
            Ok(()) if is_failing => {
                tracing::info!("check-ins of hosts are stored again");
                is_failing = false;
            }
            Ok(()) => {}
            Err(StoreError::Closed) => return,
            // Only the first failure of an outage is logged.
            Err(_) if is_failing => {}
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "check-ins of hosts could not be stored, will retry");
                is_failing = true;
            }
        }
        if records.has_stored_all() {
            return;
        }
    }
}
