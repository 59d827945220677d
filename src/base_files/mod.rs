//! Files of base images, for the image library that opens them and the HTTP server that sends them. This module checks
//! that a file is unchanged, which of its bytes are in memory, and which of its pages can be sent without a copy.

mod base_file;
mod lease;
mod lending;
mod residency;

pub(crate) use base_file::BaseFile;
pub(crate) use lease::{Lease, SIGNAL};
pub(crate) use lending::{LentPages, PageLending};
pub(crate) use residency::Residency;
