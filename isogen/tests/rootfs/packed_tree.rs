//! File systems packed by the real programs, from a tree with difficult cases.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use fixtures::Filesystem;
use isogen::{Plan, RootFilesystem, Source};
use tempfile::TempDir;

use crate::skip::report_missing;

/// The OSTree deployment that contains the program, relative to the root.
pub(crate) const DEPLOYMENT: &str = "ostree/deploy/rhcos/deploy/5f0c1d.0";

/// Returns `true` if all programs are installed. Otherwise prints a notice.
pub(crate) fn are_installed(programs: &[&str]) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let there = |program: &&str| env::split_paths(&path).any(|folder| folder.join(program).is_file());
    let Some(missing) = programs.iter().find(|program| !there(program)) else { return true };
    report_missing(&format!("{missing} is not installed"));
    false
}

/// Runs a program in a folder and returns its output. The program must succeed.
pub(crate) fn run_program(folder: &Path, command: &[&str]) -> Vec<u8> {
    let output = Command::new(command[0]).args(&command[1..]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Returns pseudorandom bytes. A mask with fewer bits makes the bytes compressible.
pub(crate) fn noise(len: usize, mask: u8) -> Vec<u8> {
    let mut state = 9_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0] & mask
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Returns a file that resembles a program: runs of code, text, zeros and noise.
pub(crate) fn program_bytes(len: usize) -> Vec<u8> {
    let mut bytes = b"\x7fELF".to_vec();
    let noise = noise(300_000, 0xFF);
    for round in 0.. {
        if bytes.len() >= len {
            break;
        }
        match round % 4 {
            0 => bytes.extend(noise.iter().take(90_000).map(|byte| byte & 0x1F)),
            1 => bytes.extend(format!("text {round} of the program, again and again; ").repeat(2500).bytes()),
            2 => bytes.extend(vec![0; 150_000]),
            _ => bytes.extend(&noise),
        }
    }
    bytes.truncate(len);
    bytes
}

/// Returns every file of the tree by its path relative to the root.
pub(crate) fn tree_files(program: Vec<u8>) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut add = |path: String, bytes: Vec<u8>| files.insert(path, bytes);
    let bin = format!("{DEPLOYMENT}/usr/bin");
    // These names are similar to the name of the program. The many names make the directory larger than one metadata
    // block.
    for number in 0..600 {
        add(format!("{bin}/program-{number:04}-with-a-long-name"), format!("#!/bin/sh\n{number}\n").into());
    }
    add(format!("{bin}/nmstatectl"), program.clone());
    add(format!("{bin}/nmstatectl.1"), b"not this".to_vec());
    add(format!("{DEPLOYMENT}/usr/share/man/man8/nmstatectl"), b"nor this".to_vec());
    add(format!("{DEPLOYMENT}.origin"), b"[origin]\n".to_vec());
    add("ostree/deploy/rhcos/var/lib/x".into(), b"x".to_vec());
    for (name, len) in
        [("empty", 0), ("one", 1), ("block", 4096), ("more", 4097), ("large", 131_072), ("odd", 131_073)]
    {
        add(format!("cases/{name}"), program.iter().copied().cycle().skip(7).take(len).collect());
    }
    add("cases/zeros".into(), vec![0; 1_000_000]);
    add("cases/noise".into(), noise(500_000, 0xFF));
    files
}

/// A file tree in a temporary folder.
pub(crate) struct PackedTree {
    pub(crate) folder: TempDir,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

impl PackedTree {
    pub(crate) fn new(files: BTreeMap<String, Vec<u8>>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in &files {
            let path = folder.path().join("tree").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        Self { folder, files }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn squashfs(&self, options: &[&str]) -> Vec<u8> {
        let _ = fs::remove_file(self.path("fs"));
        let fixed = ["mksquashfs", "tree", "fs", "-quiet", "-no-progress", "-noappend", "-all-root"];
        run_program(self.folder.path(), &[&fixed, options].concat());
        fs::read(self.path("fs")).unwrap()
    }

    pub(crate) fn erofs(&self, options: &[&str]) -> Vec<u8> {
        let _ = fs::remove_file(self.path("fs"));
        run_program(
            self.folder.path(),
            &[&["mkfs.erofs", "--quiet", "-T0"], options, &["fs", "tree"]].concat(),
        );
        fs::read(self.path("fs")).unwrap()
    }

    /// Asserts that every file of the tree, including the program, reads back with the original bytes.
    #[track_caller]
    pub(crate) fn assert_reads_back(&self, filesystem: Filesystem, bytes: &[u8], what: &str) {
        let opened = open_filesystem(filesystem, bytes).unwrap();
        let program = format!("{DEPLOYMENT}/usr/bin/nmstatectl");
        assert!(opened.nmstatectl().unwrap() == self.files[&program], "{what}");
        let some =
            self.files.iter().filter(|(path, _)| !path.contains("/program-") || path.contains("-0700"));
        for (path, contents) in some {
            let read = opened.read(path).unwrap_or_else(|error| panic!("{what}: {path}: {error}"));
            assert!(read == *contents, "{what}: {path}");
        }
    }
}

/// Opens the file system `bytes` inside a `rootfs.img`.
pub(crate) fn open_filesystem(filesystem: Filesystem, bytes: &[u8]) -> isogen::Result<RootFilesystem> {
    open_rootfs(fixtures::rootfs_image(filesystem, bytes))
}

pub(crate) fn open_rootfs(image: Vec<u8>) -> isogen::Result<RootFilesystem> {
    RootFilesystem::open("rootfs.img", Plan::from_source(Arc::new(Source::from_bytes("rootfs.img", image))))
}
