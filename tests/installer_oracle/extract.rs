//! `iso extract`: the artifacts are identical to the installer's, byte for byte.

use crate::program_pair::{ComparisonKind, ProgramPair};
use crate::support::{CONFIG, check_each};
use crate::{OracleImage, all_images, images_for_independent_commands};

#[test]
fn network_boot_files_are_identical_for_every_image() {
    check_each(all_images(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject);
        pair.compare_exactly("iso extract pxe image.iso");
        pair.compare_exactly("iso extract pxe -o new/folder image.iso");
        pair.compare_exactly("iso extract pxe --output-dir other/folder image.iso");
    });
}

#[test]
fn network_boot_files_do_not_show_customisations() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject);
        pair.compare_edit(&["iso", "ignition", "embed"], CONFIG.as_bytes(), ComparisonKind::Image);
        pair.compare_as("iso extract pxe image.iso", ComparisonKind::Image);
    });
}

/// Extracts a minimal image to a file and to standard output. Returns the image; `None` if both programs fail.
#[track_caller]
fn minimal_iso_of_both(pair: &ProgramPair, options: &str) -> Option<Vec<u8>> {
    let file = pair.compare_exactly(&format!("iso extract minimal-iso {options} image.iso minimal.iso"));
    let stream = pair.compare_exactly(&format!("iso extract minimal-iso {options} image.iso"));
    let dash = pair.compare_exactly(&format!("iso extract minimal-iso image.iso - {options}"));
    assert!(stream == dash);
    if !file.status.success() {
        return None;
    }
    let minimal = pair.ours().read("minimal.iso");
    assert!(stream.stdout == minimal, "file and stream differ");
    pair.remove_from_both("minimal.iso");
    Some(minimal)
}

#[test]
fn minimal_images_are_identical_for_every_image() {
    check_each(all_images(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject);
        let Some(plain) = minimal_iso_of_both(&pair, "") else { return };
        let with_url = minimal_iso_of_both(&pair, "--rootfs-url https://example.com/rootfs.img").unwrap();
        assert!(plain != with_url);
        for url in ["http://192.0.2.1:8080/a-b_c/%7Ed?x=1", "tftp://host/rootfs", "http://[2001:db8::1]/x#y"]
        {
            minimal_iso_of_both(&pair, &format!("--rootfs-url {url}")).unwrap();
        }
        pair.compare_exactly("iso extract minimal-iso image.iso minimal.iso --output-rootfs rootfs.img");
        pair.remove_from_both("rootfs.img");
        let stream = pair.compare_exactly("iso extract minimal-iso --output-rootfs rootfs.img image.iso -");
        assert!(stream.stdout == plain);
    });
}

#[test]
fn minimal_image_has_new_defaults_and_cannot_be_minimised_again() {
    check_each(all_images(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject);
        let Some(plain) = minimal_iso_of_both(&pair, "") else { return };
        let with_url = minimal_iso_of_both(&pair, "--rootfs-url https://example.com/rootfs.img").unwrap();
        let subject = OracleImage::new(format!("minimal {}", subject.name), with_url);
        let pair = ProgramPair::new(&subject);
        assert!(
            pair.compare_exactly("iso kargs show image.iso")
                .stdout_text()
                .contains("coreos.live.rootfs_url=")
        );
        assert!(!pair.compare_exactly("iso kargs show -d image.iso").stdout_text().contains("coreos.live"));
        pair.compare_exactly("dev show iso --kargs image.iso");
        pair.compare_exactly("dev show iso image.iso");
        assert!(minimal_iso_of_both(&pair, "").is_none());
        pair.compare_edit_line("iso reset", ComparisonKind::Exact).unwrap();
        assert!(pair.ours().read("image.iso") == plain, "a reset removes the URL");
        assert!(minimal_iso_of_both(&pair, "").is_none());
        pair.compare_arguments(&["iso", "ignition", "embed", "image.iso"], b"{}", ComparisonKind::Image);
    });
}

#[test]
fn rejects_minimal_form_of_customised_images() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject);
        pair.compare_edit_line("iso kargs modify -a quiet", ComparisonKind::Exact);
        assert!(minimal_iso_of_both(&pair, "").is_none());
        pair.restore_image();
        pair.compare_edit(&["iso", "ignition", "embed"], b"{}", ComparisonKind::Image);
        let (ours, theirs) =
            pair.run_both(&["iso", "extract", "minimal-iso", "image.iso", "minimal.iso"], b"");
        assert_eq!((ours.status.code(), theirs.status.code()), (Some(1), Some(1)));
        assert!(!pair.ours().has_file("minimal.iso"));
    });
}

/// The digest is checked before the other arguments.
#[test]
fn changed_image_is_refused_because_of_its_digest() {
    check_each(all_images(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject);
        let mut altered = subject.bytes.clone();
        for start in 0..altered.len() - 14 {
            if &altered[start..start + 14] == b"coreos.liveiso" {
                altered[start + 2] = b'd';
            }
        }
        pair.write_to_both("image.iso", altered);
        assert!(minimal_iso_of_both(&pair, "").is_none());
    });
}

#[test]
fn rejects_existing_output_name() {
    check_each(images_for_independent_commands(), OracleImage::name, |subject| {
        let pair = ProgramPair::new(subject);
        if minimal_iso_of_both(&pair, "").is_some() {
            pair.write_to_both("minimal.iso", "mine");
            pair.write_to_both("rootfs.img", "mine");
            pair.compare_exactly("iso extract minimal-iso image.iso minimal.iso");
            pair.compare_exactly("iso extract minimal-iso image.iso new.iso --output-rootfs rootfs.img");
            pair.compare_exactly("iso extract minimal-iso image.iso image.iso");
        }
        pair.write_to_both("image-initrd.img", "mine");
        // The installer prints the path of a file before it writes the file.
        let (ours, theirs) = pair.run_both(&["iso", "extract", "pxe", "image.iso"], b"");
        assert_eq!(ours.status.code(), theirs.status.code());
        assert!(ours.stdout.is_empty(), "{}", ours.stdout_text());
        assert_eq!(
            pair.ours().files().keys().collect::<Vec<_>>(),
            pair.theirs().files().keys().collect::<Vec<_>>()
        );
        assert_eq!(pair.ours().read("image-initrd.img"), b"mine");
    });
}
