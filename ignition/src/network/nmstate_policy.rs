//! Converts the document of one host to an nmstate policy. nmstate resolves the policy on the machine: captures by MAC
//! address replace the names of interfaces.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{MacInterface, NetworkError};

/// Keys whose values are names of interfaces.
const INTERFACE_NAME_KEYS: &[&str] = &[
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
/// Keys whose values are lists of interface names.
const INTERFACE_LIST_KEYS: &[&str] = &["port", "ports"];
/// The sections of a document that contain interface names.
const SECTIONS_WITH_INTERFACES: &[&str] = &["interfaces", "routes", "route-rules"];

/// Returns the policy for the state in a host's document, without a final line break.
pub(super) fn nmstate_policy(interfaces: &[MacInterface], mut state: Value) -> Result<String, NetworkError> {
    switch_off_dynamic_addresses(&mut state);
    let mut names = HashMap::new();
    let mut captures = Map::new();
    for (number, interface) in interfaces.iter().enumerate() {
        let mac = interface.mac_address.to_ascii_uppercase();
        captures.insert(format!("iface{number}"), format!("interfaces.mac-address == \"{mac}\"").into());
        let template = format!("{{{{ capture.iface{number}.interfaces.0.name }}}}");
        names.insert(interface.logical_nic_name.as_str(), template);
    }
    for section in SECTIONS_WITH_INTERFACES {
        if let Some(section) = state.get_mut(*section) {
            substitute_names(section, &names);
        }
    }
    state.sort_all_objects();
    let policy =
        Map::from_iter([("capture".to_owned(), Value::Object(captures)), ("desiredState".to_owned(), state)]);
    let text = serde_yaml_ng::to_string(&policy).map_err(NetworkError::WritePolicy)?;
    Ok(text.trim_end().to_owned())
}

/// Disables DHCP and autoconf if the document does not mention them. Otherwise nmstate would keep the addresses that
/// the machine received during boot.
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

/// Replaces the names of interfaces with captures.
fn substitute_names(value: &mut Value, names: &HashMap<&str, String>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| substitute_names(item, names)),
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                let key = key.as_str();
                if INTERFACE_NAME_KEYS.contains(&key) {
                    replace_with_capture(value, names);
                } else if INTERFACE_LIST_KEYS.contains(&key) {
                    for item in value.as_array_mut().into_iter().flatten() {
                        replace_with_capture(item, names);
                    }
                }
                substitute_names(value, names);
            }
        }
        _ => {}
    }
}

fn replace_with_capture(value: &mut Value, names: &HashMap<&str, String>) {
    if let Some(template) = value.as_str().and_then(|name| names.get(name)) {
        *value = template.as_str().into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::yaml;

    fn policy_text(document: &str) -> String {
        let interface = |number: u8| MacInterface {
            logical_nic_name: format!("eth{number}"),
            mac_address: format!("52:54:00:aa:bb:0{}", number + 1),
        };
        nmstate_policy(&[interface(0), interface(1)], yaml::read(document).unwrap()).unwrap()
    }

    #[test]
    fn interface_names_are_replaced_by_captures() {
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
        assert_eq!(policy_text(document), expected);
    }

    #[test]
    fn other_values_are_unchanged() {
        assert!(policy_text("7").ends_with("desiredState: 7"));
    }
}
