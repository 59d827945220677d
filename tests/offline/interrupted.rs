//! Ctrl-C while a command runs.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::{ROOTFS, SOURCE, base_recipe, scratch_with_site};

#[test]
fn interrupt_leaves_no_files() {
    let scratch = scratch_with_site("disconnected");
    // Sparse files. Hashing both takes seconds.
    base_recipe().rootfs_len(2 << 30).write_to(&scratch.path("large.iso")).unwrap();
    std::fs::rename(scratch.path("large.iso"), scratch.path("base.iso")).unwrap();
    let before = scratch.path("").read_dir().unwrap().count();
    let options = ["--pxe", "pxe", "--rootfs-url", ROOTFS, "--sha256"];
    let mut command =
        scratch.command(["discovery", "create"].iter().chain(&SOURCE).chain(&options)).command();
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while !scratch.has_file("pxe/vmlinuz") {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing is written");
        thread::sleep(Duration::from_millis(2));
    }
    let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "Interrupted: nothing was written\n");
    assert!(output.stdout.is_empty());
    assert!(!scratch.has_file("pxe"));
    assert_eq!(scratch.path("").read_dir().unwrap().count(), before);
}
