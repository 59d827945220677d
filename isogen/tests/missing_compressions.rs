//! A build without xz or zstd refuses data in these formats with a typed error. It never reports such data as damaged.

#![cfg(not(all(feature = "xz", feature = "zstd")))]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod images;

use images::diverse_images;
use isogen::initrd::ArchiveLimits;
use isogen::verify::CheckOutcome;
use isogen::{
    Archive, ArchiveError, BaseImage, Compression, Edits, Encoding, Error, Plan, RootFilesystem, Source,
};

fn sample() -> Archive {
    let mut archive = Archive::new();
    archive.insert("config.ign", &b"{}"[..]);
    archive
}

fn zstd_archive() -> Vec<u8> {
    zstd::encode_all(&sample().pack(Encoding::Stored).unwrap().as_bytes()[..], 3).unwrap()
}

fn xz_archive() -> Vec<u8> {
    liblzma::encode_all(&sample().pack(Encoding::Stored).unwrap().as_bytes()[..], 6).unwrap()
}

/// Reads an archive that follows a gzip archive, so that the offset of the error is not 0.
fn read_after_gzip(packed: &[u8]) -> Result<Archive, ArchiveError> {
    let mut bytes = sample().pack(Encoding::Gzip).unwrap().as_bytes().to_vec();
    bytes.extend_from_slice(packed);
    Archive::read(&bytes[..], ArchiveLimits::IGNITION_AREA)
}

fn assert_archive_is_unsupported(packed: &[u8], compression: Compression) {
    let error = read_after_gzip(packed).unwrap_err();
    let ArchiveError::UnsupportedCompression { offset: 1.., compression: named } = error else {
        panic!("{error}");
    };
    assert_eq!(named, compression);
    let expected =
        format!("archive is compressed with {compression}; this build has no support for {compression}");
    assert!(error.to_string().ends_with(&expected), "{error}");
}

/// Opens a `rootfs.img` whose squashfs consists only of a superblock with this compressor number.
fn open_squashfs(compressor: u8) -> Result<RootFilesystem, Error> {
    let mut superblock = [0; 96];
    superblock[..4].copy_from_slice(b"hsqs");
    superblock[12..16].copy_from_slice(&(1_u32 << 17).to_le_bytes());
    (superblock[20], superblock[22], superblock[28]) = (compressor, 17, 4);
    let mut archive = Archive::new();
    archive.insert("root.squashfs", superblock.to_vec());
    let bytes = archive.pack(Encoding::Stored).unwrap().as_bytes().clone();
    let plan = Plan::from_source(Source::from_bytes("base", bytes).into());
    RootFilesystem::open("rootfs.img", plan)
}

fn assert_squashfs_is_unsupported(compressor: u8, compression: Compression) {
    let error = open_squashfs(compressor).unwrap_err();
    let expected = format!(
        "rootfs.img: byte 144: the root file system is compressed with {compression}; this build has no support for \
         {compression}"
    );
    assert_eq!(error.to_string(), expected);
    assert!(matches!(error, Error::UnsupportedCompression { .. }));
}

#[test]
#[cfg_attr(feature = "zstd", ignore = "needs a build without zstd")]
fn zstd_is_refused_without_zstd() {
    assert!(!Compression::Zstd.is_supported());
    assert_archive_is_unsupported(&zstd_archive(), Compression::Zstd);
    assert_squashfs_is_unsupported(6, Compression::Zstd);
}

#[test]
#[cfg_attr(feature = "xz", ignore = "needs a build without xz")]
fn xz_is_refused_without_xz() {
    assert!(!Compression::Xz.is_supported());
    assert_archive_is_unsupported(&xz_archive(), Compression::Xz);
    assert_squashfs_is_unsupported(4, Compression::Xz);
    let error = sample().pack(Encoding::Xz).unwrap_err();
    assert_eq!(error.to_string(), "packing the archive with xz: this build has no support for xz");
}

#[test]
fn other_compressions_are_supported() {
    assert!(open_squashfs(1).is_ok());
    assert_eq!(read_after_gzip(&zstd_archive()).is_ok(), Compression::Zstd.is_supported());
    assert_eq!(read_after_gzip(&xz_archive()).is_ok(), Compression::Xz.is_supported());
}

/// A re-layout would produce other bytes than the plan of a build with xz.
#[test]
#[cfg_attr(feature = "xz", ignore = "needs a build without xz")]
fn description_of_the_minimal_iso_is_neither_wrong_nor_replaced() {
    for fixture in diverse_images().iter().filter(|fixture| fixture.mastered.minimal.is_some()) {
        let image: BaseImage = fixture.open();
        let edits = Edits::new().minimal(Some("http://192.0.2.1/rootfs.img"));
        // The second plan must not use a recorded result of the first plan.
        for _ in 0..2 {
            let error = image.plan(&edits).unwrap_err();
            assert!(matches!(error, Error::UnsupportedCompression { .. }), "{}: {error}", fixture.name());
        }
        let checks = image.verify().unwrap();
        let minimal = checks.iter().find(|check| check.name == "minimal iso").unwrap();
        assert!(
            matches!(&minimal.outcome, CheckOutcome::Skipped(reason) if reason.contains("no support for xz"))
        );
    }
}
