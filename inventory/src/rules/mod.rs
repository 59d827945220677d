//! Rules for values that clusters and infra-envs have in common. The error texts are those of the Assisted Installer.

mod ntp;
mod proxy;
mod pull_secret;
mod ssh_key;

pub(crate) use ntp::check_ntp_sources;
pub(crate) use proxy::check_proxies;
pub(crate) use pull_secret::{RequiredRegistries, check_pull_secret};
pub(crate) use ssh_key::check_ssh_keys;
