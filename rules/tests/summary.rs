//! Tests the summaries of replies: comparisons with golden files, replies that exceed all limits, and property tests.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

#[path = "summary/apply.rs"]
mod apply;
#[path = "summary/golden.rs"]
mod golden;
#[path = "summary/limits.rs"]
mod limits;
#[path = "summary/measurements.rs"]
mod measurements;
#[path = "summary/properties.rs"]
mod properties;
#[path = "summary/refused.rs"]
mod refused;
#[path = "summary/stored.rs"]
mod stored;
