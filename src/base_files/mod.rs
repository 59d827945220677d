//! The files of base images, as the image library opens them and the HTTP server sends them: whether a file is unchanged,
//! which of its bytes are in memory, and which of its pages connections may send without a copy.

mod base_file;
mod lease;
mod lending;
mod residency;

pub(crate) use base_file::BaseFile;
pub(crate) use lease::{Lease, SIGNAL};
pub(crate) use lending::{LentPages, PageLending};
pub(crate) use residency::Residency;
