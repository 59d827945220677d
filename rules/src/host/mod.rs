//! Decisions about a host: its status, and the stages of its installation.

pub mod stages;
pub mod state;
pub mod status;
