//! The network of a host, read from its `NMStateConfig`.

use std::sync::Arc;

use ignition::network::{HostNetwork, MacInterface};
use serde_json::Value;

use super::Object;
use crate::{DiscoveryReport, Host};

const FIELDS: [&str; 2] = ["config", "interfaces"];
const INTERFACE_FIELDS: [&str; 2] = ["macAddress", "name"];

/// Reads a host like [`host`], but keeps the nmstate document as the user wrote it if its text can be extracted.
pub(super) fn host_as_written(object: &Object, findings: &mut DiscoveryReport) -> Option<Host> {
    let host = host(object, findings)?;
    let Some(text) = object.mapping_text("spec.config") else { return Some(host) };
    Some(Host { network: host.network.with_document(text), ..host })
}

/// Reads the network of a host. The nmstate document is `spec.config` as JSON with sorted keys, which is the form that
/// an API server returns.
pub(super) fn host(object: &Object, findings: &mut DiscoveryReport) -> Option<Host> {
    if !object.has_fields("spec", &FIELDS, findings) {
        return None;
    }
    let Some(config) = object.get("spec.config") else {
        findings.error(
            object.location_of("spec.config"),
            format!("NMStateConfig {} has no spec.config", object.name()),
        );
        return None;
    };
    let interfaces = object.list("spec.interfaces", findings)?;
    if interfaces.is_empty() {
        findings.error(
            object.location_of("spec.interfaces"),
            format!("NMStateConfig {} has no interfaces", object.name()),
        );
        return None;
    }
    let mut map = Vec::new();
    for (index, interface) in interfaces.iter().enumerate() {
        let path = format!("spec.interfaces[{index}]");
        if !object.are_fields((&path, interface), &INTERFACE_FIELDS, findings) {
            return None;
        }
        let mut text = |key: &str| object.text_in((&path, interface), key, findings).ok();
        let (name, mac) = (text("name")?, text("macAddress")?);
        let (Some(name), Some(mac)) = (name, mac) else {
            findings.error(object.location_of(&path), "needs a name and a macAddress");
            return None;
        };
        map.push(MacInterface { logical_nic_name: name.to_owned(), mac_address: mac.to_owned() });
    }
    let document = sorted(config.clone()).to_string();
    let origin = Arc::new(object.host_origin("spec.config", "spec.interfaces"));
    let network = HostNetwork::from_unchecked(document, map).with_name(object.name());
    Some(Host { name: object.name().to_owned(), network, origin: Some(origin) })
}

/// Returns the value with the keys of all objects sorted.
fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        Value::Object(map) => {
            let mut fields: Vec<(String, Value)> = map.into_iter().collect();
            fields.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(fields.into_iter().map(|(key, value)| (key, sorted(value))).collect())
        }
        other => other,
    }
}
