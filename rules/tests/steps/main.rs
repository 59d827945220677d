//! The steps of hosts, compared with the steps that the Assisted Installer sends.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code: a value that is not as expected must stop the test"
)]

mod arguments;
mod machines;
mod recorded;
mod targets;
