//! Who may call the service.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use super::value::host;
use crate::cli::auth::KeyOptions;
use crate::http::ListenAddr;
use crate::inventory::AllowedHosts;
use crate::inventory::auth::Policy;

#[derive(Debug, Args)]
#[command(next_help_heading = "Access")]
pub(super) struct Access {
    /// How tokens are judged; `none` if no other machine reaches what is listened on, and to be chosen otherwise
    #[arg(long, env = "AUTH_TYPE", value_enum, value_name = "TYPE")]
    auth_type: Option<AuthType>,
    /// Let whoever reaches the service from another machine do everything, with `--auth-type none`
    #[arg(long, env = "KINDLING_ALLOW_OPEN_ACCESS")]
    allow_open_access: bool,
    /// Hosts that API and page requests may name with `--auth-type none`, with commas between them; * stands for any part of
    /// one. The hosts of the base URLs and loopback names are always allowed. [default: none on loopback; any IP address with
    /// --allow-open-access]
    ///
    /// A request with another Host is answered with 421. This keeps pages of other sites, whose names resolve to the address of
    /// this service, from reading the API. Images are served under any name.
    #[arg(long, env = "KINDLING_ALLOWED_HOSTS", value_name = "HOSTS", value_delimiter = ',', value_parser = host)]
    allowed_hosts: Vec<String>,
    #[command(flatten)]
    keys: KeyOptions,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AuthType {
    /// Not at all: whoever reaches the service may do everything
    None,
    /// By the key pair of this service
    Local,
    /// A policy of the Assisted Service. An environment that both programs share may have it for images alone, which have no
    /// policy
    #[value(hide = true)]
    Rhsso,
    /// The same
    #[value(hide = true)]
    AgentInstallerLocal,
}

impl Access {
    /// The hosts that requests may name, for a service that other machines can reach or not.
    pub(super) fn allowed_hosts(&self, is_open: bool) -> AllowedHosts {
        let listed: Vec<_> = self.allowed_hosts.iter().filter(|host| !host.is_empty()).cloned().collect();
        match is_open {
            false => AllowedHosts::Loopback(listed),
            true if listed.is_empty() => AllowedHosts::Addresses,
            true => AllowedHosts::Listed(listed),
        }
    }

    /// The policy for a service, of which other machines reach a place or none.
    pub(super) fn policy(&self, open: Option<&ListenAddr>) -> Result<Policy> {
        match (self.auth_type, open) {
            (Some(AuthType::Local), _) => Ok(Policy::local(self.keys.read()?)),
            (None | Some(AuthType::None), None) => Ok(Policy::Open),
            (Some(AuthType::Rhsso | AuthType::AgentInstallerLocal), _) => bail!(
                "AUTH_TYPE (--auth-type): this policy of the Assisted Service is not there: choose `local` or `none`"
            ),
            (None, Some(address)) => bail!(
                "{address} can be reached from other machines, and AUTH_TYPE (--auth-type) is not set: choose `local`, for \
                 which `kindling auth keys` makes keys, or `none`, which lets everybody who reaches it do everything"
            ),
            (Some(AuthType::None), Some(address)) if self.allow_open_access => {
                tracing::warn!(%address, "whoever reaches this address may do everything, and read all pull secrets");
                Ok(Policy::Open)
            }
            (Some(AuthType::None), Some(address)) => bail!(
                "{address} can be reached from other machines, and with AUTH_TYPE=none everybody who reaches it may do \
                 everything, and read all pull secrets: choose `local`, or say that this is meant with --allow-open-access \
                 (KINDLING_ALLOW_OPEN_ACCESS=true)"
            ),
        }
    }
}
