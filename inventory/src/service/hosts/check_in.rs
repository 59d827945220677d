//! Check-ins: the polls of agents for their next steps.
//!
//! Nearly all polls change only the time of the last check-in. This time is kept in memory and stored together with
//! those of other hosts. A poll writes the host only if it changes the status or the version of the agent, or adds an
//! event.

use std::time::Duration;

use assisted::step::Steps;
use futures_util::future::BoxFuture;

use crate::Inventory;
use crate::error::{Error, ErrorKind};
use crate::event::Severity;
use crate::host::HostRecord;
use crate::host::refresh::refresh;
use crate::host::steps::{must_upgrade, steps_for};
use crate::id::HostKey;
use crate::infra_env::InfraEnvRecord;
use crate::journal::Journal;
use crate::request_id::RequestId;
use crate::store::{CheckIn, Records, StoreError};

/// Maximum time that a check-in is only in memory. If the process is killed, the check-ins of that time are lost.
const STORE_INTERVAL: Duration = Duration::from_secs(3);

/// A poll of an agent.
#[derive(Debug)]
pub(crate) struct Poll {
    /// Key of the host.
    pub(crate) key: HostKey,
    /// Id of the request.
    pub(crate) request: Option<RequestId>,
    /// Clock of the host, in seconds since 1970, if the agent sent it.
    pub(crate) clock: Option<i64>,
    /// Container image of the agent, if it sent one.
    pub(crate) agent_version: Option<String>,
}

impl Poll {
    /// Checks in the host, and returns the steps for its agent.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not exist, or if the database fails.
    async fn check_in(&self, inventory: &Inventory) -> Result<Steps, Error> {
        let cached = self.key.find_cached(inventory).await?;
        let stored = cached.record();
        let infra_env = inventory.current_infra_env(self.key.infra_env_id).await;
        let infra_env = infra_env.map_err(|refusal| self.missing_infra_env(refusal))?;
        let infra_env = infra_env.record();
        let mut journal = inventory.journal(self.request);
        let mut host = HostRecord::clone(stored);
        let steps = self.update(&mut host, infra_env, inventory, &mut journal);
        host.checked_in_at = stored.checked_in_at;
        host.clock = stored.clock;
        let steps = if journal.is_empty() && host == **stored {
            Ok(steps)
        } else {
            let update = |host: &mut HostRecord, journal: &mut Journal| {
                Ok(self.update(host, infra_env, inventory, journal))
            };
            self.key.change(inventory, self.request, update).await.map(|(_, steps)| steps)
        };
        // The agent has checked in even if that cannot be stored at the moment.
        inventory.add_check_in(CheckIn {
            host: self.key.record_key(),
            at: journal.now().timestamp_micros(),
            clock: self.clock,
        });
        steps
    }

    /// Updates the host, and returns the steps for its agent.
    fn update(
        &self,
        host: &mut HostRecord,
        infra_env: &InfraEnvRecord,
        inventory: &Inventory,
        journal: &mut Journal,
    ) -> Steps {
        let settings = inventory.settings();
        host.checked_in_at = journal.millis();
        host.clock = self.clock.unwrap_or(host.clock);
        if let Some(version) = &self.agent_version {
            host.agent_version.clone_from(version);
        }
        if must_upgrade(host, settings) {
            let message = format!("Agent is upgraded to {}", settings.agent_image);
            journal.add_hourly_event(host, "upgrade_agent_started", Severity::Info, &message);
        }
        let steps = steps_for(host, infra_env, settings);
        refresh(host, settings, journal);
        steps
    }

    /// Turns "not found" into an internal error: a host whose infra-env does not exist means damaged data.
    fn missing_infra_env(&self, refusal: Error) -> Error {
        if refusal.kind() != ErrorKind::NotFound {
            return refusal;
        }
        let HostKey { infra_env_id, host_id } = self.key;
        Error::broken(format_args!("infra-env {infra_env_id} of host {host_id} does not exist"))
    }
}

impl Inventory {
    /// Checks in a host, and returns the steps for its agent.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not exist, or if the database fails.
    pub(crate) async fn check_in(&self, poll: &Poll) -> Result<Steps, Error> {
        poll.check_in(self).await
    }

    /// Adds a pending check-in, and starts the task that stores it unless the task is running.
    fn add_check_in(&self, check_in: CheckIn) {
        if self.records().add_check_in(check_in) {
            tokio::spawn(store_pending_check_ins(self.records().clone()));
        }
    }

    /// Stores the pending check-ins, gives up the lease of the leader, and closes the database.
    pub fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Err(error) = self.records().store_check_ins().await {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "the last check-ins of hosts could not be stored");
            }
            // The next leader decides which hosts are silent.
            self.release_lease().await;
            self.records().store().close().await;
        })
    }
}

/// Stores the pending check-ins at intervals, until all of them are stored.
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
            // An outage is logged once.
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
