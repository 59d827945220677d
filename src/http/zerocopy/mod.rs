//! How bytes reach a socket: copied, as pages of a leased file, or as TLS records.

mod body_mode;
mod buffers;
mod closing;
mod direct;
mod lending;
mod paged;
mod pipe;
mod read_ahead;
mod records;
mod stall;

pub use body_mode::BodyMode;
pub(in crate::http) use buffers::{LONG_LEN, read_span};
pub(in crate::http) use direct::Direct;
pub(in crate::http) use lending::Lending;
pub(in crate::http) use paged::Paged;
pub(in crate::http) use read_ahead::{Done, Read};
pub(in crate::http) use records::Records;
pub(in crate::http) use stall::{Late, Progress, Watched};
