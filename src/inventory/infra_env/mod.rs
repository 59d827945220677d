//! Infra-envs: what a group of machines boots.

mod model;
mod record;
mod routes;

pub use model::{
    HostStaticNetwork, InfraEnv, InfraEnvCreateParams, InfraEnvUpdateParams, KernelArgument,
    KernelArgumentOperation, MacInterface, PresignedUrl, Proxy,
};
pub use record::{ImageSource, InfraEnvRecord};
pub(crate) use routes::routes;
