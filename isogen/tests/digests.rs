//! The SHA-256 of an artifact, from the saved state behind what it shares with others and by a full pass, against
//! `sha256sum` of the file.

#![allow(clippy::unwrap_used)]

use std::io;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use fixtures::Recipe;
use isogen::{Archive, BaseImage, Edits, Encoding, KargsEdit, KargsOperations, Plan, ReadAt, Source};

/// Long enough for a saved state behind the root file system.
const ROOTFS_LEN: u64 = 4 << 20;

/// A base that counts what is read of it.
#[derive(Debug, Clone)]
struct Counted {
    bytes: Bytes,
    read: Arc<AtomicU64>,
}

impl ReadAt for Counted {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let len = self.bytes.read_at(buf, offset)?;
        self.read.fetch_add(len as u64, Ordering::Relaxed);
        Ok(len)
    }
}

impl Counted {
    fn new(recipe: &Recipe) -> Self {
        Self { bytes: recipe.build().into(), read: Arc::default() }
    }

    fn image(&self, name: &str) -> BaseImage {
        let source = Source::new(name.to_owned(), self.bytes.len() as u64, self.clone());
        BaseImage::from_source(source).unwrap()
    }

    /// How much was read by some work, and what it gave.
    fn during<T>(&self, work: impl FnOnce() -> T) -> (u64, T) {
        let before = self.read.load(Ordering::Relaxed);
        let given = work();
        (self.read.load(Ordering::Relaxed) - before, given)
    }
}

/// What coreutils make of the written file.
fn sha256sum(plan: &Plan) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    plan.write_file(&path).unwrap();
    let output = Command::new("sha256sum").arg("-b").arg(&path).output().unwrap();
    String::from_utf8(output.stdout).unwrap().chars().take(64).collect()
}

fn archive(byte: u8, len: usize) -> Archive {
    let mut archive = Archive::new();
    archive.insert("config.ign", vec![byte; len]);
    archive
}

/// A full image of one cluster, with an archive that needs a new layout and, where it can be, an argument of its own.
fn cluster(image: &BaseImage, number: u8) -> Plan {
    let mut edits =
        Edits::new().archive(archive(number, 300_000 + usize::from(number)).pack(Encoding::Stored).unwrap());
    if image.kargs().is_some() {
        let append = vec![format!("cluster={number}")];
        edits = edits.kargs(KargsEdit::Current(KargsOperations { append, ..KargsOperations::default() }));
    }
    image.plan(&edits).unwrap()
}

#[test]
fn what_images_share_is_read_once() {
    for recipe in Recipe::all().map(|recipe| recipe.rootfs_len(ROOTFS_LEN)) {
        let name = recipe.name();
        let counted = Counted::new(&recipe);
        let image = counted.image(&name);
        if image.ignition_area().is_none() {
            continue;
        }
        let (first, second) = (cluster(&image, 1), cluster(&image, 2));
        let (read, digest) = counted.during(|| first.sha256().unwrap());
        assert!(read >= ROOTFS_LEN, "{name}: {read}");
        assert_eq!(digest.to_string(), sha256sum(&first), "{name}");
        let (read, digest) = counted.during(|| second.sha256().unwrap());
        assert_eq!(digest.to_string(), sha256sum(&second), "{name}");
        assert!(read < ROOTFS_LEN / 4, "{name}: {read} bytes read for the second image");
    }
}

/// In place, what is changed stands before the root file system: there is nothing to share, and the digest is right.
#[test]
fn images_changed_in_place_are_read_whole() {
    for recipe in Recipe::all().map(|recipe| recipe.rootfs_len(ROOTFS_LEN)) {
        let name = recipe.name();
        let image = Counted::new(&recipe).image(&name);
        if image.ignition_area().is_none() {
            continue;
        }
        for byte in [1, 2] {
            let edits = Edits::new().archive(archive(byte, 5000).pack(Encoding::Gzip).unwrap());
            let plan = image.plan(&edits).unwrap();
            assert_eq!(plan.sha256().unwrap().to_string(), sha256sum(&plan), "{name}");
        }
    }
}
