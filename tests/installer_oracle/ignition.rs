//! `iso ignition` and its former spellings.

use fixtures::{Expect, hostile_archives};

use crate::pair::{Kind, Pair, as_installer, members};
use crate::support::{CONFIG, Run, Scratch, each, require_tool, slice};
use crate::{Subject, few, one, subjects};

const OTHER: &str = r#"{"ignition":{"version":"3.0.0"}}"#;

#[test]
fn embed_show_and_remove_agree_on_every_image() {
    each(subjects(), Subject::name, |subject| {
        let pair = Pair::new(subject);
        pair.write("config.ign", CONFIG);
        pair.write("other.ign", OTHER);
        pair.same("iso ignition show image.iso");
        let embedded = pair.edit_line("iso ignition embed -i config.ign", Kind::Image);
        assert_eq!(embedded.is_some(), subject.area.is_some());
        pair.same_after_exchange("iso ignition show image.iso");
        // Once more, without and with force.
        pair.same("iso ignition embed -i other.ign image.iso");
        pair.alike("iso ignition embed -f -i other.ign image.iso", Kind::Image);
        pair.same_after_exchange("iso ignition show image.iso");
        pair.edit_line("iso ignition remove", Kind::Image);
        pair.assert_pristine();
        pair.same("iso ignition remove image.iso");
        pair.assert_pristine();
    });
}

impl Pair<'_> {
    /// Hands each program the other's image and compares what they make of it.
    #[track_caller]
    pub(crate) fn same_after_exchange(&self, line: &str) {
        let before = self.alike(line, Kind::Image).stdout;
        self.exchange("image.iso");
        // The comment that names the author went with the image.
        let (ours, theirs) = self.run(&line.split_whitespace().collect::<Vec<_>>(), b"");
        assert_eq!(ours.status, theirs.status, "{line}: after the exchange");
        let printed = [before, ours.stdout, theirs.stdout].map(|stdout| as_installer(&stdout));
        assert!(printed[0] == printed[1] && printed[1] == printed[2], "{line}: after the exchange");
        self.exchange("image.iso");
    }
}

#[test]
fn a_config_may_come_from_standard_input_or_a_device() {
    each(few(), Subject::name, |subject| {
        let pair = Pair::new(subject);
        for source in [&["-i", "/dev/stdin"][..], &["--ignition-file", "/dev/stdin"], &[]] {
            let arguments = [&["iso", "ignition", "embed"], source].concat();
            pair.edit(&arguments, b"{ this is not JSON", Kind::Image).unwrap();
            assert_eq!(pair.same("iso ignition show image.iso").text(), "{ this is not JSON");
            pair.restore();
        }
        // An empty config is one, too.
        pair.edit(&["iso", "ignition", "embed"], b"", Kind::Image).unwrap();
        pair.same("iso ignition show image.iso");
        assert!(pair.edit(&["iso", "ignition", "embed"], b"{}", Kind::Image).is_none());
    });
}

#[test]
fn a_config_that_does_not_fit_changes_nothing() {
    // Bytes that no encoder makes smaller.
    let noise = (0_u32..400_000).scan(1_u32, |state, _| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(state.to_be_bytes()[0])
    });
    let noise = noise.collect::<Vec<u8>>();
    each(few(), Subject::name, |subject| {
        let pair = Pair::new(subject);
        pair.write("large.ign", &noise);
        assert!(pair.edit_line("iso ignition embed -i large.ign", Kind::Image).is_none());
        assert!(pair.same("iso ignition embed -i large.ign image.iso").stderr.contains("too large"));
        pair.assert_pristine();
    });
}

#[test]
fn the_former_spellings_work_and_say_that_they_are_former() {
    each(few(), Subject::name, |subject| {
        let pair = Pair::new(subject);
        pair.write("config.ign", CONFIG);
        pair.edit_line("iso embed -c config.ign", Kind::Image).unwrap();
        assert!(pair.edit_line("iso embed --config config.ign", Kind::Image).is_none());
        pair.edit_line("iso embed -f -c config.ign", Kind::Image).unwrap();
        let shown = pair.same("iso show image.iso");
        assert_eq!(shown.text(), CONFIG);
        assert!(shown.stderr.contains("`iso show` is deprecated; use `iso ignition show`."));
        pair.edit_line("iso remove", Kind::Image).unwrap();
        pair.assert_pristine();
    });
}

/// Archives that other programs have written: everything that the installer reads is read, kept and written back.
#[test]
fn archives_of_other_programs_are_read_and_kept() {
    let Some(subject) = one() else { return };
    let area = subject.area.unwrap();
    let foreign: Vec<_> =
        hostile_archives().into_iter().filter(|archive| archive.expect == Expect::Accept).collect();
    each(
        &foreign,
        |archive| archive.name.to_owned(),
        |archive| {
            let pair = Pair::new(subject);
            let mut image = subject.bytes.clone();
            let start = usize::try_from(area.offset).unwrap();
            let bytes = archive.bytes();
            image[start..start + bytes.len()].copy_from_slice(&bytes);
            pair.write("image.iso", &image);
            pair.same("iso ignition show image.iso");
            pair.edit(&["iso", "ignition", "embed"], b"{}", Kind::Image).unwrap();
            let edited = pair.ours.read("image.iso");
            assert_eq!(members(slice(&edited, area)).unwrap().len(), archive.files.len() + 1);
            pair.edit_line("iso ignition remove", Kind::Image).unwrap();
            pair.edit_line("iso reset", Kind::Exact).unwrap();
            pair.assert_pristine();
        },
    );
}

/// An area is decoded by other programs, too: the kernel, and what users have at hand.
#[test]
fn an_embedded_archive_is_what_xz_and_cpio_expect() {
    let (Some(subject), Some(xz), Some(cpio)) = (one(), require_tool("xz"), require_tool("cpio")) else {
        return;
    };
    let pair = Pair::new(subject);
    pair.write("wired.nmconnection", "[connection]\n");
    pair.edit(&["iso", "ignition", "embed"], CONFIG.as_bytes(), Kind::Image).unwrap();
    pair.edit_line("iso network embed -k wired.nmconnection", Kind::Image).unwrap();
    let list = |scratch: &Scratch| -> String {
        let area = slice(&scratch.read("image.iso"), subject.area.unwrap()).to_vec();
        let used = area.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        let unpacked = Run::new(&xz, scratch.folder()).args(["-dc"]).stdin(&area[..used]).output().success();
        let listed =
            Run::new(&cpio, scratch.folder()).args(["-itvn", "--quiet"]).env("TZ", "UTC").stdin(unpacked);
        listed.output().printed()
    };
    let listed = list(&pair.ours);
    assert_eq!(listed, list(&pair.theirs));
    assert!(listed.contains("-rw------- "), "{listed}");
    assert!(listed.contains("etc/coreos-firstboot-network\n"), "{listed}");
}
