//! The options for authentication and for protection against DNS rebinding.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use super::private_key::warn_if_exposed;
use super::value::parse_host;
use crate::cli::auth::KeyOptions;
use crate::http::ListenAddr;
use crate::inventory::AllowedHosts;
use crate::inventory::auth::Policy;

#[derive(Debug, Args)]
#[command(next_help_heading = "Access")]
pub(super) struct AccessOptions {
    /// Authentication policy [default: none on loopback; required otherwise]
    #[arg(long, env = "AUTH_TYPE", value_enum, value_name = "TYPE")]
    auth_type: Option<AuthType>,
    /// Allow `--auth-type none` on addresses that other machines can reach: any client may do everything
    #[arg(long, env = "KINDLING_ALLOW_OPEN_ACCESS")]
    allow_open_access: bool,
    /// Hosts that API and page requests may name with `--auth-type none`, separated by commas; `*` matches any part of
    /// a name. The hosts of the base URLs and loopback names are always allowed. [default: none on loopback; any IP
    /// address with --allow-open-access]
    ///
    /// A request with another Host header gets a 421 response. This prevents DNS rebinding: pages of other sites,
    /// whose names resolve to the address of this service, cannot read the API. Images are served under any name.
    #[arg(long, env = "KINDLING_ALLOWED_HOSTS", value_name = "HOSTS", value_delimiter = ',', value_parser = parse_host)]
    allowed_hosts: Vec<String>,
    #[command(flatten)]
    keys: KeyOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AuthType {
    /// No authentication: every client may do everything
    None,
    /// Tokens signed with the key pair of this service
    Local,
    /// A policy of the Assisted Service that Kindling does not support. It is accepted here, because a process that
    /// serves only images ignores the policy and may share the environment of an Assisted Service
    #[value(hide = true)]
    Rhsso,
    /// Another policy of the Assisted Service, accepted for the same reason
    #[value(hide = true)]
    AgentInstallerLocal,
}

impl AccessOptions {
    /// Returns the accepted values of the Host header, and logs how to allow more. `is_open` is `true` if other
    /// machines can reach the service.
    pub(super) fn allowed_hosts(&self, is_open: bool) -> AllowedHosts {
        tracing::info!(
            "API requests that name other hosts or origins are refused: --allowed-hosts (KINDLING_ALLOWED_HOSTS) and \
             --allowed-domains (ALLOWED_DOMAINS) allow more"
        );
        if self.allowed_hosts.iter().any(|host| host == "*") {
            tracing::warn!(
                "--allowed-hosts (KINDLING_ALLOWED_HOSTS) contains `*`: pages of any site can use the API through DNS \
                 rebinding"
            );
        }
        let listed = self.allowed_hosts.clone();
        match is_open {
            false => AllowedHosts::Loopback(listed),
            true if listed.is_empty() => AllowedHosts::Addresses,
            true => AllowedHosts::Listed(listed),
        }
    }

    /// Returns an error if a key is set without a policy. Logs a warning about options that the policy ignores.
    fn check_combination(&self) -> Result<()> {
        match (self.auth_type, self.keys.source()) {
            (None, Some(key)) => bail!(
                "{key} is set, but no authentication policy; use `--auth-type local` (AUTH_TYPE=local), or unset the key"
            ),
            (Some(AuthType::None), Some(key)) => {
                tracing::warn!("{key} has no effect with --auth-type none (AUTH_TYPE=none)");
            }
            _ => {}
        }
        if self.allow_open_access && self.auth_type == Some(AuthType::Local) {
            tracing::warn!(
                "--allow-open-access (KINDLING_ALLOW_OPEN_ACCESS) has no effect with --auth-type local (AUTH_TYPE=local)"
            );
        }
        Ok(())
    }

    /// Returns the authentication policy. `open` is an address that other machines can reach, if there is one. Returns
    /// an error if such a service has no authentication and the user has not confirmed that.
    pub(super) fn policy(&self, open: Option<&ListenAddr>) -> Result<Policy> {
        self.check_combination()?;
        match (self.auth_type, open) {
            (Some(AuthType::Local), _) => {
                let keys = self.keys.read_keys()?;
                self.keys.private_key_file().inspect(|file| warn_if_exposed(file));
                Ok(Policy::local(keys))
            }
            (None | Some(AuthType::None), None) => Ok(Policy::Open),
            (Some(AuthType::Rhsso | AuthType::AgentInstallerLocal), _) => bail!(
                "AUTH_TYPE (--auth-type): this policy of the Assisted Service is not supported; use `local` or `none`"
            ),
            (None, Some(address)) => bail!(
                "other machines can reach {address}, but no authentication policy is set; use `--auth-type local` with \
                 keys from `kindling auth keys` (AUTH_TYPE=local), or `--auth-type none --allow-open-access` \
                 (AUTH_TYPE=none KINDLING_ALLOW_OPEN_ACCESS=true), which allows every client to do everything and to \
                 read all pull secrets"
            ),
            (Some(AuthType::None), Some(address)) if self.allow_open_access => {
                tracing::warn!(
                    %address,
                    "authentication is off: every client that reaches this address may do everything, and read all pull \
                     secrets"
                );
                Ok(Policy::Open)
            }
            (Some(AuthType::None), Some(address)) => bail!(
                "other machines can reach {address}, and --auth-type none (AUTH_TYPE=none) allows every client to do \
                 everything and to read all pull secrets; use `--auth-type local` with keys from `kindling auth keys`, \
                 or confirm with `--auth-type none --allow-open-access` (KINDLING_ALLOW_OPEN_ACCESS=true)"
            ),
        }
    }
}
