//! Images and archives that are wrong on purpose: an error that names the file, no panic, nothing left behind.

use std::fs;

use fixtures::{Architecture, Era, Expect, HostileArchive, Stage, hostile, hostile_archives};

use crate::support::{CONFIG, Output, Scratch, each, image};

/// Everything that can be asked of an image without changing it, and the stage at which it looks at most.
const QUESTIONS: &[(&str, Stage)] = &[
    ("dev show iso image.iso", Stage::Open),
    ("dev show iso --ignition image.iso", Stage::Areas),
    ("dev show iso --kargs image.iso", Stage::Areas),
    ("iso ignition show image.iso", Stage::Areas),
    ("iso network extract image.iso", Stage::Areas),
    ("iso kargs show image.iso", Stage::Areas),
    ("iso kargs modify -a quiet -o - image.iso", Stage::Areas),
    ("iso customize --live-ignition config.ign -o - image.iso", Stage::Areas),
    ("iso reset -o - image.iso", Stage::Open),
    ("iso extract pxe -o pxe image.iso", Stage::Open),
    ("iso extract minimal-iso image.iso minimal.iso", Stage::Minimal),
    ("iso inspect image.iso", Stage::Open),
    ("iso diff image.iso image.iso", Stage::Open),
    ("iso verify image.iso", Stage::Open),
];

/// What an error may say without naming the file: it is about what is not in it.
const ABSENT: &[&str] = &[
    "No embedded Ignition config.",
    "couldn't find Ignition config in archive",
    "No embedded network settings.",
];

/// Fails unless a command has ended in order, whichever way.
#[track_caller]
fn assert_orderly(line: &str, output: &Output, file: &str) {
    let code = output.status.code();
    if line.starts_with("iso diff") && code == Some(2) {
        assert!(output.stderr.starts_with("Error: ") && output.stderr.contains(file), "{}", output.stderr);
        return;
    }
    assert!(matches!(code, Some(0 | 1)), "{line}: {:?} {}", output.status, output.stderr);
    assert!(!output.stderr.contains("panicked"), "{line}: {}", output.stderr);
    // `verify` and `diff` exit 1 for what they have found, which is no error.
    if code == Some(1) && !output.stderr.is_empty() {
        output.failure("Error: ");
        let absent = ABSENT.iter().any(|phrase| output.stderr.contains(phrase));
        assert!(absent || output.stderr.contains(file), "{line}: no file is named: {}", output.stderr);
        assert!(output.stderr.len() < 4096, "{line}: {} bytes of error", output.stderr.len());
    } else if code == Some(1) {
        assert!(!output.stdout.is_empty(), "{line}: failed without a word");
    }
}

#[test]
fn wrong_images_are_refused_by_every_verb_that_looks() {
    each(
        &hostile(),
        |hostile| hostile.name.to_owned(),
        |hostile| {
            let scratch = Scratch::new();
            scratch.write("image.iso", hostile.image());
            scratch.write("config.ign", CONFIG);
            for (line, stage) in QUESTIONS {
                let output = scratch.kindling(line);
                assert_orderly(line, &output, "image.iso");
                if matches!(hostile.expect, Expect::Refuse(wrong) if wrong == Stage::Open && *stage >= wrong)
                {
                    let code = if line.starts_with("iso diff") { 2 } else { 1 };
                    assert_eq!(output.status.code(), Some(code), "{line}: {} was accepted", hostile.what);
                }
                if hostile.expect == Expect::Accept && *stage == Stage::Open {
                    // `verify` may have found something, but it has read the image.
                    assert!(
                        output.stderr.is_empty(),
                        "{line}: {} was refused: {}",
                        hostile.what,
                        output.stderr
                    );
                }
                assert!(output.status.success() || !scratch.has("minimal.iso"), "{line}: a file was left");
                let _ = fs::remove_file(scratch.path("minimal.iso"));
            }
            // What is left of a wrong image after an edit in place: the same file, of the same length.
            let before = scratch.read("image.iso").len();
            for line in [
                "iso ignition embed -i config.ign image.iso",
                "iso kargs modify -a quiet image.iso",
                "iso reset image.iso",
            ] {
                assert_orderly(line, &scratch.kindling(line), "image.iso");
            }
            assert_eq!(scratch.read("image.iso").len(), before);
        },
    );
}

/// Archives that grow to gigabytes or a million members. The tests of `isogen` read them; making them takes a debug
/// build of the generator longer than all other tests together.
const LARGE: &[&str] = &["million-members", "gzip-bomb", "zeros-bomb"];

fn archives() -> Vec<HostileArchive> {
    hostile_archives().into_iter().filter(|archive| !LARGE.contains(&archive.name)).collect()
}

#[test]
fn wrong_archives_are_refused_by_every_verb_that_looks() {
    each(
        &archives(),
        |archive| archive.name.to_owned(),
        |archive| {
            let scratch = Scratch::new();
            scratch.write("initrd.img", archive.bytes());
            for line in [
                "dev show initrd initrd.img",
                "pxe ignition unwrap initrd.img",
                "pxe network unwrap initrd.img",
                "pxe customize -o out.img initrd.img",
            ] {
                let output = scratch.kindling(line);
                assert_orderly(line, &output, "initrd.img");
                if archive.expect == Expect::Refuse(Stage::Archive) {
                    assert_eq!(output.status.code(), Some(1), "{line}: {} was accepted", archive.what);
                    assert!(output.stdout.is_empty(), "{line}");
                }
            }
            assert!(!scratch.has("out.img"));
            let listed = scratch.kindling("dev show initrd initrd.img");
            if archive.expect == Expect::Accept {
                let names: Vec<_> = archive.files.iter().map(|(name, _)| *name).collect();
                assert_eq!(listed.text().lines().collect::<Vec<_>>(), names);
            }
            let line = "dev extract initrd -C a/b/out initrd.img";
            let output = scratch.kindling(line);
            assert_orderly(line, &output, "");
            if matches!(archive.expect, Expect::Refuse(_)) {
                assert_eq!(output.status.code(), Some(1), "{} was extracted", archive.what);
            }
            let outside = |name: &String| name != "initrd.img" && !name.starts_with("a/b/out/");
            assert!(
                !scratch.names().iter().any(outside),
                "files outside of the folder: {:?}",
                scratch.names()
            );
        },
    );
}

/// The same archives where an image keeps its own.
#[test]
fn wrong_archives_in_an_image_are_refused() {
    let image = image(Architecture::Aarch64, Era::E2023_07);
    let area = image.truth.ignition.unwrap();
    let start = usize::try_from(area.offset).unwrap();
    each(
        &archives(),
        |archive| archive.name.to_owned(),
        |archive| {
            let bytes = archive.bytes();
            if bytes.len() as u64 > area.len {
                return;
            }
            let scratch = image.scratch();
            let mut wrong = image.bytes.clone();
            wrong[start..start + bytes.len()].copy_from_slice(&bytes);
            scratch.write("image.iso", &wrong);
            for line in [
                "iso ignition show image.iso",
                "iso ignition remove -o - image.iso",
                "iso network extract image.iso",
                "iso network embed -f -k wired.nmconnection -o - image.iso",
                "iso extract minimal-iso image.iso",
                "iso inspect image.iso",
            ] {
                assert_orderly(line, &scratch.kindling(line), "image.iso");
            }
            if archive.expect == Expect::Refuse(Stage::Archive) {
                // Whatever follows the archive in the area is zeros, so one that is cut off ends in those.
                scratch.kindling("iso ignition show image.iso").failure("image.iso");
                scratch.kindling("iso ignition embed -f -i config.ign image.iso").failure("image.iso");
                assert!(scratch.read("image.iso") == wrong, "a failed edit has changed the image");
            }
            scratch.kindling("iso reset image.iso").success();
            assert!(scratch.read("image.iso") == image.bytes);
        },
    );
}

/// An archive that would write outside of its folder writes nothing at all, not even its harmless members.
#[test]
fn an_archive_that_leaves_its_folder_writes_nothing() {
    for archive in archives() {
        if archive.expect != Expect::Refuse(Stage::Extraction) {
            continue;
        }
        let scratch = Scratch::new();
        scratch.write("initrd.img", archive.bytes());
        scratch.kindling("dev extract initrd -C out initrd.img").failure("path traversal");
        assert_eq!(scratch.names(), ["initrd.img"], "{}", archive.name);
    }
}
