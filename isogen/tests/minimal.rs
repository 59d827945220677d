//! Minimal ISOs of images whose `miniso.dat` is correct, wrong, or unreadable.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

mod images;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use images::{FixtureImage, diverse_images};
use isogen::{BaseImage, Edits, Error, LayoutStrategy, ReadAt, Source};

const WRONG_DESCRIPTION: LayoutStrategy =
    LayoutStrategy::Relayout("the image's description of its minimal form is wrong");

fn minimal_edits() -> Edits {
    Edits::new().minimal(Some("http://192.0.2.1/rootfs.img"))
}

/// Returns the images with a description that also support a re-layout.
fn images_with_description() -> impl Iterator<Item = &'static FixtureImage> {
    diverse_images().iter().filter(|fixture| fixture.mastered.minimal.is_some() && fixture.has_kargs())
}

/// Returns the image with one changed byte in a file.
fn with_flipped_byte(fixture: &FixtureImage, path: &str, at: u64) -> Vec<u8> {
    let mut bytes = fixture.bytes.to_vec();
    bytes[(fixture.mastered.files[path].offset + at) as usize] ^= 1;
    bytes
}

fn open(bytes: impl Into<Bytes>) -> BaseImage {
    BaseImage::from_source(Source::from_bytes("changed", bytes)).unwrap()
}

#[test]
fn wrong_description_is_replaced_by_a_relayout() {
    for fixture in images_with_description() {
        for (path, at) in [("images/pxeboot/initrd.img", 200), ("coreos/miniso.dat", 0)] {
            let image = open(with_flipped_byte(fixture, path, at));
            assert_eq!(
                image.layout_strategy(&minimal_edits()).unwrap(),
                WRONG_DESCRIPTION,
                "{}: {path}",
                fixture.name()
            );
            let plan = image.plan(&minimal_edits()).unwrap();
            let minimal = open(plan.read_all(plan.len()).unwrap());
            let LayoutStrategy::Relayout(reason) = WRONG_DESCRIPTION else { unreachable!() };
            assert_eq!(
                minimal.inspect().unwrap().relayout_reason.as_deref(),
                Some(reason),
                "{}",
                fixture.name()
            );
            assert!(matches!(minimal.rootfs(), Err(Error::NotFound { .. })));
            let contents = |image: &BaseImage| {
                let initrd = image.file("images/pxeboot/initrd.img").unwrap();
                initrd.read_all(initrd.len()).unwrap()
            };
            assert!(contents(&minimal) == contents(&image), "{}: {path}", fixture.name());
        }
    }
}

/// An image that may have one unreadable byte. It counts the reads of one byte of the initrd, which only the
/// verification reads.
#[derive(Debug, Clone)]
struct DamagedSource {
    bytes: Bytes,
    unreadable: Arc<AtomicU64>,
    watched: u64,
    reads: Arc<AtomicU64>,
}

impl ReadAt for DamagedSource {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let unreadable = self.unreadable.load(Ordering::Relaxed);
        if offset == unreadable {
            return Err(io::Error::other("unreadable"));
        }
        let before = unreadable.checked_sub(offset).map_or(buf.len(), |before| before as usize);
        let len = buf.len().min(before);
        let len = self.bytes.read_at(&mut buf[..len], offset)?;
        if (offset..offset + len as u64).contains(&self.watched) {
            self.reads.fetch_add(1, Ordering::Relaxed);
        }
        Ok(len)
    }
}

impl DamagedSource {
    fn new(fixture: &FixtureImage, bytes: impl Into<Bytes>) -> (Self, BaseImage) {
        let (bytes, initrd): (Bytes, _) = (bytes.into(), fixture.mastered.files["images/pxeboot/initrd.img"]);
        let (len, watched) = (bytes.len() as u64, initrd.offset + initrd.len / 2);
        let damaged = Self { bytes, unreadable: Arc::new(u64::MAX.into()), watched, reads: Arc::default() };
        let source = Source::new("damaged".into(), len, damaged.clone());
        (damaged, BaseImage::from_source(source).unwrap())
    }

    /// Plans a minimal ISO. Returns its layout strategy and the number of reads of the initrd so far.
    fn plan_minimal(&self, image: &BaseImage) -> (LayoutStrategy, u64) {
        let strategy = image.layout_strategy(&minimal_edits()).unwrap();
        image.plan(&minimal_edits()).unwrap();
        (strategy, self.reads.load(Ordering::Relaxed))
    }
}

#[test]
fn description_is_verified_once() {
    for fixture in images_with_description() {
        for (bytes, strategy) in [
            (fixture.bytes.clone(), LayoutStrategy::DescribedMinimal),
            (with_flipped_byte(fixture, "images/pxeboot/initrd.img", 200).into(), WRONG_DESCRIPTION),
        ] {
            let (source, image) = DamagedSource::new(fixture, bytes);
            for _ in 0..3 {
                assert_eq!(source.plan_minimal(&image), (strategy, 1), "{}", fixture.name());
            }
        }
    }
}

#[test]
fn recorded_verification_result_is_used_without_reading() {
    for fixture in images_with_description() {
        let bytes = Bytes::from(with_flipped_byte(fixture, "images/pxeboot/initrd.img", 200));
        for (is_verified, strategy) in [(true, LayoutStrategy::DescribedMinimal), (false, WRONG_DESCRIPTION)]
        {
            let (source, image) = DamagedSource::new(fixture, bytes.clone());
            image.set_minimal_verified(is_verified);
            assert_eq!(source.plan_minimal(&image), (strategy, 0), "{}", fixture.name());
        }
    }
}

#[test]
fn read_error_is_not_recorded_as_a_wrong_description() {
    for fixture in images_with_description() {
        let (source, image) = DamagedSource::new(fixture, fixture.bytes.clone());
        let shared = fixture.mastered.minimal.as_ref().unwrap().table.iter();
        let end = shared.map(|copied| copied.full_sector * 2048 + copied.len).max().unwrap();
        source.unreadable.store(end - 1, Ordering::Relaxed);
        let error = image.plan(&minimal_edits()).unwrap_err();
        assert!(matches!(error, Error::Read { .. }), "{}: {error}", fixture.name());
        source.unreadable.store(u64::MAX, Ordering::Relaxed);
        assert_eq!(source.plan_minimal(&image).0, LayoutStrategy::DescribedMinimal, "{}", fixture.name());
    }
}
