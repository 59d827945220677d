//! `iso ignition` and its deprecated spellings.

use fixtures::{Expect, hostile_archives};

use crate::program_pair::{ComparisonKind, ProgramPair, archive_members, name_installer_as_author};
use crate::support::{CONFIG, ProgramRun, Scratch, check_each, extent_of, require_tool};
use crate::{OracleImage, all_images, full_featured_image, images_for_independent_commands};

const OTHER: &str = r#"{"ignition":{"version":"3.0.0"}}"#;

#[test]
fn embed_show_and_remove_agree_on_every_image() {
    check_each(all_images(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject);
        pair.write_to_both("config.ign", CONFIG);
        pair.write_to_both("other.ign", OTHER);
        pair.compare_exactly("iso ignition show image.iso");
        let embedded = pair.compare_edit_line("iso ignition embed -i config.ign", ComparisonKind::Image);
        assert_eq!(embedded.is_some(), subject.area.is_some());
        pair.compare_after_exchange("iso ignition show image.iso");
        // A second edit, without and with `--force`.
        pair.compare_exactly("iso ignition embed -i other.ign image.iso");
        pair.compare_as("iso ignition embed -f -i other.ign image.iso", ComparisonKind::Image);
        pair.compare_after_exchange("iso ignition show image.iso");
        pair.compare_edit_line("iso ignition remove", ComparisonKind::Image);
        pair.assert_pristine();
        pair.compare_exactly("iso ignition remove image.iso");
        pair.assert_pristine();
    });
}

impl ProgramPair<'_> {
    /// Swaps the images of the two programs, and compares the results of a command.
    #[track_caller]
    pub(crate) fn compare_after_exchange(&self, line: &str) {
        let before = self.compare_as(line, ComparisonKind::Image).stdout;
        self.exchange_file("image.iso");
        // The generated units in each image name the program that wrote the image, so replace these names before the
        // comparison.
        let (ours, theirs) = self.run_both(&line.split_whitespace().collect::<Vec<_>>(), b"");
        assert_eq!(ours.status, theirs.status, "{line}: after the exchange");
        let printed = [before, ours.stdout, theirs.stdout].map(|stdout| name_installer_as_author(&stdout));
        assert!(printed[0] == printed[1] && printed[1] == printed[2], "{line}: after the exchange");
        self.exchange_file("image.iso");
    }
}

#[test]
fn config_may_be_standard_input_or_a_device() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject);
        for source in [&["-i", "/dev/stdin"][..], &["--ignition-file", "/dev/stdin"], &[]] {
            let arguments = [&["iso", "ignition", "embed"], source].concat();
            pair.compare_edit(&arguments, b"{ this is not JSON", ComparisonKind::Image).unwrap();
            assert_eq!(
                pair.compare_exactly("iso ignition show image.iso").stdout_text(),
                "{ this is not JSON"
            );
            pair.restore_image();
        }
        // An empty config is a config.
        pair.compare_edit(&["iso", "ignition", "embed"], b"", ComparisonKind::Image).unwrap();
        pair.compare_exactly("iso ignition show image.iso");
        assert!(pair.compare_edit(&["iso", "ignition", "embed"], b"{}", ComparisonKind::Image).is_none());
    });
}

#[test]
fn oversized_config_changes_nothing() {
    // Incompressible bytes.
    let noise = (0_u32..400_000).scan(1_u32, |state, _| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(state.to_be_bytes()[0])
    });
    let noise = noise.collect::<Vec<u8>>();
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject);
        pair.write_to_both("large.ign", &noise);
        assert!(pair.compare_edit_line("iso ignition embed -i large.ign", ComparisonKind::Image).is_none());
        assert!(
            pair.compare_exactly("iso ignition embed -i large.ign image.iso").stderr.contains("too large")
        );
        pair.assert_pristine();
    });
}

#[test]
fn deprecated_spellings_work_and_warn() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject);
        pair.write_to_both("config.ign", CONFIG);
        pair.compare_edit_line("iso embed -c config.ign", ComparisonKind::Image).unwrap();
        assert!(pair.compare_edit_line("iso embed --config config.ign", ComparisonKind::Image).is_none());
        pair.compare_edit_line("iso embed -f -c config.ign", ComparisonKind::Image).unwrap();
        let output = pair.compare_exactly("iso show image.iso");
        assert_eq!(output.stdout_text(), CONFIG);
        assert!(output.stderr.contains("`iso show` is deprecated; use `iso ignition show`."));
        pair.compare_edit_line("iso remove", ComparisonKind::Image).unwrap();
        pair.assert_pristine();
    });
}

/// Archives of other programs: Kindling reads, keeps and writes back every archive that the installer reads.
#[test]
fn archives_of_other_programs_are_read_and_kept() {
    let Some(subject) = full_featured_image() else { return };
    let area = subject.area.unwrap();
    let foreign: Vec<_> =
        hostile_archives().into_iter().filter(|archive| archive.expect == Expect::Accept).collect();
    check_each(
        &foreign,
        |archive| archive.name.to_owned(),
        |archive| {
            let pair = ProgramPair::new(subject);
            let mut image = subject.bytes.clone();
            let start = usize::try_from(area.offset).unwrap();
            let bytes = archive.bytes();
            image[start..start + bytes.len()].copy_from_slice(&bytes);
            pair.write_to_both("image.iso", &image);
            pair.compare_exactly("iso ignition show image.iso");
            pair.compare_edit(&["iso", "ignition", "embed"], b"{}", ComparisonKind::Image).unwrap();
            let edited = pair.ours().read("image.iso");
            assert_eq!(archive_members(extent_of(&edited, area)).unwrap().len(), archive.files.len() + 1);
            pair.compare_edit_line("iso ignition remove", ComparisonKind::Image).unwrap();
            pair.compare_edit_line("iso reset", ComparisonKind::Exact).unwrap();
            pair.assert_pristine();
        },
    );
}

/// The kernel and common tools decode an area, too.
#[test]
fn embedded_archive_is_readable_by_xz_and_cpio() {
    let (Some(subject), Some(xz), Some(cpio)) =
        (full_featured_image(), require_tool("xz"), require_tool("cpio"))
    else {
        return;
    };
    let pair = ProgramPair::new(subject);
    pair.write_to_both("wired.nmconnection", "[connection]\n");
    pair.compare_edit(&["iso", "ignition", "embed"], CONFIG.as_bytes(), ComparisonKind::Image).unwrap();
    pair.compare_edit_line("iso network embed -k wired.nmconnection", ComparisonKind::Image).unwrap();
    let list = |scratch: &Scratch| -> String {
        let area = extent_of(&scratch.read("image.iso"), subject.area.unwrap()).to_vec();
        let used = area.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        let unpacked =
            ProgramRun::new(&xz, scratch.folder()).args(["-dc"]).stdin(&area[..used]).run().expect_success();
        let listed = ProgramRun::new(&cpio, scratch.folder())
            .args(["-itvn", "--quiet"])
            .env("TZ", "UTC")
            .stdin(unpacked);
        listed.run().expect_text()
    };
    let listed = list(pair.ours());
    assert_eq!(listed, list(pair.theirs()));
    assert!(listed.contains("-rw------- "), "{listed}");
    assert!(listed.contains("etc/coreos-firstboot-network\n"), "{listed}");
}
