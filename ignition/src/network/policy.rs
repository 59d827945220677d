//! One host's document as a policy that nmstate resolves on the machine: names of interfaces become captures by MAC
//! address.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::host::HostNetwork;
use super::{NetworkError, yaml};

/// Keys whose text is the name of an interface.
const NAME_KEYS: &[&str] = &[
    "name",
    "base-iface",
    "next-hop-interface",
    "iif",
    "peer",
    "port1",
    "port2",
    "copy-mac-from",
    "primary",
    "active_slave",
];
/// Keys whose list holds the names of interfaces.
const LIST_KEYS: &[&str] = &["port", "ports"];
/// The parts of a document in which interfaces are named.
const SECTIONS: &[&str] = &["interfaces", "routes", "route-rules"];

/// Makes the policy of a host from the state in its document. It ends without a line break, as images have it.
pub(super) fn policy(host: &HostNetwork, mut state: Value) -> Result<String, NetworkError> {
    switch_off_dynamic_addresses(&mut state);
    let interfaces = host.interfaces().unwrap_or_default();
    let mut names = HashMap::new();
    let mut captures = Map::new();
    for (number, interface) in interfaces.iter().enumerate() {
        let mac = interface.mac_address.to_ascii_uppercase();
        captures.insert(format!("iface{number}"), format!("interfaces.mac-address == \"{mac}\"").into());
        let template = format!("{{{{ capture.iface{number}.interfaces.0.name }}}}");
        names.insert(interface.logical_nic_name.as_str(), template);
    }
    for section in SECTIONS {
        if let Some(section) = state.get_mut(*section) {
            substitute(section, &names);
        }
    }
    yaml::sort(&mut state);
    let policy =
        Map::from_iter([("capture".to_owned(), Value::Object(captures)), ("desiredState".to_owned(), state)]);
    let text = serde_yaml_ng::to_string(&policy).map_err(NetworkError::WritePolicy)?;
    Ok(text.trim_end().to_owned())
}

/// Where a document does not say so, nmstate would keep the addresses that the boot has brought.
fn switch_off_dynamic_addresses(state: &mut Value) {
    let interfaces = state.get_mut("interfaces");
    for interface in interfaces.and_then(Value::as_array_mut).into_iter().flatten() {
        for (family, keys) in [("ipv4", &["dhcp"][..]), ("ipv6", &["dhcp", "autoconf"])] {
            let Some(family) = interface.get_mut(family).and_then(Value::as_object_mut) else { continue };
            for key in keys {
                family.entry(*key).or_insert(false.into());
            }
        }
    }
}

/// Replaces the names of interfaces, all at once.
fn substitute(value: &mut Value, names: &HashMap<&str, String>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| substitute(item, names)),
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                let key = key.as_str();
                if NAME_KEYS.contains(&key) {
                    replace(value, names);
                } else if LIST_KEYS.contains(&key) {
                    value.as_array_mut().into_iter().flatten().for_each(|item| replace(item, names));
                }
                substitute(value, names);
            }
        }
        _ => {}
    }
}

fn replace(value: &mut Value, names: &HashMap<&str, String>) {
    let template = value.as_str().and_then(|name| names.get(name));
    if let Some(template) = template {
        *value = template.as_str().into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::MacInterface;

    fn host(document: &str) -> HostNetwork {
        let interface = |number: u8| MacInterface {
            logical_nic_name: format!("eth{number}"),
            mac_address: format!("52:54:00:aa:bb:0{}", number + 1),
        };
        HostNetwork::new(document, vec![interface(1), interface(0)])
    }

    fn made(document: &str) -> String {
        policy(&host(document), yaml::read(document).unwrap()).unwrap()
    }

    #[test]
    fn names_become_captures() {
        let document = "
interfaces:
- {name: bond0, type: bond, state: up, link-aggregation: {mode: active-backup, options: {miimon: '140', primary: eth1}, port: [eth0, eth1]}}
- {name: bond0.404, type: vlan, state: up, vlan: {id: 404, base-iface: bond0}, ipv4: {enabled: true, address: [{ip: 198.51.100.20, prefix-length: 25}]}, ipv6: {enabled: false}}
- {name: eth0, type: ethernet, state: up, description: eth0}
dns-resolver: {config: {search: [eth0], server: [198.51.100.2]}}
routes: {config: [{destination: 0.0.0.0/0, next-hop-address: 198.51.100.1, next-hop-interface: bond0.404}]}";
        let expected = "\
capture:
  iface0: interfaces.mac-address == \"52:54:00:AA:BB:01\"
  iface1: interfaces.mac-address == \"52:54:00:AA:BB:02\"
desiredState:
  dns-resolver:
    config:
      search:
      - eth0
      server:
      - 198.51.100.2
  interfaces:
  - link-aggregation:
      mode: active-backup
      options:
        miimon: '140'
        primary: '{{ capture.iface1.interfaces.0.name }}'
      port:
      - '{{ capture.iface0.interfaces.0.name }}'
      - '{{ capture.iface1.interfaces.0.name }}'
    name: bond0
    state: up
    type: bond
  - ipv4:
      address:
      - ip: 198.51.100.20
        prefix-length: 25
      dhcp: false
      enabled: true
    ipv6:
      autoconf: false
      dhcp: false
      enabled: false
    name: bond0.404
    state: up
    type: vlan
    vlan:
      base-iface: bond0
      id: 404
  - description: eth0
    name: '{{ capture.iface0.interfaces.0.name }}'
    state: up
    type: ethernet
  routes:
    config:
    - destination: 0.0.0.0/0
      next-hop-address: 198.51.100.1
      next-hop-interface: bond0.404";
        assert_eq!(made(document), expected);
    }

    #[test]
    fn other_values_stay_as_they_are() {
        assert!(made("7").ends_with("desiredState: 7"));
    }
}
