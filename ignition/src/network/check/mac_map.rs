//! Rules for the map of MAC addresses.

use std::collections::{HashMap, HashSet};

use super::MAP;
use super::finding::{Draft, Rule, shown};
use super::interface;
use super::state::{Found, Identity};
use crate::network::{HostNetwork, MacAddr, MacInterface};

pub(super) fn check(host: &HostNetwork, found: &mut Found) {
    let Some(interfaces) = host.interfaces() else { return };
    if interfaces.is_empty() {
        let message = "no MAC address tells which machine the host is";
        found.push(Draft::error(Rule::NoMacs, MAP, message));
    }
    let mut names = HashSet::new();
    let mut macs: HashMap<MacAddr, &str> = HashMap::new();
    for MacInterface { logical_nic_name: name, mac_address } in interfaces {
        interface::name(name, MAP, found);
        if !names.insert(name) {
            let message = format!("{} is in the map twice", shown(name));
            found.push(Draft::error(Rule::DuplicateName, MAP, message).of(name));
        }
        match mac_address.parse::<MacAddr>() {
            Err(error) => found.push(Draft::error(Rule::MalformedMac, MAP, error.to_string()).of(name)),
            Ok(mac) if !mac.is_unicast() => {
                let message = format!("no interface can have the address {mac}");
                found.push(Draft::error(Rule::MalformedMac, MAP, message).of(name));
            }
            Ok(mac) => match macs.insert(mac, name) {
                Some(first) => {
                    let message =
                        format!("{mac} is the address of both {} and {}", shown(first), shown(name));
                    found.push(Draft::error(Rule::DuplicateMac, MAP, message).of(name));
                }
                None => found.claim(Identity::Mac(mac), Some(name), MAP.to_owned()),
            },
        }
    }
}
