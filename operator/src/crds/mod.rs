//! The custom resources of the API group `agent-install.openshift.io`, and their definitions.
//!
//! Each kind has a file with the types of its `spec` and `status`. The schema in the definition is generated from these
//! types. It accepts everything that upstream's schema accepts. Upstream also has admission webhooks: their rules that
//! need only the object itself are CEL rules in the schema.
//!
//! Deserialization accepts what Go clients send. An explicit `null` counts as an absent field, unknown fields are
//! ignored, and an empty string in an optional member of a `spec` becomes `None`. Values with a fixed set of names stay
//! strings; otherwise, one unknown name would make a whole list unreadable. Serialization omits what the Go types omit:
//! `None`, and zero values in a `status`.

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
/// Returns an error if a schema cannot be generated. No input can cause this.
pub fn all() -> Result<Vec<CustomResourceDefinition>, Error> {
    Ok(vec![
        AgentClassification::definition()?,
        Agent::definition()?,
        InfraEnv::definition()?,
        NMStateConfig::definition()?,
    ])
}

/// Returns the definitions of all kinds as YAML, with one document per kind, for `kubectl apply`.
///
/// # Errors
///
/// Returns an error if a definition cannot be generated. No input can cause this.
pub fn to_yaml() -> Result<String, Error> {
    documents(&all()?)
}

/// Returns the given definitions as YAML, with one document per definition.
///
/// # Errors
///
/// Returns an error if a definition cannot be serialized as YAML.
pub fn documents(definitions: &[CustomResourceDefinition]) -> Result<String, Error> {
    let mut text = String::new();
    for definition in definitions {
        text.push_str("---\n");
        text.push_str(&serde_yaml_ng::to_string(&with_explicit_null(definition)?)?);
    }
    Ok(text)
}

/// Adds `webhook: null` to the `conversion` of a definition.
///
/// Upstream's deployment sets a conversion webhook, and `kubectl apply` would keep it. The API server refuses such a
/// definition, so the document must remove the webhook explicitly.
fn with_explicit_null(definition: &CustomResourceDefinition) -> Result<Value, Error> {
    let mut document = serde_yaml_ng::to_value(definition)?;
    let conversion = document.get_mut("spec").and_then(|spec| spec.get_mut("conversion"));
    if let Some(Value::Mapping(conversion)) = conversion {
        conversion.insert("webhook".into(), Value::Null);
    }
    Ok(document)
}
