//! `pxe`: separate initrd images, and archives appended to a live initrd.

use crate::customize::{COMBINATIONS, REFUSED};
use crate::program_pair::{ComparisonKind, ProgramPair, archive_members, name_installer_as_author};
use crate::support::{CONFIG, check_each};
use crate::{OracleImage, all_images, commands_for, full_featured_image, images_for_independent_commands};

#[test]
fn both_wrap_and_unwrap_configs_alike() {
    let Some(subject) = full_featured_image() else { return };
    let pair = ProgramPair::new(subject);
    pair.write_to_both("config.ign", CONFIG);
    pair.compare_as("pxe ignition wrap -i config.ign -o wrapped.img", ComparisonKind::Initrd);
    let stream = pair.compare_as("pxe ignition wrap --ignition-file config.ign", ComparisonKind::Initrd);
    assert!(stream.stdout == pair.ours().read("wrapped.img"), "file and stream differ");
    pair.compare_arguments(&["pxe", "ignition", "wrap"], b"", ComparisonKind::Initrd);
    // Only this command overwrites an existing file.
    pair.compare_arguments(
        &["pxe", "ignition", "wrap", "--output", "wrapped.img"],
        b"{}",
        ComparisonKind::Initrd,
    );
    for _ in 0..2 {
        assert_eq!(
            pair.compare_as("pxe ignition unwrap wrapped.img", ComparisonKind::Initrd).stdout_text(),
            "{}"
        );
        pair.exchange_file("wrapped.img");
    }
    let (ours, theirs) = (pair.ours().read("wrapped.img"), pair.theirs().read("wrapped.img"));
    let both = [theirs.as_slice(), &[0; 512], ours.as_slice()].concat();
    assert_eq!(
        pair.compare_arguments(&["pxe", "ignition", "unwrap"], &both, ComparisonKind::Initrd).stdout_text(),
        "{}"
    );
    pair.compare_as("pxe ignition wrap -i missing.ign", ComparisonKind::Initrd);
    pair.compare_as("pxe ignition unwrap missing.img", ComparisonKind::Initrd);
}

#[test]
fn both_wrap_and_unwrap_network_settings_alike() {
    let Some(subject) = full_featured_image() else { return };
    let pair = ProgramPair::new(subject).write_sample_inputs();
    let wrap = "pxe network wrap -k wired.nmconnection --keyfile second.nmconnection";
    pair.compare_as(&format!("{wrap} -o wrapped.img"), ComparisonKind::Initrd);
    let stream = pair.compare_as(wrap, ComparisonKind::Initrd);
    assert!(stream.stdout == pair.ours().read("wrapped.img"), "file and stream differ");
    for _ in 0..2 {
        pair.compare_as("pxe network unwrap wrapped.img", ComparisonKind::Initrd);
        pair.exchange_file("wrapped.img");
    }
    pair.compare_arguments(&["pxe", "network", "unwrap"], &stream.stdout, ComparisonKind::Initrd);
    pair.compare_as(
        "pxe network wrap -k wired.nmconnection -k other/wired.nmconnection",
        ComparisonKind::Initrd,
    );
    assert_eq!(pair.compare_as("pxe network wrap", ComparisonKind::Initrd).status.code(), Some(2));
    let (ours, theirs) = pair.run_both(&["pxe", "network", "unwrap", "-C", "out", "wrapped.img"], b"");
    assert_eq!(ours.expect_text(), theirs.expect_text());
    assert_eq!(pair.ours().read("out/second.nmconnection"), pair.theirs().read("out/second.nmconnection"));
    pair.remove_from_both("out");
    // An archive without a config.
    pair.write_to_both(
        "none.img",
        pair.compare_arguments(&["pxe", "ignition", "wrap"], b"{}", ComparisonKind::Initrd).stdout,
    );
    pair.compare_as("pxe network unwrap none.img", ComparisonKind::Initrd);
}

#[test]
fn archive_without_a_config_is_an_error() {
    let Some(subject) = full_featured_image() else { return };
    let pair = ProgramPair::new(subject).write_sample_inputs();
    pair.compare_as("pxe network wrap -k wired.nmconnection -o wrapped.img", ComparisonKind::Initrd);
    let (ours, theirs) = pair.run_both(&["pxe", "ignition", "unwrap", "wrapped.img"], b"");
    for output in [ours, theirs] {
        output.expect_failure("couldn't find Ignition config in archive");
    }
}

/// Extracts the initrd of an image as `initrd.img`.
fn pair_with_initrd(subject: &OracleImage) -> ProgramPair<'_> {
    let pair = ProgramPair::new(subject).write_sample_inputs();
    let files = pair.compare_exactly("iso extract pxe -o pxe image.iso");
    assert!(files.status.success());
    pair.write_to_both("initrd.img", pair.ours().read("pxe/image-initrd.img"));
    pair.remove_from_both("pxe");
    pair
}

#[test]
fn customised_initrds_have_the_same_members() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let pair = pair_with_initrd(subject);
        let base = pair.ours().read("initrd.img");
        for options in commands_for(&subject.name, COMBINATIONS) {
            let file = pair.compare_as(
                &format!("pxe customize {options} -o out.img initrd.img"),
                ComparisonKind::Initrd,
            );
            let stream =
                pair.run_both(&split_words(&format!("pxe customize {options} -o - initrd.img")), b"").0;
            assert_eq!(file.status, stream.status);
            if !file.status.success() {
                continue;
            }
            let out = pair.ours().read("out.img");
            assert!(stream.stdout == out, "{options}: file and stream differ");
            let added = out.strip_prefix(base.as_slice()).expect("the unchanged initrd comes first");
            assert!(added.starts_with(b"\xFD7zXZ\0"), "{options}: the archive follows directly");
            assert!(archive_members(added).is_ok());
            for line in
                ["pxe ignition unwrap out.img", "pxe network unwrap out.img", "dev show initrd out.img"]
            {
                let (ours, theirs) = pair.run_both(&split_words(line), b"");
                let printed = name_installer_as_author(&ours.stdout);
                assert_eq!((ours.status.code(), printed), (theirs.status.code(), theirs.stdout), "{line}");
            }
            // Both programs refuse a customised initrd, and accept a command without options.
            if archive_members(added).unwrap().is_empty() {
                pair.remove_from_both("out.img");
                continue;
            }
            pair.exchange_file("out.img");
            let again = pair.compare_as("pxe customize -o again.img out.img", ComparisonKind::Initrd);
            assert!(again.stderr.contains("input is already customized"));
            let refusal = pair.compare_as("pxe customize -o out.img initrd.img", ComparisonKind::Initrd);
            assert!(refusal.stderr.contains("File exists"));
            pair.remove_from_both("out.img");
        }
    });
}

#[test]
fn both_refuse_wrong_options() {
    let Some(subject) = full_featured_image() else { return };
    let pair = pair_with_initrd(subject);
    for options in REFUSED {
        let refused = pair
            .compare_as(&format!("pxe customize {options} -o out.img initrd.img"), ComparisonKind::Initrd);
        assert_eq!(refused.status.code(), Some(1), "{options}");
    }
}

fn split_words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn rejects_initrd_of_another_system() {
    let Some(subject) = full_featured_image() else { return };
    let pair = ProgramPair::new(subject);
    pair.compare_arguments(&["pxe", "ignition", "wrap", "-o", "initrd.img"], b"", ComparisonKind::Initrd);
    let refused = pair.compare_as("pxe customize -o out.img initrd.img", ComparisonKind::Initrd);
    assert!(refused.stderr.contains("not a CoreOS live initramfs image"));
    pair.compare_as("pxe customize -o out.img missing.img", ComparisonKind::Initrd);
    assert_eq!(pair.compare_as("pxe customize initrd.img", ComparisonKind::Initrd).status.code(), Some(2));
}

#[test]
fn both_customise_every_initrd_alike() {
    check_each(all_images(), OracleImage::name, |subject| {
        // The published test images have text instead of an initrd, for which the exact message does not matter.
        if subject.name.starts_with("embed-areas") || subject.name.starts_with("synthetic") {
            return;
        }
        let pair = pair_with_initrd(subject);
        pair.compare_as("pxe customize --live-ignition live.ign -o a.img initrd.img", ComparisonKind::Initrd);
        pair.compare_as(
            "pxe customize --network-keyfile wired.nmconnection -o b.img initrd.img",
            ComparisonKind::Initrd,
        );
        pair.compare_as("pxe customize --dest-console ttyS0 -o c.img initrd.img", ComparisonKind::Initrd);
        pair.compare_as("pxe customize --dest-device /dev/sda -o d.img initrd.img", ComparisonKind::Initrd);
    });
}
