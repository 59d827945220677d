//! Running foreign code so that its panics become errors.
//!
//! A panic is caught where it happened, and the report that the runtime prints for it is kept back on that thread
//! only. Reports of all other threads go to whatever hook the program had. (In a program built with
//! `panic = "abort"` nothing can be caught.)

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::thread;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Runs `job`; a panic inside it is returned as its message.
///
/// `job` must not share half-changed state with the caller: whatever it was working on is dropped.
pub(super) fn run<T>(job: impl FnOnce() -> T) -> Result<T, String> {
    install_hook();
    let _quiet = Quiet::enter();
    panic::catch_unwind(AssertUnwindSafe(job)).map_err(|payload| message(payload.as_ref()))
}

/// Puts a filter before the current panic hook, once per process. It stays: taking hooks in and out would race with
/// other threads.
fn install_hook() {
    if thread::panicking() {
        return;
    }
    HOOK.call_once(|| {
        let next = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.try_with(Cell::get).unwrap_or(false) {
                next(info);
            }
        }));
    });
}

/// Keeps panic reports of this thread back until dropped.
struct Quiet {
    before: bool,
}

impl Quiet {
    fn enter() -> Self {
        Self { before: QUIET.replace(true) }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        QUIET.set(self.before);
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
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
    fn results_pass_through() {
        assert_eq!(run(|| 7), Ok(7));
    }

    #[test]
    fn panics_become_messages() {
        let number = 3;
        assert_eq!(run(|| -> u8 { panic!("number {number}") }), Err("number 3".to_owned()));
        assert_eq!(run(|| -> u8 { panic!("plain") }), Err("plain".to_owned()));
        assert_eq!(run(|| -> u8 { panic::panic_any(5_u8) }), Err("panic without a message".to_owned()));
    }

    #[test]
    fn only_this_thread_is_quiet_and_only_meanwhile() {
        let elsewhere = run(|| {
            assert!(QUIET.get());
            thread::spawn(|| QUIET.get()).join().unwrap()
        });
        assert_eq!(elsewhere, Ok(false));
        assert!(!QUIET.get());
        assert!(run(|| -> u8 { panic!("x") }).is_err());
        assert!(!QUIET.get());
    }
}
