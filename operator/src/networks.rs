//! The static networks of an InfraEnv, from the NMStateConfigs that it selects.

use std::collections::BTreeMap;

use assisted::infra_env::{HostStaticNetwork, MacInterface};
use serde_json::{Map, Value};

use crate::crds::{NMStateConfigSpec, Selector};
use crate::selector;
use crate::webhooks::rules::FieldFault;

/// The parts of an NMStateConfig that the selection reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedConfig<'a> {
    pub(crate) name: &'a str,
    pub(crate) labels: Option<&'a BTreeMap<String, String>>,
    pub(crate) spec: &'a NMStateConfigSpec,
}

/// The static networks of an InfraEnv, and the names of their NMStateConfigs in the same order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SelectedNetworks {
    pub(crate) hosts: Vec<HostStaticNetwork>,
    pub(crate) names: Vec<String>,
}

/// A fault in a field of an NMStateConfig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigFault {
    /// Name of the NMStateConfig.
    pub(crate) config: String,
    pub(crate) fault: FieldFault,
}

/// The reason why the networks of an InfraEnv are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct SelectionError {
    pub(crate) message: String,
    /// The faults of the configs. Empty if the selector is invalid.
    pub(crate) faults: Vec<ConfigFault>,
}

impl From<String> for SelectionError {
    fn from(message: String) -> Self {
        Self { message, faults: Vec::new() }
    }
}

/// The interface that has a certain MAC address.
#[derive(Clone, Copy, Debug)]
struct AddressOwner<'a> {
    config: &'a str,
    interface: usize,
}

/// Returns the static networks of the selected configs.
///
/// # Errors
///
/// Returns an error if the selector is invalid, or if two configs have the same MAC address. On a host with this
/// address, the files of one config would overwrite the files of the other.
pub(crate) fn select<'a>(
    selector: &Selector,
    configs: impl Iterator<Item = NamedConfig<'a>>,
) -> Result<SelectedNetworks, SelectionError> {
    let mut selected = SelectedNetworks::default();
    let mut owners = BTreeMap::new();
    for config in configs {
        if !selector::matches(selector, config.labels)? {
            continue;
        }
        for (index, interface) in config.spec.interfaces.iter().enumerate() {
            let owner = AddressOwner { config: config.name, interface: index };
            match owners.insert(interface.mac_address.to_lowercase(), owner) {
                Some(other) if other.config != config.name => {
                    return Err(shared_address([other, owner], &interface.mac_address));
                }
                _ => {}
            }
        }
        selected.hosts.push(network(config.spec)?);
        selected.names.push(config.name.to_owned());
    }
    Ok(selected)
}

fn shared_address([first, second]: [AddressOwner<'_>; 2], address: &str) -> SelectionError {
    let fault = |owner: AddressOwner<'_>, other: AddressOwner<'_>| {
        let message = format!("NMStateConfig {} also has the MAC address {address}", other.config);
        let field = format!("spec.interfaces[{}].macAddress", owner.interface);
        ConfigFault { config: owner.config.to_owned(), fault: FieldFault::new(field, message) }
    };
    let message = format!(
        "NMStateConfig {} and NMStateConfig {} both have the MAC address {address}",
        first.config, second.config
    );
    SelectionError { message, faults: vec![fault(first, second), fault(second, first)] }
}

/// Converts one config into the static network of a host.
///
/// # Errors
///
/// Returns an error if the config cannot be serialized as YAML.
pub(crate) fn network(spec: &NMStateConfigSpec) -> Result<HostStaticNetwork, String> {
    let interfaces = spec.interfaces.iter().map(|interface| MacInterface {
        logical_nic_name: interface.name.clone(),
        mac_address: interface.mac_address.clone(),
    });
    let network_yaml = serde_yaml_ng::to_string(&sorted(&spec.config))
        .map_err(|error| format!("cannot write a network configuration as YAML: {error}"))?;
    Ok(HostStaticNetwork { mac_interface_map: interfaces.collect(), network_yaml })
}

/// Sorts the keys at each level, so that the text does not depend on the order of keys in the object.
fn sorted(object: &Map<String, Value>) -> Value {
    let members: BTreeMap<_, _> = object.iter().map(|(key, value)| (key, sorted_value(value))).collect();
    Value::Object(members.into_iter().map(|(key, value)| (key.clone(), value)).collect())
}

fn sorted_value(value: &Value) -> Value {
    match value {
        Value::Object(object) => sorted(object),
        Value::Array(items) => Value::Array(items.iter().map(sorted_value).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crds::NMStateConfigInterface;

    fn spec(mac_addresses: &[&str], config: &Value) -> NMStateConfigSpec {
        let interface = |(index, address): (usize, &&str)| NMStateConfigInterface {
            name: format!("nic{index}"),
            mac_address: (*address).to_owned(),
        };
        let interfaces = mac_addresses.iter().enumerate().map(interface).collect();
        NMStateConfigSpec { interfaces, config: config.as_object().unwrap().clone() }
    }

    fn selector() -> Selector {
        Selector { match_labels: labels("net", "a"), ..Selector::default() }
    }

    fn labels(key: &str, value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(key.to_owned(), value.to_owned())])
    }

    #[test]
    fn only_matching_configs_are_selected() {
        let (own, other) = (labels("net", "a"), labels("net", "b"));
        let spec = spec(&["52:54:00:00:00:01"], &json!({"b": 1, "a": {"d": [], "c": 2}}));
        let configs = [("one", &own), ("two", &other)];
        let configs =
            configs.iter().map(|(name, labels)| NamedConfig { name, labels: Some(*labels), spec: &spec });
        let selected = select(&selector(), configs).unwrap();
        assert_eq!(selected.names, ["one"]);
        assert_eq!(selected.hosts[0].network_yaml, "a:\n  c: 2\n  d: []\nb: 1\n");
        assert_eq!(selected.hosts[0].mac_interface_map[0].logical_nic_name, "nic0");
    }

    #[test]
    fn rejects_mac_address_in_two_configs() {
        let labels = labels("net", "a");
        let one = spec(&["52:54:00:00:00:0a"], &json!({}));
        let two = spec(&["52:54:00:00:00:01", "52:54:00:00:00:0A"], &json!({}));
        let configs = [("one", &one), ("two", &two)];
        let configs = configs.iter().map(|(name, spec)| NamedConfig { name, labels: Some(&labels), spec });
        let error = select(&selector(), configs).unwrap_err();
        let expected = "NMStateConfig one and NMStateConfig two both have the MAC address 52:54:00:00:00:0A";
        assert_eq!(error.message, expected);
        let faults = error.faults.iter().map(|it| format!("{}: {}", it.config, it.fault));
        let expected = [
            "one: spec.interfaces[0].macAddress: NMStateConfig two also has the MAC address 52:54:00:00:00:0A",
            "two: spec.interfaces[1].macAddress: NMStateConfig one also has the MAC address 52:54:00:00:00:0A",
        ];
        assert_eq!(faults.collect::<Vec<_>>(), expected);
    }
}
