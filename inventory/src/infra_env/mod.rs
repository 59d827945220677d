//! Infra-envs, the API resources that describe discovery images.

mod create_params;
mod definition;
pub(crate) mod event;
pub(crate) mod inputs;
mod mirror_registries;
mod owner;
pub(crate) mod record;
pub(crate) mod revisions;
pub(crate) mod static_network;
pub(crate) mod urls;

pub use create_params::create_params;
pub use definition::InfraEnvDefinition;
pub use mirror_registries::MirrorRegistries;
pub use owner::ResourceOwner;
pub use record::{ImageSource, InfraEnvRecord};
pub use urls::token_of_image_url;
