//! Decisions about clusters.

pub mod state;
