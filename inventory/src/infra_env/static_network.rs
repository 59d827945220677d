//! The static network configuration of an infra-env's hosts.

use std::collections::BTreeSet;

use assisted::infra_env::HostStaticNetwork;
use ignition::network::check::{self, NetworkFinding};
use ignition::network::{Cancel, EntryKind, HostNetwork, HostNetworkFiles, KeyfileCache, MacInterface};
use ignition::report::Severity;

use crate::error::Error;
use crate::tar;

/// Sorts host network configs by their content, because the order in a request has no meaning.
pub(crate) fn in_stored_order(mut hosts: Vec<HostStaticNetwork>) -> Vec<HostStaticNetwork> {
    fn key(host: &HostStaticNetwork) -> impl Ord {
        (host.network_yaml.as_str(), host.mac_interface_map.as_slice())
    }
    for host in &mut hosts {
        host.mac_interface_map.sort();
    }
    hosts.sort_by(|one, other| key(one).cmp(&key(other)));
    hosts
}

/// Converts host network configs to the input of the network file generator.
pub(crate) fn hosts(networks: &[HostStaticNetwork]) -> Vec<HostNetwork> {
    let interface = |map: &assisted::infra_env::MacInterface| MacInterface {
        logical_nic_name: map.logical_nic_name.clone(),
        mac_address: map.mac_address.clone(),
    };
    let host = |network: &HostStaticNetwork| {
        HostNetwork::from_unchecked(
            network.network_yaml.as_str(),
            network.mac_interface_map.iter().map(interface).collect(),
        )
    };
    networks.iter().map(host).collect()
}

/// Returns the network files of all hosts as a tar archive.
///
/// # Errors
///
/// Returns an error if a file name is too long for the archive.
pub(crate) fn tar(networks: &HostNetworkFiles) -> Result<Vec<u8>, Error> {
    let files = networks.ignition_files().files;
    let of_hosts = files.iter().filter(|file| file.path.starts_with("/etc/assisted/network/"));
    let contents = of_hosts.filter_map(|file| match &file.kind {
        EntryKind::File { contents, .. } => Some((file.path.as_str(), contents.as_ref())),
        EntryKind::Link { .. } => None,
    });
    tar::archive(contents).map_err(|error| Error::invalid(error.to_string()))
}

/// Checks host network configs in the order of the request, so that the host indexes in messages match the request.
///
/// Returns the findings that are only warnings.
pub(crate) fn check(
    networks: &[HostStaticNetwork],
    cache: &KeyfileCache,
    cancel: &Cancel,
) -> Result<Vec<NetworkFinding>, Error> {
    let errors: Vec<String> =
        networks.iter().enumerate().filter_map(|(host, network)| map_error(host, network)).collect();
    require_no_errors(&errors, Vec::new())?;
    let report = check::check_hosts_cancellable(&hosts(networks), cache, cancel);
    let report = report.ok_or_else(|| Error::internal("the client disconnected"))?;
    let (errors, rest): (Vec<NetworkFinding>, Vec<NetworkFinding>) =
        report.findings().iter().cloned().partition(|finding| finding.severity == Severity::Error);
    let texts: Vec<String> = errors.iter().map(NetworkFinding::to_string).collect();
    require_no_errors(&texts, errors)?;
    Ok(rest)
}

/// Returns the error in a host's MAC map, if any. As in the Assisted Installer's messages, hosts are counted from 0.
fn map_error(host: usize, network: &HostStaticNetwork) -> Option<String> {
    let map = &network.mac_interface_map;
    if map.is_empty() {
        return Some(format!("at least one interface for host {host} must be provided"));
    }
    let macs: BTreeSet<_> = map.iter().map(|one| one.mac_address.to_ascii_lowercase()).collect();
    let names: BTreeSet<_> = map.iter().map(|one| &one.logical_nic_name).collect();
    (macs.len() < map.len() || names.len() < map.len())
        .then(|| format!("MACs and Interfaces for host {host} must be unique"))
}

fn require_no_errors(errors: &[String], findings: Vec<NetworkFinding>) -> Result<(), Error> {
    if errors.is_empty() {
        return Ok(());
    }
    let many = if errors.len() == 1 { "error" } else { "errors" };
    let lines: String = errors.iter().map(|error| format!("\t* {error}\n")).collect();
    Err(Error::invalid(format!("{} {many} occurred:\n{lines}\n", errors.len())).with_findings(findings))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use ignition::network::NetworkGeneration;

    use super::*;

    #[test]
    fn archive_is_readable_by_tar() {
        let host = |number: usize| HostStaticNetwork {
            network_yaml: format!("interfaces: [{{name: eth0, type: ethernet, mtu: {}}}]\n", 1400 + number),
            mac_interface_map: vec![assisted::infra_env::MacInterface {
                logical_nic_name: "eth0".to_owned(),
                mac_address: format!("52:54:00:00:00:{number:02x}"),
            }],
        };
        let networks = hosts(&(0..3).map(host).collect::<Vec<_>>());
        let cache = KeyfileCache::default();
        let networks = HostNetworkFiles::generate(&networks, NetworkGeneration::Nmstate, &cache).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), tar(&networks).unwrap()).unwrap();
        let listed = Command::new("tar").arg("-tvPf").arg(file.path()).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let names: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().last()).collect();
        assert_eq!(names.len(), 6, "{listed}");
        assert!(names.contains(&"/etc/assisted/network/host2/mac_interface.ini"), "{listed}");
        assert!(listed.lines().all(|line| line.starts_with("-rw------- root/root")), "{listed}");
    }
}
