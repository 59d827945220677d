//! Damaged file systems: any damage results in an error or a value, in bounded time and memory.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use fixtures::Filesystem::{Erofs as ErofsImage, Squashfs};
use fixtures::erofs::{Compression, Erofs, IndexForm, Packing};
use fixtures::{Filesystem, rootfs_image};
use proptest::prelude::*;

use crate::packed_tree::{
    DEPLOYMENT, PackedTree, are_installed, open_filesystem, open_rootfs, program_bytes,
};

/// Returns a small tree that has every structure, so that most damaged bytes have an effect.
fn small_tree() -> BTreeMap<String, Vec<u8>> {
    let bin = format!("{DEPLOYMENT}/usr/bin");
    let mut files: BTreeMap<String, Vec<u8>> =
        (0..20).map(|number| (format!("{bin}/tool-{number}"), vec![number; 30])).collect();
    let program: Vec<u8> = program_bytes(400_000).iter().step_by(7).copied().collect();
    files.insert(format!("{bin}/nmstatectl"), program);
    files
}

fn erofs_images() -> Vec<(Filesystem, Vec<u8>)> {
    let files = small_tree();
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

/// Images from the writer in `fixtures`, and from the real programs if they are installed.
static DAMAGEABLE_IMAGES: LazyLock<Vec<(Filesystem, Vec<u8>)>> = LazyLock::new(|| {
    let mut images = erofs_images();
    if are_installed(&["mksquashfs", "mkfs.erofs"]) {
        let packed = PackedTree::new(small_tree());
        for options in ["-comp gzip -b 16384", "-comp zstd -b 4096", "-comp xz -noI -noD"] {
            images.push((Squashfs, packed.squashfs(&options.split(' ').collect::<Vec<_>>())));
        }
        for options in ["-zlz4hc -C65536", "-zlz4 -Eztailpacking,legacy-compress", "--chunksize=4096"] {
            images.push((ErofsImage, packed.erofs(&options.split(' ').collect::<Vec<_>>())));
        }
    }
    images
});

/// Returns the value of a successful operation. A damaged image must never cause an internal error.
fn no_internal_error<T>(result: isogen::Result<T>) -> Option<T> {
    if let Err(error @ isogen::Error::Internal { .. }) = &result {
        panic!("{error}");
    }
    result.ok()
}

/// Runs every operation of the reader. The length of a file must stay within the limit, even if the image has a wrong
/// length.
fn run_all_reads(image: Vec<u8>) {
    if let Some(opened) = no_internal_error(open_rootfs(image)) {
        let program = no_internal_error(opened.nmstatectl()).unwrap_or_default();
        assert!(program.len() <= 256 << 20);
        let _ = no_internal_error(opened.read("ostree/deploy/rhcos/deploy/5f0c1d.0/usr/bin/tool-3"));
        let _ = opened.pack_nmstatectl().map(|packed| assert_eq!(packed.len() % 4, 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn flipped_bytes_do_not_panic(
        which in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        in_front in any::<bool>(),
    ) {
        let (filesystem, bytes) = which.get(&DAMAGEABLE_IMAGES);
        let mut bytes = bytes.clone();
        // Structures are near the start or the end.
        let len = if in_front { bytes.len().min(2048) } else { bytes.len() };
        for (position, value) in flips {
            let position = position.index(len);
            bytes[position] = value;
        }
        run_all_reads(rootfs_image(*filesystem, &bytes));
    }

    #[test]
    fn truncated_images_do_not_panic(which in any::<prop::sample::Index>(), len in any::<prop::sample::Index>()) {
        let (filesystem, bytes) = which.get(&DAMAGEABLE_IMAGES);
        let whole = rootfs_image(*filesystem, bytes);
        run_all_reads(whole[..len.index(whole.len())].to_vec());
        // Here the archive is complete, but the file system is not.
        run_all_reads(rootfs_image(*filesystem, &bytes[..len.index(bytes.len())]));
    }

    #[test]
    fn overwritten_words_do_not_panic(
        which in any::<prop::sample::Index>(),
        position in any::<prop::sample::Index>(),
        word in prop_oneof![Just(0_u32), Just(u32::MAX), Just(1 << 24), Just(0x7FFF_FFFF), any::<u32>()],
    ) {
        let (filesystem, bytes) = which.get(&DAMAGEABLE_IMAGES);
        let mut bytes = bytes.clone();
        let position = position.index(bytes.len() - 4) / 4 * 4;
        bytes[position..position + 4].copy_from_slice(&word.to_le_bytes());
        run_all_reads(rootfs_image(*filesystem, &bytes));
    }
}

fn read_error_message(filesystem: Filesystem, bytes: &[u8]) -> String {
    match open_filesystem(filesystem, bytes).map(|opened| opened.nmstatectl()) {
        Ok(Ok(_)) => "it was read".into(),
        Ok(Err(error)) | Err(error) => error.to_string(),
    }
}

fn with_bytes_at(bytes: &[u8], position: usize, with: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[position..position + with.len()].copy_from_slice(with);
    bytes
}

#[test]
fn unsupported_features_are_named() {
    let (_, bytes) = &erofs_images()[0];
    for (position, with, expected) in [
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
        let message = read_error_message(ErofsImage, &with_bytes_at(bytes, position, with));
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn squashfs_errors_name_the_position() {
    if !are_installed(&["mksquashfs"]) {
        return;
    }
    let bytes = PackedTree::new(small_tree()).squashfs(&["-comp", "zstd"]);
    let directories = usize::try_from(u64::from_le_bytes(bytes[72..80].try_into().unwrap())).unwrap();
    for (position, with, expected) in [
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
        let message = read_error_message(Squashfs, &with_bytes_at(&bytes, position, with));
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn self_referencing_directory_terminates() {
    // Every entry of every directory is the root directory, so the path is a cycle.
    let (_, bytes) = &erofs_images()[1];
    let root = u64::from(u16::from_le_bytes([bytes[1024 + 14], bytes[1024 + 15]]));
    let metadata =
        usize::try_from(u32::from_le_bytes(bytes[1024 + 40..1024 + 44].try_into().unwrap())).unwrap() * 4096;
    let mut bytes = bytes.clone();
    for position in (4096..metadata).step_by(4096) {
        let count = usize::from(u16::from_le_bytes([bytes[position + 8], bytes[position + 9]])) / 12;
        if count > 0 && bytes[position + 11] == 0 && count < 100 {
            for entry in 0..count {
                bytes[position + entry * 12..position + entry * 12 + 8].copy_from_slice(&root.to_le_bytes());
            }
        }
    }
    let message = read_error_message(ErofsImage, &bytes);
    assert!(message.contains("rootfs without nmstatectl") || message.contains("expected"), "{message}");
}

#[test]
fn other_archives_are_not_a_rootfs() {
    for (image, expected) in [
        (Vec::new(), "rootfs.img: byte 0: rootfs archive"),
        (vec![0; 4096], "rootfs.img: byte 0: cpio magic: expected 070701 or 070702, found"),
        (rootfs_image(Squashfs, b"hsqs"), "rootfs.img: byte 124: squashfs superblock: expected 96 bytes"),
        (rootfs_image(ErofsImage, b""), "rootfs.img: byte 1148: EROFS superblock: expected 128 bytes"),
        (
            rootfs_image(Squashfs, b"hsqs")[128..].to_vec(),
            "expected a member root.squashfs or root.erofs, found neither of them",
        ),
    ] {
        let error = open_rootfs(image).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
