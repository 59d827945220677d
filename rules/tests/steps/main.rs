//! Tests the steps for agents. Compares them with recordings of the Assisted Installer.

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
