//! Commands that get killed, fail midway, or run concurrently.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use fixtures::Recipe;

use crate::full_featured_image;
use crate::support::report_skipped;
use crate::support::{
    EDIT_MARKER, FixtureImage, KINDLING, ProgramRun, RunOutput, Scratch, check_each, different_fixtures,
};

/// Runs kindling with a limit on file length, in 512-byte blocks. At the limit, the kernel kills the process, or fails
/// the write if the process ignores the signal.
fn run_with_file_limit(scratch: &Scratch, blocks: u64, ignored: bool, line: &str) -> RunOutput {
    let ignore = if ignored { "trap '' XFSZ; " } else { "" };
    let script = format!("{ignore}ulimit -c 0; ulimit -f {blocks}; exec {KINDLING} {line}");
    ProgramRun::new("sh", scratch.folder()).args(["-c", &script]).run()
}

/// Kills an in-place edit before each of its writes.
#[test]
fn killed_in_place_edit_leaves_old_new_or_marked_image() {
    check_each(
        different_fixtures(),
        |image| image.name(),
        |image| {
            let area = image.truth.ignition.unwrap();
            let line = "iso customize --live-karg-append quiet --live-ignition config.ign image.iso";
            let scratch = image.scratch_with_image();
            scratch.run_kindling(line).expect_success();
            let new = scratch.read("image.iso");
            let mut outcomes = [0; 3];
            let places = image.truth.kargs.iter().chain([&area]);
            let mut blocks: Vec<u64> =
                places.flat_map(|place| [place.offset / 512, place.offset / 512 + 1]).collect();
            blocks.extend([
                area.offset / 512 + 2,
                (area.offset + area.len) / 512,
                image.bytes.len() as u64 / 512 + 1,
            ]);
            for blocks in blocks {
                let scratch = image.scratch_with_image();
                run_with_file_limit(&scratch, blocks, false, line);
                let left = scratch.read("image.iso");
                let start = usize::try_from(area.offset).unwrap();
                if left == image.bytes {
                    outcomes[0] += 1;
                } else if left == new {
                    outcomes[1] += 1;
                } else {
                    outcomes[2] += 1;
                    assert!(
                        left[start..].starts_with(EDIT_MARKER),
                        "{blocks} blocks: neither old, new nor marked"
                    );
                    assert_refused(image, &scratch);
                }
                scratch.run_kindling("iso reset image.iso").expect_success();
                assert!(
                    scratch.read("image.iso") == image.bytes,
                    "{blocks} blocks: reset does not restore the image"
                );
            }
            assert!(outcomes[1] > 0 && outcomes[2] > 0, "the limits do not cover every write: {outcomes:?}");
        },
    );
}

/// Asserts that every command that reads or edits the areas refuses an image whose last edit was interrupted.
#[track_caller]
fn assert_refused(image: &FixtureImage, scratch: &Scratch) {
    let before = scratch.read("image.iso");
    let names = scratch.names();
    let mut lines = vec![
        "iso ignition embed -i config.ign image.iso",
        "iso ignition embed -f -i config.ign image.iso",
        "iso ignition show image.iso",
        "iso ignition remove image.iso",
        "iso network extract image.iso",
        "iso network remove image.iso",
        "iso customize image.iso",
        "iso customize -f image.iso",
        "iso customize -f --live-ignition config.ign -o out.iso image.iso",
        "iso customize -f -o - image.iso",
    ];
    if image.recipe.era().has_features() {
        lines.push("iso network embed -f -k wired.nmconnection image.iso");
    }
    if image.has_kargs() {
        lines.extend([
            "iso kargs show image.iso",
            "iso kargs modify -a x image.iso",
            "iso kargs modify -a x -o out.iso image.iso",
            "iso kargs reset image.iso",
            "iso kargs reset -o - image.iso",
            "iso extract minimal-iso image.iso out.iso",
        ]);
    }
    let mut accepted = Vec::new();
    for line in lines {
        let output = scratch.run_kindling(line);
        if output.status.success() {
            accepted.push(line);
            scratch.write("image.iso", &before);
            let _ = fs::remove_file(scratch.path("out.iso"));
            continue;
        }
        output.expect_failure(
            "an in-place edit was interrupted before it was complete; `iso reset` repairs the image",
        );
        assert!(output.stderr.contains("image.iso") && output.stdout.is_empty(), "{line}");
    }
    assert!(accepted.is_empty(), "accepted though the last edit was not completed: {accepted:#?}");
    assert!(scratch.read("image.iso") == before && scratch.names() == names);
}

#[test]
fn interrupted_edit_is_refused_until_it_is_reset() {
    check_each(
        different_fixtures(),
        |image| image.name(),
        |image| {
            let scratch = image.scratch_with_image();
            let mut marked = image.bytes.clone();
            let start = usize::try_from(image.truth.ignition.unwrap().offset).unwrap();
            marked[start..start + EDIT_MARKER.len()].copy_from_slice(EDIT_MARKER);
            // Simulate an edit interrupted after it had changed a part of the first kernel arguments area.
            let kargs = usize::try_from(image.truth.kargs[0].offset).unwrap();
            marked[kargs..kargs + 4].copy_from_slice(b"half");
            scratch.write("image.iso", &marked);
            let verify = scratch.run_kindling("iso verify image.iso");
            assert_eq!(verify.status.code(), Some(1));
            assert!(verify.stdout_text().contains("interrupted"), "{}", verify.stdout_text());
            assert!(scratch.run_kindling("iso inspect image.iso").expect_text().contains("interrupted"));
            for line in ["iso reset -o out.iso image.iso", "iso reset image.iso"] {
                scratch.run_kindling(line).expect_success();
            }
            assert!(scratch.read("out.iso") == image.bytes && scratch.read("image.iso") == image.bytes);
            scratch.remove("out.iso");
            scratch.write("image.iso", &marked);
            assert_refused(image, &scratch);
        },
    );
}

/// The write fails as on a full disk, and the command reports it. The image is in the same state as after a kill.
#[test]
fn write_that_fails_is_reported() {
    let image = full_featured_image();
    let line = "iso kargs modify -a quiet image.iso";
    let scratch = image.scratch_with_image();
    // The limit is after the marker and before the last kernel arguments area.
    let last = image.truth.kargs.iter().map(|area| area.offset).max().unwrap();
    let area = image.truth.ignition.unwrap();
    assert!(last > area.offset, "the test needs an area after the Ignition area");
    let output = run_with_file_limit(&scratch, last / 512, true, line);
    output.expect_failure("File too large");
    assert!(output.stderr.contains("image.iso"), "{}", output.stderr);
    scratch.run_kindling("iso ignition show image.iso").expect_failure("interrupted");
    scratch.run_kindling("iso reset image.iso").expect_success();
    assert!(scratch.read("image.iso") == image.bytes);
    for line in [
        "iso reset -o out.iso image.iso",
        "iso extract minimal-iso image.iso out.iso --output-rootfs rootfs.img",
    ] {
        let output = run_with_file_limit(&scratch, 100, true, line);
        output.expect_failure("File too large");
        assert_eq!(scratch.names(), ["config.ign", "image.iso", "wired.nmconnection"], "{line}");
    }
}

/// A file length limit kills the copy at a known offset.
#[test]
fn killed_copy_leaves_no_file() {
    let scratch = full_featured_image().scratch_with_image();
    scratch.write("initrd.img", full_featured_image().file_bytes("images/pxeboot/initrd.img"));
    let names = scratch.names();
    for line in [
        "iso reset -o out.iso image.iso",
        "iso ignition embed -i config.ign -o out.iso image.iso",
        "iso extract minimal-iso image.iso out.iso",
        "iso extract minimal-iso image.iso out.iso --output-rootfs rootfs.img",
        "pxe customize -o out.img initrd.img",
    ] {
        for blocks in [0, 1] {
            let output = run_with_file_limit(&scratch, blocks, false, line);
            assert!(output.status.signal().is_some(), "{line}: {:?} {}", output.status, output.stderr);
            assert_eq!(scratch.names(), names, "{line}");
        }
    }
}

const LARGE: u64 = 192 << 20;

/// Kills a copy of a large image midway. A file system that shares blocks copies the image immediately; then the copy
/// is complete.
#[test]
fn killed_large_copy_is_complete_or_absent() {
    let scratch = Scratch::new();
    let (architecture, era) =
        (full_featured_image().recipe.architecture(), full_featured_image().recipe.era());
    let master = Recipe::new(architecture, era).rootfs_len(LARGE).master();
    let path = scratch.path("image.iso");
    master.image.write_to(&path).unwrap();
    fill_holes(&path, master.files["images/pxeboot/rootfs.img"]);
    let len = path.metadata().unwrap().len();
    let mut hit = 0;
    for _ in 0..8 {
        let mut command = scratch
            .command(["iso", "kargs", "modify", "-a", "quiet", "-o", "out.iso", "image.iso"])
            .command();
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let start = Instant::now();
        let mut unnamed = false;
        while child.try_wait().unwrap().is_none() && start.elapsed() < Duration::from_secs(60) {
            if let Some(has_name) = has_partial_file(child.id(), scratch.folder()) {
                unnamed = !has_name;
                break;
            }
        }
        child.kill().unwrap();
        let status = child.wait().unwrap();
        let out = scratch.path("out.iso");
        if out.exists() {
            assert_eq!(out.metadata().unwrap().len(), len, "a partial file has the final name");
            scratch.remove("out.iso");
        } else {
            assert_eq!(status.signal(), Some(9));
            hit += 1;
        }
        let left: Vec<_> =
            fs::read_dir(scratch.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        if unnamed {
            assert_eq!(left, ["image.iso"], "a temporary file was left");
        } else if left.len() > 1 {
            report_skipped("this file system does not support O_TMPFILE");
            return;
        }
    }
    if hit == 0 {
        report_skipped("copies finish before they can be killed");
    }
}

/// Fills the holes of a sparse file.
fn fill_holes(path: &Path, extent: fixtures::Extent) {
    let file = File::options().write(true).open(path).unwrap();
    let block = vec![0xA5; 1 << 20];
    let end = extent.offset + extent.len - (1 << 20);
    let mut offset = extent.offset + (1 << 20);
    while offset + (1 << 20) < end {
        file.write_all_at(&block, offset).unwrap();
        offset += 1 << 20;
    }
}

/// Returns `Some(true)` if a partly written file in this folder already has a name, and `None` if the process has no
/// such file open.
fn has_partial_file(process: u32, folder: &Path) -> Option<bool> {
    for entry in fs::read_dir(format!("/proc/{process}/fd")).ok()? {
        let descriptor = entry.ok()?.path();
        let target = fs::read_link(&descriptor).ok()?;
        let is_output = target.starts_with(folder) && !target.ends_with("image.iso");
        if is_output && fs::metadata(&descriptor).ok()?.blocks() > 0 {
            return Some(!target.to_string_lossy().ends_with(" (deleted)"));
        }
    }
    None
}

/// The second edit fails instead of undoing the first one.
#[test]
fn concurrent_in_place_edits_exclude_each_other() {
    let scratch = full_featured_image().scratch_with_image();
    let lock_holder = File::open(scratch.path("image.iso")).unwrap();
    lock_holder.lock().unwrap();
    for line in [
        "iso kargs modify -a quiet image.iso",
        "iso ignition embed -i config.ign image.iso",
        "iso reset image.iso",
    ] {
        scratch.run_kindling(line).expect_failure("image.iso is being edited by another process");
    }
    assert!(scratch.read("image.iso") == full_featured_image().bytes);
    scratch.run_kindling("iso kargs modify -a quiet -o out.iso image.iso").expect_success();
    scratch.run_kindling("iso kargs show image.iso").expect_success();
    drop(lock_holder);
    scratch.run_kindling("iso kargs modify -a quiet image.iso").expect_success();
}

/// No edit is lost: all edits that succeed are in the image.
#[test]
fn concurrent_edits_are_applied_or_refused() {
    let scratch = full_featured_image().scratch_with_image();
    let children: Vec<_> = (0..12)
        .map(|number| {
            let argument = format!("number={number}");
            let mut command =
                scratch.command(["iso", "kargs", "modify", "-a", &argument, "image.iso"]).command();
            let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            (argument, child)
        })
        .collect();
    let mut applied = Vec::new();
    for (argument, child) in children {
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        if output.status.success() {
            applied.push(argument);
        } else {
            assert!(stderr.contains("is being edited by another process"), "{stderr}");
        }
    }
    let output = scratch.run_kindling("iso kargs show image.iso").expect_text();
    let words: Vec<&str> = output.split_whitespace().collect();
    assert!(
        !applied.is_empty() && applied.iter().all(|argument| words.contains(&argument.as_str())),
        "{applied:?}: {output}"
    );
    assert_eq!(words.iter().filter(|word| word.starts_with("number=")).count(), applied.len());
}
