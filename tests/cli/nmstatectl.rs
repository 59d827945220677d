//! `iso extract nmstatectl`: out of images and out of a rootfs by itself, and what is said where there is none.

use std::collections::BTreeMap;

use fixtures::erofs::Erofs;
use fixtures::{Architecture, Era, Filesystem, Recipe, rootfs_image};
use isogen::Archive;
use isogen::initrd::Limits;

use crate::support::Scratch;
use crate::{mode, usual};

const PATH: &str = "ostree/deploy/fedora-coreos/deploy/4a2b.0/usr/bin/nmstatectl";

fn program() -> Vec<u8> {
    (0..200_000_u32).flat_map(|number| (number / 3).to_le_bytes()).collect()
}

fn filesystem(path: &str) -> Vec<u8> {
    Erofs::RELEASE.image([(path, program().as_slice()), ("etc/os-release", b"ID=fedora\n")])
}

fn image(filesystem: Vec<u8>) -> Vec<u8> {
    let recipe = Recipe::new(Architecture::Aarch64, Era::E2024_12);
    recipe.filesystem_contents(Filesystem::Erofs, filesystem).build()
}

/// The one member of an archive.
fn member(archive: &[u8]) -> (String, Vec<u8>) {
    assert_eq!(archive.len() % 4, 0);
    assert_eq!(archive[..2], [0x1F, 0x8B]);
    let archive = Archive::read(archive, Limits::AREA).unwrap();
    let members: BTreeMap<_, _> =
        archive.iter().map(|(name, contents)| (name.to_owned(), contents.to_vec())).collect();
    assert_eq!(members.len(), 1);
    members.into_iter().next().unwrap()
}

#[test]
fn an_image_gives_an_initrd_with_the_program() {
    let scratch = Scratch::new();
    scratch.write("image.iso", image(filesystem(PATH)));
    scratch.write("rootfs.img", rootfs_image(Filesystem::Erofs, &filesystem(PATH)));
    let printed = scratch.kindling("iso extract nmstatectl -o nmstate.img image.iso").printed();
    assert_eq!(printed, "");
    let written = scratch.read("nmstate.img");
    assert!(member(&written) == ("/usr/bin/nmstatectl".to_owned(), program()));
    assert_eq!(mode(&scratch.files(), "nmstate.img") & 0o600, 0o600);
    // The same from a rootfs by itself, and to stdout, which is where it goes unless it is told.
    for line in ["-o - image.iso", "image.iso", "rootfs.img", "--output - rootfs.img"] {
        assert!(scratch.kindling(&format!("iso extract nmstatectl {line}")).success() == written, "{line}");
    }
    scratch.kindling("iso extract nmstatectl -o nmstate.img image.iso").failure("File exists");
    assert!(scratch.read("nmstate.img") == written);
}

#[test]
fn a_rootfs_without_it_is_named() {
    let scratch = Scratch::new();
    let other = "ostree/deploy/rhcos/deploy/4a2b.0/usr/bin/nmstatectl.old";
    scratch.write("image.iso", image(filesystem(other)));
    let output = scratch.kindling("iso extract nmstatectl -o nmstate.img image.iso");
    output.failure(
        "image.iso: images/pxeboot/rootfs.img: rootfs without nmstatectl: its EROFS has no \
         /ostree/deploy/*/deploy/*/usr/bin/nmstatectl",
    );
    scratch.write("rootfs.img", rootfs_image(Filesystem::Erofs, &filesystem("usr/bin/nm")));
    let output = scratch.kindling("iso extract nmstatectl -o nmstate.img rootfs.img");
    output.failure("rootfs.img: rootfs without nmstatectl: its EROFS has no /usr/bin/nmstatectl");
    assert_eq!(scratch.names(), ["image.iso", "rootfs.img"]);
}

#[test]
fn an_image_without_a_file_system_says_so() {
    let scratch = usual().scratch();
    // Its squashfs is noise behind a magic number.
    scratch.kindling("iso extract nmstatectl image.iso").failure("rootfs.img: byte 152: squashfs version");
    let kargs = "iso extract minimal-iso image.iso minimal.iso";
    scratch.kindling(kargs).success();
    scratch
        .kindling("iso extract nmstatectl minimal.iso")
        .failure("the image has no images/pxeboot/rootfs.img");
}
