//! `iso kargs`: every result is identical to the installer's, byte for byte.

use crate::program_pair::{ComparisonKind, ProgramPair};
use crate::support::check_each;
use crate::{OracleImage, all_images, commands_for, commands_in_turn, images_for_independent_commands};

/// Operations on the kernel arguments. The defaults contain `ignition.firstboot` and `ignition.platform.id=metal`.
const OPERATIONS: &[&[&str]] = &[
    &[],
    &["-a", "foobar=val"],
    &["--append", "a", "-a", "b=c", "-a", "b=c"],
    &["-a", "two words"],
    &["-a", "  blanks  "],
    &["-a", ""],
    &["-a", "it's=\"quoted value\""],
    &["-a", "umlaut=\u{fc}\u{4e16}"],
    &["-a", "ends-in-filler#"],
    &["-d", "ignition.firstboot"],
    &["--delete", "ignition.firstboot", "-d", "ignition.platform.id=metal"],
    &["-d", "ignition.firstboot ignition.platform.id=metal"],
    &["-d", "ignition"],
    &["-d", "not.there"],
    &["-d", ""],
    &["-d", " "],
    &["-d", " ignition.firstboot"],
    &["-d", "ignition.platform.id"],
    &["-d", "ignition.firstboot", "-d", "ignition.firstboot"],
    &["-a", " "],
    &["-a", "ignition.firstboot"],
    &["-d", "x", "-a", "x"],
    &["-a", "x", "-d", "not.there", "-r", "none=a=b"],
    &["-r", "ignition.platform.id=metal=metal"],
    &["-a", "x", "-a", "x", "-a", "x", "-d", "x"],
    &["-r", "ignition.platform.id=metal=qemu"],
    &["--replace", "ignition.platform.id=other=qemu"],
    &["-r", "key=old=new", "-a", "key=old"],
    &["-r", "k=1=2", "-r", "k=2=3", "-a", "k=1"],
    &["-d", "ignition.firstboot", "-a", "ignition.firstboot", "-r", "ignition.platform.id=metal=aws"],
    // Malformed arguments.
    &["-r", "key"],
    &["-r", "key=old"],
    &["-r", "key=old=new=more"],
    &["-r", "=old=new"],
    &["-r", "key==new"],
    &["-r", "key=old="],
    &["-r", ""],
    &["-r", "ignition.firstboot==x"],
    // Options of rpm-ostree that neither program supports.
    &["--append-if-missing", "x"],
    &["--delete-if-present", "x"],
    &["-a"],
];

#[test]
fn modify_is_identical_on_every_image() {
    check_each(all_images(), OracleImage::name, |subject| {
        assert_edits_are_identical(subject, &commands_in_turn(&subject.name, 8, OPERATIONS))
    });
}

#[test]
fn every_operation_is_identical() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        assert_edits_are_identical(subject, &commands_for(&subject.name, OPERATIONS))
    });
}

#[track_caller]
fn assert_edits_are_identical(subject: &OracleImage, lists: &[&&[&str]]) {
    let pair = ProgramPair::new(subject);
    pair.compare_exactly("iso kargs show image.iso");
    pair.compare_exactly("iso kargs show -d image.iso");
    for operations in lists {
        let arguments = [&["iso", "kargs", "modify"][..], operations].concat();
        if pair.compare_edit(&arguments, b"", ComparisonKind::Exact).is_some() {
            pair.compare_exactly("iso kargs show image.iso");
            pair.compare_exactly("iso kargs show --default image.iso");
            pair.compare_edit_line("iso kargs reset", ComparisonKind::Exact).unwrap();
            pair.assert_pristine();
        }
    }
}

#[test]
fn edits_build_on_each_other() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject);
        for operations in commands_for(&subject.name, OPERATIONS) {
            pair.compare_edit(
                &[&["iso", "kargs", "modify"][..], operations].concat(),
                b"",
                ComparisonKind::Exact,
            );
            pair.compare_after_exchange("iso kargs show image.iso");
        }
    });
}

/// Writes a line of the maximum length, and then a line that is one byte longer.
#[test]
fn embed_area_is_usable_to_its_last_byte() {
    check_each(all_images(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject);
        let output = pair.compare_exactly("iso kargs show image.iso");
        if !output.status.success() {
            return;
        }
        let area = pair.compare_exactly("dev show iso --kargs image.iso");
        let area: serde_json::Value = serde_json::from_slice(&area.stdout).unwrap();
        let room = usize::try_from(area["length"].as_u64().unwrap()).unwrap()
            - output.stdout_text().trim_end().len()
            - 2;
        let longest = "x".repeat(room);
        assert!(
            pair.compare_edit(
                &["iso", "kargs", "modify", "-a", &format!("{longest}x")],
                b"",
                ComparisonKind::Exact
            )
            .is_none()
        );
        pair.assert_pristine();
        pair.compare_edit(&["iso", "kargs", "modify", "-a", &longest], b"", ComparisonKind::Exact).unwrap();
        pair.compare_after_exchange("iso kargs show image.iso");
        assert!(pair.compare_edit_line("iso kargs modify -a x", ComparisonKind::Exact).is_none());
        pair.compare_edit(&["iso", "kargs", "modify", "-d", &longest], b"", ComparisonKind::Exact).unwrap();
        pair.assert_pristine();
    });
}

#[test]
fn editing_kargs_keeps_the_config() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject);
        pair.compare_edit(&["iso", "ignition", "embed"], b"{}", ComparisonKind::Image).unwrap();
        // Use the same archive in both images, so that the next results can be compared byte for byte.
        pair.theirs().write("image.iso", pair.ours().read("image.iso"));
        pair.compare_edit_line("iso kargs modify -a quiet -d ignition.firstboot", ComparisonKind::Exact);
        pair.compare_exactly("iso ignition show image.iso");
        pair.compare_edit_line("iso kargs reset", ComparisonKind::Exact);
        pair.compare_edit_line("iso ignition remove", ComparisonKind::Exact).unwrap();
        pair.assert_pristine();
    });
}
