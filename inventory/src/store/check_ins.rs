//! Check-ins of hosts, which are kept in memory and stored in batches.
//!
//! A check-in is not a change to the host's record, so it gets no generation and no event. Readers use the later time
//! of memory and database. So a check-in is effective immediately in this process, and in other processes after it is
//! stored.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Key, Row};

/// A check-in of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckIn {
    /// Key of the host whose agent polled for instructions.
    pub host: Key,
    /// Time of the check-in, in microseconds since 1970.
    pub at: i64,
    /// Clock of the host, in seconds since 1970, if its agent sent one.
    pub clock: Option<i64>,
}

/// An upper limit for the check-in times of hosts in some statuses.
///
/// A stored check-in is in the future if the server's clock has been set back since then. Until the clock passes the
/// check-in, the server would not notice that the host is silent, and would store no other check-in of the host. So
/// `now` replaces every time after `latest`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckInLimit {
    /// The statuses of the affected hosts.
    pub statuses: Vec<&'static str>,
    /// The latest valid time of a check-in, in microseconds since 1970.
    pub latest: i64,
    /// The time that replaces every check-in time after `latest`, in microseconds since 1970.
    pub now: i64,
}

/// Maximum number of entries for which memory stays allocated while no check-in is pending.
const MAX_IDLE_CAPACITY: usize = 4096;

/// The check-ins that are not stored yet, at most one for each host.
#[derive(Debug, Default)]
pub(super) struct PendingCheckIns(Mutex<PendingState>);

#[derive(Debug, Default)]
struct PendingState {
    latest: HashMap<Key, CheckIn>,
    has_task: bool,
}

impl PendingCheckIns {
    fn state(&self) -> MutexGuard<'_, PendingState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a check-in. Returns `true` if the caller must start the task that stores the pending check-ins.
    pub(super) fn add(&self, check_in: CheckIn) -> bool {
        let mut state = self.state();
        let latest = state.latest.entry(check_in.host).or_insert(check_in);
        if latest.at <= check_in.at {
            let clock = check_in.clock.or(latest.clock);
            *latest = CheckIn { clock, ..check_in };
        }
        !std::mem::replace(&mut state.has_task, true)
    }

    /// Returns the time of a host's pending check-in.
    pub(super) fn last(&self, host: Key) -> Option<i64> {
        self.state().latest.get(&host).map(|check_in| check_in.at)
    }

    /// Updates the columns of a row to the pending check-in if it is later.
    pub(super) fn apply_to(&self, row: &mut Row) {
        let state = self.state();
        let Some(check_in) = state.latest.get(&row.key) else { return };
        if row.columns.checked_in_at.is_none_or(|stored| stored < check_in.at) {
            row.columns.checked_in_at = Some(check_in.at);
            row.columns.clock = check_in.clock.or(row.columns.clock);
        }
    }

    pub(super) fn all(&self) -> Vec<CheckIn> {
        self.state().latest.values().copied().collect()
    }

    /// Removes stored check-ins from the pending ones, unless their hosts have checked in again.
    pub(super) fn remove(&self, stored: &[CheckIn]) {
        let mut state = self.state();
        for check_in in stored {
            if state.latest.get(&check_in.host).is_some_and(|latest| latest.at == check_in.at) {
                state.latest.remove(&check_in.host);
            }
        }
        if state.latest.is_empty() {
            state.latest.shrink_to(MAX_IDLE_CAPACITY);
        }
    }

    /// Returns `true` if the task may end because nothing is pending. The next check-in then starts a new task.
    pub(super) fn end_task(&self) -> bool {
        let mut state = self.state();
        state.has_task = !state.latest.is_empty();
        !state.has_task
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::store::Kind;

    fn new_host() -> Key {
        Key { kind: Kind::Host, parent: Some(Uuid::new_v4()), id: Uuid::new_v4() }
    }

    fn columns(pending: &PendingCheckIns, host: Key, stored: Option<i64>) -> (Option<i64>, Option<i64>) {
        let mut row = Row::new(host, "{}".to_owned());
        row.columns.checked_in_at = stored;
        row.columns.clock = Some(-1);
        pending.apply_to(&mut row);
        (row.columns.checked_in_at, row.columns.clock)
    }

    #[test]
    fn row_gets_the_later_check_in() {
        let (pending, host) = (PendingCheckIns::default(), new_host());
        assert_eq!(columns(&pending, host, None), (None, Some(-1)));
        pending.add(CheckIn { host, at: 10, clock: None });
        assert_eq!(columns(&pending, host, None), (Some(10), Some(-1)));
        pending.add(CheckIn { host, at: 20, clock: Some(7) });
        // An older check-in, from a request that took longer, has no effect.
        pending.add(CheckIn { host, at: 15, clock: Some(8) });
        pending.add(CheckIn { host, at: 21, clock: None });
        assert_eq!(columns(&pending, host, Some(20)), (Some(21), Some(7)));
        assert_eq!(columns(&pending, host, Some(21)), (Some(21), Some(-1)));
        assert_eq!(columns(&pending, host, Some(30)), (Some(30), Some(-1)));
        assert_eq!(columns(&pending, new_host(), None), (None, Some(-1)));
        assert_eq!((pending.last(host), pending.last(new_host())), (Some(21), None));
    }

    #[test]
    fn check_in_during_a_flush_is_kept_for_the_next_flush() {
        let (pending, one, two) = (PendingCheckIns::default(), new_host(), new_host());
        for host in [one, two] {
            pending.add(CheckIn { host, at: 1, clock: None });
        }
        let stored = pending.all();
        pending.add(CheckIn { host: two, at: 2, clock: None });
        pending.remove(&stored);
        assert_eq!(pending.all(), [CheckIn { host: two, at: 2, clock: None }]);
    }

    #[test]
    fn one_task_runs_while_check_ins_wait() {
        let (pending, host) = (PendingCheckIns::default(), new_host());
        let check_in = CheckIn { host, at: 1, clock: None };
        assert!(pending.add(check_in));
        assert!(!pending.add(check_in) && !pending.end_task());
        pending.remove(&[check_in]);
        assert!(pending.end_task());
        assert!(pending.add(check_in));
    }

    #[test]
    fn each_host_has_one_pending_check_in() {
        let (pending, host) = (PendingCheckIns::default(), new_host());
        for at in 0..1000 {
            pending.add(CheckIn { host, at, clock: Some(at) });
        }
        assert_eq!(pending.all(), [CheckIn { host, at: 999, clock: Some(999) }]);
    }
}
