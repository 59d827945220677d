//! Rules for the map of MAC addresses.

use std::collections::{HashMap, HashSet};

use super::MAP;
use super::finding::{Draft, Rule, shown};
use super::interface;
use super::state::{Claim, Found, Identity};
use crate::network::{HostNetwork, MacAddr, MacInterface};

pub(super) fn check(host: &HostNetwork, found: &mut Found) {
    let Some(interfaces) = host.interfaces() else { return };
    if interfaces.is_empty() {
        let message = "the host has no MAC address, so no machine can match it";
        found.push(Draft::error(Rule::NoMacs, MAP, message));
    }
    let mut names = HashSet::new();
    let mut macs: HashMap<MacAddr, &str> = HashMap::new();
    for (position, MacInterface { logical_nic_name: name, mac_address: written }) in host.positioned() {
        let path = |key: &str| format!("{MAP}[{position}].{key}");
        interface::name(name, &path("logical_nic_name"), found);
        if !names.insert(name) {
            let message = format!("{} is in the map twice", shown(name));
            found.push(Draft::error(Rule::DuplicateName, path("logical_nic_name"), message).of(name));
        }
        let message = match written.parse::<MacAddr>() {
            Err(error) => error.to_string(),
            Ok(mac) if !mac.is_unicast() => format!("no interface can have the address {}", shown(written)),
            Ok(mac) => {
                if let Some(first) = macs.insert(mac, name) {
                    let (first, second) = (shown(first), shown(name));
                    let message = format!("{} is the address of both {first} and {second}", shown(written));
                    found.push(Draft::error(Rule::DuplicateMac, path("mac_address"), message).of(name));
                    continue;
                }
                found.claim(Claim {
                    identity: Identity::Mac(mac),
                    written: written.clone(),
                    interface: Some(name.clone()),
                    path: path("mac_address"),
                });
                continue;
            }
        };
        found.push(Draft::error(Rule::MalformedMac, path("mac_address"), message).of(name));
    }
}
