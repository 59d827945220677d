//! Reads images from `mksquashfs` and `mkfs.erofs`, and compares the files with the packed tree. `unsquashfs` and
//! `fsck.erofs` must extract the same program.

use std::fs;

use fixtures::Filesystem::{Erofs, Squashfs};

use crate::packed_tree::{DEPLOYMENT, PackedTree, are_installed, program_bytes, run_program, tree_files};

const PROGRAM_LEN: usize = 1_333_333;

#[test]
fn squashfs_with_every_compressor_is_read() {
    if !are_installed(&["mksquashfs", "unsquashfs"]) {
        return;
    }
    let packed = PackedTree::new(tree_files(program_bytes(PROGRAM_LEN)));
    for compressor in ["gzip", "xz", "zstd", "lz4"] {
        let bytes = packed.squashfs(&["-comp", compressor]);
        packed.assert_reads_back(Squashfs, &bytes, compressor);
        let path = format!("{DEPLOYMENT}/usr/bin/nmstatectl");
        let theirs = run_program(packed.folder.path(), &["unsquashfs", "-cat", "fs", &path]);
        assert!(theirs == packed.files[&path], "{compressor}");
    }
}

#[test]
fn squashfs_with_every_layout_is_read() {
    if !are_installed(&["mksquashfs"]) {
        return;
    }
    let packed = PackedTree::new(tree_files(program_bytes(PROGRAM_LEN)));
    for options in [
        "-b 4096",
        "-b 1048576 -comp zstd",
        "-no-fragments",
        "-always-use-fragments",
        "-noI -noD -noF -noX",
        "-noD -comp zstd",
        "-noI -comp xz",
        "-no-sparse",
        "-no-duplicates -b 65536",
        "-comp xz -Xdict-size 100%",
        "-comp zstd -Xcompression-level 19 -b 131072",
        "-nopad -no-exports -no-xattrs",
    ] {
        let bytes = packed.squashfs(&options.split(' ').collect::<Vec<_>>());
        packed.assert_reads_back(Squashfs, &bytes, options);
    }
}

#[test]
fn unsupported_compressors_are_named() {
    if !are_installed(&["mksquashfs"]) {
        return;
    }
    let packed = PackedTree::new([("x".to_owned(), b"x".to_vec())].into());
    for (name, options) in [("lzo", "-comp lzo"), ("lzma", "-comp lzma")] {
        let bytes = packed.squashfs(&options.split(' ').collect::<Vec<_>>());
        let error = crate::packed_tree::open_filesystem(Squashfs, &bytes).unwrap_err().to_string();
        assert_eq!(error, format!("rootfs.img: byte 144: squashfs compressor: {name} is not supported"));
    }
}

#[test]
fn erofs_with_every_layout_is_read() {
    if !are_installed(&["mkfs.erofs", "fsck.erofs"]) {
        return;
    }
    let packed = PackedTree::new(tree_files(program_bytes(PROGRAM_LEN)));
    for options in [
        "",
        "-Eforce-inode-extended",
        "-Enoinline_data",
        "-zlz4",
        "-zlz4hc,12",
        "-zlz4 -Elegacy-compress",
        "-zlz4 -Eforce-inode-extended",
        "-zlz4hc -C65536",
        "-zlz4hc -C1048576",
        "-zlz4hc -C16384 -Elegacy-compress",
        "-zlz4hc -Eztailpacking",
        "-zlz4hc -Eztailpacking -C65536",
        "-zlz4hc -Eztailpacking,legacy-compress",
        "-zlz4 --max-extent-bytes=65536",
        "--chunksize=4096",
        "--chunksize=1048576 -Eforce-chunk-indexes",
        "--chunksize=65536 -Eforce-inode-blockmap",
    ] {
        let bytes = packed.erofs(&options.split(' ').filter(|it| !it.is_empty()).collect::<Vec<_>>());
        packed.assert_reads_back(Erofs, &bytes, options);
        let _ = fs::remove_dir_all(packed.path("out"));
        run_program(packed.folder.path(), &["fsck.erofs", "--extract=out", "fs"]);
        let path = format!("{DEPLOYMENT}/usr/bin/nmstatectl");
        assert!(fs::read(packed.path("out").join(&path)).unwrap() == packed.files[&path], "{options}");
    }
}
