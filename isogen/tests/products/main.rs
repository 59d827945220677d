//! Proves that images laid out anew are what they should be: to this crate's own reader and checks, to readers that share
//! no code with it, and to programs that read partition tables; that what firmware starts is as signed; that any set of
//! file operations gives the files that it says; and that what cannot be laid out anew is refused with the reason.
//!
//! A missing program is reported and skipped, unless `KINDLING_REQUIRE_TOOLS=1` makes that a failure.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test code over images of its own: what is not as expected must stop the test"
)]

#[path = "../images/mod.rs"]
mod images;
#[path = "../readers/mod.rs"]
mod readers;

mod checks;
mod made;
mod operations;
mod product;
mod programs;
mod refusals;
