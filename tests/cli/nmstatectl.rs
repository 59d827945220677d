//! `iso extract nmstatectl`, from images and from a separate root file system, and its errors if `nmstatectl` is
//! missing.

use std::collections::BTreeMap;

use fixtures::erofs::Erofs;
use fixtures::{Architecture, Era, Filesystem, Recipe, rootfs_image};
use isogen::Archive;
use isogen::initrd::ArchiveLimits;

use crate::support::Scratch;
use crate::{file_mode, full_featured_image};

const PATH: &str = "ostree/deploy/fedora-coreos/deploy/4a2b.0/usr/bin/nmstatectl";

fn fake_program() -> Vec<u8> {
    (0..200_000_u32).flat_map(|number| (number / 3).to_le_bytes()).collect()
}

fn squashfs_with(path: &str) -> Vec<u8> {
    Erofs::RELEASE.image([(path, fake_program().as_slice()), ("etc/os-release", b"ID=fedora\n")])
}

fn image_with_rootfs(filesystem: Vec<u8>) -> Vec<u8> {
    let recipe = Recipe::new(Architecture::Aarch64, Era::E2024_12);
    recipe.filesystem_contents(Filesystem::Erofs, filesystem).build()
}

/// Returns the name and the contents of the only member of an archive.
fn only_member(archive: &[u8]) -> (String, Vec<u8>) {
    assert_eq!(archive.len() % 4, 0);
    assert_eq!(archive[..2], [0x1F, 0x8B]);
    let archive = Archive::read(archive, ArchiveLimits::IGNITION_AREA).unwrap();
    let members: BTreeMap<_, _> =
        archive.iter().map(|(name, contents)| (name.to_owned(), contents.to_vec())).collect();
    assert_eq!(members.len(), 1);
    members.into_iter().next().unwrap()
}

#[test]
fn initrd_contains_the_nmstatectl_of_the_image() {
    let scratch = Scratch::new();
    scratch.write("image.iso", image_with_rootfs(squashfs_with(PATH)));
    scratch.write("rootfs.img", rootfs_image(Filesystem::Erofs, &squashfs_with(PATH)));
    let printed = scratch.run_kindling("iso extract nmstatectl -o nmstate.img image.iso").expect_text();
    assert_eq!(printed, "");
    let archive = scratch.read("nmstate.img");
    assert!(only_member(&archive) == ("/usr/bin/nmstatectl".to_owned(), fake_program()));
    assert_eq!(file_mode(&scratch.files(), "nmstate.img") & 0o600, 0o600);
    // Extract the same archive from a separate root file system, and to standard output, which is the default.
    for line in ["-o - image.iso", "image.iso", "rootfs.img", "--output - rootfs.img"] {
        assert!(
            scratch.run_kindling(&format!("iso extract nmstatectl {line}")).expect_success() == archive,
            "{line}"
        );
    }
    scratch.run_kindling("iso extract nmstatectl -o nmstate.img image.iso").expect_failure("File exists");
    assert!(scratch.read("nmstate.img") == archive);
}

#[test]
fn rootfs_without_nmstatectl_is_named() {
    let scratch = Scratch::new();
    let other = "ostree/deploy/rhcos/deploy/4a2b.0/usr/bin/nmstatectl.old";
    scratch.write("image.iso", image_with_rootfs(squashfs_with(other)));
    let output = scratch.run_kindling("iso extract nmstatectl -o nmstate.img image.iso");
    output.expect_failure(
        "image.iso: images/pxeboot/rootfs.img: rootfs without nmstatectl: its EROFS has no \
         /ostree/deploy/*/deploy/*/usr/bin/nmstatectl",
    );
    scratch.write("rootfs.img", rootfs_image(Filesystem::Erofs, &squashfs_with("usr/bin/nm")));
    let output = scratch.run_kindling("iso extract nmstatectl -o nmstate.img rootfs.img");
    output.expect_failure("rootfs.img: rootfs without nmstatectl: its EROFS has no /usr/bin/nmstatectl");
    assert_eq!(scratch.names(), ["image.iso", "rootfs.img"]);
}

#[test]
fn image_without_a_rootfs_is_reported() {
    let scratch = full_featured_image().scratch_with_image();
    // The squashfs of this fixture is noise after a magic number.
    scratch
        .run_kindling("iso extract nmstatectl image.iso")
        .expect_failure("rootfs.img: byte 152: squashfs version");
    let kargs = "iso extract minimal-iso image.iso minimal.iso";
    scratch.run_kindling(kargs).expect_success();
    scratch
        .run_kindling("iso extract nmstatectl minimal.iso")
        .expect_failure("the image has no images/pxeboot/rootfs.img");
}
