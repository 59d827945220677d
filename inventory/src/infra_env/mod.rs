//! Infra-envs: the resources that describe discovery images.

pub(crate) mod event;
pub(crate) mod inputs;
pub(crate) mod params;
pub(crate) mod record;
pub(crate) mod static_network;
pub(crate) mod urls;

pub use params::{
    HostStaticNetwork, InfraEnvCreateParams, InfraEnvUpdateParams, KernelArgument, KernelArgumentOperation,
    MacInterface, Proxy,
};
pub use record::{ImageSource, InfraEnvRecord};
