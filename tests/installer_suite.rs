//! The installer's own test scripts, with Kindling under the installer's name.
//!
//! `KINDLING_INSTALLER_SUITE` names the folder with an unpacked `coreos-installer` source and its `tests` and
//! `fixtures`. The tests write nothing there. The scripts need bash, jq, xz and cpio.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test code: what is not as expected must stop the test"
)]

mod support;

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use support::{INSTALLER, KINDLING, ProgramRun, Scratch, require_path, require_tool};

/// The suite has dozens of scripts with dozens of commands each.
const PATIENCE: Duration = Duration::from_secs(900);

#[test]
fn image_tests_of_the_installer_pass() {
    let tools = ["bash", "jq", "xz", "cpio", "sha256sum"].map(require_tool);
    let Some(suite) = require_path("KINDLING_INSTALLER_SUITE") else { return };
    let [Some(bash), ..] = &tools else { return };
    if tools.iter().any(Option::is_none) {
        return;
    }
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("bin")).unwrap();
    symlink(KINDLING, scratch.path("bin").join(INSTALLER)).unwrap();
    let mut path = vec![scratch.path("bin")];
    path.extend(env::split_paths(&env::var_os("PATH").unwrap()));
    let script = suite.join("tests/images.sh");
    let run = ProgramRun::new(bash, scratch.folder())
        .args([&script])
        .env("PATH", env::join_paths(path).unwrap())
        .env("TMPDIR", scratch.folder())
        .env("COREOS_INSTALLER_TEST_INSTALLED_BINARY", "1");
    let output = run.time_limit(PATIENCE).run();
    let log = String::from_utf8_lossy(&output.stdout).into_owned() + &output.stderr;
    let tail: Vec<&str> = log.lines().rev().take(60).collect();
    assert!(output.status.success(), "{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
    assert!(output.stdout.ends_with(b"\n") && log.contains("Success."));
    // The scripts must have run our program, and not a program in the suite's folder.
    assert!(log.contains(scratch.path("bin").to_str().unwrap()), "another program was tested");
}
