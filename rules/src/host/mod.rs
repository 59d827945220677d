//! Decisions about hosts.

pub mod stages;
pub mod state;
pub mod status;
