//! Rules across hosts: what one has, no other may have.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::finding::{Draft, Rule, shown};
use super::state::{Claim, Found, Identity};
use crate::network::HostNetwork;

/// Whose an identity is.
struct Owner {
    host: usize,
    interface: Option<String>,
}

/// Reports everything that was claimed before. Hosts are looked at in their order, so that the first one is right.
pub(super) fn check(hosts: &[HostNetwork], found: &mut [Found]) {
    let mut owners: HashMap<Identity, Owner> = HashMap::new();
    for (host, found) in found.iter_mut().enumerate() {
        for Claim { identity, written, interface, path } in std::mem::take(&mut found.claims) {
            let owner = match owners.entry(identity.clone()) {
                Entry::Vacant(place) => {
                    place.insert(Owner { host, interface });
                    continue;
                }
                Entry::Occupied(place) => place.into_mut(),
            };
            // On one machine, a bond may have the MAC address of a port.
            let is_shared =
                owner.host == host && matches!(identity, Identity::Mac(_) | Identity::Hostname(_));
            if !is_shared {
                let mut finding = draft(&identity, path, &written, &whose(owner, host, hosts));
                finding.interface = interface.as_deref().map(shown);
                found.push(finding);
            }
        }
    }
}

fn draft(identity: &Identity, path: String, written: &str, whose: &str) -> Draft {
    let (rule, what) = match identity {
        Identity::Mac(_) => (Rule::DuplicateMac, "address"),
        Identity::Address(_) => (Rule::DuplicateAddress, "address"),
        Identity::Hostname(_) => (Rule::DuplicateHostname, "name"),
    };
    Draft::error(rule, path, format!("{} is the {what} {whose} too", shown(written)))
}

fn whose(owner: &Owner, host: usize, hosts: &[HostNetwork]) -> String {
    let label = hosts.get(owner.host).map(|host| host.label(owner.host)).unwrap_or_default();
    match &owner.interface {
        Some(interface) if owner.host == host => format!("of {}", shown(interface)),
        Some(interface) => format!("of {} in {label}", shown(interface)),
        None => format!("of {label}"),
    }
}
