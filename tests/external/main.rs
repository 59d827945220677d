//! Images for an inventory elsewhere: the image server against another `kindling serve` behind a proxy, and against a
//! service that answers as the Go one does.
//!
//! Each test has servers of its own, on loopback.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod calls;
mod faults;
mod go;
mod inventory;
mod peer;
mod process;
mod serve;
mod server;
#[path = "../support/mod.rs"]
mod support;
