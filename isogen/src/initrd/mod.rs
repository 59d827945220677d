//! initrd archives: the cpio files that carry a config, network settings or anything else into the live system.
//!
//! A boot loader's initrd is any number of `newc` cpio archives behind one another, each plain or compressed, with
//! zero bytes between them. [`Archive`] is what such a run of bytes means: regular files by name, where a later member
//! replaces an earlier one. [`newc`] is the format; `read` decodes what others wrote, within [`Limits`]; `write`
//! packs what we add. Directories, links and devices are read over: nothing that Kindling looks for is one.

mod archive;
mod error;
pub mod newc;
mod read;
mod write;

pub use archive::{Archive, IGNITION_CONFIG, NETWORK_DIRECTORY};
pub use error::ArchiveError;
pub use read::Limits;
pub use write::{Encoding, Entry, Packed};
