//! `kindling boot-test` with a program instead of QEMU. `tests/boot` boots machines.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{KINDLING, ProgramRun, RunOutput, Scratch};

/// Runs the command with a shell script as QEMU.
fn boot_with(script: &str, options: &[&str]) -> RunOutput {
    let scratch = Scratch::new();
    let qemu = scratch.write("qemu-system-x86_64", format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&qemu, Permissions::from_mode(0o755)).unwrap();
    let search_path = format!("{}:/usr/bin:/bin", scratch.folder().display());
    ProgramRun::new(Path::new(KINDLING), scratch.folder())
        .args(["boot-test", "image.iso"])
        .args(options)
        .env("PATH", &search_path)
        .run()
}

#[test]
fn kvm_failure_during_a_boot_ends_it_with_a_hint() {
    // QEMU stops the virtual CPU but does not exit.
    let qemu = "echo booting; echo 'KVM internal error. Suberror: 1' >&2; exec sleep 600";
    let output = boot_with(qemu, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", output.stderr);
    for text in ["KVM cannot run the machine: KVM internal error. Suberror: 1", "--emulate"] {
        assert!(output.stderr.contains(text), "{}", output.stderr);
    }
}

#[test]
fn machine_that_ends_early_suggests_emulation_if_kvm_may_have_run_it() {
    let output = boot_with("echo 'qemu: kvm: failed to set MSR' >&2; exit 1", &[]);
    assert!(output.stderr.contains("qemu: kvm: failed to set MSR\n"), "{}", output.stderr);
    assert_eq!(output.stderr.contains("--emulate"), Path::new("/dev/kvm").exists(), "{}", output.stderr);
    let output = boot_with("exit 1", &["--emulate"]);
    assert!(!output.stderr.contains("--emulate"), "{}", output.stderr);
}
