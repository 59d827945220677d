//! The custom resources of the API group `agent-install.openshift.io`, and their definitions.
//!
//! Each kind has a file with the types of its `spec` and `status`. The schema in the definition is generated from these
//! types. It accepts what upstream's schema accepts; rules that upstream's admission webhooks check and that need only
//! the object itself are CEL rules beside the type.
//!
//! Deserialisation accepts what Go clients send: an explicit `null` reads as an absent field, unknown fields are
//! ignored, and an empty string in an optional member of a `spec` reads as `None`. Values with a fixed set of names
//! stay strings, because one unknown name would otherwise make a whole list unreadable. Serialisation omits what the Go
//! types omit: `None`, and zero values in a `status`.

mod agent;
mod agent_classification;
mod agent_inventory;
mod condition;
mod error;
mod infra_env;
pub mod names;
mod nmstate_config;
mod references;
mod resource;
mod schema;
mod timestamp;
mod wire;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_yaml_ng::Value;

pub use agent::{
    Agent, AgentDebugInfo, AgentProgress, AgentSpec, AgentStatus, ApprovedCsr, CsrStatus, DeprovisionInfo,
    NtpSource, ValidationResult,
};
pub use agent_classification::{AgentClassification, AgentClassificationSpec, AgentClassificationStatus};
pub use agent_inventory::{
    AgentInventory, InstallationEligibility, InventoryBoot, InventoryCpu, InventoryDisk, InventoryGpu,
    InventoryInterface, InventoryMemory, InventorySystemVendor, IoPerformance,
};
pub use condition::AgentInstallCondition;
pub use error::Error;
pub use infra_env::{
    AgentApproval, BootArtifactUrls, InfraEnv, InfraEnvDebugInfo, InfraEnvSpec, InfraEnvStatus,
    KernelArgument, ProxySettings,
};
pub use nmstate_config::{NMStateConfig, NMStateConfigInterface, NMStateConfigSpec, NMStateConfigStatus};
pub use references::{ClusterRef, LocalRef, MirrorRef, Selector, SelectorRequirement};
pub use resource::{CustomResource, Kind, StatusProperty};
pub use timestamp::Timestamp;

/// Returns the definitions of all kinds, in alphabetical order.
///
/// # Errors
///
/// Returns an error if a schema cannot be generated, which no input can cause.
pub fn all() -> Result<Vec<CustomResourceDefinition>, Error> {
    Ok(vec![
        AgentClassification::definition()?,
        Agent::definition()?,
        InfraEnv::definition()?,
        NMStateConfig::definition()?,
    ])
}

/// Returns the definitions of all kinds as one YAML document each, for `kubectl apply`.
///
/// # Errors
///
/// Returns an error if a definition cannot be generated, which no input can cause.
pub fn to_yaml() -> Result<String, Error> {
    documents(&all()?)
}

/// Returns the given definitions as one YAML document each.
///
/// # Errors
///
/// Returns an error if a definition cannot be written as YAML.
pub fn documents(definitions: &[CustomResourceDefinition]) -> Result<String, Error> {
    let mut text = String::new();
    for definition in definitions {
        text.push_str("---\n");
        text.push_str(&serde_yaml_ng::to_string(&with_explicit_null(definition)?)?);
    }
    Ok(text)
}

/// Adds `webhook: null` to the conversion of a definition.
///
/// Upstream's deployment sets a conversion webhook. `kubectl apply` keeps it, and the API server then refuses the
/// definition, unless the document removes it explicitly.
fn with_explicit_null(definition: &CustomResourceDefinition) -> Result<Value, Error> {
    let mut document = serde_yaml_ng::to_value(definition)?;
    let conversion = document.get_mut("spec").and_then(|spec| spec.get_mut("conversion"));
    if let Some(Value::Mapping(conversion)) = conversion {
        conversion.insert("webhook".into(), Value::Null);
    }
    Ok(document)
}
