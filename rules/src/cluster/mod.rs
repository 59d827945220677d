//! Decisions about clusters.

pub mod state;
pub mod vips;
