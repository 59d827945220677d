//! Request bodies for infra-envs.

use assisted::infra_env::{InfraEnvCreateParams, InfraEnvUpdateParams};
use ignition::network::{self, MacAddr};
use serde_json::Value;

use crate::api::request_bodies;

request_bodies! {
    InfraEnvCreateParams: "infraenvCreateParams", prepared by restore_macs;
    InfraEnvUpdateParams: "infraEnvUpdateParams", prepared by prepare_update;
}

fn prepare_update(body: &mut Value) {
    convert_response_fields(body);
    restore_macs(body);
}

/// Restores MAC addresses that a YAML 1.1 tool, such as `aicli`, parsed as numbers because they were not quoted. Other
/// numbers stay unchanged, and the service refuses them.
fn restore_macs(body: &mut Value) {
    let hosts = body.get_mut("static_network_config").and_then(Value::as_array_mut);
    for host in hosts.into_iter().flatten() {
        let map = host.get_mut("mac_interface_map").and_then(Value::as_array_mut);
        for mac in map.into_iter().flatten().filter_map(|entry| entry.get_mut("mac_address")) {
            if let Some(restored) = mac.as_u64().and_then(MacAddr::from_base_60) {
                *mac = restored.to_string().into();
            }
        }
        if let Some(Value::String(document)) = host.get_mut("network_yaml")
            && let Some(restored) = network::restore_macs(document)
        {
            *document = restored;
        }
    }
}

/// Converts the body of a GET response into a valid PATCH body.
fn convert_response_fields(body: &mut Value) {
    /// Keys that only the service sets.
    const SHOWN_ONLY: [&str; 11] = [
        "kind",
        "href",
        "user_name",
        "email_domain",
        "pull_secret_set",
        "download_url",
        "updated_at",
        "created_at",
        "expires_at",
        "size_bytes",
        "generator_version",
    ];
    let Value::Object(map) = body else { return };
    for key in SHOWN_ONLY {
        map.shift_remove(key);
    }
    if let Some(image_type) = map.shift_remove("type")
        && !map.contains_key("image_type")
    {
        map.insert("image_type".to_owned(), image_type);
    }
    if map.get("image_type").and_then(Value::as_str) == Some("") {
        map.shift_remove("image_type");
    }
    for key in ["static_network_config", "kernel_arguments"] {
        let Some(list) = map.get_mut(key) else { continue };
        if let Some(parsed) = list.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok())
            && parsed.is_array()
        {
            *list = parsed;
        }
    }
}
