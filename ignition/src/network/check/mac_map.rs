//! Rules for the MAC address map of a host.

use std::collections::{HashMap, HashSet};

use super::MAP_PATH;
use super::finding::{DraftFinding, Rule, excerpt};
use super::interface;
use super::state::{HostResult, Identity};
use crate::network::{HostNetwork, MacAddr, MacInterface};

pub(super) fn check(host: &HostNetwork, result: &mut HostResult) {
    let Some(interfaces) = host.interfaces() else { return };
    if interfaces.is_empty() {
        let message = "the host has no MAC address, so no machine can match it";
        result.push(DraftFinding::error(Rule::NoMacs, MAP_PATH, message));
    }
    let mut names = HashSet::new();
    let mut macs: HashMap<MacAddr, &str> = HashMap::new();
    for (position, entry) in host.interfaces_with_positions() {
        let MacInterface { logical_nic_name: name, mac_address: written } = entry;
        let path = |key: &str| format!("{MAP_PATH}[{position}].{key}");
        let finding = |rule: Rule, key: &str, message: String| {
            DraftFinding::error(rule, path(key), message).with_interface(name)
        };
        interface::check_name(name, &path("logical_nic_name"), result);
        if !names.insert(name) {
            let message = format!("{} is in the map twice", excerpt(name));
            result.push(finding(Rule::DuplicateName, "logical_nic_name", message));
        }
        match interface::parse_unicast_mac(written) {
            Err(message) => result.push(finding(Rule::MalformedMac, "mac_address", message)),
            Ok(mac) => match macs.insert(mac, name) {
                None => result.claim(Identity::Mac(mac), written, Some(name), path("mac_address")),
                Some(first) => {
                    let (first, second) = (excerpt(first), excerpt(name));
                    let message = format!("{} is the address of both {first} and {second}", excerpt(written));
                    result.push(finding(Rule::DuplicateMac, "mac_address", message));
                }
            },
        }
    }
}
