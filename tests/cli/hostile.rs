//! Invalid images and archives: the error names the file, nothing panics, and no output is left.

use std::{env, fs};

use fixtures::{Architecture, Era, Expect, HostileArchive, Stage, hostile, hostile_archives};

use crate::support::{CONFIG, RunOutput, Scratch, check_each, fixture};

/// Every command that only reads an image, and the last stage of its work.
const READ_COMMANDS: &[(&str, Stage)] = &[
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

/// Errors that need not name the file, because they report missing contents.
const ABSENT: &[&str] = &[
    "No embedded Ignition config.",
    "couldn't find Ignition config in archive",
    "No embedded network settings.",
];

/// Fails if a command has crashed or its error does not name the file.
#[track_caller]
fn assert_no_crash_and_file_named(line: &str, output: &RunOutput, file: &str) {
    let code = output.status.code();
    if line.starts_with("iso diff") && code == Some(2) {
        assert!(output.stderr.starts_with("Error: ") && output.stderr.contains(file), "{}", output.stderr);
        return;
    }
    assert!(matches!(code, Some(0 | 1)), "{line}: {:?} {}", output.status, output.stderr);
    assert!(!output.stderr.contains("panicked"), "{line}: {}", output.stderr);
    // `verify` and `diff` exit with 1 for findings, which are not errors.
    if code == Some(1) && !output.stderr.is_empty() {
        output.expect_failure("Error: ");
        let absent = ABSENT.iter().any(|phrase| output.stderr.contains(phrase));
        assert!(absent || output.stderr.contains(file), "{line}: no file is named: {}", output.stderr);
        assert!(output.stderr.len() < 4096, "{line}: {} bytes of error", output.stderr.len());
    } else if code == Some(1) {
        assert!(!output.stdout.is_empty(), "{line}: failed without a word");
    }
}

/// Each verb reads a third of the images, and each image is read by a third of the verbs. With `KINDLING_ALL_IMAGES`,
/// each verb reads all images. The tests of `isogen` always read all of them.
#[test]
fn every_verb_rejects_invalid_images() {
    let has_all = env::var_os("KINDLING_ALL_IMAGES").is_some();
    check_each(
        &hostile().into_iter().enumerate().collect::<Vec<_>>(),
        |(_, hostile)| hostile.name.to_owned(),
        |(number, hostile)| {
            let scratch = Scratch::new();
            scratch.write("image.iso", hostile.image());
            scratch.write("config.ign", CONFIG);
            let selected = READ_COMMANDS.iter().skip(if has_all { 0 } else { number % 3 });
            for (line, stage) in selected.step_by(if has_all { 1 } else { 3 }) {
                let output = scratch.run_kindling(line);
                assert_no_crash_and_file_named(line, &output, "image.iso");
                if matches!(hostile.expect, Expect::Refuse(wrong) if wrong == Stage::Open && *stage >= wrong)
                {
                    let code = if line.starts_with("iso diff") { 2 } else { 1 };
                    assert_eq!(output.status.code(), Some(code), "{line}: {} was accepted", hostile.what);
                }
                if hostile.expect == Expect::Accept && *stage == Stage::Open {
                    // `verify` may have findings, but it must have read the image.
                    assert!(
                        output.stderr.is_empty(),
                        "{line}: {} was refused: {}",
                        hostile.what,
                        output.stderr
                    );
                }
                assert!(
                    output.status.success() || !scratch.has_file("minimal.iso"),
                    "{line}: a file was left"
                );
                let _ = fs::remove_file(scratch.path("minimal.iso"));
            }
            // A failed in-place edit keeps the file and its length.
            let before = scratch.read("image.iso").len();
            for line in [
                "iso ignition embed -i config.ign image.iso",
                "iso kargs modify -a quiet image.iso",
                "iso reset image.iso",
            ] {
                assert_no_crash_and_file_named(line, &scratch.run_kindling(line), "image.iso");
            }
            assert_eq!(scratch.read("image.iso").len(), before);
        },
    );
}

/// Archives that expand to gigabytes or a million members. The tests of `isogen` read them; generating them in a debug
/// build takes longer than all other tests together.
const LARGE: &[&str] = &["million-members", "gzip-bomb", "zeros-bomb"];

fn invalid_archives() -> Vec<HostileArchive> {
    hostile_archives().into_iter().filter(|archive| !LARGE.contains(&archive.name)).collect()
}

#[test]
fn every_verb_rejects_invalid_archives() {
    check_each(
        &invalid_archives(),
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
                let output = scratch.run_kindling(line);
                assert_no_crash_and_file_named(line, &output, "initrd.img");
                if archive.expect == Expect::Refuse(Stage::Archive) {
                    assert_eq!(output.status.code(), Some(1), "{line}: {} was accepted", archive.what);
                    assert!(output.stdout.is_empty(), "{line}");
                }
            }
            assert!(!scratch.has_file("out.img"));
            let listed = scratch.run_kindling("dev show initrd initrd.img");
            if archive.expect == Expect::Accept {
                let names: Vec<_> = archive.files.iter().map(|(name, _)| *name).collect();
                assert_eq!(listed.stdout_text().lines().collect::<Vec<_>>(), names);
            }
            let line = "dev extract initrd -C a/b/out initrd.img";
            let output = scratch.run_kindling(line);
            assert_no_crash_and_file_named(line, &output, "");
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

/// Embeds the invalid archives in the embed area of an image.
#[test]
fn rejects_images_with_invalid_archives() {
    let image = fixture(Architecture::Aarch64, Era::E2023_07);
    let area = image.truth.ignition.unwrap();
    let start = usize::try_from(area.offset).unwrap();
    check_each(
        &invalid_archives(),
        |archive| archive.name.to_owned(),
        |archive| {
            let bytes = archive.bytes();
            if bytes.len() as u64 > area.len {
                return;
            }
            let scratch = image.scratch_with_image();
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
                assert_no_crash_and_file_named(line, &scratch.run_kindling(line), "image.iso");
            }
            if archive.expect == Expect::Refuse(Stage::Archive) {
                // The area is zero-filled after the archive, so a truncated archive ends in zeros.
                scratch.run_kindling("iso ignition show image.iso").expect_failure("image.iso");
                scratch
                    .run_kindling("iso ignition embed -f -i config.ign image.iso")
                    .expect_failure("image.iso");
                assert!(scratch.read("image.iso") == wrong, "a failed edit has changed the image");
            }
            scratch.run_kindling("iso reset image.iso").expect_success();
            assert!(scratch.read("image.iso") == image.bytes);
        },
    );
}

/// An archive with path traversal writes no file, not even its harmless members.
#[test]
fn archive_with_path_traversal_writes_nothing() {
    for archive in invalid_archives() {
        if archive.expect != Expect::Refuse(Stage::Extraction) {
            continue;
        }
        let scratch = Scratch::new();
        scratch.write("initrd.img", archive.bytes());
        scratch.run_kindling("dev extract initrd -C out initrd.img").expect_failure("path traversal");
        assert_eq!(scratch.names(), ["initrd.img"], "{}", archive.name);
    }
}

#[test]
fn error_names_a_file_that_is_not_an_iso_image() {
    let scratch = Scratch::new();
    scratch.write("page.iso", "<html>".repeat(10_000));
    scratch.write("short.iso", "short");
    let error = |file: &str, contents: &str| {
        format!(
            "Error: {file}: not an ISO 9660 image: expected a volume descriptor (CD001) at byte 32769, found {contents}\n"
        )
    };
    for (file, contents) in [
        (
            "page.iso",
            "\"ml><h\"; the file starts with `<`, like a web page: a server may have returned an error page instead of the image",
        ),
        ("short.iso", "the end of the file at 5"),
    ] {
        for command in ["iso inspect", "iso ignition show", "iso extract pxe"] {
            let output = scratch.run_kindling(&format!("{command} {file}"));
            assert_eq!(output.stderr, error(file, contents), "{command}");
            assert_eq!(output.status.code(), Some(1));
        }
    }
}
