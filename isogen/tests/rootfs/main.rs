//! Root file systems: trees packed by the real programs read back correctly.
//!
//! If a program is missing, its tests print a notice and are skipped. With `KINDLING_REQUIRE_TOOLS=1` they fail
//! instead.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test code over its own file systems"
)]

mod fixture_erofs;
mod hostile;
mod packed_tree;
mod real_programs;
#[path = "../../../tests/support/skip.rs"]
mod skip;
