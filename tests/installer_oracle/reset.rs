//! `iso reset`.

use crate::pair::{Kind, Pair};
use crate::support::{CONFIG, KEYFILE, each};
use crate::{Subject, subjects};

#[test]
fn reset_restores_every_image() {
    each(subjects(), Subject::name, |subject| {
        let pair = Pair::new(subject);
        pair.write("wired.nmconnection", KEYFILE);
        pair.same("iso reset image.iso");
        pair.assert_pristine();
        pair.compare(&["iso", "ignition", "embed", "image.iso"], CONFIG.as_bytes(), Kind::Image);
        pair.alike("iso network embed -k wired.nmconnection image.iso", Kind::Image);
        pair.alike("iso kargs modify -a quiet -d ignition.firstboot image.iso", Kind::Image);
        pair.exchange("image.iso");
        pair.edit_line("iso reset", Kind::Exact);
        pair.assert_pristine();
    });
}
