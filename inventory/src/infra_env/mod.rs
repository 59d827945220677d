//! Infra-envs: the resources that describe discovery images.

pub(crate) mod event;
pub(crate) mod inputs;
pub(crate) mod record;
pub(crate) mod static_network;
pub(crate) mod urls;

pub use record::{ImageSource, InfraEnvRecord};
