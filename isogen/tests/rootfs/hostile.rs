//! File systems that somebody damaged: whatever the damage, an error or an answer comes, in bounded time and memory.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use fixtures::Filesystem::{Erofs as ErofsImage, Squashfs};
use fixtures::erofs::{Compression, Erofs, IndexForm, Packing};
use fixtures::{Filesystem, rootfs_image};
use proptest::prelude::*;

use crate::made::{DEPLOYMENT, Made, have, open, open_image, program};

/// A small tree: every structure is there, and a damaged byte is likely to matter.
fn files() -> BTreeMap<String, Vec<u8>> {
    let bin = format!("{DEPLOYMENT}/usr/bin");
    let mut files: BTreeMap<String, Vec<u8>> =
        (0..20).map(|number| (format!("{bin}/tool-{number}"), vec![number; 30])).collect();
    let program: Vec<u8> = program(400_000).iter().step_by(7).copied().collect();
    files.insert(format!("{bin}/nmstatectl"), program);
    files
}

fn erofs() -> Vec<(Filesystem, Vec<u8>)> {
    let files = files();
    let mut images = Vec::new();
    for (compression, packing, index) in [
        (Compression::MicroLzma, Packing::Everything, IndexForm::Compact),
        (Compression::Zstd, Packing::Tails, IndexForm::Full),
        (Compression::Deflate, Packing::Nothing, IndexForm::Compact),
    ] {
        let options = Erofs { compression, packing, index, extent_blocks: 4, attribute_words: 1 };
        let files = files.iter().map(|(path, contents)| (path.as_str(), contents.as_slice()));
        images.push((ErofsImage, options.image(files)));
    }
    images
}

/// Images of the writer, and of the real programs where these are installed.
static IMAGES: LazyLock<Vec<(Filesystem, Vec<u8>)>> = LazyLock::new(|| {
    let mut images = erofs();
    if have(&["mksquashfs", "mkfs.erofs"]) {
        let made = Made::new(files());
        for options in ["-comp gzip -b 16384", "-comp zstd -b 4096", "-comp xz -noI -noD"] {
            images.push((Squashfs, made.squashfs(&options.split(' ').collect::<Vec<_>>())));
        }
        for options in ["-zlz4hc -C65536", "-zlz4 -Eztailpacking,legacy-compress", "--chunksize=4096"] {
            images.push((ErofsImage, made.erofs(&options.split(' ').collect::<Vec<_>>())));
        }
    }
    images
});

/// What a reader is asked for. Files stay within their limit even where their length is a lie.
fn reach(image: Vec<u8>) {
    if let Ok(opened) = open_image(image) {
        let program = opened.nmstatectl().unwrap_or_default();
        assert!(program.len() <= 256 << 20);
        let _ = opened.read("ostree/deploy/rhcos/deploy/5f0c1d.0/usr/bin/tool-3");
        let _ = opened.pack_nmstatectl().map(|packed| assert_eq!(packed.len() % 4, 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn flipped_bytes(
        which in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        in_front in any::<bool>(),
    ) {
        let (filesystem, bytes) = which.get(&IMAGES);
        let mut bytes = bytes.clone();
        // Structures stand near either end.
        let len = if in_front { bytes.len().min(2048) } else { bytes.len() };
        for (place, value) in flips {
            let place = place.index(len);
            bytes[place] = value;
        }
        reach(rootfs_image(*filesystem, &bytes));
    }

    #[test]
    fn truncated(which in any::<prop::sample::Index>(), len in any::<prop::sample::Index>()) {
        let (filesystem, bytes) = which.get(&IMAGES);
        let whole = rootfs_image(*filesystem, bytes);
        reach(whole[..len.index(whole.len())].to_vec());
        // The archive is whole, the file system is not.
        reach(rootfs_image(*filesystem, &bytes[..len.index(bytes.len())]));
    }

    #[test]
    fn overwritten(
        which in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        word in prop_oneof![Just(0_u32), Just(u32::MAX), Just(1 << 24), Just(0x7FFF_FFFF), any::<u32>()],
    ) {
        let (filesystem, bytes) = which.get(&IMAGES);
        let mut bytes = bytes.clone();
        let place = place.index(bytes.len() - 4) / 4 * 4;
        bytes[place..place + 4].copy_from_slice(&word.to_le_bytes());
        reach(rootfs_image(*filesystem, &bytes));
    }
}

fn message(filesystem: Filesystem, bytes: &[u8]) -> String {
    match open(filesystem, bytes).map(|opened| opened.nmstatectl()) {
        Ok(Ok(_)) => "it was read".into(),
        Ok(Err(error)) | Err(error) => error.to_string(),
    }
}

fn changed(bytes: &[u8], place: usize, with: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[place..place + with.len()].copy_from_slice(with);
    bytes
}

#[test]
fn features_that_are_not_read_are_named() {
    let (_, bytes) = &erofs()[0];
    for (place, with, expected) in [
        (
            1024 + 80,
            &[0xA3_u8, 0][..],
            "rootfs.img: byte 1228: EROFS feature: 48-bit block addresses is not supported",
        ),
        (
            1024 + 80,
            &[0x23, 1],
            "rootfs.img: byte 1228: EROFS feature: metadata in a metabox is not supported",
        ),
        (1024 + 80, &[0x23, 0x80], "rootfs.img: byte 1228: EROFS feature: 0x8023 is not supported"),
        (
            1024 + 12,
            &[31],
            "rootfs.img: byte 1160: EROFS block size: expected 512 bytes to 64 KiB, found 2^31",
        ),
        (
            1024 + 84,
            &[1],
            "EROFS compression: expected an algorithm of the superblock (0x1), found MicroLZMA",
        ),
        (1024, b"hsqs", "rootfs.img: byte 124: root file system: expected squashfs or EROFS, found hsqs"),
    ] {
        let found = message(ErofsImage, &changed(bytes, place, with));
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn squashfs_errors_name_the_place() {
    if !have(&["mksquashfs"]) {
        return;
    }
    let bytes = Made::new(files()).squashfs(&["-comp", "zstd"]);
    let directories = usize::try_from(u64::from_le_bytes(bytes[72..80].try_into().unwrap())).unwrap();
    for (place, with, expected) in [
        (20, &[77_u8, 0][..], "rootfs.img: byte 144: squashfs compressor: number 77 is not supported"),
        (28, &[3], "rootfs.img: byte 152: squashfs version: 3.0 is not supported"),
        (
            12,
            &[1],
            "rootfs.img: byte 136: squashfs block size: expected a power of two, 4 KiB to 1 MiB, found 131073 with the logarithm 17",
        ),
        (40, &[255; 8], "rootfs.img: byte 164: squashfs length: expected at most"),
        (32, &[255; 8], "squashfs inode: expected"),
        (directories, &[0, 0], "squashfs directory: expected a metadata block of 1 to 8192 bytes"),
        (directories + 8, &[255; 20], "squashfs directory: expected zstd data, found"),
    ] {
        let found = message(Squashfs, &changed(&bytes, place, with));
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn a_directory_that_is_its_own_entry_comes_to_an_end() {
    // Every entry of every directory is the root: the path leads round in a circle, and nowhere.
    let (_, bytes) = &erofs()[1];
    let root = u64::from(u16::from_le_bytes([bytes[1024 + 14], bytes[1024 + 15]]));
    let metadata =
        usize::try_from(u32::from_le_bytes(bytes[1024 + 40..1024 + 44].try_into().unwrap())).unwrap() * 4096;
    let mut bytes = bytes.clone();
    for place in (4096..metadata).step_by(4096) {
        let count = usize::from(u16::from_le_bytes([bytes[place + 8], bytes[place + 9]])) / 12;
        if count > 0 && bytes[place + 11] == 0 && count < 100 {
            for entry in 0..count {
                bytes[place + entry * 12..place + entry * 12 + 8].copy_from_slice(&root.to_le_bytes());
            }
        }
    }
    let found = message(ErofsImage, &bytes);
    assert!(found.contains("rootfs without nmstatectl") || found.contains("expected"), "{found}");
}

#[test]
fn other_archives_are_told_from_a_rootfs() {
    for (image, expected) in [
        (Vec::new(), "rootfs.img: byte 0: rootfs archive"),
        (vec![0; 4096], "rootfs.img: byte 0: cpio magic: expected 070701 or 070702, found"),
        (rootfs_image(Squashfs, b"hsqs"), "rootfs.img: byte 124: squashfs superblock: expected 96 bytes"),
        (rootfs_image(ErofsImage, b""), "rootfs.img: byte 1148: EROFS superblock: expected 128 bytes"),
        (
            rootfs_image(Squashfs, b"hsqs")[128..].to_vec(),
            "expected a member root.squashfs or root.erofs, found none of these",
        ),
    ] {
        let error = open_image(image).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
