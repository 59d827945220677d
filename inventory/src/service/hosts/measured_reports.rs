//! Connectivity reports in which only measured numbers changed.
//!
//! Latency differs in each report. What is decided does not depend on small differences, so such a report changes no
//! host. It replaces the stored one, which clients see, at most once in [`STORE_INTERVAL`], together with those of other
//! hosts. Until then it is lost if the process ends.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;

use crate::store::{Key, ReportKind};

/// Minimum time between two writes of one host's report.
const STORE_INTERVAL: Duration = Duration::from_secs(10 * 60);
/// Time for which reports are collected before they are stored.
pub(crate) const COLLECTION_TIME: Duration = Duration::from_secs(3);
/// Maximum size of the reports that wait, in bytes. Further ones are dropped: agents send others.
const MAX_BYTES: usize = 32 << 20;
/// Maximum number of hosts whose last write is remembered.
const MAX_HOSTS: NonZero<usize> = NonZero::new(20_000).unwrap();

/// The reports that wait to be stored.
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
        // A panic between two steps makes the count of bytes wrong, which drops reports or keeps a few more.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a report, unless the host has stored one recently. Returns `true` if the caller must start the task that
    /// stores it.
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

    /// Forgets the report of a host that waits, because another one is stored.
    pub(crate) fn forget(&self, host: &Key) {
        let mut waiting = self.waiting();
        if let Some(report) = waiting.reports.remove(host) {
            waiting.bytes = waiting.bytes.saturating_sub(report.len());
        }
    }

    /// Takes the reports that wait. If there is no report, the task must end.
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
        let mut taken = reports.take();
        taken.sort_by(|one, other| one.2.cmp(&other.2));
        let connectivity = ReportKind::Connectivity;
        assert_eq!(taken, [(one, connectivity, "1".to_owned()), (other, connectivity, "3".to_owned())]);
        assert!(!reports.add(one, "4".to_owned()));
        assert!(reports.take().is_empty());
        assert!(reports.add(key(), "5".to_owned()), "the task had ended");
    }

    #[test]
    fn report_of_a_host_that_stores_another_one_is_forgotten() {
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
