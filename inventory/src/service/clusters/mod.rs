//! Operations on clusters.

mod logs;
mod queries;
mod registration;
mod update;

pub use queries::ClusterQuery;
pub(crate) use queries::find_cluster;
