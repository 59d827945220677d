//! Definitions of infra-envs by operators.

use assisted::infra_env::InfraEnvCreateParams;

use super::mirror_registries::MirrorRegistries;
use super::owner::ResourceOwner;

/// The definition of an infra-env: the parameters of the API, and settings that only operators have.
#[derive(Clone, Debug)]
pub struct InfraEnvDefinition {
    /// The parameters of a new infra-env.
    pub params: InfraEnvCreateParams,
    /// The mirrors of container registries that its images contain.
    pub mirrors: Option<MirrorRegistries>,
    /// The resource that defines the infra-env. `None`: clients of the API can change it.
    pub owner: Option<ResourceOwner>,
}

impl From<InfraEnvCreateParams> for InfraEnvDefinition {
    fn from(params: InfraEnvCreateParams) -> Self {
        Self { params, mirrors: None, owner: None }
    }
}
