//! Static networks: nmstate documents to `NetworkManager` keyfiles, for one host or for all of an image.
//!
//! * [`keyfiles`] turns one document into keyfiles, through the `nmstate` crate and in this process. The generator is a
//!   large library that was written for trusted input. It therefore never sees a
//!   document before our own reader has parsed it within a budget, and it runs behind a catch for panics and a check of the
//!   file names it makes up. What it leaves to chance (the numbers of routing rules,
//!   the owner of a port with two controllers, the order of some files) is settled or refused, so that one document
//!   always gives the same files. The same goes for its faults: of several, always the same one is told.
//! * [`HostNetwork`] is a document with the MAC addresses that tell its machine. [`check::check`] looks at all hosts of
//!   an image before there is one; [`Networks::generate`] makes their files, for the early boot of a minimal ISO or a
//!   PXE boot and for the Ignition config of a full ISO. A [`KeyfileCache`] remembers the work for the next time.
//! * [`SCRIPT`] picks a machine's host at boot and gives its keyfiles the names that the kernel gave to its interfaces.
//!
//! Nothing here looks at the network of the machine it runs on.

mod cache;
mod cancel;
pub mod check;
mod document;
mod error;
mod fault;
mod generate;
mod host;
mod input;
mod isolation;
mod keyfile;
mod mac;
mod parallel;
mod payload;
mod policy;
mod version;
pub mod yaml;

pub use cache::KeyfileCache;
pub use cancel::Cancel;
pub use error::{HostError, NetworkError};
pub use generate::{MAX_DOCUMENT_LEN, keyfiles};
pub use host::{HostNetwork, MacInterface};
pub use input::{InputError, is_host_list, read_hosts};
pub use keyfile::Keyfile;
pub use mac::{MacAddr, MacError};
pub use payload::{
    EntryKind, IgnitionFiles, IgnitionUnit, InitrdOptions, NetworkEntry, Networks, SCRIPT, SCRIPT_PATH,
};
pub use version::{Generation, needs_nmstatectl};

/// Most hosts of one image.
///
/// Machines look at the files of all of them at boot.
pub const MAX_HOSTS: usize = 100_000;
