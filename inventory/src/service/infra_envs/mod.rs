//! Operations on infra-envs: registration, changes, deletion, and generation of their files.

mod boot_order;
mod check;
mod cluster;
mod deregistration;
mod download;
mod ensure;
mod image_urls;
mod params_check;
mod preflight;
mod queries;
mod registration;
mod renew;
mod served;
mod signing_key;
mod update;

pub(crate) use cluster::require_cluster_of_infra_env;
pub(crate) use download::FileName;
pub use download::{File, IpxeScript, ipxe_architecture};
pub use ensure::Ensured;
pub use image_urls::ImageUrls;
pub use preflight::PreflightFindings;
pub use queries::InfraEnvQuery;
pub(crate) use queries::stored_infra_env;
pub use served::{DatabaseStatus, ServedInfraEnv};
