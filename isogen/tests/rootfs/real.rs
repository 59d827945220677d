//! Against `mksquashfs` and `mkfs.erofs`, and what their readers say.

use std::fs;

use fixtures::Filesystem::{Erofs, Squashfs};

use crate::made::{DEPLOYMENT, Made, have, program, run, tree};

const PROGRAM_LEN: usize = 1_333_333;

#[test]
fn every_compressor_of_squashfs() {
    if !have(&["mksquashfs", "unsquashfs"]) {
        return;
    }
    let made = Made::new(tree(program(PROGRAM_LEN)));
    for compressor in ["gzip", "xz", "zstd", "lz4"] {
        let bytes = made.squashfs(&["-comp", compressor]);
        made.check(Squashfs, &bytes, compressor);
        let path = format!("{DEPLOYMENT}/usr/bin/nmstatectl");
        let theirs = run(made.folder.path(), &["unsquashfs", "-cat", "fs", &path]);
        assert!(theirs == made.files[&path], "{compressor}");
    }
}

#[test]
fn every_layout_of_squashfs() {
    if !have(&["mksquashfs"]) {
        return;
    }
    let made = Made::new(tree(program(PROGRAM_LEN)));
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
        let bytes = made.squashfs(&options.split(' ').collect::<Vec<_>>());
        made.check(Squashfs, &bytes, options);
    }
}

#[test]
fn compressors_that_are_not_read_are_named() {
    if !have(&["mksquashfs"]) {
        return;
    }
    let made = Made::new([("x".to_owned(), b"x".to_vec())].into());
    for (name, options) in [("lzo", "-comp lzo"), ("lzma", "-comp lzma")] {
        let bytes = made.squashfs(&options.split(' ').collect::<Vec<_>>());
        let error = crate::made::open(Squashfs, &bytes).unwrap_err().to_string();
        assert_eq!(error, format!("rootfs.img: byte 144: squashfs compressor: {name} is not supported"));
    }
}

#[test]
fn every_layout_of_erofs() {
    if !have(&["mkfs.erofs", "fsck.erofs"]) {
        return;
    }
    let made = Made::new(tree(program(PROGRAM_LEN)));
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
        let bytes = made.erofs(&options.split(' ').filter(|it| !it.is_empty()).collect::<Vec<_>>());
        made.check(Erofs, &bytes, options);
        let _ = fs::remove_dir_all(made.path("out"));
        run(made.folder.path(), &["fsck.erofs", "--extract=out", "fs"]);
        let path = format!("{DEPLOYMENT}/usr/bin/nmstatectl");
        assert!(fs::read(made.path("out").join(&path)).unwrap() == made.files[&path], "{options}");
    }
}
