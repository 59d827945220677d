//! Rules across hosts: MAC addresses, static addresses and host names must be unique.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::finding::{Rule, excerpt};
use super::state::{HostResult, Identity};
use crate::network::HostNetwork;
use crate::report::Severity;

/// The host and interface that claimed an identity first.
struct IdentityOwner<'a> {
    index: usize,
    host: &'a HostNetwork,
    interface: Option<String>,
}

/// Reports every identity that another host or interface has claimed before. The first host in the list is the owner.
pub(super) fn check(hosts: &[HostNetwork], results: &mut [HostResult]) {
    let mut owners: HashMap<Identity, IdentityOwner> = HashMap::new();
    for (index, (host, result)) in hosts.iter().zip(results).enumerate() {
        for claim in std::mem::take(&mut result.claims) {
            let owner = match owners.entry(claim.identity.clone()) {
                Entry::Vacant(place) => {
                    place.insert(IdentityOwner { index, host, interface: claim.interface });
                    continue;
                }
                Entry::Occupied(place) => place.into_mut(),
            };
            let (rule, what) = match claim.identity {
                // Within one host, a bond may have the MAC address of one of its ports.
                Identity::Mac(_) | Identity::Hostname(_) if owner.index == index => continue,
                Identity::Mac(_) => (Rule::DuplicateMac, "address"),
                Identity::Address(_) => (Rule::DuplicateAddress, "address"),
                Identity::Hostname(_) => (Rule::DuplicateHostname, "name"),
            };
            let owner = owner_description(owner, index);
            let message = format!("{} is also the {what} {owner}", excerpt(&claim.written));
            result.push(claim.finding(Severity::Error, rule, message));
        }
    }
}

fn owner_description(owner: &IdentityOwner, index: usize) -> String {
    let label = owner.host.label(owner.index);
    match &owner.interface {
        Some(interface) if owner.index == index => format!("of {}", excerpt(interface)),
        Some(interface) => format!("of {} in {label}", excerpt(interface)),
        None => format!("of {label}"),
    }
}
