//! Images for an external inventory: the image server against another `kindling serve` behind a proxy, and against a
//! service that behaves like the Assisted Service.
//!
//! Each test has its own servers, on loopback.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod faults;
mod go_service;
mod inventory;
mod memory;
mod peer_service;
mod process;
mod serve;
mod server;
mod service_calls;
#[path = "../support/mod.rs"]
mod support;
