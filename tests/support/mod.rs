//! Helpers of the black-box tests: scratch folders, runs of programs, images, and optional tools.

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
pub(crate) mod skip;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

pub(crate) use authority::{CertificateAuthority, write_pair};
pub(crate) use images::{
    FixtureImage, all_fixtures, different_fixtures, extent_of, fixture, published_images,
};
pub(crate) use run::{ProgramRun, RunOutput};
pub(crate) use scratch::{Scratch, ScratchFile};
pub(crate) use skip::{report_missing, report_skipped};

/// The program under test.
pub(crate) const KINDLING: &str = env!("CARGO_BIN_EXE_kindling");
/// The program that Kindling replaces.
pub(crate) const INSTALLER: &str = "coreos-installer";
/// The marker at the start of the Ignition area during an in-place edit.
pub(crate) const EDIT_MARKER: &[u8] = b"KINDLING EDIT WAS NOT COMPLETED\n";

/// A typical config. Embedding does not parse it.
pub(crate) const CONFIG: &str = r#"{"ignition":{"version":"3.3.0"},"passwd":{"users":[{"name":"core"}]}}"#;
/// A `NetworkManager` keyfile.
pub(crate) const KEYFILE: &str = "[connection]\nid=wired\ntype=ethernet\n\n[ipv4]\nmethod=auto\n";

/// Returns the private memory of a process in bytes.
pub(crate) fn private_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() << 10
}

/// Finds a program in `PATH`. Prints a notice if it is missing, or fails with `KINDLING_REQUIRE_TOOLS=1`.
pub(crate) fn require_tool(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let program = env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file());
    if program.is_none() {
        report_missing(&format!("{name} is not installed"));
    }
    program
}

/// Returns the file or folder in an environment variable. Prints the same notice as [`require_tool`] if it is missing.
pub(crate) fn require_path(variable: &str) -> Option<PathBuf> {
    let Some(folder) = env::var_os(variable).map(PathBuf::from) else {
        report_missing(&format!("{variable} is not set"));
        return None;
    };
    Some(fs::canonicalize(&folder).unwrap_or_else(|error| panic!("{variable}={}: {error}", folder.display())))
}

/// Returns a file that a package installs. Prints the same notice as [`require_tool`] if it is missing.
pub(crate) fn require_file(path: impl Into<PathBuf>) -> Option<PathBuf> {
    let path = path.into();
    if !path.is_file() {
        report_missing(&format!("{} is not installed", path.display()));
        return None;
    }
    Some(path)
}

/// Returns QEMU with its HTTP client, which is a separate package in some distributions. Prints the same notice as
/// [`require_tool`] if it is missing.
pub(crate) fn require_qemu_with_http() -> Option<PathBuf> {
    let qemu = require_tool("qemu-system-x86_64")?;
    has_http_client(&qemu).then_some(qemu)
}

/// Returns `true` if this QEMU has an HTTP client. Prints the same notice as [`require_tool`] if it has none.
pub(crate) fn has_http_client(qemu: &Path) -> bool {
    let nowhere = "file=http://127.0.0.1:1/none,format=raw,if=none";
    let output = Command::new(qemu).args(["-display", "none", "-drive", nowhere]).output().unwrap();
    let has_client = !String::from_utf8_lossy(&output.stderr).contains("Unknown protocol");
    if !has_client {
        report_missing("QEMU has no HTTP client (package qemu-block-extra)");
    }
    has_client
}

/// Runs a check on many subjects, and reports all failures instead of only the first one.
pub(crate) fn check_each<'a, T: 'a>(
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
