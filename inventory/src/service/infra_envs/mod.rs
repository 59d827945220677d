//! Operations on infra-envs.

mod boot_order;
mod check;
mod cluster;
mod deregistration;
mod download;
mod preflight;
mod queries;
mod registration;
mod renew;
mod served;
mod signing_key;
mod update;

pub(crate) use download::FileName;
pub use download::{File, IpxeScript};
pub(crate) use preflight::PreflightFindings;
pub use served::{DatabaseStatus, ServedInfraEnv};
