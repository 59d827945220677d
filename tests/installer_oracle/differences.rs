//! Intended differences from the installer. Each test explains the reason and shows the installer's behaviour.

use std::process::Stdio;

use crate::program_pair::{ComparisonKind, ProgramPair};
use crate::support::{CONFIG, EDIT_MARKER, KEYFILE, KINDLING, ProgramRun, RunOutput, check_each};
use crate::{OracleImage, all_images, full_featured_image, images_for_independent_commands, installer_path};

impl ProgramPair<'_> {
    /// Runs both programs, whose results must differ. Arguments contain no spaces.
    fn run_and_expect_difference(&self, line: &str) -> (RunOutput, RunOutput) {
        self.run_both(&line.split_whitespace().collect::<Vec<_>>(), b"")
    }
}

/// GRUB's script lexer ends a command at certain characters of URLs, except between double quotes.
#[test]
fn urls_with_boot_loader_syntax_are_quoted() {
    let Some(subject) = full_featured_image() else { return };
    for special in ["&", ";", "<", ">", "|", "{", "}", "'"] {
        let pair = ProgramPair::new(subject);
        let url = format!("https://example.com/rootfs?a=1{special}b=2");
        let arguments = ["iso", "extract", "minimal-iso", "--rootfs-url", &url, "image.iso", "minimal.iso"];
        let (ours, theirs) = pair.run_both(&arguments, b"");
        ours.expect_success();
        theirs.expect_success();
        let (ours, theirs) = pair.run_and_expect_difference("iso kargs show minimal.iso");
        let quoted = format!("\"coreos.live.rootfs_url={url}\"");
        let value_quoted = format!("coreos.live.rootfs_url=\"{url}\"");
        let output = ours.expect_text();
        assert!(output.contains(&quoted) || output.contains(&value_quoted), "{output}");
        assert!(theirs.expect_text().contains(&format!("coreos.live.rootfs_url={url}")));
        // The installer must be able to read the image that Kindling has written.
        pair.exchange_file("minimal.iso");
        assert_eq!(pair.run_and_expect_difference("iso kargs show minimal.iso").1.expect_text(), output);
    }
}

/// Some URLs cannot be made safe by quotes in both boot loaders, and others have schemes that the live system does not
/// support.
#[test]
fn urls_that_cannot_work_are_refused() {
    let Some(subject) = full_featured_image() else { return };
    let pair = ProgramPair::new(subject);
    for url in [
        "https://example.com/a b",
        " https://example.com/a",
        "https://example.com/a\tb",
        "https://example.com/a\nb",
        "https://example.com/\"a\"",
        "https://example.com/a\\b",
        "https://example.com/$a",
        "ftp://example.com/a",
        "file:///a",
        "example.com/a",
        "",
    ] {
        let arguments = ["iso", "extract", "minimal-iso", "--rootfs-url", url, "image.iso", "minimal.iso"];
        let (ours, _) = pair.run_both(&arguments, b"");
        ours.expect_failure("invalid rootfs URL");
        assert!(!pair.ours().has_file("minimal.iso"), "{url:?}");
    }
}

/// A line break would end the boot loader's line and turn the rest into a command.
#[test]
fn control_characters_in_kernel_arguments_are_refused() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject);
        for argument in ["a\nb", "a\rb", "a\tb", "a\u{1b}b", "a\u{7f}b"] {
            let (ours, theirs) = pair.run_both(&["iso", "kargs", "modify", "-a", argument, "image.iso"], b"");
            ours.expect_failure("contains the control character");
            theirs.expect_success();
            let replacement = format!("ignition.platform.id=metal={argument}");
            let (ours, _) = pair.run_both(&["iso", "kargs", "modify", "-r", &replacement, "image.iso"], b"");
            ours.expect_failure("contains the control character");
            let (ours, _) =
                pair.run_both(&["iso", "customize", "--live-karg-append", argument, "image.iso"], b"");
            ours.expect_failure("contains the control character");
        }
        assert!(pair.ours().read("image.iso") == subject.bytes);
    });
}

/// A reset must repair invalid bytes. The installer fails, because it decodes the area first.
#[test]
fn reset_repairs_what_the_installer_cannot() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let Some(area) = subject.area else { return };
        let pair = ProgramPair::new(subject);
        let start = usize::try_from(area.offset).unwrap();
        let broken = |bytes: &[u8]| {
            let mut image = subject.bytes.clone();
            image[start..start + bytes.len()].copy_from_slice(bytes);
            pair.write_to_both("image.iso", &image);
        };
        for garbage in [b"garbage".as_slice(), b"\xFD7zXZ\0 and no more", b"070701", EDIT_MARKER] {
            for line in ["iso reset -o out.iso image.iso", "iso reset image.iso"] {
                broken(garbage);
                let (ours, theirs) = pair.run_and_expect_difference(line);
                ours.expect_success();
                theirs.expect_failure("Unrecognized CoreOS ISO image");
            }
            assert!(pair.ours().read("image.iso") == subject.bytes);
            assert!(pair.ours().read("out.iso") == subject.bytes);
            pair.ours().remove("out.iso");
        }
    });
}

/// Kernel arguments do not depend on the archive, and `customize -f` replaces an archive in any state.
#[test]
fn broken_archive_fails_only_the_commands_that_read_it() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let Some(area) = subject.area else { return };
        let pair = ProgramPair::new(subject);
        let mut image = subject.bytes.clone();
        let start = usize::try_from(area.offset).unwrap();
        image[start..start + 7].copy_from_slice(b"garbage");
        pair.write_to_both("image.iso", &image);
        pair.compare_exactly("iso extract pxe image.iso");
        for line in [
            "iso ignition show image.iso",
            "iso ignition embed -f image.iso",
            "iso network extract image.iso",
            "iso customize image.iso",
        ] {
            let (ours, theirs) = pair.run_and_expect_difference(line);
            ours.expect_failure("decoding the initrd archive");
            theirs.expect_failure("Unrecognized CoreOS ISO image");
        }
        for line in
            ["iso kargs show image.iso", "iso kargs modify -a x image.iso", "iso customize -f image.iso"]
        {
            let (ours, theirs) = pair.run_and_expect_difference(line);
            ours.expect_success();
            theirs.expect_failure("Unrecognized CoreOS ISO image");
        }
    });
}

/// A reset must repair kernel arguments that differ between areas. The installer fails.
#[test]
fn reset_repairs_kernel_arguments_that_disagree() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject);
        let output = pair.compare_exactly("dev show iso --kargs image.iso");
        let output: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let areas = output["kargs"].as_array().unwrap();
        if areas.len() < 2 {
            return;
        }
        let mut image = subject.bytes.clone();
        image[usize::try_from(areas[1]["offset"].as_u64().unwrap()).unwrap()] ^= 1;
        pair.write_to_both("image.iso", &image);
        pair.compare_exactly("iso kargs show image.iso");
        pair.compare_exactly("iso kargs modify -a x image.iso");
        let (ours, theirs) = pair.run_and_expect_difference("iso reset image.iso");
        ours.expect_success();
        theirs.expect_failure("kargs don't match at all offsets");
        assert!(pair.ours().read("image.iso") == subject.bytes);
    });
}

/// The installer copies a gigabyte before it detects the existing output. An invalid config shows which check runs
/// first.
#[test]
fn existing_output_is_refused_before_any_work() {
    let Some(subject) = full_featured_image() else { return };
    let pair = ProgramPair::new(subject);
    pair.write_to_both("taken", "mine");
    let mut altered = subject.bytes.clone();
    let last = altered.len() - 1_000_000;
    altered[last] ^= 1;
    pair.write_to_both("image.iso", &altered);
    let (ours, _) = pair.run_and_expect_difference("iso extract minimal-iso image.iso taken");
    ours.expect_failure("File exists");
    let (ours, theirs) = pair.run_and_expect_difference("iso reset -o taken image.iso");
    ours.expect_failure("File exists");
    theirs.expect_failure("File exists");
    assert_eq!(pair.ours().read("taken"), b"mine");
}

/// A failed extraction leaves no file. The installer leaves the root file system.
#[test]
fn failed_extraction_leaves_no_files() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject);
        pair.write_to_both("taken.iso", "mine");
        let (ours, theirs) = pair.run_and_expect_difference(
            "iso extract minimal-iso --output-rootfs rootfs.img image.iso taken.iso",
        );
        assert_eq!((ours.status.code(), theirs.status.code()), (Some(1), Some(1)));
        assert_eq!(pair.ours().names(), ["image.iso", "taken.iso"]);
    });
}

/// After an interrupted in-place edit, both programs refuse the image, and Kindling explains why.
#[test]
fn interrupted_edit_is_refused_by_the_installer_too() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let Some(area) = subject.area else { return };
        let pair = ProgramPair::new(subject);
        pair.write_to_both("config.ign", CONFIG);
        pair.write_to_both("wired.nmconnection", KEYFILE);
        let mut image = subject.bytes.clone();
        let start = usize::try_from(area.offset).unwrap();
        image[start..start + EDIT_MARKER.len()].copy_from_slice(EDIT_MARKER);
        pair.write_to_both("image.iso", &image);
        for line in [
            "iso ignition show image.iso",
            "iso ignition embed -f -i config.ign image.iso",
            "iso ignition remove image.iso",
            "iso network extract image.iso",
            "iso kargs show image.iso",
            "iso kargs modify -a x image.iso",
            "iso kargs reset image.iso",
            "iso customize -f image.iso",
            "iso extract minimal-iso image.iso out.iso",
        ] {
            let (_, theirs) = pair.run_and_expect_difference(line);
            theirs.expect_failure("Unrecognized CoreOS ISO image");
        }
        assert!(pair.theirs().read("image.iso") == image);
    });
}

/// For the kernel, a file of zeros is an empty set of archives.
#[test]
fn zeros_are_an_empty_archive() {
    let Some(subject) = full_featured_image() else { return };
    let pair = ProgramPair::new(subject);
    pair.write_to_both("initrd.img", [0; 4096]);
    let (ours, theirs) = pair.run_and_expect_difference("dev show initrd initrd.img");
    assert_eq!(ours.expect_text(), "");
    theirs.expect_failure("decoding initrd");
}

/// Old images for s390x and other ISO images have no Ignition area. Commands that do not need the area still work.
#[test]
fn image_without_an_ignition_area_is_readable() {
    let is_old = |subject: &&OracleImage| subject.area.is_none() && subject.name.contains("s390x");
    let without = all_images().iter().filter(is_old);
    check_each(without, OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject);
        let (ours, theirs) = pair.run_and_expect_difference("dev show iso --kargs image.iso");
        assert_eq!(ours.expect_text(), "null\n");
        theirs.expect_failure("Unrecognized CoreOS ISO image");
        let (ours, _) = pair.run_and_expect_difference("iso kargs show image.iso");
        ours.expect_failure("No karg embed areas found");
    });
}

/// Kindling reports unsupported features before it reads any file. The installer reads some files first.
#[test]
fn features_are_checked_before_files_are_read() {
    let Some(subject) = all_images().iter().find(|subject| subject.name == "2021-01.aarch64") else { return };
    let pair = ProgramPair::new(subject).write_sample_inputs();
    let (ours, theirs) = pair.run_and_expect_difference("iso customize --dest-ignition broken.ign image.iso");
    ours.expect_failure("does not support customizing installer configuration");
    theirs.expect_failure("parsing Ignition config");
}

/// The first line of a hook's unit is a comment with the program that wrote it.
#[test]
fn generated_units_name_their_author() {
    let Some(subject) = full_featured_image() else { return };
    let pair = ProgramPair::new(subject).write_sample_inputs();
    pair.compare_as("iso customize --pre-install hook.sh image.iso", ComparisonKind::Image).expect_success();
    let (ours, theirs) = pair.run_and_expect_difference("iso ignition show image.iso");
    assert!(ours.expect_text().contains("# Generated by kindling customize"));
    assert!(theirs.expect_text().contains("# Generated by coreos-installer {iso|pxe} customize"));
}

/// Extracted files may be secret, and NetworkManager ignores keyfiles that other users can read.
#[test]
fn extracted_files_are_private() {
    let Some(subject) = full_featured_image() else { return };
    let pair = ProgramPair::new(subject);
    pair.write_to_both("wired.nmconnection", KEYFILE);
    pair.compare_as("iso network embed -k wired.nmconnection image.iso", ComparisonKind::Image)
        .expect_success();
    pair.compare_as("pxe network wrap -k wired.nmconnection -o wrapped.img", ComparisonKind::Initrd)
        .expect_success();
    for (line, file) in [
        ("iso network extract -C a image.iso", "a/wired.nmconnection"),
        ("pxe network unwrap -C b wrapped.img", "b/wired.nmconnection"),
        ("dev extract initrd -C c wrapped.img", "c/etc/coreos-firstboot-network/wired.nmconnection"),
    ] {
        let (ours, theirs) = pair.run_and_expect_difference(line);
        ours.expect_success();
        theirs.expect_success();
        let (ours, theirs) = (&pair.ours().files()[file], &pair.theirs().files()[file]);
        assert_eq!((ours.mode, &ours.bytes), (0o600, &theirs.bytes));
    }
}

/// A closed pipe is not an error, not even for an image. The installer reports an error, or a signal kills it.
#[test]
fn closed_pipe_is_not_an_error() {
    let Some(subject) = full_featured_image() else { return };
    let pair = ProgramPair::new(subject);
    let closed = |program: &std::path::Path, folder: &std::path::Path| {
        let mut command =
            ProgramRun::new(program, folder).args(["iso", "reset", "-o", "-", "image.iso"]).command();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        child.wait_with_output().unwrap()
    };
    let ours = closed(KINDLING.as_ref(), pair.ours().folder());
    assert!(ours.status.success() && ours.stderr.is_empty());
    assert!(!closed(installer_path().unwrap(), pair.theirs().folder()).status.success());
}
