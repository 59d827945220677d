//! The ids of records.

pub use assisted::{ClusterId, HostId, InfraEnvId};
use uuid::Uuid;

/// An id that is a path parameter.
pub(crate) trait RecordId: From<Uuid> + Send {
    /// The name of the path parameter.
    const PARAMETER: &'static str;
}

impl RecordId for ClusterId {
    const PARAMETER: &'static str = "cluster_id";
}

impl RecordId for InfraEnvId {
    const PARAMETER: &'static str = "infra_env_id";
}

impl RecordId for HostId {
    const PARAMETER: &'static str = "host_id";
}
