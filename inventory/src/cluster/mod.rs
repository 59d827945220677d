//! Clusters.
//!
//! This service stores the settings of clusters. It does not install them.

pub(crate) mod create;
pub(crate) mod defaults;
pub(crate) mod delete;
pub(crate) mod event;
mod network;
mod networking;
pub(crate) mod operators;
mod parts;
mod record;
mod rules;
mod subnet;
mod topology;
pub(crate) mod update;

pub use parts::*;
pub use record::{ClusterRecord, ClusterSpec};
pub use subnet::Subnet;
pub(crate) use subnet::network_around;
