//! The arguments of the `free-network-addresses` step: the networks in which the agent looks for unused addresses.

use std::collections::BTreeSet;

use assisted::request::StepRequest;
use ignition::Cidr;

use super::input::StepSettings;
use crate::view::HostView;

/// Minimum prefix length of a searched network. The agent probes every address of the network.
const MIN_PREFIX: u32 = 22;

/// Returns the IPv4 networks of the host that are small enough, in ascending order. `None` if the host has no such
/// network.
pub(super) fn request(host: &HostView, settings: &StepSettings) -> Option<StepRequest> {
    if !settings.finds_free_addresses {
        return None;
    }
    let addresses = host.nics().iter().flat_map(|nic| &nic.addresses);
    let networks: BTreeSet<_> = addresses
        .filter(|address| address.address().is_ipv4() && address.prefix() >= MIN_PREFIX)
        .map(|address| Cidr::without_host_bits(*address))
        .collect();
    (!networks.is_empty()).then(|| StepRequest::FreeAddresses(networks.iter().map(Cidr::to_string).collect()))
}
