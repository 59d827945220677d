//! Tests of the custom resource definitions, and of the JSON form of their types.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "test code")]

mod facts;
mod golden;
mod json;
mod manifests;
