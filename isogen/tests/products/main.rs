//! Tests of re-laid out images ("products"). They are valid for this crate's reader and checks, for readers that share
//! no code with it, and for programs that read partition tables. Signed boot files are unchanged. Any set of file
//! operations results in the expected files. Impossible re-layouts are refused with the reason.
//!
//! If a program is missing, its tests print a notice and are skipped. With `KINDLING_REQUIRE_TOOLS=1` they fail
//! instead.

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
