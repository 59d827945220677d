//! Tests of the controllers with a real Kubernetes API server, and an inventory in this process.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test code: what is not as expected must stop the test"
)]

#[path = "../hub/mod.rs"]
mod hub;

mod agents;
mod classifications;
mod crds;
mod events;
mod infra_envs;
mod machine;
mod networks;
mod site;
