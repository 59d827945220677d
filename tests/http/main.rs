//! Images over HTTP, byte for byte, over real sockets.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod clients;
mod conditions;
mod connection;
mod connections;
mod faults;
mod leases;
mod limits;
mod packets;
mod ranges;
mod routes;
mod server;
#[path = "../support/mod.rs"]
mod support;
mod tls;
mod writes;
