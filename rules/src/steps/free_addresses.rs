//! The arguments of `free-network-addresses`: the networks to search for unused addresses.

use std::collections::BTreeSet;

use assisted::request::StepRequest;
use ignition::Cidr;

use super::input::StepSettings;
use crate::view::HostView;

/// Minimum prefix length of a network to search. An agent probes every address.
const MIN_PREFIX: u32 = 22;

/// Returns the IPv4 networks of a host that are small enough, in ascending order. `None`: it has no such networks.
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
