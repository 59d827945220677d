//! Compares `iso reset` with the installer's command.

use crate::program_pair::{ComparisonKind, ProgramPair};
use crate::support::{CONFIG, KEYFILE, check_each};
use crate::{OracleImage, all_images};

#[test]
fn reset_restores_every_image() {
    check_each(all_images(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject);
        pair.write_to_both("wired.nmconnection", KEYFILE);
        pair.compare_exactly("iso reset image.iso");
        pair.assert_pristine();
        pair.compare_arguments(
            &["iso", "ignition", "embed", "image.iso"],
            CONFIG.as_bytes(),
            ComparisonKind::Image,
        );
        pair.compare_as("iso network embed -k wired.nmconnection image.iso", ComparisonKind::Image);
        pair.compare_as("iso kargs modify -a quiet -d ignition.firstboot image.iso", ComparisonKind::Image);
        pair.exchange_file("image.iso");
        pair.compare_edit_line("iso reset", ComparisonKind::Exact);
        pair.assert_pristine();
    });
}
