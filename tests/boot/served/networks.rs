//! The network of a machine: the document for the API, and the expected state of the running machine.

use serde_json::{Value, json};

/// The only card of a machine, or its second card.
const FIRST: &str = "52:54:00:00:00:01";
const SECOND: &str = "52:54:00:00:00:02";
/// Cards of absent machines.
const OTHER: &str = "52:54:00:00:00:09";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TestNetwork {
    /// One card, which the API has no config for.
    Lease,
    /// One card with an address that no lease would assign.
    Static,
    /// A bond of two cards that prefers the second one, with an address, and a VLAN on the bond with another address.
    Bonded,
}

impl TestNetwork {
    pub(super) fn network_cards(self) -> &'static [&'static str] {
        if self == Self::Bonded { &[FIRST, SECOND] } else { &[FIRST] }
    }

    /// Returns `static_network_config` for the API: first another machine, then this machine.
    pub(super) fn api_config(self) -> Value {
        match self {
            Self::Lease => json!([]),
            Self::Static => json!([
                host_network(&[("nic0", OTHER)], &interface_with_address("nic0", "ethernet", "10.0.2.99")),
                host_network(&[("nic0", FIRST)], &interface_with_address("nic0", "ethernet", "10.0.2.77")),
            ]),
            Self::Bonded => json!([
                host_network(&[("nic0", OTHER)], &interface_with_address("nic0", "ethernet", "10.0.2.99")),
                host_network(&[("nic0", SECOND), ("nic1", FIRST)], &bond_interface()),
            ]),
        }
    }

    /// Returns the network that the machine must report.
    pub(super) fn expected_report(self) -> &'static [&'static str] {
        match self {
            Self::Lease => &["eth0 has 10.0.2.15/24"],
            Self::Static => &["eth0 has 10.0.2.77/24"],
            Self::Bonded => &[
                "bond0 has 10.0.2.77/24",
                "bond0.100 has 192.0.2.77/24",
                "bond0.100 is VLAN 100 of bond0",
                "bond0: Bonding Mode fault-tolerance (active-backup)",
                "bond0: Primary Slave eth1 (primary_reselect always)",
                "bond0: Slave Interface eth0",
                "bond0: Slave Interface eth1",
            ],
        }
    }
}

fn host_network(cards: &[(&str, &str)], interfaces: &str) -> Value {
    let map: Vec<Value> =
        cards.iter().map(|(name, mac)| json!({"mac_address": mac, "logical_nic_name": name})).collect();
    json!({"network_yaml": format!("interfaces:\n{interfaces}"), "mac_interface_map": map})
}

fn interface_with_address(name: &str, kind: &str, address: &str) -> String {
    format!(
        "- name: {name}\n  type: {kind}\n  state: up\n  ipv4:\n    enabled: true\n    dhcp: false\n    \
         address:\n    - ip: {address}\n      prefix-length: 24\n"
    )
}

fn bond_interface() -> String {
    let bond = interface_with_address("bond0", "bond", "10.0.2.77");
    let vlan = interface_with_address("bond0.100", "vlan", "192.0.2.77");
    format!(
        "{bond}  link-aggregation:\n    mode: active-backup\n    options:\n      primary: nic0\n    port:\n    \
         - nic0\n    - nic1\n{vlan}  vlan:\n    base-iface: bond0\n    id: 100\n"
    )
}
