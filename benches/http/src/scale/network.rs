//! Generates the static networks of simulated hosts.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// Maximum number of hosts in a round, which has no more addresses.
const MAX_HOSTS: u64 = 1 << 14;
/// Maximum number of rounds, each with its own addresses.
const MAX_ROUNDS: u64 = 1 << 6;

/// Returns `count` hosts, each with two static interfaces, a route and a name server, in the format of the API. No host
/// occurs in two rounds.
///
/// # Errors
///
/// Returns an error if there are not enough addresses.
pub(crate) fn hosts(count: u64, round: u64) -> Result<Vec<Value>> {
    ensure!(count < MAX_HOSTS, "there are not enough addresses for {count} hosts");
    Ok((1..=count).map(|number| host(number + MAX_HOSTS * (round % MAX_ROUNDS))).collect())
}

/// Returns the host with a number below 2^20, the number of addresses in 172.16.0.0/12.
fn host(number: u64) -> Value {
    let [high, middle, low] = [number >> 16, number >> 8, number].map(|part| part & 0xff);
    let (first, second) = (format!("10.{high}.{middle}.{low}"), format!("172.{}.{middle}.{low}", 16 + high));
    let mac = |nic: u8| format!("52:54:{nic:02x}:{high:02x}:{middle:02x}:{low:02x}");
    json!({
        "network_yaml": format!("interfaces:\n{}{}{ROUTES}", interface("eth0", &first, 8), interface("eth1", &second, 12)),
        "mac_interface_map": [
            {"mac_address": mac(0), "logical_nic_name": "eth0"},
            {"mac_address": mac(1), "logical_nic_name": "eth1"},
        ],
    })
}

fn interface(name: &str, address: &str, prefix: u8) -> String {
    format!(
        "- name: {name}
  type: ethernet
  state: up
  ipv4:
    enabled: true
    dhcp: false
    address:
    - ip: {address}
      prefix-length: {prefix}
  ipv6:
    enabled: false
"
    )
}

const ROUTES: &str = "dns-resolver:
  config:
    server:
    - 10.255.255.1
routes:
  config:
  - destination: 0.0.0.0/0
    next-hop-address: 10.255.255.254
    next-hop-interface: eth0
    table-id: 254
";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn machines_are_unique_across_rounds() {
        let all: Vec<Value> = [1, 2, 3].into_iter().flat_map(|round| hosts(10_000, round).unwrap()).collect();
        let documents: BTreeSet<String> = all.iter().map(|host| host["network_yaml"].to_string()).collect();
        let macs: BTreeSet<String> = all
            .iter()
            .flat_map(|host| host["mac_interface_map"].as_array().unwrap().clone())
            .map(|map| map["mac_address"].to_string())
            .collect();
        assert_eq!((documents.len(), macs.len()), (30_000, 60_000));
        assert!(hosts(MAX_HOSTS, 1).is_err());
    }

    #[test]
    fn addresses_are_within_their_networks() {
        for round in [0, MAX_ROUNDS - 1, u64::MAX] {
            let hosts = hosts(MAX_HOSTS - 1, round).unwrap();
            let text = hosts.last().unwrap()["network_yaml"].as_str().unwrap();
            let addresses: Vec<std::net::Ipv4Addr> = text
                .lines()
                .filter_map(|line| line.trim().strip_prefix("- ip: "))
                .map(|ip| ip.parse().unwrap())
                .collect();
            let [first, second] = addresses.as_slice() else { panic!("{text}") };
            assert_eq!(first.octets()[0], 10);
            assert!(second.octets()[0] == 172 && (16..32).contains(&second.octets()[1]), "{second}");
        }
    }
}
