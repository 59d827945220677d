//! Tests of the admission webhooks with a real Kubernetes API server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

#[path = "../hub/mod.rs"]
mod hub;

mod faults;
mod https;
mod rotation;
mod rules;
mod server;
mod site;
