//! Hosts with static networks for tests.

use std::collections::BTreeMap;

use ignition::network::{EntryKind, HostNetwork, MacInterface, NetworkEntry};

/// A bond of two interfaces with a VLAN on top.
pub(crate) const BOND: &str = "\
interfaces:
- name: bond0
  type: bond
  state: up
  link-aggregation:
    mode: active-backup
    options:
      miimon: '140'
      primary: eth1
    port: [eth0, eth1]
- name: bond0.404
  type: vlan
  state: up
  vlan: {id: 404, base-iface: bond0}
  ipv4:
    enabled: true
    dhcp: false
    address: [{ip: 198.51.100.20, prefix-length: 25}]
  ipv6: {enabled: false}
- {name: eth0, type: ethernet, state: up}
- {name: eth1, type: ethernet, state: up}
dns-resolver: {config: {server: [198.51.100.2]}}
routes:
  config: [{destination: 0.0.0.0/0, next-hop-address: 198.51.100.1, next-hop-interface: bond0.404}]
";

/// A VLAN on an interface, and another interface that is down.
pub(crate) const VLAN: &str = "\
interfaces:
- {name: eth0, type: ethernet, state: up}
- name: eth0.2507
  type: vlan
  state: up
  vlan: {id: 2507, base-iface: eth0}
  ipv4: {enabled: true, address: [{ip: 203.0.113.7, prefix-length: 27}]}
- {name: eth1, type: ethernet, state: down}
- name: eth1.2507
  type: vlan
  state: up
  vlan: {id: 2507, base-iface: eth1}
  ipv4: {enabled: true, dhcp: true}
routes: {config: [{destination: 0.0.0.0/0, next-hop-address: 203.0.113.1, next-hop-interface: eth0.2507}]}
";

/// Two interfaces with different addresses, and a rule for packets that arrive at one of them.
pub(crate) const PAIR: &str = "\
interfaces:
- name: eth0
  type: ethernet
  state: up
  ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 24}]}
- name: eth1
  type: ethernet
  state: up
  ipv4: {enabled: true, address: [{ip: 192.0.2.130, prefix-length: 25}]}
dns-resolver: {config: {search: [eth0], server: [192.0.2.53]}}
routes: {config: [{destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, next-hop-interface: eth0}]}
route-rules: {config: [{ip-from: 192.0.2.0/24, route-table: 254, priority: 900, iif: eth1}]}
";

/// Creates a host with two MAC addresses. The first address ends in `first`, and the second in the next number.
pub(crate) fn host(document: &str, first: usize) -> HostNetwork {
    let interface = |number: usize| MacInterface {
        logical_nic_name: format!("eth{number}"),
        mac_address: mac(first + number),
    };
    HostNetwork::from_unchecked(document, vec![interface(0), interface(1)])
}

pub(crate) fn mac(number: usize) -> String {
    format!("52:54:00:aa:{:02x}:{:02x}", number >> 8, number & 0xff)
}

/// Returns the text of every file, by path.
#[allow(dead_code, reason = "not all tests look into files")]
pub(crate) fn texts(entries: &[NetworkEntry]) -> BTreeMap<&str, &str> {
    let text = |entry: &'_ NetworkEntry| match &entry.kind {
        EntryKind::File { contents, .. } => std::str::from_utf8(contents).unwrap().to_owned(),
        EntryKind::Link { target } => target.clone(),
    };
    entries.iter().map(|entry| (entry.path.as_str(), &*text(entry).leak())).collect()
}
