//! Commands that are killed, that fail half-way, or that run at the same time.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use fixtures::Recipe;

use crate::support::{EDIT_MARKER, Image, KINDLING, Output, Run, Scratch, each, few};
use crate::usual;

/// Runs kindling where no file may be written beyond a number of 512-byte blocks: the system kills it there, or, with
/// the signal ignored, fails the write.
fn limited(scratch: &Scratch, blocks: u64, ignored: bool, line: &str) -> Output {
    let ignore = if ignored { "trap '' XFSZ; " } else { "" };
    let script = format!("{ignore}ulimit -c 0; ulimit -f {blocks}; exec {KINDLING} {line}");
    Run::new("sh", scratch.folder()).args(["-c", &script]).output()
}

/// Every place at which an edit in place may end: it is killed before each of its writes.
#[test]
fn an_edit_in_place_that_is_killed_leaves_the_old_image_the_new_one_or_one_that_says_so() {
    each(
        few(),
        |image| image.name(),
        |image| {
            let area = image.truth.ignition.unwrap();
            let line = "iso customize --live-karg-append quiet --live-ignition config.ign image.iso";
            let scratch = image.scratch();
            scratch.kindling(line).success();
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
                let scratch = image.scratch();
                limited(&scratch, blocks, false, line);
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
                scratch.kindling("iso reset image.iso").success();
                assert!(scratch.read("image.iso") == image.bytes, "{blocks} blocks: reset does not restore");
            }
            assert!(outcomes[1] > 0 && outcomes[2] > 0, "the limits are in the wrong places: {outcomes:?}");
        },
    );
}

/// Everything that reads or edits the areas of an image whose last edit was not completed.
#[track_caller]
fn assert_refused(image: &Image, scratch: &Scratch) {
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
        let output = scratch.kindling(line);
        if output.status.success() {
            accepted.push(line);
            scratch.write("image.iso", &before);
            let _ = fs::remove_file(scratch.path("out.iso"));
            continue;
        }
        output.failure("an edit in place was interrupted before it was complete; `iso reset` makes the image whole again");
        assert!(output.stderr.contains("image.iso") && output.stdout.is_empty(), "{line}");
    }
    assert!(accepted.is_empty(), "accepted though the last edit was not completed: {accepted:#?}");
    assert!(scratch.read("image.iso") == before && scratch.names() == names);
}

#[test]
fn an_interrupted_edit_is_refused_until_it_is_reset() {
    each(
        few(),
        |image| image.name(),
        |image| {
            let scratch = image.scratch();
            let mut marked = image.bytes.clone();
            let start = usize::try_from(image.truth.ignition.unwrap().offset).unwrap();
            marked[start..start + EDIT_MARKER.len()].copy_from_slice(EDIT_MARKER);
            // Half of the edit was done.
            let kargs = usize::try_from(image.truth.kargs[0].offset).unwrap();
            marked[kargs..kargs + 4].copy_from_slice(b"half");
            scratch.write("image.iso", &marked);
            let verify = scratch.kindling("iso verify image.iso");
            assert_eq!(verify.status.code(), Some(1));
            assert!(verify.text().contains("interrupted"), "{}", verify.text());
            assert!(scratch.kindling("iso inspect image.iso").printed().contains("interrupted"));
            for line in ["iso reset -o out.iso image.iso", "iso reset image.iso"] {
                scratch.kindling(line).success();
            }
            assert!(scratch.read("out.iso") == image.bytes && scratch.read("image.iso") == image.bytes);
            scratch.remove("out.iso");
            scratch.write("image.iso", &marked);
            assert_refused(image, &scratch);
        },
    );
}

/// A full disk: the write fails, the command says so, and what it leaves is the same as after a kill.
#[test]
fn a_write_that_fails_is_reported() {
    let image = usual();
    let line = "iso kargs modify -a quiet image.iso";
    let scratch = image.scratch();
    // Beyond the marker, before the last kernel arguments.
    let last = image.truth.kargs.iter().map(|area| area.offset).max().unwrap();
    let area = image.truth.ignition.unwrap();
    assert!(last > area.offset, "the test needs an area behind the Ignition area");
    let output = limited(&scratch, last / 512, true, line);
    output.failure("File too large");
    assert!(output.stderr.contains("image.iso"), "{}", output.stderr);
    scratch.kindling("iso ignition show image.iso").failure("interrupted");
    scratch.kindling("iso reset image.iso").success();
    assert!(scratch.read("image.iso") == image.bytes);
    for line in [
        "iso reset -o out.iso image.iso",
        "iso extract minimal-iso image.iso out.iso --output-rootfs rootfs.img",
    ] {
        let output = limited(&scratch, 100, true, line);
        output.failure("File too large");
        assert_eq!(scratch.names(), ["config.ign", "image.iso", "wired.nmconnection"], "{line}");
    }
}

/// Copies are killed by a limit on the length of files, at a known place.
#[test]
fn a_copy_that_is_killed_leaves_nothing() {
    let scratch = usual().scratch();
    scratch.write("initrd.img", usual().file("images/pxeboot/initrd.img"));
    let names = scratch.names();
    for line in [
        "iso reset -o out.iso image.iso",
        "iso ignition embed -i config.ign -o out.iso image.iso",
        "iso extract minimal-iso image.iso out.iso",
        "iso extract minimal-iso image.iso out.iso --output-rootfs rootfs.img",
        "pxe customize -o out.img initrd.img",
    ] {
        for blocks in [0, 1] {
            let output = limited(&scratch, blocks, false, line);
            assert!(output.status.signal().is_some(), "{line}: {:?} {}", output.status, output.stderr);
            assert_eq!(scratch.names(), names, "{line}");
        }
    }
}

const LARGE: u64 = 192 << 20;

/// Kills a copy of a large image while it is under way. The file system decides how fast that is: one that shares
/// blocks is done at once, and then the copy is whole.
#[test]
fn a_large_copy_that_is_killed_is_there_whole_or_not_at_all() {
    let scratch = Scratch::new();
    let (architecture, era) = (usual().recipe.architecture(), usual().recipe.era());
    let master = Recipe::new(architecture, era).rootfs_len(LARGE).master();
    let path = scratch.path("image.iso");
    master.image.write_to(&path).unwrap();
    fill(&path, master.files["images/pxeboot/rootfs.img"]);
    let len = path.metadata().unwrap().len();
    let mut hit = 0;
    for _ in 0..8 {
        let mut command = scratch
            .command(["iso", "kargs", "modify", "-a", "quiet", "-o", "out.iso", "image.iso"])
            .command();
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let begun = Instant::now();
        let mut unnamed = false;
        while child.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(60) {
            if let Some(named) = under_way(child.id(), scratch.folder()) {
                unnamed = !named;
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
            eprintln!("SKIPPED: this file system has no unnamed files");
            return;
        }
    }
    if hit == 0 {
        eprintln!("SKIPPED: copies are done before they can be killed");
    }
}

/// Gives a file of holes real bytes.
fn fill(path: &Path, extent: fixtures::Extent) {
    let file = File::options().write(true).open(path).unwrap();
    let block = vec![0xA5; 1 << 20];
    let end = extent.offset + extent.len - (1 << 20);
    let mut offset = extent.offset + (1 << 20);
    while offset + (1 << 20) < end {
        file.write_all_at(&block, offset).unwrap();
        offset += 1 << 20;
    }
}

/// Whether a process has written some of a file in this folder, and whether that file has a name.
fn under_way(process: u32, folder: &Path) -> Option<bool> {
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

/// The second one is told, instead of one edit undoing the other.
#[test]
fn two_edits_in_place_do_not_meet() {
    let scratch = usual().scratch();
    let held = File::open(scratch.path("image.iso")).unwrap();
    held.lock().unwrap();
    for line in [
        "iso kargs modify -a quiet image.iso",
        "iso ignition embed -i config.ign image.iso",
        "iso reset image.iso",
    ] {
        scratch.kindling(line).failure("image.iso is being edited by another process");
    }
    assert!(scratch.read("image.iso") == usual().bytes);
    scratch.kindling("iso kargs modify -a quiet -o out.iso image.iso").success();
    scratch.kindling("iso kargs show image.iso").success();
    drop(held);
    scratch.kindling("iso kargs modify -a quiet image.iso").success();
}

/// Nobody loses an edit: of many at once, those that succeed are all in the image.
#[test]
fn edits_at_the_same_time_are_all_kept_or_refused() {
    let scratch = usual().scratch();
    let children: Vec<_> = (0..12)
        .map(|number| {
            let argument = format!("number={number}");
            let mut command =
                scratch.command(["iso", "kargs", "modify", "-a", &argument, "image.iso"]).command();
            let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            (argument, child)
        })
        .collect();
    let mut kept = Vec::new();
    for (argument, child) in children {
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        if output.status.success() {
            kept.push(argument);
        } else {
            assert!(stderr.contains("is being edited by another process"), "{stderr}");
        }
    }
    let shown = scratch.kindling("iso kargs show image.iso").printed();
    let words: Vec<&str> = shown.split_whitespace().collect();
    assert!(
        !kept.is_empty() && kept.iter().all(|argument| words.contains(&argument.as_str())),
        "{kept:?}: {shown}"
    );
    assert_eq!(words.iter().filter(|word| word.starts_with("number=")).count(), kept.len());
}
