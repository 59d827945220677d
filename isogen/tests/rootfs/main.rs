//! Root file systems: what the real programs make of a tree is read back as it was.
//!
//! A missing program is reported and skipped, unless `KINDLING_REQUIRE_TOOLS=1` makes that a failure.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test code over file systems of its own"
)]

mod hostile;
mod made;
mod real;
mod written;
