//! Operations on clusters: registration, reading, changes, deletion and assessment.

pub(crate) mod assessment;
mod host_conclusion;
mod logs;
mod queries;
mod registration;
mod update;

pub use queries::ClusterQuery;
pub(crate) use queries::find_cluster;
