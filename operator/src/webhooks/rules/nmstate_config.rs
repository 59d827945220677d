//! Admission rules for NMStateConfigs.

use std::collections::{BTreeMap, BTreeSet};

use super::FieldFault;
use crate::crds::{NMStateConfigSpec, Selector};
use crate::networks::NamedConfig;
use crate::selector;

/// Prefix of the paths of findings about the MAC address map.
const MAP_PATH: &str = "mac_interface_map";

/// An InfraEnv, and the selector of its NMStateConfigs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedSelector<'a> {
    /// Name of the InfraEnv.
    pub(crate) infra_env: &'a str,
    pub(crate) selector: &'a Selector,
}

/// Returns the faults in the interfaces of a config: an empty list, or duplicate names or MAC addresses.
pub(crate) fn interface_faults(spec: &NMStateConfigSpec) -> Vec<FieldFault> {
    if spec.interfaces.is_empty() {
        return vec![FieldFault::new("spec.interfaces", "at least one interface must be provided")];
    }
    let mut faults = Vec::new();
    let (mut names, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    for (index, interface) in spec.interfaces.iter().enumerate() {
        let mut add = |member: &str, value: &str| {
            let message = format!("{value:?} occurs twice; MAC addresses and names must be unique");
            faults.push(FieldFault::new(format!("spec.interfaces[{index}].{member}"), message));
        };
        if !names.insert(&interface.name) {
            add("name", &interface.name);
        }
        if !addresses.insert(interface.mac_address.to_lowercase()) {
            add("macAddress", &interface.mac_address);
        }
    }
    faults
}

/// Returns the MAC addresses of a config that another config also has, if an InfraEnv selects both. On a host with this
/// address, the files of one config would overwrite the files of the other.
pub(crate) fn shared_addresses(
    config: NamedConfig<'_>,
    others: &[NamedConfig<'_>],
    selectors: &[NamedSelector<'_>],
) -> Vec<FieldFault> {
    let mut owners: BTreeMap<String, (&str, &str)> = BTreeMap::new();
    for NamedSelector { infra_env, selector } in selectors {
        // An invalid selector is a fault of the InfraEnv, so it selects nothing here.
        let selects = |labels| selector::matches(selector, labels).unwrap_or(false);
        if !selects(config.labels) {
            continue;
        }
        for other in others.iter().filter(|other| other.name != config.name && selects(other.labels)) {
            for interface in &other.spec.interfaces {
                owners.entry(interface.mac_address.to_lowercase()).or_insert((other.name, infra_env));
            }
        }
    }
    let shared = config.spec.interfaces.iter().enumerate().filter_map(|(index, interface)| {
        let (other, infra_env) = owners.get(&interface.mac_address.to_lowercase())?;
        let message = format!(
            "NMStateConfig {other} also has the MAC address {}, and InfraEnv {infra_env} selects both",
            interface.mac_address
        );
        Some(FieldFault::new(format!("spec.interfaces[{index}].macAddress"), message))
    });
    shared.collect()
}

/// Converts the path of a finding about a network into the path of a field.
pub(crate) fn field_of(path: &str) -> String {
    if let Some(rest) = path.strip_prefix(MAP_PATH) {
        let rest = rest.replace(".logical_nic_name", ".name").replace(".mac_address", ".macAddress");
        return format!("spec.interfaces{rest}");
    }
    match path {
        "" => "spec.config".to_owned(),
        path if path.starts_with('[') => format!("spec.config{path}"),
        path => format!("spec.config.{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crds::NMStateConfigInterface;

    fn spec(interfaces: &[(&str, &str)]) -> NMStateConfigSpec {
        let interface = |(name, mac_address): &(&str, &str)| NMStateConfigInterface {
            name: (*name).to_owned(),
            mac_address: (*mac_address).to_owned(),
        };
        NMStateConfigSpec {
            interfaces: interfaces.iter().map(interface).collect(),
            ..NMStateConfigSpec::default()
        }
    }

    fn fields(faults: &[FieldFault]) -> Vec<&str> {
        faults.iter().map(|fault| fault.field.as_str()).collect()
    }

    #[test]
    fn rejects_duplicates_within_a_config() {
        assert_eq!(fields(&interface_faults(&spec(&[]))), ["spec.interfaces"]);
        let duplicates =
            spec(&[("a", "52:54:00:00:00:0a"), ("a", "52:54:00:00:00:0b"), ("c", "52:54:00:00:00:0A")]);
        let faults = interface_faults(&duplicates);
        assert_eq!(fields(&faults), ["spec.interfaces[1].name", "spec.interfaces[2].macAddress"]);
        assert_eq!(interface_faults(&spec(&[("a", "52:54:00:00:00:0a")])), []);
    }

    #[test]
    fn rejects_address_shared_by_two_selected_configs() {
        let labels = |value: &str| BTreeMap::from([("net".to_owned(), value.to_owned())]);
        let (site, other_site) = (labels("site"), labels("other"));
        let (new, old) = (spec(&[("a", "52:54:00:00:00:0A")]), spec(&[("b", "52:54:00:00:00:0a")]));
        let selector = Selector { match_labels: site.clone(), ..Selector::default() };
        let selectors = [NamedSelector { infra_env: "env", selector: &selector }];
        let config = |name, labels, spec| NamedConfig { name, labels: Some(labels), spec };
        let rows = [
            (config("new", &site, &new), config("old", &site, &old), true),
            (config("new", &site, &new), config("old", &other_site, &old), false),
            (config("new", &other_site, &new), config("old", &site, &old), false),
            // The other config is the stored state of the same object.
            (config("new", &site, &new), config("new", &site, &old), false),
        ];
        for (config, other, is_fault) in rows {
            let faults = shared_addresses(config, &[other], &selectors);
            let expected = if is_fault { vec!["spec.interfaces[0].macAddress"] } else { vec![] };
            assert_eq!(fields(&faults), expected, "{config:?} {other:?}");
            assert!(faults.iter().all(|it| it.message.contains("NMStateConfig old")
                && it.message.contains("InfraEnv env")));
        }
    }

    #[test]
    fn finding_paths_are_converted_to_field_paths() {
        for (path, field) in [
            ("", "spec.config"),
            ("interfaces[0].ipv4", "spec.config.interfaces[0].ipv4"),
            ("mac_interface_map", "spec.interfaces"),
            ("mac_interface_map[1].mac_address", "spec.interfaces[1].macAddress"),
            ("mac_interface_map[0].logical_nic_name", "spec.interfaces[0].name"),
        ] {
            assert_eq!(field_of(path), field);
        }
    }
}
