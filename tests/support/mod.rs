//! What the black-box tests share: scratch folders, running programs, the images, and the tools that may be missing.

#![allow(dead_code, unused_imports, reason = "no test program needs all of it")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod authority;
mod images;
mod run;
mod scratch;

use std::path::PathBuf;
use std::{env, fs};

pub(crate) use authority::{Authority, write_pair};
pub(crate) use images::{Image, few, good, image, published, slice};
pub(crate) use run::{Output, Run};
pub(crate) use scratch::{Entry, Scratch};

/// The program under test.
pub(crate) const KINDLING: &str = env!("CARGO_BIN_EXE_kindling");
/// The name of the program that it stands in for.
pub(crate) const INSTALLER: &str = "coreos-installer";
/// What an edit in place writes over the start of the Ignition area until it is complete.
pub(crate) const EDIT_MARKER: &[u8] = b"KINDLING EDIT WAS NOT COMPLETED\n";

/// A config as users embed it. Nobody parses it on the way in.
pub(crate) const CONFIG: &str = r#"{"ignition":{"version":"3.3.0"},"passwd":{"users":[{"name":"core"}]}}"#;
/// A `NetworkManager` keyfile.
pub(crate) const KEYFILE: &str = "[connection]\nid=wired\ntype=ethernet\n\n[ipv4]\nmethod=auto\n";

/// Looks a program up on `PATH`. Says so where it is missing, which `KINDLING_REQUIRE_TOOLS=1` makes a failure.
pub(crate) fn require_tool(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file());
    if found.is_none() {
        missing(&format!("{name} is not installed"));
    }
    found
}

/// The file or folder that an environment variable names, in the same way.
pub(crate) fn require_path(variable: &str) -> Option<PathBuf> {
    let Some(folder) = env::var_os(variable).map(PathBuf::from) else {
        missing(&format!("{variable} is not set"));
        return None;
    };
    Some(fs::canonicalize(&folder).unwrap_or_else(|error| panic!("{variable}={}: {error}", folder.display())))
}

/// A file that a package installs, in the same way.
pub(crate) fn require_file(path: impl Into<PathBuf>) -> Option<PathBuf> {
    let path = path.into();
    if !path.is_file() {
        missing(&format!("{} is not installed", path.display()));
        return None;
    }
    Some(path)
}

pub(crate) fn missing(what: &str) {
    assert_ne!(env::var("KINDLING_REQUIRE_TOOLS").as_deref(), Ok("1"), "{what}, but required");
    eprintln!("SKIPPED: {what}");
}

/// Runs a check on many subjects and reports all that fail, not only the first.
pub(crate) fn each<'a, T: 'a>(
    subjects: impl IntoIterator<Item = &'a T>,
    name: impl Fn(&T) -> String,
    check: impl Fn(&T),
) {
    let mut failed = Vec::new();
    for subject in subjects {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(subject)));
        if outcome.is_err() {
            failed.push(name(subject));
        }
    }
    assert!(failed.is_empty(), "failed for {}: {}", failed.len(), failed.join(", "));
}
