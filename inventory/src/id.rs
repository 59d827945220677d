//! The ids of clusters, infra-envs and hosts, and the key that identifies a host.

pub use assisted::{ClusterId, HostId, InfraEnvId};
use utoipa::IntoParams;
use uuid::Uuid;

/// The id of a record, as a path parameter of the API.
pub(crate) trait RecordId: From<Uuid> + Send {
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

/// The key of a host. Its id alone is not enough: the same machine may be a host of several infra-envs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct HostKey {
    /// Infra-env whose image the host booted.
    #[param(value_type = String, format = Uuid)]
    pub infra_env_id: InfraEnvId,
    /// Id of the host.
    #[param(value_type = String, format = Uuid)]
    pub host_id: HostId,
}
