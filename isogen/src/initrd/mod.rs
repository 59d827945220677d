//! initrd archives: cpio archives that add an Ignition config, network settings or other files to the live system.
//!
//! The initrd of a boot loader is a sequence of `newc` cpio archives. Each archive is plain or compressed, and zero
//! bytes may be between them. An [`Archive`] contains the regular files of the sequence by name. A later member
//! replaces an earlier member of the same name. Directories, links and devices are skipped.
//!
//! `newc` defines the format, `read` decodes untrusted archives within [`ArchiveLimits`], and `write` packs new
//! archives.

mod archive;
mod error;
pub(crate) mod newc;
mod read;
mod write;

pub use archive::{Archive, IGNITION_CONFIG, NETWORK_DIRECTORY};
pub use error::ArchiveError;
pub use read::ArchiveLimits;
pub use write::{ArchiveEntry, Encoding, PackedArchive};
