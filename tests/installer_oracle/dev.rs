//! `dev`: the descriptions of images and archives, and the extracted files, compared with the installer's.

use fixtures::{Expect, HostileArchive, Stage, hostile_archives};

use crate::program_pair::ProgramPair;
use crate::support::check_each;
use crate::{OracleImage, all_images, full_featured_image, images_for_independent_commands};

#[test]
fn descriptions_of_images_are_identical() {
    check_each(all_images(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject);
        pair.compare_exactly("dev show iso image.iso");
        pair.compare_exactly("dev show iso --ignition image.iso");
        // The installer rejects images without an Ignition area; see `differences`.
        if subject.area.is_some() {
            pair.compare_exactly("dev show iso --kargs image.iso");
        }
        assert_eq!(pair.compare_exactly("dev show iso --ignition --kargs image.iso").status.code(), Some(2));
    });
}

#[test]
fn initrds_of_images_are_listed_and_extracted_alike() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject);
        pair.compare_exactly("iso extract pxe image.iso");
        pair.compare_exactly("dev show initrd image-initrd.img");
        for glob in ["etc/*", "*", "*coreos*", "etc", "none", "usr/lib/[a-z]*", "etc/coreos/features.jso?"] {
            pair.compare_exactly(&format!("dev show initrd image-initrd.img {glob}"));
        }
        pair.compare_exactly("dev show initrd image-initrd.img etc/coreos-live-initramfs *features*");
        assert_same_extraction(&pair, "dev extract initrd -v -C out image-initrd.img");
        assert_same_extraction(
            &pair,
            "dev extract initrd --verbose --directory some image-initrd.img etc/coreos*",
        );
        assert_same_extraction(&pair, "dev extract initrd -C none image-initrd.img none");
        // A second extraction keeps existing files.
        assert_same_extraction(&pair, "dev extract initrd -C out image-initrd.img");
    });
}

/// Compares only the files. [`crate::differences`] tests their modes.
#[track_caller]
fn assert_same_extraction(pair: &ProgramPair, line: &str) {
    let (ours, theirs) = pair.run_both(&line.split_whitespace().collect::<Vec<_>>(), b"");
    assert_eq!(ours.status.code(), theirs.status.code(), "{line}: {}{}", ours.stderr, theirs.stderr);
    assert_eq!(ours.stdout, theirs.stdout, "{line}");
    let contents =
        |files: std::collections::BTreeMap<String, crate::support::ScratchFile>| -> Vec<(String, Vec<u8>)> {
            files.into_iter().map(|(name, entry)| (name, entry.bytes)).collect()
        };
    assert!(contents(pair.ours().files()) == contents(pair.theirs().files()), "{line}: files differ");
    let said = |phrase: &str| ours.stderr.contains(phrase) == theirs.stderr.contains(phrase);
    assert!(["File exists", "path traversal"].into_iter().all(said), "{}\n{}", ours.stderr, theirs.stderr);
}

/// Archives that all careful programs read alike. The archive of zeros is in [`crate::differences`].
fn agreed_hostile_archives() -> Vec<HostileArchive> {
    let decided = |archive: &HostileArchive| archive.expect != Expect::Either && archive.name != "zeros";
    hostile_archives().into_iter().filter(decided).collect()
}

#[test]
fn both_distinguish_legal_from_broken_archives() {
    let Some(subject) = full_featured_image() else { return };
    check_each(
        &agreed_hostile_archives(),
        |archive| archive.name.to_owned(),
        |archive| {
            let pair = ProgramPair::new(subject);
            pair.write_to_both("initrd.img", archive.bytes());
            let file_output = pair.compare_exactly("dev show initrd initrd.img");
            let (ours, theirs) = pair.run_both(&["dev", "show", "initrd", "-"], &archive.bytes());
            assert_eq!((ours.status.code(), &ours.stdout), (theirs.status.code(), &theirs.stdout));
            assert_eq!(file_output.stdout, ours.stdout);
            assert_eq!(
                file_output.status.success(),
                !matches!(archive.expect, Expect::Refuse(Stage::Archive))
            );
            assert_same_extraction(&pair, "dev extract initrd -v -C out initrd.img");
        },
    );
}

#[test]
fn archives_that_leave_their_folder_are_refused() {
    let Some(subject) = full_featured_image() else { return };
    let dangerous: Vec<_> = agreed_hostile_archives()
        .into_iter()
        .filter(|archive| archive.expect == Expect::Refuse(Stage::Extraction))
        .collect();
    assert!(!dangerous.is_empty());
    check_each(
        &dangerous,
        |archive| archive.name.to_owned(),
        |archive| {
            let pair = ProgramPair::new(subject);
            pair.write_to_both("initrd.img", archive.bytes());
            pair.compare_exactly("dev extract initrd -C out initrd.img");
            pair.compare_exactly("dev extract initrd initrd.img *");
        },
    );
}
