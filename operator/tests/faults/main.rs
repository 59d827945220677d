//! Tests of crashes of the operator, of API server faults, and of paused replicas.

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
#[path = "../controllers/site.rs"]
mod site;

mod crashes;
mod deletion;
mod lives;
mod outage;
mod pool;
mod quiet;
mod replicas;
mod requests;
mod restarts;
