//! Runs the same work on many items, on all CPUs, until it is cancelled.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Builder};

use super::Cancel;

/// Minimum number of items per thread. With fewer items, starting another thread is not worth the cost.
const MIN_ITEMS_PER_THREAD: usize = 8;

/// Runs `work` on all items and returns the results in the order of the items. If the work is cancelled, results are
/// missing at the end.
pub(super) fn map<T: Sync, R: Send>(items: &[T], cancel: &Cancel, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        if cancel.is_cancelled() {
            return None;
        }
        let index = next.fetch_add(1, Ordering::Relaxed);
        items.get(index).map(|item| (index, work(item)))
    };
    let share = || std::iter::from_fn(take).collect::<Vec<_>>();
    let mut results = thread::scope(|scope| {
        // If the system cannot start another thread, the current thread does the remaining work.
        let start = |_| Builder::new().spawn_scoped(scope, share).ok();
        let helpers: Vec<_> = (1..thread_count(items.len())).map_while(start).collect();
        let mut results = share();
        for helper in helpers {
            results.extend(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    });
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

fn thread_count(items: usize) -> usize {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    processors.min(items.div_ceil(MIN_ITEMS_PER_THREAD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_of_items() {
        for count in [0_usize, 1, 7, 1000] {
            let items: Vec<usize> = (0..count).collect();
            let results = map(&items, &Cancel::new(), |item| item * 2);
            assert_eq!(results, (0..count).map(|item| item * 2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn cancelled_work_stops_within_one_item_per_thread() {
        let cancel = Cancel::new();
        let done = map(&[(); 100_000], &cancel, |()| cancel.cancel());
        assert!((1..=thread_count(100_000)).contains(&done.len()), "{}", done.len());
    }

    #[test]
    fn panic_is_resumed_in_the_caller() {
        let result = std::panic::catch_unwind(|| {
            super::super::panics::catch_panic(|| map(&[1; 100], &Cancel::new(), |_| -> u8 { panic!("bad") }))
        });
        assert!(result.is_ok_and(|result| result.is_err()));
    }
}
