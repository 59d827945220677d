//! `kindling network`: checks and translates static host network configs, without an image.

mod check;
mod keyfiles;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use ignition::network::MAX_HOSTS;

use crate::cli::input::NamedText;
use discovery::manifests::HostFiles;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Check the networks of the hosts of an image
    ///
    /// A file contains nmstate documents or NMStateConfig manifests, one for each host, as YAML or JSON; or a list of
    /// hosts in the format of the API's static_network_config: [{network_yaml, mac_interface_map: [{mac_address,
    /// logical_nic_name}]}].
    ///
    /// All hosts are checked together: no two may have the same MAC address, static address or name. A finding shows
    /// the file, the index if the file is a list, and the line.
    Check(check::Check),
    /// Translate nmstate to NetworkManager keyfiles
    ///
    /// A file contains nmstate documents or NMStateConfig manifests, one for each host, as YAML or JSON; or a list of
    /// hosts in the format of the API's static_network_config: [{network_yaml, mac_interface_map: [{mac_address,
    /// logical_nic_name}]}].
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

/// Reads the hosts of all files, in order.
fn read_hosts(paths: &[String]) -> Result<HostFiles> {
    let mut files = HostFiles::default();
    for text in NamedText::read_all(paths)? {
        files.add(&text.name, &text.bytes)?;
    }
    files.require_hosts();
    let count = files.hosts.len();
    anyhow::ensure!(count <= MAX_HOSTS, "{count} hosts; at most {MAX_HOSTS} are accepted");
    Ok(files)
}
