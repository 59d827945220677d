//! The same work on many things, on all processors.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Builder};

/// Things for which another thread is not worth its start.
const MIN_SHARE: usize = 8;

/// Does `work` on all items. The results come in the order of the items.
pub(super) fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
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
            assert_eq!(map(&items, |item| item * 2), (0..count).map(|item| item * 2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let result = std::panic::catch_unwind(|| {
            super::super::isolation::run(|| map(&[1; 100], |_| -> u8 { panic!("bad") }))
        });
        assert!(result.is_ok_and(|result| result.is_err()));
    }
}
