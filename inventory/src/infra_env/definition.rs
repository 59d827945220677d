//! Definitions of infra-envs by operators.

use assisted::Secret;
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
    /// The token in earlier URLs of an infra-env that is created again, from
    /// [`token_of_image_url`](super::token_of_image_url): its URLs stay the same. Ignored if the infra-env exists, or if
    /// the token is not valid for it, for example because the key has changed.
    pub url_token: Option<Secret>,
}

impl From<InfraEnvCreateParams> for InfraEnvDefinition {
    fn from(params: InfraEnvCreateParams) -> Self {
        Self { params, mirrors: None, owner: None, url_token: None }
    }
}
