//! EROFS images with the features of release images, written by `fixtures`. This crate must read them. The `erofs-rs`
//! crate, which shares no code with it, reads them too, as a check of the writer.

use std::collections::BTreeMap;
use std::io::Read;

use erofs_rs::EroFS;
use erofs_rs::backend::SliceImage;
use fixtures::Filesystem;
use fixtures::erofs::{Compression, Erofs, IndexForm, Packing};

use crate::packed_tree::{DEPLOYMENT, noise, open_filesystem, program_bytes, tree_files};

fn erofs_image(options: Erofs, files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    options.image(files.iter().map(|(path, contents)| (path.as_str(), contents.as_slice())))
}

#[track_caller]
fn assert_reads_back(options: Erofs, files: &BTreeMap<String, Vec<u8>>) {
    let bytes = erofs_image(options, files);
    let theirs = EroFS::new(SliceImage::new(&bytes)).unwrap();
    let ours = open_filesystem(Filesystem::Erofs, &bytes).unwrap();
    for (path, contents) in files {
        let mut read = Vec::new();
        let file = theirs.open(path.as_str()).unwrap_or_else(|error| panic!("{options:?}: {path}: {error}"));
        let done = { file }.read_to_end(&mut read);
        done.unwrap_or_else(|error| panic!("{options:?}: {path}: {error}"));
        assert!(read == *contents, "{options:?}: {path}, by erofs-rs");
        let read = ours.read(path).unwrap_or_else(|error| panic!("{options:?}: {path}: {error}"));
        assert!(read == *contents, "{options:?}: {path}");
    }
    let program = format!("{DEPLOYMENT}/usr/bin/nmstatectl");
    assert!(ours.nmstatectl().unwrap() == files[&program]);
}

/// Returns the difficult files of the tree, without its hundreds of small programs.
fn difficult_files(program_len: usize) -> BTreeMap<String, Vec<u8>> {
    let mut files = tree_files(program_bytes(program_len));
    files.retain(|path, _| !path.contains("/program-") || path.ends_with("-07"));
    // With these files, the tree has extents of one block, extents of many blocks, and files with only uncompressed
    // extents.
    files.insert("more/text".into(), "one line like all others\n".repeat(30_000).into_bytes());
    files.insert("more/half".into(), noise(100_000, 0x0F));
    files
}

/// Tests all supported combinations of options with a compression.
fn assert_combinations_read_back(compression: Compression) {
    let files = difficult_files(200_003);
    for packing in [Packing::Nothing, Packing::Tails, Packing::Everything] {
        for index in [IndexForm::Full, IndexForm::Compact] {
            for (extent_blocks, attribute_words) in [(1, 0), (16, 9), (256, 4)] {
                let form = Erofs { compression, packing, index, extent_blocks, attribute_words };
                assert_reads_back(form, &files);
            }
        }
    }
}

#[test]
fn every_combination_with_microlzma_is_read() {
    assert_combinations_read_back(Compression::MicroLzma);
}

#[test]
fn every_combination_with_deflate_is_read() {
    assert_combinations_read_back(Compression::Deflate);
}

#[test]
fn every_combination_with_zstd_is_read() {
    assert_combinations_read_back(Compression::Zstd);
}

#[test]
fn release_layout_is_read() {
    assert_reads_back(Erofs::RELEASE, &difficult_files(2_000_001));
}

#[test]
fn large_directories_are_read() {
    let files = tree_files(program_bytes(20_000));
    assert_reads_back(Erofs { extent_blocks: 4, ..Erofs::RELEASE }, &files);
}

#[test]
fn nmstatectl_archive_has_the_expected_form() {
    let program = program_bytes(50_001);
    let bytes = Erofs::RELEASE.image([("usr/bin/nmstatectl", program.as_slice())]);
    let packed = open_filesystem(Filesystem::Erofs, &bytes).unwrap().pack_nmstatectl().unwrap();
    assert_eq!(packed.as_bytes()[..10], [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF]);
    assert_eq!(packed.len() % 4, 0);
    let mut archive = Vec::new();
    flate2::bufread::GzDecoder::new(&packed.as_bytes()[..]).read_to_end(&mut archive).unwrap();
    // The fields are inode 1, mode 0100755, owner 0, one link, time 0, the length, no device, and a name of 20 bytes
    // with its NUL.
    let header = format!(
        "07070100000001000081ed{}0000000100000000{:08x}{}00000014{}",
        "0".repeat(16),
        50_001,
        "0".repeat(32),
        "0".repeat(8)
    );
    let trailer = format!(
        "070701{}00000001{}0000000b{}TRAILER!!!\0\0\0\0",
        "0".repeat(32),
        "0".repeat(48),
        "0".repeat(8)
    );
    let expected =
        [header.as_bytes(), b"/usr/bin/nmstatectl\0\0\0", &program, &[0; 3], trailer.as_bytes()].concat();
    assert!(archive == expected, "{:?}", archive[..132].escape_ascii().to_string());
    let again = open_filesystem(Filesystem::Erofs, &bytes).unwrap().pack_nmstatectl().unwrap();
    assert_eq!(packed, again);
}
