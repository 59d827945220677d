//! Tests of the kustomization for a hub, and of the rights in it, with a real Kubernetes API server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

#[path = "../hub/mod.rs"]
mod hub;
#[path = "../controllers/machine.rs"]
mod machine;

mod grant;
mod kustomization;
mod permission;
mod refusals;
mod replica;
mod rights;
mod scenario;
