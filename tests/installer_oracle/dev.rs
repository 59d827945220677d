//! `dev`: what the installer shows of images and archives, and what it takes out of them.

use fixtures::{Expect, HostileArchive, Stage, hostile_archives};

use crate::pair::Pair;
use crate::support::each;
use crate::{Subject, few, one, subjects};

#[test]
fn descriptions_of_images_are_identical() {
    each(subjects(), Subject::name, |subject| {
        let pair = Pair::new(subject);
        pair.same("dev show iso image.iso");
        pair.same("dev show iso --ignition image.iso");
        // Without an Ignition area there is no live image for the installer; see `differences`.
        if subject.area.is_some() {
            pair.same("dev show iso --kargs image.iso");
        }
        assert_eq!(pair.same("dev show iso --ignition --kargs image.iso").status.code(), Some(2));
    });
}

#[test]
fn initrds_of_images_are_listed_and_extracted_alike() {
    each(few(), Subject::name, |subject| {
        let pair = Pair::new(subject);
        pair.same("iso extract pxe image.iso");
        pair.same("dev show initrd image-initrd.img");
        for glob in ["etc/*", "*", "*coreos*", "etc", "none", "usr/lib/[a-z]*", "etc/coreos/features.jso?"] {
            pair.same(&format!("dev show initrd image-initrd.img {glob}"));
        }
        pair.same("dev show initrd image-initrd.img etc/coreos-live-initramfs *features*");
        same_extraction(&pair, "dev extract initrd -v -C out image-initrd.img");
        same_extraction(&pair, "dev extract initrd --verbose --directory some image-initrd.img etc/coreos*");
        same_extraction(&pair, "dev extract initrd -C none image-initrd.img none");
        // Again: what is there stays.
        same_extraction(&pair, "dev extract initrd -C out image-initrd.img");
    });
}

/// Files as such; their modes are in [`crate::differences`].
#[track_caller]
fn same_extraction(pair: &Pair, line: &str) {
    let (ours, theirs) = pair.run(&line.split_whitespace().collect::<Vec<_>>(), b"");
    assert_eq!(ours.status.code(), theirs.status.code(), "{line}: {}{}", ours.stderr, theirs.stderr);
    assert_eq!(ours.stdout, theirs.stdout, "{line}");
    let contents =
        |files: std::collections::BTreeMap<String, crate::support::Entry>| -> Vec<(String, Vec<u8>)> {
            files.into_iter().map(|(name, entry)| (name, entry.bytes)).collect()
        };
    assert!(contents(pair.ours.files()) == contents(pair.theirs.files()), "{line}: files differ");
    let said = |phrase: &str| ours.stderr.contains(phrase) == theirs.stderr.contains(phrase);
    assert!(["File exists", "path traversal"].into_iter().all(said), "{}\n{}", ours.stderr, theirs.stderr);
}

/// Archives on which every careful reader agrees. The one of zeros alone is in [`crate::differences`].
fn archives() -> Vec<HostileArchive> {
    let decided = |archive: &HostileArchive| archive.expect != Expect::Either && archive.name != "zeros";
    hostile_archives().into_iter().filter(decided).collect()
}

#[test]
fn legal_and_broken_archives_are_told_apart_alike() {
    let Some(subject) = one() else { return };
    each(
        &archives(),
        |archive| archive.name.to_owned(),
        |archive| {
            let pair = Pair::new(subject);
            pair.write("initrd.img", archive.bytes());
            let shown = pair.same("dev show initrd initrd.img");
            let (ours, theirs) = pair.run(&["dev", "show", "initrd", "-"], &archive.bytes());
            assert_eq!((ours.status.code(), &ours.stdout), (theirs.status.code(), &theirs.stdout));
            assert_eq!(shown.stdout, ours.stdout);
            assert_eq!(shown.status.success(), !matches!(archive.expect, Expect::Refuse(Stage::Archive)));
            same_extraction(&pair, "dev extract initrd -v -C out initrd.img");
        },
    );
}

#[test]
fn archives_that_leave_their_folder_are_refused() {
    let Some(subject) = one() else { return };
    let dangerous: Vec<_> = archives()
        .into_iter()
        .filter(|archive| archive.expect == Expect::Refuse(Stage::Extraction))
        .collect();
    assert!(!dangerous.is_empty());
    each(
        &dangerous,
        |archive| archive.name.to_owned(),
        |archive| {
            let pair = Pair::new(subject);
            pair.write("initrd.img", archive.bytes());
            pair.same("dev extract initrd -C out initrd.img");
            pair.same("dev extract initrd initrd.img *");
        },
    );
}
