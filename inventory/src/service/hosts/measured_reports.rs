//! Connectivity reports in which only measured numbers, such as the latency, have changed.
//!
//! The latency differs in every report, but no decision depends on small differences. So such a report does not change
//! the host. It replaces the stored report, which clients can read, at most once in [`STORE_INTERVAL`], together with
//! the reports of other hosts. If the process ends before that, the report is lost.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;

use crate::store::{Key, ReportKind};

/// Minimum time between two stored reports of one host.
const STORE_INTERVAL: Duration = Duration::from_secs(10 * 60);
/// Time for which reports are collected before they are stored together.
pub(crate) const COLLECTION_TIME: Duration = Duration::from_secs(3);
/// Maximum total size of the waiting reports in bytes. Further reports are dropped, because agents send new ones.
const MAX_BYTES: usize = 32 << 20;
/// Maximum number of hosts for which the time of the last stored report is remembered.
const MAX_HOSTS: NonZero<usize> = NonZero::new(20_000).unwrap();

/// The reports waiting to be stored.
#[derive(Debug)]
pub(crate) struct MeasuredReports(Mutex<Waiting>);

#[derive(Debug)]
struct Waiting {
    reports: HashMap<Key, String>,
    bytes: usize,
    stored_at: LruCache<Key, Instant>,
    has_task: bool,
}

impl Default for MeasuredReports {
    fn default() -> Self {
        let stored_at = LruCache::new(MAX_HOSTS);
        Self(Mutex::new(Waiting { reports: HashMap::new(), bytes: 0, stored_at, has_task: false }))
    }
}

impl MeasuredReports {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // A panic may leave a wrong size. Then reports are dropped too early, or a few more are kept.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a report unless the host has stored one recently. Returns `true` if the caller must start the task that
    /// stores the waiting reports.
    pub(crate) fn add(&self, host: Key, report: String) -> bool {
        let mut waiting = self.waiting();
        let is_recent = waiting.stored_at.get(&host).is_some_and(|at| at.elapsed() < STORE_INTERVAL);
        if is_recent || waiting.bytes.saturating_add(report.len()) > MAX_BYTES {
            return false;
        }
        waiting.stored_at.push(host, Instant::now());
        waiting.bytes += report.len();
        if let Some(before) = waiting.reports.insert(host, report) {
            waiting.bytes = waiting.bytes.saturating_sub(before.len());
        }
        !std::mem::replace(&mut waiting.has_task, true)
    }

    /// Drops the waiting report of a host, because a newer report is being stored.
    pub(crate) fn forget(&self, host: &Key) {
        let mut waiting = self.waiting();
        if let Some(report) = waiting.reports.remove(host) {
            waiting.bytes = waiting.bytes.saturating_sub(report.len());
        }
    }

    /// Removes and returns the waiting reports. If the result is empty, the task must end.
    pub(crate) fn take(&self) -> Vec<(Key, ReportKind, String)> {
        let mut waiting = self.waiting();
        waiting.bytes = 0;
        let reports = std::mem::take(&mut waiting.reports);
        waiting.has_task = !reports.is_empty();
        reports.into_iter().map(|(host, report)| (host, ReportKind::Connectivity, report)).collect()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::store::Kind;

    #[test]
    fn report_of_a_host_is_stored_once_in_an_interval() {
        let reports = MeasuredReports::default();
        let key = || Key { kind: Kind::Host, parent: Some(Uuid::new_v4()), id: Uuid::new_v4() };
        let (one, other) = (key(), key());
        assert!(reports.add(one, "1".to_owned()), "the task starts");
        assert!(!reports.add(one, "2".to_owned()) && !reports.add(other, "3".to_owned()));
        let mut batch = reports.take();
        batch.sort_by(|one, other| one.2.cmp(&other.2));
        let connectivity = ReportKind::Connectivity;
        assert_eq!(batch, [(one, connectivity, "1".to_owned()), (other, connectivity, "3".to_owned())]);
        assert!(!reports.add(one, "4".to_owned()));
        assert!(reports.take().is_empty());
        assert!(reports.add(key(), "5".to_owned()), "the task had ended");
    }

    #[test]
    fn newer_stored_report_drops_the_waiting_report() {
        let reports = MeasuredReports::default();
        let host = Key { kind: Kind::Host, parent: None, id: Uuid::new_v4() };
        reports.add(host, "1".to_owned());
        reports.forget(&host);
        assert!(reports.take().is_empty());
    }

    #[test]
    fn waiting_reports_are_bounded() {
        let reports = MeasuredReports::default();
        for number in 0..40 {
            let key = Key { kind: Kind::Host, parent: None, id: Uuid::from_u128(number) };
            reports.add(key, "x".repeat(1 << 20));
        }
        assert_eq!(reports.take().len(), 32);
    }
}
