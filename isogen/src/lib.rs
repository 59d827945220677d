//! Plans customised CoreOS live ISOs without copying the base image.
//!
//! The input, the *base image*, is a live ISO of RHCOS, Fedora CoreOS or SCOS. The output is a [`Plan`]: the exact byte
//! layout of a customised image, as references into the base image and a few new bytes. A plan takes kilobytes of
//! memory and no disk space. Any number of threads can read any ranges of a plan at the same time, so a server can send
//! a customised image without storing it in a file.
//!
//! # What it is not
//!
//! - It is not a server or a downloader: it does no networking and does not depend on an async runtime. [`ReadAt`]
//!   connects it to storage other than files.
//! - It is not an Ignition library: it does not parse or validate configs. An Ignition config is a member of an
//!   [`Archive`].
//! - It is not a mastering tool: it does not create images from scratch. [`BaseImage::relayout`] changes files of an
//!   existing image.
//! - It is not a general ISO 9660 library: [`Volume`] reads the subset of the format that CoreOS images use.
//!
//! # Walk-through
//!
//! [`BaseImage::open`] reads and checks the structures of a base image. [`Edits`] describe the changes: an initrd
//! archive with the Ignition config and network files, kernel arguments, or the removal of the root file system.
//! [`BaseImage::plan`] plans the image: an in-place edit if all changes fit into the embed areas of the base image,
//! otherwise a re-layout. [`BaseImage::layout_strategy`] returns the choice. The caller reads the plan at any offset,
//! writes it to a new file, or writes it over the base image:
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
//! [`Plan::read_at`] and [`Plan::segments`] serve ranges. [`Plan::write_to`] and [`Plan::send_to`] write a stream.
//! [`Plan::write_file`] creates a file that only its owner may read, and [`Plan::write_file_with`] creates one with
//! other permissions. [`Plan::write_in_place`] edits the base image file itself. [`Plan::identity`] identifies the
//! bytes of a plan by its layout and the digest of the base image, so a server can use it as an entity tag without
//! reading the image. [`Plan::sha256`] hashes the bytes.
//!
//! Further entry points:
//!
//! - [`BaseImage::kernel`], [`BaseImage::initrd`] and [`BaseImage::rootfs`] plan the files for a network boot.
//! - [`BaseImage::inspect`] describes an image, [`BaseImage::verify`] checks it, and [`ImageDifference::between`]
//!   compares two.
//! - [`BaseImage::root_filesystem`] reads files of the live system's root file system.
//! - [`BaseImage::relayout`] drops, adds and replaces files of an image.
//!
//! # Features
//!
//! * `xz` and `zstd`, both on by default: C libraries for archives and root file systems with these compressions. Most
//!   images need `xz`: it packs archives as [`Encoding::Xz`] and decodes the description of the minimal ISO. Without
//!   the feature, the crate returns [`Error::UnsupportedCompression`] or [`ArchiveError::UnsupportedCompression`] for
//!   such data. [`Compression::is_supported`] returns `true` if the build supports a compression.
//!
//! # Platform
//!
//! Linux only: the crate creates unnamed files (`O_TMPFILE`), clones file blocks, copies file ranges in the kernel, and
//! sends with `sendfile`.
//!
//! # Untrusted images
//!
//! The crate treats images as hostile input. It checks every number that it reads from an image before use, and it
//! limits every loop and allocation that depends on such a number. An [`Error`] contains the position and the value of
//! the invalid field.
//!
//! # Layers
//!
//! The list begins with the highest layer. A source file imports only files in lower layers, and files further right in
//! its own line, so there are no circular imports. Imports use the path of the defining module, not the re-exports of
//! the crate root.
//!
//! 1. `planner` (chooses the layout strategy for [`Edits`]); [`diff`], [`inspect`], [`verify`] (describe an image)
//! 2. `relayout`, `minimal_iso`, `rootfs`, `pxe` (plan and read what in-place edits do not cover)
//! 3. `base` ([`BaseImage`]: an opened image whose structures were read and checked)
//! 4. `areas` (finds the embed areas), `edits`
//! 5. [`kargs`], `miniso`, [`eltorito`], [`write`](mod@write)
//! 6. [`partitions`], [`volume`], [`plan`]
//! 7. `source`, [`mmap`], `checked_fields`, `error`, [`initrd`], `compression`, `digest`, `extent`, `bytes_at`,
//!    `visible`
//!
//! Methods of [`BaseImage`] are in the file of their layer: `BaseImage::plan` is in `planner`, `BaseImage::kernel` in
//! `pxe`.

#![cfg_attr(test, allow(clippy::cast_possible_truncation))]

#[cfg(not(target_os = "linux"))]
compile_error!(
    "isogen supports only Linux, because it writes and sends images with system calls that only Linux has"
);

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod areas;
mod base;
mod bytes_at;
mod checked_fields;
mod compression;
pub mod diff;
mod digest;
mod edits;
pub mod eltorito;
mod error;
mod extent;
mod file_stamp;
pub mod initrd;
pub mod inspect;
pub mod kargs;
mod minimal_iso;
mod miniso;
pub mod mmap;
pub mod partitions;
pub mod plan;
mod planner;
mod pxe;
mod relayout;
mod rootfs;
mod source;
pub mod verify;
mod visible;
pub mod volume;
pub mod write;

pub use areas::{Features, IgnitionArea, IgnitionOrigin};
pub use base::{Architecture, BaseImage};
pub use compression::Compression;
pub use diff::ImageDifference;
pub use digest::{Digest, Hasher, ParseDigestError};
pub use edits::Edits;
pub use error::{Error, KargsError, Result};
pub use extent::{Extent, Sector};
pub use file_stamp::{FileStamp, FileTime};
pub use initrd::{Archive, ArchiveError, Encoding, PackedArchive};
pub use inspect::Inspection;
pub use kargs::{KargsAreas, KargsEdit, KargsOperations};
pub use plan::{Plan, Segment};
pub use planner::LayoutStrategy;
pub use pxe::PxeFile;
pub use relayout::{FileContents, FileOperations};
pub use rootfs::RootFilesystem;
pub use source::{ReadAt, Source};
pub use volume::Volume;
