//! Operations on clusters.

mod logs;
mod queries;
mod registration;
mod update;

pub(crate) use queries::{ClusterQuery, find_cluster};
