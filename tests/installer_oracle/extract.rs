//! `iso extract`: the artifacts are the installer's, byte for byte.

use crate::pair::{Kind, Pair};
use crate::support::{CONFIG, each};
use crate::{Subject, few, subjects};

#[test]
fn network_boot_files_are_identical_for_every_image() {
    each(subjects(), Subject::name, |subject| {
        let pair = Pair::new(subject);
        pair.same("iso extract pxe image.iso");
        pair.same("iso extract pxe -o new/folder image.iso");
        pair.same("iso extract pxe --output-dir other/folder image.iso");
    });
}

#[test]
fn network_boot_files_do_not_show_customisations() {
    each(few(), Subject::name, |subject| {
        let pair = Pair::new(subject);
        pair.edit(&["iso", "ignition", "embed"], CONFIG.as_bytes(), Kind::Image);
        pair.alike("iso extract pxe image.iso", Kind::Image);
    });
}

/// Runs the extraction into a file and to the standard output, and gives the image; nothing where both fail.
#[track_caller]
fn minimal(pair: &Pair, options: &str) -> Option<Vec<u8>> {
    let file = pair.same(&format!("iso extract minimal-iso {options} image.iso minimal.iso"));
    let stream = pair.same(&format!("iso extract minimal-iso {options} image.iso"));
    let dash = pair.same(&format!("iso extract minimal-iso image.iso - {options}"));
    assert!(stream == dash);
    if !file.status.success() {
        return None;
    }
    let minimal = pair.ours.read("minimal.iso");
    assert!(stream.stdout == minimal, "file and stream differ");
    pair.remove("minimal.iso");
    Some(minimal)
}

#[test]
fn minimal_images_are_identical_for_every_image() {
    each(subjects(), Subject::name, |subject| {
        let pair = Pair::new(subject);
        let Some(plain) = minimal(&pair, "") else { return };
        let with_url = minimal(&pair, "--rootfs-url https://example.com/rootfs.img").unwrap();
        assert!(plain != with_url);
        for url in ["http://192.0.2.1:8080/a-b_c/%7Ed?x=1", "tftp://host/rootfs", "http://[2001:db8::1]/x#y"]
        {
            minimal(&pair, &format!("--rootfs-url {url}")).unwrap();
        }
        pair.same("iso extract minimal-iso image.iso minimal.iso --output-rootfs rootfs.img");
        pair.remove("rootfs.img");
        let stream = pair.same("iso extract minimal-iso --output-rootfs rootfs.img image.iso -");
        assert!(stream.stdout == plain);
    });
}

#[test]
fn a_minimal_image_has_new_defaults_and_is_not_extracted_again() {
    each(subjects(), Subject::name, |subject| {
        let pair = Pair::new(subject);
        let Some(plain) = minimal(&pair, "") else { return };
        let with_url = minimal(&pair, "--rootfs-url https://example.com/rootfs.img").unwrap();
        let subject = Subject::new(format!("minimal {}", subject.name), with_url);
        let pair = Pair::new(&subject);
        assert!(pair.same("iso kargs show image.iso").text().contains("coreos.live.rootfs_url="));
        assert!(!pair.same("iso kargs show -d image.iso").text().contains("coreos.live"));
        pair.same("dev show iso --kargs image.iso");
        pair.same("dev show iso image.iso");
        assert!(minimal(&pair, "").is_none());
        pair.edit_line("iso reset", Kind::Exact).unwrap();
        assert!(pair.ours.read("image.iso") == plain, "a reset takes the URL away");
        assert!(minimal(&pair, "").is_none());
        pair.compare(&["iso", "ignition", "embed", "image.iso"], b"{}", Kind::Image);
    });
}

#[test]
fn customised_images_have_no_minimal_form() {
    each(few(), Subject::name, |subject| {
        let pair = Pair::new(subject);
        pair.edit_line("iso kargs modify -a quiet", Kind::Exact);
        assert!(minimal(&pair, "").is_none());
        pair.restore();
        pair.edit(&["iso", "ignition", "embed"], b"{}", Kind::Image);
        let (ours, theirs) = pair.run(&["iso", "extract", "minimal-iso", "image.iso", "minimal.iso"], b"");
        assert_eq!((ours.status.code(), theirs.status.code()), (Some(1), Some(1)));
        assert!(!pair.ours.has("minimal.iso"));
    });
}

/// The digest is checked before anything else is done with the arguments.
#[test]
fn an_altered_image_gives_another_digest() {
    each(subjects(), Subject::name, |subject| {
        let pair = Pair::new(subject);
        let mut altered = subject.bytes.clone();
        for start in 0..altered.len() - 14 {
            if &altered[start..start + 14] == b"coreos.liveiso" {
                altered[start + 2] = b'd';
            }
        }
        pair.write("image.iso", altered);
        assert!(minimal(&pair, "").is_none());
    });
}

#[test]
fn a_taken_name_is_refused() {
    each(few(), Subject::name, |subject| {
        let pair = Pair::new(subject);
        if minimal(&pair, "").is_some() {
            pair.write("minimal.iso", "mine");
            pair.write("rootfs.img", "mine");
            pair.same("iso extract minimal-iso image.iso minimal.iso");
            pair.same("iso extract minimal-iso image.iso new.iso --output-rootfs rootfs.img");
            pair.same("iso extract minimal-iso image.iso image.iso");
        }
        pair.write("image-initrd.img", "mine");
        // The installer prints the path of a file before it writes it.
        let (ours, theirs) = pair.run(&["iso", "extract", "pxe", "image.iso"], b"");
        assert_eq!(ours.status.code(), theirs.status.code());
        assert!(ours.stdout.is_empty(), "{}", ours.text());
        assert_eq!(
            pair.ours.files().keys().collect::<Vec<_>>(),
            pair.theirs.files().keys().collect::<Vec<_>>()
        );
        assert_eq!(pair.ours.read("image-initrd.img"), b"mine");
    });
}
