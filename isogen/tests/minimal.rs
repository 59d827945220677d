//! Minimal ISOs of images whose `miniso.dat` is right, wrong, or not read yet.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

mod images;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use images::{Good, few};
use isogen::{BaseImage, Edits, LayoutStrategy, ReadAt, SECTOR_SIZE, Source};

const WRONG: LayoutStrategy =
    LayoutStrategy::Relayout("the image's description of its minimal form is wrong");

fn edits() -> Edits {
    Edits::new().minimal(Some("http://192.0.2.1/rootfs.img"))
}

/// Images with a description that take a new layout as well.
fn described() -> impl Iterator<Item = &'static Good> {
    few().iter().filter(|good| good.truth.minimal.is_some() && good.has_kargs())
}

/// The image with one byte of a file changed.
fn changed(good: &Good, path: &str, at: u64) -> Vec<u8> {
    let mut bytes = good.bytes.to_vec();
    bytes[(good.truth.files[path].offset + at) as usize] ^= 1;
    bytes
}

fn open(bytes: impl Into<Bytes>) -> BaseImage {
    BaseImage::from_source(Source::from_bytes("changed", bytes)).unwrap()
}

#[test]
fn wrong_description_is_replaced_by_a_new_layout() {
    for good in described() {
        for (path, at) in [("images/pxeboot/initrd.img", 200), ("coreos/miniso.dat", 0)] {
            let image = open(changed(good, path, at));
            assert_eq!(image.layout_strategy(&edits()).unwrap(), WRONG, "{}: {path}", good.name());
            let plan = image.plan(&edits()).unwrap();
            let minimal = open(plan.read_all(plan.len()).unwrap());
            let LayoutStrategy::Relayout(reason) = WRONG else { unreachable!() };
            assert_eq!(minimal.layout_reason().unwrap().as_deref(), Some(reason), "{}", good.name());
            assert!(minimal.rootfs().is_err_and(|error| error.is_not_found()));
            let contents = |image: &BaseImage| {
                let initrd = image.file("images/pxeboot/initrd.img").unwrap();
                initrd.read_all(initrd.len()).unwrap()
            };
            assert!(contents(&minimal) == contents(&image), "{}: {path}", good.name());
        }
    }
}

/// An image of which one byte may be missing. It counts how often one byte of the initrd is read, which only verifying
/// does.
#[derive(Debug, Clone)]
struct Arriving {
    bytes: Bytes,
    missing: Arc<AtomicU64>,
    watched: u64,
    reads: Arc<AtomicU64>,
}

impl ReadAt for Arriving {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let missing = self.missing.load(Ordering::Relaxed);
        if offset == missing {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let before = missing.checked_sub(offset).map_or(buf.len(), |before| before as usize);
        let len = buf.len().min(before);
        let len = self.bytes.read_at(&mut buf[..len], offset)?;
        if (offset..offset + len as u64).contains(&self.watched) {
            self.reads.fetch_add(1, Ordering::Relaxed);
        }
        Ok(len)
    }
}

impl Arriving {
    fn new(good: &Good, bytes: impl Into<Bytes>) -> (Self, BaseImage) {
        let (bytes, initrd): (Bytes, _) = (bytes.into(), good.truth.files["images/pxeboot/initrd.img"]);
        let (len, watched) = (bytes.len() as u64, initrd.offset + initrd.len / 2);
        let arriving = Self { bytes, missing: Arc::new(u64::MAX.into()), watched, reads: Arc::default() };
        let source = Source::new("arriving".into(), len, arriving.clone());
        (arriving, BaseImage::from_source(source).unwrap())
    }

    /// Plans a minimal ISO, and returns its layout and how often the initrd was read so far.
    fn planned(&self, image: &BaseImage) -> (LayoutStrategy, u64) {
        let strategy = image.layout_strategy(&edits()).unwrap();
        image.plan(&edits()).unwrap();
        (strategy, self.reads.load(Ordering::Relaxed))
    }
}

#[test]
fn description_is_verified_once() {
    for good in described() {
        for (bytes, strategy) in [
            (good.bytes.clone(), LayoutStrategy::DescribedMinimal),
            (changed(good, "images/pxeboot/initrd.img", 200).into(), WRONG),
        ] {
            let (arriving, image) = Arriving::new(good, bytes);
            for _ in 0..3 {
                assert_eq!(arriving.planned(&image), (strategy, 1), "{}", good.name());
            }
        }
    }
}

#[test]
fn recorded_result_is_used_and_nothing_is_verified() {
    for good in described() {
        let bytes = Bytes::from(changed(good, "images/pxeboot/initrd.img", 200));
        for (is_verified, strategy) in [(true, LayoutStrategy::DescribedMinimal), (false, WRONG)] {
            let (arriving, image) = Arriving::new(good, bytes.clone());
            image.set_minimal_verified(is_verified);
            assert_eq!(arriving.planned(&image), (strategy, 0), "{}", good.name());
        }
    }
}

/// A caller that waits for the missing byte tries again once: the last byte that is needed is read first.
#[test]
fn missing_byte_is_an_error_and_no_verdict() {
    for good in described() {
        let (arriving, image) = Arriving::new(good, good.bytes.clone());
        let shared = good.truth.minimal.as_ref().unwrap().table.iter();
        let end = shared.map(|copied| copied.full_sector * SECTOR_SIZE + copied.len).max().unwrap();
        arriving.missing.store(end - 1, Ordering::Relaxed);
        let error = image.plan(&edits()).unwrap_err();
        assert_eq!(error.would_block_at(), Some(end - 1), "{}: {error}", good.name());
        assert_eq!(arriving.reads.load(Ordering::Relaxed), 0, "{}", good.name());
        arriving.missing.store(u64::MAX, Ordering::Relaxed);
        assert_eq!(arriving.planned(&image), (LayoutStrategy::DescribedMinimal, 1), "{}", good.name());
    }
}
