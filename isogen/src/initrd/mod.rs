//! initrd archives: cpio archives that add an Ignition config, network settings or other files to the live system.
//!
//! A boot loader's initrd is a sequence of `newc` cpio archives. Each is plain or compressed, and zero bytes may be
//! between them. An [`Archive`] holds the regular files of the sequence by name. A later member replaces an earlier
//! one. Directories, links and devices are skipped.
//!
//! `newc` defines the format, `read` decodes untrusted archives within [`ArchiveLimits`], `write` packs new ones.

mod archive;
mod error;
pub(crate) mod newc;
mod read;
mod write;

pub use archive::{Archive, IGNITION_CONFIG, NETWORK_DIRECTORY};
pub use error::ArchiveError;
pub use read::ArchiveLimits;
pub use write::{ArchiveEntry, Encoding, PackedArchive};
