//! Sends response bytes to a socket: copied, as pages of a leased file without a copy, or as TLS records.

mod base_reader;
mod body_mode;
mod buffers;
mod direct_socket;
mod paged_socket;
mod pipe;
mod read_ahead;
mod record_stream;
mod sending_file;
mod socket_changes;
mod timed_socket;

pub(in crate::http) use base_reader::{BaseReader, NextBytes};
pub use body_mode::BodyMode;
pub(in crate::http) use buffers::LONG_LEN;
pub(in crate::http) use direct_socket::DirectSocket;
pub(in crate::http) use paged_socket::{PAGES_LEN, PagedSocket};
pub(in crate::http) use read_ahead::{PendingRead, ReadDone};
pub(in crate::http) use record_stream::{RecordBursts, RecordStream};
pub(in crate::http) use sending_file::SendingFile;
pub(in crate::http) use timed_socket::{ClientTimeout, ConnectionProgress, TimedSocket};
