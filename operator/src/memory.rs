//! Returns freed memory to the system after many reconciliations.
//!
//! A list and a reconciliation decode whole objects, while the caches contain copies of small parts. An allocator may
//! keep the memory of the decoded objects.

use std::time::Duration;

use tokio::time::sleep;

use crate::metrics::ControllerMetrics;

/// Interval at which the reconciliations are counted.
const INTERVAL: Duration = Duration::from_secs(10);
/// Number of reconciliations after which memory is returned.
const MANY: u64 = 100;

/// Calls `release` now, and again whenever at least [`MANY`] reconciliations have ended since. Never returns.
pub(crate) async fn release_after_work(controllers: &[ControllerMetrics], release: fn()) {
    let mut released_at = None;
    loop {
        let count = controllers.iter().map(|controller| controller.durations().count()).sum::<u64>();
        if released_at.is_none_or(|before| count.saturating_sub(before) >= MANY) {
            released_at = Some(count);
            // A panic of the function ends only this attempt.
            let _ = tokio::task::spawn_blocking(release).await;
        }
        sleep(INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::queue::{Next, Queue};

    static RELEASES: AtomicUsize = AtomicUsize::new(0);

    #[tokio::test(start_paused = true)]
    async fn memory_is_released_after_many_reconciliations_only() {
        let metrics = ControllerMetrics::new("test", Queue::new());
        let controllers = [metrics.clone()];
        let releasing = release_after_work(&controllers, || {
            RELEASES.fetch_add(1, Ordering::Relaxed);
        });
        let reconciling = async {
            let mut counts = Vec::new();
            for reconciliations in [0, MANY - 1, 1, 0] {
                (0..reconciliations).for_each(|_| metrics.add(Duration::ZERO, Next::Wait));
                sleep(INTERVAL * 2).await;
                counts.push(RELEASES.load(Ordering::Relaxed));
            }
            counts
        };
        tokio::select! {
            () = releasing => {}
            counts = reconciling => assert_eq!(counts, [1, 1, 2, 2]),
        }
    }
}
