//! Disconnects silent hosts: hosts whose agents have not checked in for too long.
//!
//! A host is disconnected only if it is still silent when the change is committed.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use rules::host::state::statuses_before_disconnection;
use tokio::time::Instant;

use super::super::task::{Task, TaskRun};
use crate::Inventory;
use crate::error::{Error, ErrorKind};
use crate::host::HostStatus;
use crate::host::connection::connected_since;
use crate::service::hosts::silence::disconnect_silent;
use crate::store::Key;

pub(super) const NAME: &str = "silence";
/// Maximum number of hosts that one change disconnects.
const BATCH: usize = 100;
/// Maximum difference between the wall clock and the elapsed time. A larger difference means that the clock was set, or
/// that the machine was suspended.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(30);

impl Inventory {
    /// Disconnects the hosts that have not checked in for too long, whether or not this process is the leader. Returns
    /// the number of disconnected hosts. The leader's task does the same at intervals.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails. Hosts of earlier batches are then already disconnected.
    pub fn disconnect_silent_hosts(&self) -> BoxFuture<'_, Result<usize, Error>> {
        Box::pin(async move { disconnect_all_silent(self, &TaskRun::without_driver()).await })
    }
}

#[derive(Debug)]
pub(super) struct Silence {
    inventory: Inventory,
    listening: Mutex<Listening>,
}

/// The time since which hosts have been able to check in.
#[derive(Clone, Copy, Debug)]
struct Listening {
    /// The start of this process, the end of an outage, or a jump of the clock. Earlier silence may have other causes.
    since: Instant,
    /// The monotonic clock and the wall clock at the last run.
    last_run: (Instant, DateTime<Utc>),
}

impl Silence {
    pub(super) fn new(inventory: Inventory) -> Self {
        let now = Instant::now();
        let listening = Listening { since: now, last_run: (now, inventory.now()) };
        Self { inventory, listening: Mutex::new(listening) }
    }

    /// Returns the time during which hosts could check in.
    fn listening_time(&self) -> Duration {
        let failed_at = self.inventory.tasks().leadership_failed_at();
        let mut listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
        listening.detect_clock_jump(Instant::now(), self.inventory.now());
        failed_at.map_or(listening.since, |failed_at| listening.since.max(failed_at)).elapsed()
    }
}

#[async_trait]
impl Task for Silence {
    fn name(&self) -> &'static str {
        NAME
    }

    fn interval(&self) -> Duration {
        self.inventory.settings().host_monitor_interval
    }

    fn is_leader_only(&self) -> bool {
        true
    }

    async fn run(&self, run: &TaskRun) -> Result<Option<Duration>, Error> {
        if self.listening_time() < self.inventory.settings().max_silence {
            return Ok(None);
        }
        let disconnected = disconnect_all_silent(&self.inventory, run).await.inspect_err(|_| {
            self.listening.lock().unwrap_or_else(PoisonError::into_inner).since = Instant::now();
        })?;
        self.inventory.tasks().add_disconnected_hosts(disconnected);
        Ok(None)
    }
}

impl Listening {
    /// Detects that the clock was set, or that the machine was suspended.
    fn detect_clock_jump(&mut self, now: Instant, clock: DateTime<Utc>) {
        let (last, last_clock) = std::mem::replace(&mut self.last_run, (now, clock));
        if has_jumped(now.saturating_duration_since(last), last_clock, clock) {
            tracing::warn!(before = %last_clock, after = %clock, "the clock has jumped; hosts get time to check in");
            self.since = now;
        }
    }
}

/// Returns `true` if the difference of two clock readings deviates too much from the elapsed time.
fn has_jumped(passed: Duration, before: DateTime<Utc>, after: DateTime<Utc>) -> bool {
    let by_clock = after.signed_duration_since(before);
    match by_clock.to_std() {
        Ok(by_clock) => by_clock.abs_diff(passed) > CLOCK_TOLERANCE,
        Err(_) => by_clock.abs().to_std().is_ok_and(|back| back.saturating_add(passed) > CLOCK_TOLERANCE),
    }
}

/// Disconnects the silent hosts in batches, until the run must stop. Returns the number of hosts.
async fn disconnect_all_silent(inventory: &Inventory, run: &TaskRun) -> Result<usize, Error> {
    let now = inventory.now();
    let statuses = statuses_before_disconnection().map(HostStatus::as_str).collect();
    inventory.records().end_future_check_ins(statuses, now, CLOCK_TOLERANCE).await?;
    let before = connected_since(inventory.settings(), now);
    let mut disconnected = 0;
    for status in statuses_before_disconnection() {
        // Hosts that cannot be read or written are skipped, so that they do not prevent the disconnection of other
        // hosts.
        let mut damaged = BTreeSet::new();
        loop {
            if !run.may_continue().await? {
                return Ok(disconnected);
            }
            let limit = BATCH.saturating_add(damaged.len());
            let mut hosts = inventory.records().silent_hosts(status.as_str(), before, limit).await?;
            hosts.retain(|host| !damaged.contains(host));
            let damaged_before = damaged.len();
            let done = disconnect_batch(inventory, &hosts, &mut damaged).await?;
            disconnected += done;
            if done == 0 && damaged.len() == damaged_before {
                break;
            }
        }
    }
    Ok(disconnected)
}

/// Disconnects several hosts in one change. If a host is damaged, disconnects the other hosts one by one.
async fn disconnect_batch(
    inventory: &Inventory,
    hosts: &[Key],
    damaged: &mut BTreeSet<Key>,
) -> Result<usize, Error> {
    if hosts.is_empty() {
        return Ok(0);
    }
    match disconnect_silent(inventory, hosts).await {
        Err(error) if concerns_one_host(&error) => {}
        done => return done,
    }
    let mut disconnected = 0;
    for host in hosts {
        match disconnect_silent(inventory, &[*host]).await {
            Err(error) if concerns_one_host(&error) => {
                tracing::error!(%host, %error, "a silent host could not be disconnected");
                damaged.insert(*host);
            }
            done => disconnected += done?,
        }
    }
    Ok(disconnected)
}

fn concerns_one_host(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::InsufficientStorage)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn detects_clock_jumps_in_both_directions() {
        let before = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        let passed = Duration::from_secs(8);
        for (seconds, is_jump) in [
            (8, false),
            (0, false),
            (-20, false),
            (30, false),
            (39, true),
            (86_400, true),
            (-30, true),
            (-86_400, true),
        ] {
            let after = before + TimeDelta::seconds(seconds);
            assert_eq!(has_jumped(passed, before, after), is_jump, "{seconds}");
        }
    }
}
