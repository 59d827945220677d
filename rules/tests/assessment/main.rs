//! Assessments of clusters with their hosts: recorded ones, random ones, and their CPU time.

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
