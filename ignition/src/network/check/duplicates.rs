//! Rules across hosts: MAC addresses, static addresses and host names are unique.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::finding::{DraftFinding, Rule, excerpt};
use super::state::{HostResult, Identity, IdentityClaim};
use crate::network::HostNetwork;

/// The host and interface that claimed an identity first.
struct IdentityOwner<'a> {
    index: usize,
    host: &'a HostNetwork,
    interface: Option<String>,
}

/// Reports every identity that another host or interface claimed first. The first host in order is the owner.
pub(super) fn check(hosts: &[HostNetwork], found: &mut [HostResult]) {
    let mut owners: HashMap<Identity, IdentityOwner> = HashMap::new();
    for (index, (host, found)) in hosts.iter().zip(found).enumerate() {
        for IdentityClaim { identity, written, interface, path } in std::mem::take(&mut found.claims) {
            let owner = match owners.entry(identity.clone()) {
                Entry::Vacant(place) => {
                    place.insert(IdentityOwner { index, host, interface });
                    continue;
                }
                Entry::Occupied(place) => place.into_mut(),
            };
            // Within one host, a bond may have the MAC address of one of its ports.
            let is_shared =
                owner.index == index && matches!(identity, Identity::Mac(_) | Identity::Hostname(_));
            if !is_shared {
                let mut finding =
                    duplicate_finding(&identity, path, &written, &owner_description(owner, index));
                finding.interface = interface.as_deref().map(excerpt);
                found.push(finding);
            }
        }
    }
}

fn duplicate_finding(identity: &Identity, path: String, written: &str, owner: &str) -> DraftFinding {
    let (rule, what) = match identity {
        Identity::Mac(_) => (Rule::DuplicateMac, "address"),
        Identity::Address(_) => (Rule::DuplicateAddress, "address"),
        Identity::Hostname(_) => (Rule::DuplicateHostname, "name"),
    };
    DraftFinding::error(rule, path, format!("{} is also the {what} {owner}", excerpt(written)))
}

fn owner_description(owner: &IdentityOwner, index: usize) -> String {
    let label = owner.host.label(owner.index);
    match &owner.interface {
        Some(interface) if owner.index == index => format!("of {}", excerpt(interface)),
        Some(interface) => format!("of {} in {label}", excerpt(interface)),
        None => format!("of {label}"),
    }
}
