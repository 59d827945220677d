//! Runs code of other crates and converts its panics to errors.
//!
//! The panic message that the runtime would print is suppressed only on the current thread. All other threads use the
//! program's earlier panic hook. In a program built with `panic = "abort"`, panics cannot be caught.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::thread;

thread_local! {
    static IS_SILENCED: Cell<bool> = const { Cell::new(false) };
}

static HOOK_INSTALLED: Once = Once::new();

/// Runs `job`. Returns the message of the panic if `job` panics.
///
/// `job` must not leave half-changed state in the caller. The state that `job` owns is dropped after a panic.
pub(super) fn catch_panic<T>(job: impl FnOnce() -> T) -> Result<T, String> {
    install_hook();
    let was_silenced = IS_SILENCED.replace(true);
    let result =
        panic::catch_unwind(AssertUnwindSafe(job)).map_err(|payload| panic_message(payload.as_ref()));
    IS_SILENCED.set(was_silenced);
    result
}

/// Installs a filter before the current panic hook, once per process. The filter is never removed, because removing
/// hooks would cause races with other threads.
fn install_hook() {
    if thread::panicking() {
        return;
    }
    HOOK_INSTALLED.call_once(|| {
        let next = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_SILENCED.try_with(Cell::get).unwrap_or(false) {
                next(info);
            }
        }));
    });
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_returned() {
        assert_eq!(catch_panic(|| 7), Ok(7));
    }

    #[test]
    fn panics_are_returned_as_messages() {
        let number = 3;
        assert_eq!(catch_panic(|| -> u8 { panic!("number {number}") }), Err("number 3".to_owned()));
        assert_eq!(catch_panic(|| -> u8 { panic!("plain") }), Err("plain".to_owned()));
        assert_eq!(
            catch_panic(|| -> u8 { panic::panic_any(5_u8) }),
            Err("panic without a message".to_owned())
        );
    }

    #[test]
    fn panic_reports_are_suppressed_only_on_this_thread_during_the_job() {
        let elsewhere = catch_panic(|| {
            assert!(IS_SILENCED.get());
            thread::spawn(|| IS_SILENCED.get()).join().unwrap()
        });
        assert_eq!(elsewhere, Ok(false));
        assert!(!IS_SILENCED.get());
        assert!(catch_panic(|| -> u8 { panic!("x") }).is_err());
        assert!(!IS_SILENCED.get());
    }
}
