//! The definition of an infra-env by an operator.

use assisted::Secret;
use assisted::infra_env::InfraEnvCreateParams;

use super::mirror_registries::MirrorRegistries;
use super::owner::ResourceOwner;

/// The definition of an infra-env: the parameters of the API, and settings that only operators can choose.
#[derive(Clone, Debug)]
pub struct InfraEnvDefinition {
    /// The parameters of the API request that creates an infra-env.
    pub params: InfraEnvCreateParams,
    /// Container registry mirrors to include in the images.
    pub mirrors: Option<MirrorRegistries>,
    /// The resource that owns the infra-env. If `None`, clients of the API can change it.
    pub owner: Option<ResourceOwner>,
    /// The token in the old URLs of a recreated infra-env, from [`token_of_image_url`](super::token_of_image_url). With
    /// this token, the URLs stay the same. The token is ignored if the infra-env exists, or if the token is not valid
    /// for the infra-env, for example because the signing key has changed.
    pub url_token: Option<Secret>,
}

impl From<InfraEnvCreateParams> for InfraEnvDefinition {
    fn from(params: InfraEnvCreateParams) -> Self {
        Self { params, mirrors: None, owner: None, url_token: None }
    }
}
