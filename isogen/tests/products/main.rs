//! Re-laid out images are valid for this crate's own reader and checks, for readers that share no code with it, and for
//! programs that read partition tables; signed boot files are unchanged; any set of file operations gives the expected
//! files; and impossible re-layouts are refused with the reason.
//!
//! A missing program is reported and skipped, or fails with `KINDLING_REQUIRE_TOOLS=1`.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test code over its own images: an unexpected value must stop the test"
)]

#[path = "../images/mod.rs"]
mod images;
#[path = "../readers/mod.rs"]
mod readers;

mod checks;
mod operations;
mod product;
mod programs;
mod refusals;
mod relayout_kinds;
