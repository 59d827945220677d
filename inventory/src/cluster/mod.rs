//! Clusters and the rules for their settings.
//!
//! This service stores the settings of clusters, but does not install them.

mod assessment;
pub(crate) mod create;
pub(crate) mod defaults;
pub(crate) mod delete;
pub(crate) mod event;
pub(crate) mod facts;
mod network;
mod networking;
pub(crate) mod operators;
mod parts;
mod record;
mod rules;
mod subnet;
mod topology;
pub(crate) mod update;

pub use assessment::{AssessmentRecord, SeenState};
pub use parts::*;
pub use record::{ClusterRecord, ClusterSpec};
pub use subnet::Subnet;
pub(crate) use subnet::network_around;
