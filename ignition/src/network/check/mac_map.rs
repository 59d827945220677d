//! Rules for the MAC address map.

use std::collections::{HashMap, HashSet};

use super::MAP_PATH;
use super::finding::{DraftFinding, Rule, excerpt};
use super::interface;
use super::state::{HostResult, Identity, IdentityClaim};
use crate::network::{HostNetwork, MacAddr, MacInterface};

pub(super) fn check(host: &HostNetwork, found: &mut HostResult) {
    let Some(interfaces) = host.interfaces() else { return };
    if interfaces.is_empty() {
        let message = "the host has no MAC address, so no machine can match it";
        found.push(DraftFinding::error(Rule::NoMacs, MAP_PATH, message));
    }
    let mut names = HashSet::new();
    let mut macs: HashMap<MacAddr, &str> = HashMap::new();
    for (position, MacInterface { logical_nic_name: name, mac_address: written }) in
        host.interfaces_with_positions()
    {
        let path = |key: &str| format!("{MAP_PATH}[{position}].{key}");
        interface::check_name(name, &path("logical_nic_name"), found);
        if !names.insert(name) {
            let message = format!("{} is in the map twice", excerpt(name));
            found.push(
                DraftFinding::error(Rule::DuplicateName, path("logical_nic_name"), message)
                    .with_interface(name),
            );
        }
        let message = match written.parse::<MacAddr>() {
            Err(error) => error.to_string(),
            Ok(mac) if !mac.is_unicast() => format!("no interface can have the address {}", excerpt(written)),
            Ok(mac) => {
                if let Some(first) = macs.insert(mac, name) {
                    let (first, second) = (excerpt(first), excerpt(name));
                    let message = format!("{} is the address of both {first} and {second}", excerpt(written));
                    found.push(
                        DraftFinding::error(Rule::DuplicateMac, path("mac_address"), message)
                            .with_interface(name),
                    );
                    continue;
                }
                found.claim(IdentityClaim {
                    identity: Identity::Mac(mac),
                    written: written.clone(),
                    interface: Some(name.clone()),
                    path: path("mac_address"),
                });
                continue;
            }
        };
        found
            .push(DraftFinding::error(Rule::MalformedMac, path("mac_address"), message).with_interface(name));
    }
}
