//! Notices about skipped tests. Test programs of other crates include this file.

#![allow(dead_code, reason = "no test program needs all of it")]

use std::collections::BTreeSet;
use std::env;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// The reported reasons of this test program.
static REPORTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Reports that a test lacks a tool or a variable, which the user can install or set. Fails instead with
/// `KINDLING_REQUIRE_TOOLS=1`.
#[track_caller]
pub(crate) fn report_missing(reason: &str) {
    assert_ne!(env::var("KINDLING_REQUIRE_TOOLS").as_deref(), Ok("1"), "{reason}, but required");
    report_skipped(reason);
}

/// Reports a skipped test, once for each reason. The notice goes directly to stderr, because the test harness captures
/// the output of `eprintln!` and hides it if the test passes.
pub(crate) fn report_skipped(reason: &str) {
    let is_new = REPORTED.lock().unwrap_or_else(PoisonError::into_inner).insert(reason.to_owned());
    if is_new {
        // A closed stderr does not fail the test.
        let _ = std::io::stderr()
            .write_all(format!("SKIPPED tests of {}: {reason}\n", program_name()).as_bytes());
    }
}

/// Returns the name of the test program, without the hash that Cargo appends.
fn program_name() -> String {
    let program = env::current_exe().ok();
    let stem = program.as_ref().and_then(|path| path.file_stem()).unwrap_or_default().to_string_lossy();
    stem.rsplit_once('-').map_or(stem.as_ref(), |(name, _)| name).to_owned()
}
