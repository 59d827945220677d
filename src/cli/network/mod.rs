//! `kindling network`: the networks of hosts by themselves, without an image.

mod check;
mod keyfiles;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use ignition::network::MAX_HOSTS;

use crate::cli::input::Text;
use crate::manifests::HostFiles;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Check the networks of the hosts of an image
    ///
    /// A file has nmstate documents or NMStateConfig manifests, one for each host, YAML or JSON; or it is a list of hosts in
    /// the shape of the API's static_network_config: [{network_yaml, mac_interface_map: [{mac_address, logical_nic_name}]}].
    ///
    /// All hosts are looked at together: no two may have the same MAC address, static address or name. A finding has the
    /// file, for a list the index in it, and the line.
    Check(check::Check),
    /// Translate nmstate to NetworkManager keyfiles
    ///
    /// A file has nmstate documents or NMStateConfig manifests, one for each host, YAML or JSON; or it is a list of hosts in
    /// the shape of the API's static_network_config: [{network_yaml, mac_interface_map: [{mac_address, logical_nic_name}]}].
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
fn read(paths: &[String]) -> Result<HostFiles> {
    let mut files = HostFiles::default();
    for text in Text::read_all(paths)? {
        files.add(&text.name, &text.bytes)?;
    }
    files.require_hosts();
    let count = files.hosts.len();
    anyhow::ensure!(count <= MAX_HOSTS, "{count} hosts; at most {MAX_HOSTS} are accepted");
    Ok(files)
}
