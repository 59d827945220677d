//! `kindling network`: the networks of hosts by themselves, without an image.

mod check;
mod keyfiles;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use ignition::network::{HostNetwork, MAX_HOSTS, read_hosts};

use crate::cli::input::Text;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Check the networks of the hosts of an image
    ///
    /// A file is an nmstate document of one host, YAML or JSON; or a list of hosts in the shape of the API's
    /// static_network_config: [{network_yaml, mac_interface_map: [{mac_address, logical_nic_name}]}].
    ///
    /// All hosts are looked at together: no two may have the same MAC address, static address or name. A finding has the
    /// file, for a list the place in it, and the line in the document.
    Check(check::Check),
    /// Translate nmstate to NetworkManager keyfiles
    ///
    /// A file is an nmstate document of one host, YAML or JSON; or a list of hosts in the shape of the API's
    /// static_network_config: [{network_yaml, mac_interface_map: [{mac_address, logical_nic_name}]}].
    Keyfiles(keyfiles::Keyfiles),
}

impl Command {
    pub(super) fn run(self) -> Result<ExitCode> {
        match self {
            Self::Check(command) => command.run(),
            Self::Keyfiles(command) => command.run(),
        }
    }
}

/// The hosts of all files, in their order.
fn read(paths: &[String]) -> Result<Vec<HostNetwork>> {
    let mut hosts = Vec::new();
    for text in Text::read_all(paths)? {
        hosts.extend(read_hosts(&text.name, &text.bytes)?);
    }
    anyhow::ensure!(hosts.len() <= MAX_HOSTS, "{} hosts; at most {MAX_HOSTS} are accepted", hosts.len());
    Ok(hosts)
}
