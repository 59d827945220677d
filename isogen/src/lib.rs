//! CoreOS live images as byte plans over an untouched base file.
//!
//! A live image of RHCOS, Fedora CoreOS or SCOS goes in; what comes out is a [`Plan`]: the exact byte layout of a
//! changed image, as references into the base and a few new bytes. Plans are cheap (kilobytes), need no disk, and any
//! number of readers can read any range of one at once.
//!
//! ```no_run
//! use isogen::{Archive, BaseImage, Edits, Encoding, KargsEdit, KargsOperations};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let image = BaseImage::open("fedora-coreos.iso")?;
//! let mut archive = Archive::new();
//! archive.insert("config.ign", &br#"{"ignition": {"version": "3.3.0"}}"#[..]);
//! let kargs = KargsOperations { append: vec!["console=ttyS0".into()], ..Default::default() };
//! let edits = Edits::new().archive(archive.pack(Encoding::Xz)?).kargs(KargsEdit::Current(kargs));
//! let plan = image.plan(&edits)?;
//! plan.write_file("custom.iso")?;
//! # Ok(())
//! # }
//! ```
//!
//! The crate does no networking, knows no async runtime and parses no Ignition config. What it reads it treats as
//! hostile: every number of an image is checked before it is used, every loop over one is bounded.

#![cfg_attr(test, allow(clippy::cast_possible_truncation))]

mod areas;
mod base;
mod bytes_at;
mod cached;
pub mod diff;
mod digest;
mod edits;
pub mod eltorito;
mod error;
mod extent;
pub mod initrd;
pub mod inspect;
pub mod kargs;
pub mod lease;
pub mod map;
mod minimal_iso;
pub mod miniso;
pub mod partitions;
pub mod plan;
mod planner;
mod pxe;
pub mod relayout;
pub mod residency;
pub mod rootfs;
mod source;
mod stamp;
pub mod verify;
pub mod volume;
pub mod write;

pub use areas::{Features, IgnitionArea, IgnitionOrigin, SystemAreaHeaders};
pub use base::{Architecture, BaseImage};
pub use diff::Difference;
pub use digest::{Digest, Hasher, ParseDigestError};
pub use edits::Edits;
pub use error::{Error, KargsError, Result};
pub use extent::{Extent, SECTOR_SIZE, Sector};
pub use initrd::{Archive, ArchiveError, Encoding, Packed};
pub use inspect::Inspection;
pub use kargs::{KargsAreas, KargsEdit, KargsOperations};
pub use plan::{Plan, Segment};
pub use planner::LayoutStrategy;
pub use pxe::PxeFile;
pub use relayout::{Contents, FileOperations};
pub use residency::Residency;
pub use rootfs::RootFilesystem;
pub use source::{Coming, ReadAt, Source};
pub use stamp::{FileStamp, FileTime};
pub use volume::Volume;
