//! `kindling network`: the networks of hosts by themselves, without an image.

mod check;
mod keyfiles;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use ignition::network::MAX_HOSTS;

use crate::cli::input::Text;
use crate::discovery::{Findings, Host};
use crate::manifests::read_hosts;

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

/// The hosts of all files, in their order, and what is wrong with their manifests.
fn read(paths: &[String]) -> Result<(Vec<Host>, Findings)> {
    let (mut hosts, mut findings) = (Vec::new(), Findings::default());
    for text in Text::read_all(paths)? {
        let (more, found) = read_hosts(&text.name, &text.bytes)?;
        hosts.extend(more);
        findings.append(found);
    }
    anyhow::ensure!(hosts.len() <= MAX_HOSTS, "{} hosts; at most {MAX_HOSTS} are accepted", hosts.len());
    Ok((hosts, findings))
}
