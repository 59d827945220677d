//! Static networks of an infra-env's hosts.

use std::collections::BTreeSet;

use assisted::infra_env::HostStaticNetwork;
use ignition::network::check::{self, NetworkFinding};
use ignition::network::{Cancel, HostNetwork, KeyfileCache, MacInterface};
use ignition::report::Severity;

use crate::error::Error;

/// Sorts networks into their stored order. The order in the request has no meaning.
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

/// Converts networks for the generator of network files.
pub(crate) fn hosts(networks: &[HostStaticNetwork]) -> Vec<HostNetwork> {
    let interface = |map: &assisted::infra_env::MacInterface| MacInterface {
        logical_nic_name: map.logical_nic_name.clone(),
        mac_address: map.mac_address.clone(),
    };
    let host = |network: &HostStaticNetwork| {
        HostNetwork::new(
            network.network_yaml.as_str(),
            network.mac_interface_map.iter().map(interface).collect(),
        )
    };
    networks.iter().map(host).collect()
}

/// Checks networks in the order of the request, so that host indexes in messages match it.
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

/// Returns the error of a host's MAC map. The texts are those of the Assisted Installer, which counts hosts from 0.
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
