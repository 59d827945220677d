//! `iso kargs`: every result is the installer's, byte for byte.

use crate::pair::{Kind, Pair};
use crate::support::each;
use crate::{Subject, few, subjects};

/// Operations on the kernel arguments; the defaults hold `ignition.firstboot` and `ignition.platform.id=metal`.
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
    &["-a", "x", "-a", "x", "-a", "x", "-d", "x"],
    &["-r", "ignition.platform.id=metal=qemu"],
    &["--replace", "ignition.platform.id=other=qemu"],
    &["-r", "key=old=new", "-a", "key=old"],
    &["-r", "k=1=2", "-r", "k=2=3", "-a", "k=1"],
    &["-d", "ignition.firstboot", "-a", "ignition.firstboot", "-r", "ignition.platform.id=metal=aws"],
    // Malformed.
    &["-r", "key"],
    &["-r", "key=old"],
    &["-r", "key=old=new=more"],
    &["-r", "=old=new"],
    &["-r", "key==new"],
    &["-r", "key=old="],
];

#[test]
fn modify_is_identical_on_every_image() {
    let usual: Vec<_> = OPERATIONS.iter().step_by(4).collect();
    each(subjects(), Subject::name, |subject| assert_identical(subject, &usual));
}

#[test]
fn every_operation_is_identical() {
    let all: Vec<_> = OPERATIONS.iter().collect();
    each(few(), Subject::name, |subject| assert_identical(subject, &all));
}

#[track_caller]
fn assert_identical(subject: &Subject, lists: &[&&[&str]]) {
    let pair = Pair::new(subject);
    pair.same("iso kargs show image.iso");
    pair.same("iso kargs show -d image.iso");
    for operations in lists {
        let arguments = [&["iso", "kargs", "modify"][..], operations].concat();
        if pair.edit(&arguments, b"", Kind::Exact).is_some() {
            pair.same("iso kargs show image.iso");
            pair.same("iso kargs show --default image.iso");
            pair.edit_line("iso kargs reset", Kind::Exact).unwrap();
            pair.assert_pristine();
        }
    }
}

#[test]
fn edits_build_on_each_other() {
    each(few(), Subject::name, |subject| {
        let pair = Pair::new(subject);
        for operations in OPERATIONS {
            pair.edit(&[&["iso", "kargs", "modify"][..], operations].concat(), b"", Kind::Exact);
            pair.same_after_exchange("iso kargs show image.iso");
        }
    });
}

/// The longest line that fits, and the one that is a byte longer.
#[test]
fn an_area_is_used_to_its_last_byte() {
    each(subjects(), Subject::name, |subject| {
        let pair = Pair::new(subject);
        let shown = pair.same("iso kargs show image.iso");
        if !shown.status.success() {
            return;
        }
        let area = pair.same("dev show iso --kargs image.iso");
        let area: serde_json::Value = serde_json::from_slice(&area.stdout).unwrap();
        let room =
            usize::try_from(area["length"].as_u64().unwrap()).unwrap() - shown.text().trim_end().len() - 2;
        let longest = "x".repeat(room);
        assert!(
            pair.edit(&["iso", "kargs", "modify", "-a", &format!("{longest}x")], b"", Kind::Exact).is_none()
        );
        pair.assert_pristine();
        pair.edit(&["iso", "kargs", "modify", "-a", &longest], b"", Kind::Exact).unwrap();
        pair.same_after_exchange("iso kargs show image.iso");
        assert!(pair.edit_line("iso kargs modify -a x", Kind::Exact).is_none());
        pair.edit(&["iso", "kargs", "modify", "-d", &longest], b"", Kind::Exact).unwrap();
        pair.assert_pristine();
    });
}

#[test]
fn a_config_beside_them_stays() {
    each(few(), Subject::name, |subject| {
        let pair = Pair::new(subject);
        pair.edit(&["iso", "ignition", "embed"], b"{}", Kind::Image).unwrap();
        // From here on both have the same archive.
        pair.theirs.write("image.iso", pair.ours.read("image.iso"));
        pair.edit_line("iso kargs modify -a quiet -d ignition.firstboot", Kind::Exact);
        pair.same("iso ignition show image.iso");
        pair.edit_line("iso kargs reset", Kind::Exact);
        pair.edit_line("iso ignition remove", Kind::Exact).unwrap();
        pair.assert_pristine();
    });
}
