//! Plans changed CoreOS live images over an unmodified base image.
//!
//! The input is a live ISO of RHCOS, Fedora CoreOS or SCOS. The output is a [`Plan`]: the exact byte layout of a
//! changed image, as references into the base image and a few new bytes. A plan takes kilobytes of memory and no disk,
//! and any number of threads can read any range of it at the same time.
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
//! The crate does no networking, does not depend on an async runtime and does not parse Ignition configs. It treats its
//! input as hostile: it checks every number of an image before use and bounds every loop over one.
//!
//! # Layers
//!
//! Imports point down this list, or to the right within a line, and no two files import each other. Files import each
//! other by their own path, not through the names that the crate root re-exports.
//!
//! 1. `planner` (chooses the layout strategy for [`Edits`]); [`diff`], [`inspect`], [`verify`] (describe an image)
//! 2. [`relayout`], `minimal_iso`, [`rootfs`], `pxe`: plan and read what in-place edits do not cover
//! 3. `base`: [`BaseImage`], an image whose structures have been read and checked
//! 4. `areas` (finds the embed areas), `edits`
//! 5. [`kargs`], [`miniso`], [`eltorito`], [`write`](mod@write)
//! 6. [`partitions`], [`volume`], [`plan`]
//! 7. `source`, [`map`], `error`, [`initrd`], `digest`, `extent`, `bytes_at`
//!
//! Methods of [`BaseImage`] are in the file of their layer: `BaseImage::plan` in `planner`, `BaseImage::kernel` in
//! `pxe`.

#![cfg_attr(test, allow(clippy::cast_possible_truncation))]

mod areas;
mod base;
mod bytes_at;
pub mod diff;
mod digest;
mod edits;
pub mod eltorito;
mod error;
mod extent;
pub mod initrd;
pub mod inspect;
pub mod kargs;
pub mod map;
mod minimal_iso;
pub mod miniso;
pub mod partitions;
pub mod plan;
mod planner;
mod pxe;
pub mod relayout;
pub mod rootfs;
mod source;
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
pub use rootfs::RootFilesystem;
pub use source::{ReadAt, Source};
pub use volume::Volume;
