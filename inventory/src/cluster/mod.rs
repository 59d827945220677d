//! Clusters.
//!
//! This service stores the settings of clusters. It does not install them.

pub(crate) mod create;
pub(crate) mod defaults;
pub(crate) mod event;
pub(crate) mod network;
mod networking;
pub(crate) mod params;
pub(crate) mod parts;
pub(crate) mod record;
mod rules;
pub(crate) mod state;
#[cfg(test)]
pub(crate) mod state_tests;
mod topology;
pub(crate) mod update;

pub use network::Subnet;
pub use parts::*;
pub use record::{ClusterRecord, ClusterSpec};
