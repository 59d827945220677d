//! Compares `iso network` with the installer's command.

use crate::program_pair::{ComparisonKind, ProgramPair};
use crate::support::{CONFIG, KEYFILE, check_each};
use crate::{OracleImage, all_images, images_for_independent_commands};

const SECOND: &str = "[connection]\nid=second\n";

fn pair_with_keyfiles(subject: &OracleImage) -> ProgramPair<'_> {
    let pair = ProgramPair::new(subject);
    pair.write_to_both("config.ign", CONFIG);
    pair.write_to_both("wired.nmconnection", KEYFILE);
    pair.write_to_both("b/second.nmconnection", SECOND);
    pair.write_to_both("c/second.nmconnection", "");
    pair
}

#[test]
fn embed_extract_and_remove_agree_on_every_image() {
    check_each(all_images(), OracleImage::name, |subject| {
        let pair = pair_with_keyfiles(subject);
        pair.compare_exactly("iso network extract image.iso");
        let embed = "iso network embed -k wired.nmconnection --keyfile b/second.nmconnection";
        let embedded = pair.compare_edit_line(embed, ComparisonKind::Image);
        pair.compare_after_exchange("iso network extract image.iso");
        pair.compare_exactly("iso network embed -k wired.nmconnection image.iso");
        if embedded.is_some() {
            // The new settings replace all existing settings.
            pair.compare_as("iso network embed -f -k c/second.nmconnection image.iso", ComparisonKind::Image)
                .expect_success();
            pair.compare_after_exchange("iso network extract image.iso");
        }
        pair.compare_edit_line("iso network remove", ComparisonKind::Image);
        pair.assert_pristine();
        pair.compare_exactly("iso network remove image.iso");
        pair.assert_pristine();
    });
}

#[test]
fn extraction_to_a_folder_never_overwrites() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let pair = pair_with_keyfiles(subject);
        let embed = "iso network embed -k wired.nmconnection -k b/second.nmconnection";
        if pair.compare_edit_line(embed, ComparisonKind::Image).is_none() {
            return;
        }
        let (ours, theirs) =
            pair.run_both(&["iso", "network", "extract", "-C", "new/folder", "image.iso"], b"");
        assert_eq!(ours.expect_text(), theirs.expect_text());
        assert_eq!(pair.ours().read("new/folder/second.nmconnection"), SECOND.as_bytes());
        let (ours, theirs) =
            pair.run_both(&["iso", "network", "extract", "-C", "new/folder", "image.iso"], b"");
        assert_eq!((ours.status.code(), theirs.status.code()), (Some(1), Some(1)));
        assert!(ours.stderr.contains("File exists") && theirs.stderr.contains("File exists"));
    });
}

#[test]
fn rejects_keyfiles_with_the_same_name() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let pair = pair_with_keyfiles(subject);
        let line = "iso network embed -k b/second.nmconnection -k c/second.nmconnection";
        assert!(pair.compare_edit_line(line, ComparisonKind::Image).is_none());
        assert!(
            pair.compare_edit_line("iso network embed -k missing.nmconnection", ComparisonKind::Image)
                .is_none()
        );
        assert_eq!(pair.compare_exactly("iso network embed image.iso").status.code(), Some(2));
    });
}

#[test]
fn config_and_network_settings_are_independent() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let pair = pair_with_keyfiles(subject);
        if pair.compare_edit_line("iso network embed -k wired.nmconnection", ComparisonKind::Image).is_none()
        {
            return;
        }
        pair.compare_edit_line("iso ignition embed -i config.ign", ComparisonKind::Image).unwrap();
        pair.compare_edit_line("iso network remove", ComparisonKind::Image).unwrap();
        pair.compare_after_exchange("iso ignition show image.iso");
        pair.compare_exactly("iso network extract image.iso");
        pair.compare_edit_line("iso network embed -k wired.nmconnection", ComparisonKind::Image).unwrap();
        pair.compare_edit_line("iso ignition remove", ComparisonKind::Image).unwrap();
        pair.compare_after_exchange("iso network extract image.iso");
        pair.compare_edit_line("iso network remove", ComparisonKind::Image).unwrap();
        pair.assert_pristine();
    });
}
