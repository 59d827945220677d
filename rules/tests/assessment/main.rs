//! Tests the assessments of clusters and their hosts: comparisons with recordings, property tests, and a measurement of
//! CPU time.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code: a value that is not as expected must stop the test"
)]

mod assess;
mod data;
mod facts;
mod model;
mod properties;
mod recorded;
mod time;
