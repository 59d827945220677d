//! Where Kindling does something else on purpose. Each test says why, and shows what the installer does.

use std::process::Stdio;

use crate::pair::{Kind, Pair};
use crate::support::{CONFIG, EDIT_MARKER, KEYFILE, KINDLING, Output, Run, each};
use crate::{Subject, few, installer, one, subjects};

impl Pair<'_> {
    /// Runs words without blanks, where results are expected to differ.
    fn differ(&self, line: &str) -> (Output, Output) {
        self.run(&line.split_whitespace().collect::<Vec<_>>(), b"")
    }
}

/// GRUB's script lexer ends a command at these characters. Between double quotes it leaves them alone.
#[test]
fn urls_that_the_boot_loader_would_take_apart_are_quoted() {
    let Some(subject) = one() else { return };
    for special in ["&", ";", "<", ">", "|", "{", "}", "'"] {
        let pair = Pair::new(subject);
        let url = format!("https://example.com/rootfs?a=1{special}b=2");
        let arguments = ["iso", "extract", "minimal-iso", "--rootfs-url", &url, "image.iso", "minimal.iso"];
        let (ours, theirs) = pair.run(&arguments, b"");
        ours.success();
        theirs.success();
        let (ours, theirs) = pair.differ("iso kargs show minimal.iso");
        let quoted = format!("\"coreos.live.rootfs_url={url}\"");
        let value_quoted = format!("coreos.live.rootfs_url=\"{url}\"");
        let shown = ours.printed();
        assert!(shown.contains(&quoted) || shown.contains(&value_quoted), "{shown}");
        assert!(theirs.printed().contains(&format!("coreos.live.rootfs_url={url}")));
        // The installer reads what Kindling has written.
        pair.exchange("minimal.iso");
        assert_eq!(pair.differ("iso kargs show minimal.iso").1.printed(), shown);
    }
}

/// No quoting makes these safe in both boot loaders, and the live system fetches with these schemes only.
#[test]
fn urls_that_cannot_work_are_refused() {
    let Some(subject) = one() else { return };
    let pair = Pair::new(subject);
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
        let (ours, _) = pair.run(&arguments, b"");
        ours.failure("is refused");
        assert!(!pair.ours.has("minimal.iso"), "{url:?}");
    }
}

/// A line break would end the boot loader's line, and let the rest be a command.
#[test]
fn control_characters_in_kernel_arguments_are_refused() {
    each(few(), Subject::name, |subject| {
        let pair = Pair::new(subject);
        for argument in ["a\nb", "a\rb", "a\tb", "a\u{1b}b", "a\u{7f}b"] {
            let (ours, theirs) = pair.run(&["iso", "kargs", "modify", "-a", argument, "image.iso"], b"");
            ours.failure("holds the control character");
            theirs.success();
            let replacement = format!("ignition.platform.id=metal={argument}");
            let (ours, _) = pair.run(&["iso", "kargs", "modify", "-r", &replacement, "image.iso"], b"");
            ours.failure("holds the control character");
            let (ours, _) = pair.run(&["iso", "customize", "--live-karg-append", argument, "image.iso"], b"");
            ours.failure("holds the control character");
        }
        assert!(pair.ours.read("image.iso") == subject.bytes);
    });
}

/// Garbage is what a reset is for. The installer decodes the area first, and fails.
#[test]
fn reset_repairs_what_the_installer_cannot() {
    each(few(), Subject::name, |subject| {
        let Some(area) = subject.area else { return };
        let pair = Pair::new(subject);
        let start = usize::try_from(area.offset).unwrap();
        let broken = |bytes: &[u8]| {
            let mut image = subject.bytes.clone();
            image[start..start + bytes.len()].copy_from_slice(bytes);
            pair.write("image.iso", &image);
        };
        for garbage in [b"garbage".as_slice(), b"\xFD7zXZ\0 and no more", b"070701", EDIT_MARKER] {
            for line in ["iso reset -o out.iso image.iso", "iso reset image.iso"] {
                broken(garbage);
                let (ours, theirs) = pair.differ(line);
                ours.success();
                theirs.failure("Unrecognized CoreOS ISO image");
            }
            assert!(pair.ours.read("image.iso") == subject.bytes);
            assert!(pair.ours.read("out.iso") == subject.bytes);
            pair.ours.remove("out.iso");
        }
    });
}

/// Kernel arguments have nothing to do with the archive, and `customize -f` replaces it whatever it was.
#[test]
fn a_broken_archive_hinders_only_what_needs_it() {
    each(few(), Subject::name, |subject| {
        let Some(area) = subject.area else { return };
        let pair = Pair::new(subject);
        let mut image = subject.bytes.clone();
        let start = usize::try_from(area.offset).unwrap();
        image[start..start + 7].copy_from_slice(b"garbage");
        pair.write("image.iso", &image);
        pair.same("iso extract pxe image.iso");
        for line in [
            "iso ignition show image.iso",
            "iso ignition embed -f image.iso",
            "iso network extract image.iso",
            "iso customize image.iso",
        ] {
            let (ours, theirs) = pair.differ(line);
            ours.failure("decoding the initrd archive");
            theirs.failure("Unrecognized CoreOS ISO image");
        }
        for line in
            ["iso kargs show image.iso", "iso kargs modify -a x image.iso", "iso customize -f image.iso"]
        {
            let (ours, theirs) = pair.differ(line);
            ours.success();
            theirs.failure("Unrecognized CoreOS ISO image");
        }
    });
}

/// The same for kernel arguments that are not the same everywhere.
#[test]
fn reset_repairs_kernel_arguments_that_disagree() {
    each(few(), Subject::name, |subject| {
        let pair = Pair::new(subject);
        let shown = pair.same("dev show iso --kargs image.iso");
        let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
        let areas = shown["kargs"].as_array().unwrap();
        if areas.len() < 2 {
            return;
        }
        let mut image = subject.bytes.clone();
        image[usize::try_from(areas[1]["offset"].as_u64().unwrap()).unwrap()] ^= 1;
        pair.write("image.iso", &image);
        pair.same("iso kargs show image.iso");
        pair.same("iso kargs modify -a x image.iso");
        let (ours, theirs) = pair.differ("iso reset image.iso");
        ours.success();
        theirs.failure("kargs don't match at all offsets");
        assert!(pair.ours.read("image.iso") == subject.bytes);
    });
}

/// The installer copies a gigabyte and then finds the name taken. A bad config shows which check came first.
#[test]
fn a_taken_output_name_is_refused_before_any_work() {
    let Some(subject) = one() else { return };
    let pair = Pair::new(subject);
    pair.write("taken", "mine");
    let mut altered = subject.bytes.clone();
    let last = altered.len() - 1_000_000;
    altered[last] ^= 1;
    pair.write("image.iso", &altered);
    let (ours, _) = pair.differ("iso extract minimal-iso image.iso taken");
    ours.failure("File exists");
    let (ours, theirs) = pair.differ("iso reset -o taken image.iso");
    ours.failure("File exists");
    theirs.failure("File exists");
    assert_eq!(pair.ours.read("taken"), b"mine");
}

/// All or nothing: the installer leaves the root file system behind.
#[test]
fn a_failed_extraction_leaves_nothing() {
    each(few(), Subject::name, |subject| {
        let pair = Pair::new(subject);
        pair.write("taken.iso", "mine");
        let (ours, theirs) =
            pair.differ("iso extract minimal-iso --output-rootfs rootfs.img image.iso taken.iso");
        assert_eq!((ours.status.code(), theirs.status.code()), (Some(1), Some(1)));
        assert_eq!(pair.ours.names(), ["image.iso", "taken.iso"]);
    });
}

/// An edit in place that did not end: both programs refuse the image, one says why.
#[test]
fn an_interrupted_edit_is_refused_by_the_installer_too() {
    each(few(), Subject::name, |subject| {
        let Some(area) = subject.area else { return };
        let pair = Pair::new(subject);
        pair.write("config.ign", CONFIG);
        pair.write("wired.nmconnection", KEYFILE);
        let mut image = subject.bytes.clone();
        let start = usize::try_from(area.offset).unwrap();
        image[start..start + EDIT_MARKER.len()].copy_from_slice(EDIT_MARKER);
        pair.write("image.iso", &image);
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
            let (_, theirs) = pair.differ(line);
            theirs.failure("Unrecognized CoreOS ISO image");
        }
        assert!(pair.theirs.read("image.iso") == image);
    });
}

/// A file of zeros is an empty set of archives for the kernel.
#[test]
fn zeros_are_an_empty_archive_and_not_a_broken_one() {
    let Some(subject) = one() else { return };
    let pair = Pair::new(subject);
    pair.write("initrd.img", [0; 4096]);
    let (ours, theirs) = pair.differ("dev show initrd initrd.img");
    assert_eq!(ours.printed(), "");
    theirs.failure("decoding initrd");
}

/// Old images for s390x have no Ignition area, and any ISO may have none. That is no reason to refuse all else.
#[test]
fn an_image_without_an_ignition_area_is_still_read() {
    let is_old = |subject: &&Subject| subject.area.is_none() && subject.name.contains("s390x");
    let without = subjects().iter().filter(is_old);
    each(without, Subject::name, |subject| {
        let pair = Pair::new(subject);
        let (ours, theirs) = pair.differ("dev show iso --kargs image.iso");
        assert_eq!(ours.printed(), "null\n");
        theirs.failure("Unrecognized CoreOS ISO image");
        let (ours, _) = pair.differ("iso kargs show image.iso");
        ours.failure("No karg embed areas found");
    });
}

/// What an image cannot do is said before any file is read; the installer reads some of them first.
#[test]
fn features_are_judged_before_files_are_read() {
    let Some(subject) = subjects().iter().find(|subject| subject.name == "2021-01.aarch64") else { return };
    let pair = Pair::new(subject).with_inputs();
    let (ours, theirs) = pair.differ("iso customize --dest-ignition broken.ign image.iso");
    ours.failure("does not support customizing installer configuration");
    theirs.failure("parsing Ignition config");
}

/// The first line of a hook's unit names the program that wrote it. It is a comment.
#[test]
fn generated_units_name_their_author() {
    let Some(subject) = one() else { return };
    let pair = Pair::new(subject).with_inputs();
    pair.alike("iso customize --pre-install hook.sh image.iso", Kind::Image).success();
    let (ours, theirs) = pair.differ("iso ignition show image.iso");
    assert!(ours.printed().contains("# Generated by kindling customize"));
    assert!(theirs.printed().contains("# Generated by coreos-installer {iso|pxe} customize"));
}

/// What comes out of an archive may be secret. `NetworkManager` does not read keyfiles that others may read.
#[test]
fn extracted_files_are_private() {
    let Some(subject) = one() else { return };
    let pair = Pair::new(subject);
    pair.write("wired.nmconnection", KEYFILE);
    pair.alike("iso network embed -k wired.nmconnection image.iso", Kind::Image).success();
    pair.alike("pxe network wrap -k wired.nmconnection -o wrapped.img", Kind::Initrd).success();
    for (line, file) in [
        ("iso network extract -C a image.iso", "a/wired.nmconnection"),
        ("pxe network unwrap -C b wrapped.img", "b/wired.nmconnection"),
        ("dev extract initrd -C c wrapped.img", "c/etc/coreos-firstboot-network/wired.nmconnection"),
    ] {
        let (ours, theirs) = pair.differ(line);
        ours.success();
        theirs.success();
        let (ours, theirs) = (&pair.ours.files()[file], &pair.theirs.files()[file]);
        assert_eq!((ours.mode, &ours.bytes), (0o600, &theirs.bytes));
    }
}

/// A reader that has seen enough is no failure, also of an image. The installer calls it one, or dies of a signal.
#[test]
fn a_closed_pipe_is_no_error() {
    let Some(subject) = one() else { return };
    let pair = Pair::new(subject);
    let closed = |program: &std::path::Path, folder: &std::path::Path| {
        let mut command = Run::new(program, folder).args(["iso", "reset", "-o", "-", "image.iso"]).command();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        child.wait_with_output().unwrap()
    };
    let ours = closed(KINDLING.as_ref(), pair.ours.folder());
    assert!(ours.status.success() && ours.stderr.is_empty());
    assert!(!closed(installer().unwrap(), pair.theirs.folder()).status.success());
}
