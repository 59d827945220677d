//! How bytes reach a socket: copied, as pages of a leased file, or as TLS records.

mod base_file;
mod base_reader;
mod body_mode;
mod buffers;
mod closing;
mod direct;
mod file_stamp;
mod lease;
mod lending;
mod paged;
mod pipe;
mod read_ahead;
mod records;
mod residency;
mod sending;
mod stall;
mod sys;

pub(crate) use base_file::{Available, BaseFile, Download};
pub(in crate::http) use base_reader::{BaseReader, NextBytes};
pub use body_mode::BodyMode;
pub(in crate::http) use buffers::LONG_LEN;
pub(in crate::http) use direct::Direct;
pub(crate) use file_stamp::{FileStamp, FileTime};
pub(crate) use lease::{Lease, SIGNAL};
pub(in crate::http) use lending::Lending;
pub(in crate::http) use paged::{PAGES_LEN, Paged};
pub(in crate::http) use read_ahead::{PendingRead, ReadDone};
pub(in crate::http) use records::Records;
pub(in crate::http) use sending::Sending;
pub(in crate::http) use stall::{ClientTimeout, Progress, TimedSocket};
