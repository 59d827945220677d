//! Tests of the agent with a scripted service on the loopback interface. Time is paused: it jumps to the next timer
//! when both the agent and the service wait.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a failed expectation must stop the test"
)]

mod exchanges;
mod machine;
mod polling;
mod registration;
mod replies;
mod service;
mod steps;
