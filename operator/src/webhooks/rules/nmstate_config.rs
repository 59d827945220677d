//! Rules for NMStateConfigs.

use std::collections::{BTreeMap, BTreeSet};

use super::FieldFault;
use crate::crds::{NMStateConfigSpec, Selector};
use crate::networks::NamedConfig;
use crate::selector;

/// The begin of the paths of findings about the MAC address map.
const MAP_PATH: &str = "mac_interface_map";

/// An InfraEnv and its selector of NMStateConfigs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedSelector<'a> {
    /// The name of the InfraEnv.
    pub(crate) infra_env: &'a str,
    /// Its selector.
    pub(crate) selector: &'a Selector,
}

/// Returns the faults in the interfaces of a config: no interface, or names or MAC addresses that occur twice.
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

/// Returns the MAC addresses of a config that another config also has, if one InfraEnv selects both: on a host with that
/// address, the files of one would overwrite the files of the other.
pub(crate) fn shared_addresses(
    config: NamedConfig<'_>,
    others: &[NamedConfig<'_>],
    selectors: &[NamedSelector<'_>],
) -> Vec<FieldFault> {
    let mut owners: BTreeMap<String, (&str, &str)> = BTreeMap::new();
    for NamedSelector { infra_env, selector } in selectors {
        // An invalid selector selects nothing. It is a fault of the InfraEnv.
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

/// Returns the field that the path of a finding about a network leads to.
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
    fn rejects_address_of_a_config_that_is_selected_together() {
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
            // The stored state of the same object.
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
    fn findings_lead_to_fields() {
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
