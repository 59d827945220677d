//! The kind NMStateConfig: the static network of one host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::resource::{CustomResource, Kind, StatusProperty};
use super::schema;
use super::wire::{nullable, zero};

/// The static network of one host.
pub type NMStateConfig = CustomResource<NMStateConfigSpec>;

impl Kind for NMStateConfigSpec {
    type Status = NMStateConfigStatus;
    const KIND: &'static str = "NMStateConfig";
    const PLURAL: &'static str = "nmstateconfigs";
    // The subresource exists, but the API server drops everything in it.
    const STATUS: StatusProperty = StatusProperty::Absent;
}

/// The desired network of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NMStateConfigSpec {
    /// Interfaces of the host by their names in `config`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    #[schemars(length(min = 1))]
    pub interfaces: Vec<NMStateConfigInterface>,
    /// Network state as nmstate defines it.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    #[schemars(schema_with = "schema::free_form")]
    pub config: Map<String, Value>,
}

/// A link from an interface of a configuration to a NIC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["macAddress", "name"]))]
pub struct NMStateConfigInterface {
    /// Name of the interface in `config`. The NIC may have another name on the host.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// MAC address of the NIC.
    #[serde(deserialize_with = "nullable")]
    #[schemars(extend("pattern" = "^([0-9A-Fa-f]{2}[:]){5}([0-9A-Fa-f]{2})$"))]
    pub mac_address: String,
}

/// The status of an NMStateConfig, which has no members. Errors are reported on the InfraEnv.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NMStateConfigStatus {}
