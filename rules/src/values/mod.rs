//! Checks for values that both clusters and infra-envs have. The error texts match the Assisted Installer.

mod error;
mod ntp;
mod proxy;
mod pull_secret;
mod ssh_key;

pub use error::InvalidValue;
pub use ntp::check_ntp_sources;
pub use proxy::check_proxies;
pub use pull_secret::{RequiredRegistries, check_pull_secret};
pub use ssh_key::check_ssh_keys;
