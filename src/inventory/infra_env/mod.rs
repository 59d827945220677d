//! Infra-envs: what a group of machines boots.

mod model;
mod routes;

pub use model::{
    HostStaticNetwork, InfraEnv, InfraEnvCreateParams, InfraEnvUpdateParams, KernelArgument, KernelArgumentOperation,
    MacInterface, PresignedUrl, Proxy,
};
pub(crate) use routes::routes;
