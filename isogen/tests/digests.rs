//! The SHA-256 digest of an artifact, computed from a saved hash state and by a full pass, equals the result of
//! `sha256sum` for the file.

#![allow(clippy::unwrap_used)]

use std::io;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use fixtures::Recipe;
use isogen::{Archive, BaseImage, Edits, Encoding, KargsEdit, KargsOperations, Plan, ReadAt, Source};

/// Length of a root file system that is long enough for a saved hash state after it.
const ROOTFS_LEN: u64 = 4 << 20;

/// A base image that counts the bytes read from it.
#[derive(Debug, Clone)]
struct CountingSource {
    bytes: Bytes,
    read: Arc<AtomicU64>,
}

impl ReadAt for CountingSource {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let len = self.bytes.read_at(buf, offset)?;
        self.read.fetch_add(len as u64, Ordering::Relaxed);
        Ok(len)
    }
}

impl CountingSource {
    fn new(recipe: &Recipe) -> Self {
        Self { bytes: recipe.build().into(), read: Arc::default() }
    }

    fn open_image(&self, name: &str) -> BaseImage {
        let source = Source::new(name.to_owned(), self.bytes.len() as u64, self.clone());
        BaseImage::from_source(source).unwrap()
    }

    /// Runs `work` and returns the number of bytes read and the result.
    fn count_reads<T>(&self, work: impl FnOnce() -> T) -> (u64, T) {
        let before = self.read.load(Ordering::Relaxed);
        let result = work();
        (self.read.load(Ordering::Relaxed) - before, result)
    }
}

/// Writes the plan to a file and returns the digest from `sha256sum`.
fn sha256sum(plan: &Plan) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    plan.write_file(&path).unwrap();
    let output = Command::new("sha256sum").arg("-b").arg(&path).output().unwrap();
    String::from_utf8(output.stdout).unwrap().chars().take(64).collect()
}

fn archive_of_len(byte: u8, len: usize) -> Archive {
    let mut archive = Archive::new();
    archive.insert("config.ign", vec![byte; len]);
    archive
}

/// Plans a full image for one cluster. The archive needs a re-layout. The image has a kernel argument of the cluster if
/// the base image has areas for kernel arguments.
fn plan_for_cluster(image: &BaseImage, number: u8) -> Plan {
    let mut edits = Edits::new()
        .archive(archive_of_len(number, 300_000 + usize::from(number)).pack(Encoding::Stored).unwrap());
    if image.kargs().is_some() {
        let append = vec![format!("cluster={number}")];
        edits = edits.kargs(KargsEdit::Current(KargsOperations { append, ..KargsOperations::default() }));
    }
    image.plan(&edits).unwrap()
}

#[test]
fn shared_extents_are_hashed_once() {
    for recipe in Recipe::all().map(|recipe| recipe.rootfs_len(ROOTFS_LEN)) {
        let name = recipe.name();
        let counted = CountingSource::new(&recipe);
        let image = counted.open_image(&name);
        if image.ignition_area().is_none() {
            continue;
        }
        let (first, second) = (plan_for_cluster(&image, 1), plan_for_cluster(&image, 2));
        let (read, digest) = counted.count_reads(|| first.sha256().unwrap());
        assert!(read >= ROOTFS_LEN, "{name}: {read}");
        assert_eq!(digest.to_string(), sha256sum(&first), "{name}");
        let (read, digest) = counted.count_reads(|| second.sha256().unwrap());
        assert_eq!(digest.to_string(), sha256sum(&second), "{name}");
        assert!(read < ROOTFS_LEN / 4, "{name}: {read} bytes read for the second image");
    }
}

/// In-place edits are before the root file system, so artifacts cannot share hash states. The digest must still be
/// correct.
#[test]
fn images_edited_in_place_are_hashed_whole() {
    for recipe in Recipe::all().map(|recipe| recipe.rootfs_len(ROOTFS_LEN)) {
        let name = recipe.name();
        let image = CountingSource::new(&recipe).open_image(&name);
        if image.ignition_area().is_none() {
            continue;
        }
        for byte in [1, 2] {
            let edits = Edits::new().archive(archive_of_len(byte, 5000).pack(Encoding::Gzip).unwrap());
            let plan = image.plan(&edits).unwrap();
            assert_eq!(plan.sha256().unwrap().to_string(), sha256sum(&plan), "{name}");
        }
    }
}
