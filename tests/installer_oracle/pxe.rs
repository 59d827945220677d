//! `pxe`: initrd images of their own, and behind a live initrd.

use crate::customize::{COMBINATIONS, REFUSED};
use crate::pair::{Kind, Pair, as_installer, members};
use crate::support::{CONFIG, each};
use crate::{Subject, few, one, subjects};

#[test]
fn configs_are_wrapped_and_unwrapped_alike() {
    let Some(subject) = one() else { return };
    let pair = Pair::new(subject);
    pair.write("config.ign", CONFIG);
    pair.alike("pxe ignition wrap -i config.ign -o wrapped.img", Kind::Initrd);
    let stream = pair.alike("pxe ignition wrap --ignition-file config.ign", Kind::Initrd);
    assert!(stream.stdout == pair.ours.read("wrapped.img"), "file and stream differ");
    pair.compare(&["pxe", "ignition", "wrap"], b"", Kind::Initrd);
    // An existing file is overwritten: this is the one command that does so.
    pair.compare(&["pxe", "ignition", "wrap", "--output", "wrapped.img"], b"{}", Kind::Initrd);
    for _ in 0..2 {
        assert_eq!(pair.alike("pxe ignition unwrap wrapped.img", Kind::Initrd).text(), "{}");
        pair.exchange("wrapped.img");
    }
    let (ours, theirs) = (pair.ours.read("wrapped.img"), pair.theirs.read("wrapped.img"));
    let both = [theirs.as_slice(), &[0; 512], ours.as_slice()].concat();
    assert_eq!(pair.compare(&["pxe", "ignition", "unwrap"], &both, Kind::Initrd).text(), "{}");
    pair.alike("pxe ignition wrap -i missing.ign", Kind::Initrd);
    pair.alike("pxe ignition unwrap missing.img", Kind::Initrd);
}

#[test]
fn network_settings_are_wrapped_and_unwrapped_alike() {
    let Some(subject) = one() else { return };
    let pair = Pair::new(subject).with_inputs();
    let wrap = "pxe network wrap -k wired.nmconnection --keyfile second.nmconnection";
    pair.alike(&format!("{wrap} -o wrapped.img"), Kind::Initrd);
    let stream = pair.alike(wrap, Kind::Initrd);
    assert!(stream.stdout == pair.ours.read("wrapped.img"), "file and stream differ");
    for _ in 0..2 {
        pair.alike("pxe network unwrap wrapped.img", Kind::Initrd);
        pair.exchange("wrapped.img");
    }
    pair.compare(&["pxe", "network", "unwrap"], &stream.stdout, Kind::Initrd);
    pair.alike("pxe network wrap -k wired.nmconnection -k other/wired.nmconnection", Kind::Initrd);
    assert_eq!(pair.alike("pxe network wrap", Kind::Initrd).status.code(), Some(2));
    let (ours, theirs) = pair.run(&["pxe", "network", "unwrap", "-C", "out", "wrapped.img"], b"");
    assert_eq!(ours.printed(), theirs.printed());
    assert_eq!(pair.ours.read("out/second.nmconnection"), pair.theirs.read("out/second.nmconnection"));
    pair.remove("out");
    // An archive without any.
    pair.write("none.img", pair.compare(&["pxe", "ignition", "wrap"], b"{}", Kind::Initrd).stdout);
    pair.alike("pxe network unwrap none.img", Kind::Initrd);
}

#[test]
fn an_archive_without_a_config_is_an_error() {
    let Some(subject) = one() else { return };
    let pair = Pair::new(subject).with_inputs();
    pair.alike("pxe network wrap -k wired.nmconnection -o wrapped.img", Kind::Initrd);
    let (ours, theirs) = pair.run(&["pxe", "ignition", "unwrap", "wrapped.img"], b"");
    for output in [ours, theirs] {
        output.failure("couldn't find Ignition config in archive");
    }
}

/// Takes the initrd of an image out, under the name `initrd.img`.
fn extracted(subject: &Subject) -> Pair<'_> {
    let pair = Pair::new(subject).with_inputs();
    let files = pair.same("iso extract pxe -o pxe image.iso");
    assert!(files.status.success());
    pair.write("initrd.img", pair.ours.read("pxe/image-initrd.img"));
    pair.remove("pxe");
    pair
}

#[test]
fn customised_initrds_have_the_same_members() {
    each(few(), Subject::name, |subject| {
        let pair = extracted(subject);
        let base = pair.ours.read("initrd.img");
        for options in COMBINATIONS {
            let file = pair.alike(&format!("pxe customize {options} -o out.img initrd.img"), Kind::Initrd);
            let stream = pair.run(&words(&format!("pxe customize {options} -o - initrd.img")), b"").0;
            assert_eq!(file.status, stream.status);
            if !file.status.success() {
                continue;
            }
            let out = pair.ours.read("out.img");
            assert!(stream.stdout == out, "{options}: file and stream differ");
            let added = out.strip_prefix(base.as_slice()).expect("the initrd comes first, as it is");
            assert!(added.starts_with(b"\xFD7zXZ\0"), "{options}: the archive follows at once");
            assert!(members(added).is_ok());
            for line in
                ["pxe ignition unwrap out.img", "pxe network unwrap out.img", "dev show initrd out.img"]
            {
                let (ours, theirs) = pair.run(&words(line), b"");
                let printed = as_installer(&ours.stdout);
                assert_eq!((ours.status.code(), printed), (theirs.status.code(), theirs.stdout), "{line}");
            }
            // What is customised already is refused; what was given no options is not.
            if members(added).unwrap().is_empty() {
                pair.remove("out.img");
                continue;
            }
            pair.exchange("out.img");
            let again = pair.alike("pxe customize -o again.img out.img", Kind::Initrd);
            assert!(again.stderr.contains("input is already customized"));
            let taken = pair.alike("pxe customize -o out.img initrd.img", Kind::Initrd);
            assert!(taken.stderr.contains("File exists"));
            pair.remove("out.img");
        }
    });
}

#[test]
fn wrong_options_are_refused_alike() {
    let Some(subject) = one() else { return };
    let pair = extracted(subject);
    for options in REFUSED {
        let refused = pair.alike(&format!("pxe customize {options} -o out.img initrd.img"), Kind::Initrd);
        assert_eq!(refused.status.code(), Some(1), "{options}");
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn an_initrd_of_another_system_is_refused() {
    let Some(subject) = one() else { return };
    let pair = Pair::new(subject);
    pair.compare(&["pxe", "ignition", "wrap", "-o", "initrd.img"], b"", Kind::Initrd);
    let refused = pair.alike("pxe customize -o out.img initrd.img", Kind::Initrd);
    assert!(refused.stderr.contains("not a CoreOS live initramfs image"));
    pair.alike("pxe customize -o out.img missing.img", Kind::Initrd);
    assert_eq!(pair.alike("pxe customize initrd.img", Kind::Initrd).status.code(), Some(2));
}

#[test]
fn every_initrd_is_customised_alike() {
    each(subjects(), Subject::name, |subject| {
        // The published test images hold text instead of an initrd; what is said of it is not of interest.
        if subject.name.starts_with("embed-areas") || subject.name.starts_with("synthetic") {
            return;
        }
        let pair = extracted(subject);
        pair.alike("pxe customize --live-ignition live.ign -o a.img initrd.img", Kind::Initrd);
        pair.alike("pxe customize --network-keyfile wired.nmconnection -o b.img initrd.img", Kind::Initrd);
        pair.alike("pxe customize --dest-console ttyS0 -o c.img initrd.img", Kind::Initrd);
        pair.alike("pxe customize --dest-device /dev/sda -o d.img initrd.img", Kind::Initrd);
    });
}
