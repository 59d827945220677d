//! The definitions of the custom resources, and the JSON of their types.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "test code")]

mod facts;
mod golden;
mod json;
mod manifests;
