//! The same work on many things, on all processors, until it is cancelled.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Builder};

use super::Cancel;

/// Things for which another thread is not worth its start.
const MIN_SHARE: usize = 8;

/// Does `work` on all items and returns the results in the order of the items. If the flag is set, some are missing.
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
        // Where the system gives no more threads, this one does it all.
        let start = |_| Builder::new().spawn_scoped(scope, share).ok();
        let helpers: Vec<_> = (1..threads(items.len())).map_while(start).collect();
        let mut results = share();
        for helper in helpers {
            results.extend(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    });
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

fn threads(items: usize) -> usize {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    processors.min(items.div_ceil(MIN_SHARE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order() {
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
        assert!((1..=threads(100_000)).contains(&done.len()), "{}", done.len());
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let result = std::panic::catch_unwind(|| {
            super::super::isolation::run(|| map(&[1; 100], &Cancel::new(), |_| -> u8 { panic!("bad") }))
        });
        assert!(result.is_ok_and(|result| result.is_err()));
    }
}
