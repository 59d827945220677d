//! The monitor: one task per deployment that changes what only the passing of time changes.
//!
//! Of the replicas with one database, the one that holds the lease is active. The others stand by, and one of them
//! takes over when the lease ends. Two active monitors, for example after a process was suspended, do no harm: a host
//! is disconnected only if it is still silent when the change is made.

mod state;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

pub use state::{MonitorHealth, MonitorState};

use crate::Inventory;
use crate::error::{Error, ErrorKind};
use crate::host::HostStatus;
use crate::host::state::statuses_before_disconnection;
use crate::host::validation::connected_since;
use crate::service::hosts::silence::disconnect_silent;
use crate::store::Key;

/// The name of the lease in the database.
const LEASE: &str = "monitor";
/// How long a lease outlives a replica that was killed.
const LEASE_DURATION: Duration = Duration::from_secs(9);
const RENEWAL_INTERVAL: Duration = Duration::from_secs(3);
/// The shortest pause between two passes, whatever the settings say.
const MIN_PAUSE: Duration = Duration::from_millis(50);
/// The most hosts that one change disconnects.
const BATCH: usize = 100;
/// A clock that differs by more from the time that has passed was set, or the machine was suspended.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(30);

impl Inventory {
    /// Monitors the hosts whenever this process holds the lease. Never returns.
    pub async fn run_monitor(self) {
        let mut monitor = Monitor::new(self);
        loop {
            let pause = monitor.turn().await;
            tokio::time::sleep(pause).await;
        }
    }

    /// Disconnects the hosts that have not checked in for too long, whether or not this process holds the lease.
    /// Returns their number. The monitor calls this at intervals.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails. The batches before are done.
    pub async fn disconnect_silent_hosts(&self) -> Result<usize, Error> {
        disconnect_all_silent(self, None).await
    }

    /// Gives up the lease, so that another replica takes over at once.
    pub(crate) async fn release_monitor_lease(&self) {
        if self.monitor().health(Duration::MAX) != Some(MonitorHealth::Active) {
            return;
        }
        let released = self.records().store().release_lease(LEASE, self.monitor().holder()).await;
        if let Err(error) = released {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(
                error,
                "the lease of the monitor could not be released; it ends after some seconds"
            );
        }
    }
}

struct Monitor {
    inventory: Inventory,
    renewed_at: Option<Instant>,
    next_pass: Instant,
    is_failing: bool,
    /// Since when hosts can check in: the start of this process, the end of an outage, or a jump of the clock. Before,
    /// their silence has other reasons.
    listening_since: Instant,
    /// The two clocks at the last turn.
    last_turn: (Instant, DateTime<Utc>),
}

impl Monitor {
    fn new(inventory: Inventory) -> Self {
        let now = Instant::now();
        inventory.monitor().start();
        Self {
            inventory,
            renewed_at: None,
            next_pass: now,
            is_failing: false,
            listening_since: now,
            last_turn: (now, Utc::now()),
        }
    }

    /// Renews the lease, and makes a pass if it is time for one. Returns the pause until the next turn.
    async fn turn(&mut self) -> Duration {
        self.detect_clock_jump();
        match self.try_pass().await {
            Ok(()) if self.is_failing => {
                tracing::info!("the monitor works again");
                self.is_failing = false;
            }
            Ok(()) => {}
            Err(error) => {
                if !self.is_failing {
                    tracing::warn!(%error, "the monitor failed, will retry");
                    self.is_failing = true;
                }
                self.listening_since = Instant::now();
                return RENEWAL_INTERVAL;
            }
        }
        if self.inventory.monitor().health(Duration::MAX) == Some(MonitorHealth::Standby) {
            return RENEWAL_INTERVAL;
        }
        self.next_pass.saturating_duration_since(Instant::now()).clamp(MIN_PAUSE, RENEWAL_INTERVAL)
    }

    async fn try_pass(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        if !self.hold_lease().await? || now < self.next_pass {
            return Ok(());
        }
        self.next_pass = now + self.inventory.settings().host_monitor_interval;
        if self.listening_since.elapsed() >= self.inventory.settings().max_silence {
            let inventory = self.inventory.clone();
            let disconnected = disconnect_all_silent(&inventory, Some(self)).await?;
            self.inventory.monitor().add_disconnected(disconnected);
        }
        self.inventory.monitor().record_pass(now.elapsed());
        Ok(())
    }

    /// Takes the lease, or renews it if it is time. Returns `false` if another replica has it.
    async fn hold_lease(&mut self) -> Result<bool, Error> {
        let now = Instant::now();
        if self.renewed_at.is_some_and(|renewed_at| now - renewed_at < RENEWAL_INTERVAL) {
            return Ok(true);
        }
        let holder = self.inventory.monitor().holder();
        let is_held = self.inventory.records().store().hold_lease(LEASE, holder, LEASE_DURATION).await?;
        if is_held != self.renewed_at.is_some() {
            let message =
                if is_held { "this replica is the monitor now" } else { "another replica is the monitor" };
            tracing::info!("{message}");
        }
        self.renewed_at = is_held.then_some(now);
        self.inventory.monitor().record_health(if is_held {
            MonitorHealth::Active
        } else {
            MonitorHealth::Standby
        });
        Ok(is_held)
    }

    /// Notices that the clock was set, or that the machine was suspended.
    fn detect_clock_jump(&mut self) {
        let (now, clock) = (Instant::now(), Utc::now());
        let (last, last_clock) = std::mem::replace(&mut self.last_turn, (now, clock));
        if has_jumped(now.saturating_duration_since(last), last_clock, clock) {
            tracing::warn!(before = %last_clock, after = %clock, "the clock has jumped; hosts get time to check in");
            self.listening_since = now;
        }
    }
}

/// Returns `true` if the time between two readings of a clock is not the time that has passed.
fn has_jumped(passed: Duration, before: DateTime<Utc>, after: DateTime<Utc>) -> bool {
    let by_clock = after.signed_duration_since(before);
    match by_clock.to_std() {
        Ok(by_clock) => by_clock.abs_diff(passed) > CLOCK_TOLERANCE,
        Err(_) => by_clock.abs().to_std().is_ok_and(|back| back.saturating_add(passed) > CLOCK_TOLERANCE),
    }
}

/// Disconnects the silent hosts in batches. A monitor stops if it loses its lease. Returns the number of hosts.
async fn disconnect_all_silent(
    inventory: &Inventory,
    mut monitor: Option<&mut Monitor>,
) -> Result<usize, Error> {
    let now = Utc::now();
    let statuses = statuses_before_disconnection().map(HostStatus::as_str).collect();
    inventory.records().end_future_check_ins(statuses, now, CLOCK_TOLERANCE).await?;
    let before = connected_since(inventory.settings(), now);
    let mut disconnected = 0;
    for status in statuses_before_disconnection() {
        // Hosts that cannot be read or written. They must not keep the others from being disconnected.
        let mut damaged = BTreeSet::new();
        loop {
            if let Some(monitor) = &mut monitor
                && !monitor.hold_lease().await?
            {
                return Ok(disconnected);
            }
            let most = BATCH.saturating_add(damaged.len());
            let mut hosts = inventory.records().silent_hosts(status.as_str(), before, most).await?;
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

/// Disconnects some hosts in one change. If one of them is damaged, disconnects the others one by one.
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
    fn clock_jumps_are_noticed_in_both_directions() {
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
