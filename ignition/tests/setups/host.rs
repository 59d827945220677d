//! A host of a large set, for benches and measurements.

use ignition::network::{HostNetwork, MacInterface};

/// Creates a host with two static interfaces, a gateway and a name server. The hosts for all numbers below 50,000
/// differ.
pub(crate) fn host(number: usize) -> HostNetwork {
    let (high, low) = (number / 200, number % 200 + 10);
    let interface = |nic: usize| {
        format!(
            "- name: eth{nic}
  type: ethernet
  state: up
  ipv4:
    enabled: true
    dhcp: false
    address:
    - ip: 10.{nic}.{high}.{low}
      prefix-length: 16
  ipv6:
    enabled: false
"
        )
    };
    let routes = "dns-resolver:
  config:
    server:
    - 10.0.255.1
routes:
  config:
  - destination: 0.0.0.0/0
    next-hop-address: 10.0.255.254
    next-hop-interface: eth0
    table-id: 254
";
    let mac = |nic: usize| MacInterface {
        logical_nic_name: format!("eth{nic}"),
        mac_address: format!("52:54:{nic:02x}:00:{:02x}:{:02x}", number >> 8, number & 0xff),
    };
    HostNetwork::from_unchecked(
        format!("interfaces:\n{}{}{routes}", interface(0), interface(1)),
        vec![mac(0), mac(1)],
    )
}
