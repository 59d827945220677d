//! `iso network`.

use crate::pair::{Kind, Pair};
use crate::support::{CONFIG, KEYFILE, each};
use crate::{Subject, few, subjects};

const SECOND: &str = "[connection]\nid=second\n";

fn pair(subject: &Subject) -> Pair<'_> {
    let pair = Pair::new(subject);
    pair.write("config.ign", CONFIG);
    pair.write("wired.nmconnection", KEYFILE);
    pair.write("b/second.nmconnection", SECOND);
    pair.write("c/second.nmconnection", "");
    pair
}

#[test]
fn embed_extract_and_remove_agree_on_every_image() {
    each(subjects(), Subject::name, |subject| {
        let pair = pair(subject);
        pair.same("iso network extract image.iso");
        let embed = "iso network embed -k wired.nmconnection --keyfile b/second.nmconnection";
        let embedded = pair.edit_line(embed, Kind::Image);
        pair.same_after_exchange("iso network extract image.iso");
        pair.same("iso network embed -k wired.nmconnection image.iso");
        if embedded.is_some() {
            // What was there is replaced as a whole.
            pair.alike("iso network embed -f -k c/second.nmconnection image.iso", Kind::Image).success();
            pair.same_after_exchange("iso network extract image.iso");
        }
        pair.edit_line("iso network remove", Kind::Image);
        pair.assert_pristine();
        pair.same("iso network remove image.iso");
        pair.assert_pristine();
    });
}

#[test]
fn extraction_to_a_folder_makes_new_files_only() {
    each(few(), Subject::name, |subject| {
        let pair = pair(subject);
        let embed = "iso network embed -k wired.nmconnection -k b/second.nmconnection";
        if pair.edit_line(embed, Kind::Image).is_none() {
            return;
        }
        let (ours, theirs) = pair.run(&["iso", "network", "extract", "-C", "new/folder", "image.iso"], b"");
        assert_eq!(ours.printed(), theirs.printed());
        assert_eq!(pair.ours.read("new/folder/second.nmconnection"), SECOND.as_bytes());
        let (ours, theirs) = pair.run(&["iso", "network", "extract", "-C", "new/folder", "image.iso"], b"");
        assert_eq!((ours.status.code(), theirs.status.code()), (Some(1), Some(1)));
        assert!(ours.stderr.contains("File exists") && theirs.stderr.contains("File exists"));
    });
}

#[test]
fn keyfiles_of_one_name_are_refused() {
    each(few(), Subject::name, |subject| {
        let pair = pair(subject);
        let line = "iso network embed -k b/second.nmconnection -k c/second.nmconnection";
        assert!(pair.edit_line(line, Kind::Image).is_none());
        assert!(pair.edit_line("iso network embed -k missing.nmconnection", Kind::Image).is_none());
        assert_eq!(pair.same("iso network embed image.iso").status.code(), Some(2));
    });
}

#[test]
fn config_and_network_settings_do_not_touch_each_other() {
    each(few(), Subject::name, |subject| {
        let pair = pair(subject);
        if pair.edit_line("iso network embed -k wired.nmconnection", Kind::Image).is_none() {
            return;
        }
        pair.edit_line("iso ignition embed -i config.ign", Kind::Image).unwrap();
        pair.edit_line("iso network remove", Kind::Image).unwrap();
        pair.same_after_exchange("iso ignition show image.iso");
        pair.same("iso network extract image.iso");
        pair.edit_line("iso network embed -k wired.nmconnection", Kind::Image).unwrap();
        pair.edit_line("iso ignition remove", Kind::Image).unwrap();
        pair.same_after_exchange("iso network extract image.iso");
        pair.edit_line("iso network remove", Kind::Image).unwrap();
        pair.assert_pristine();
    });
}
