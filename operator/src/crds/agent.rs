//! The kind Agent: one discovered host.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, ValidationRule,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agent_inventory::AgentInventory;
use super::condition::AgentInstallCondition;
use super::references::{ClusterRef, MirrorRef};
use super::resource::{CustomResource, Kind, column, wide_column};
use super::schema::rule;
use super::timestamp::Timestamp;
use super::wire::{nullable, text, zero};

/// One discovered host. The name is the id of the host.
pub type Agent = CustomResource<AgentSpec>;

impl Kind for AgentSpec {
    type Status = AgentStatus;
    const KIND: &'static str = "Agent";
    const PLURAL: &'static str = "agents";

    fn columns() -> Vec<CustomResourceColumnDefinition> {
        vec![
            column("Cluster", "string", ".spec.clusterDeploymentName.name"),
            column("Approved", "boolean", ".spec.approved"),
            column("Role", "string", ".status.role"),
            column("Stage", "string", ".status.progress.currentStage"),
            wide_column("Hostname", "string", ".status.inventory.hostname"),
            wide_column("Requested Hostname", "string", ".spec.hostname"),
        ]
    }
}

/// The desired use of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["approved", "role"], "x-kubernetes-validations" = rules()))]
pub struct AgentSpec {
    /// Permission to install the host. Serialised even if false.
    #[serde(deserialize_with = "nullable")]
    pub approved: bool,
    /// `auto-assign`, `master`, `worker`, `arbiter`, or empty for no change. Serialised even if empty.
    #[serde(deserialize_with = "nullable")]
    pub role: String,
    /// Cluster that the host is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_deployment_name: Option<ClusterRef>,
    /// Hostname that replaces the discovered one.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// MachineConfigPool of a worker.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub machine_config_pool: Option<String>,
    /// Id of the installation disk. Not together with `installation_disk_path`.
    #[serde(
        rename = "installation_disk_id",
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    pub installation_disk_id: Option<String>,
    /// Path of the installation disk. Not together with `installation_disk_id`.
    #[serde(
        rename = "installation_disk_path",
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    pub installation_disk_path: Option<String>,
    /// Arguments of coreos-installer as a JSON array of strings.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub installer_args: Option<String>,
    /// Ignition config as JSON, merged into the Ignition config of the host.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub ignition_config_overrides: Option<String>,
    /// Secret with the token for the Ignition endpoint in the key `ignition-token`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_endpoint_token_reference: Option<MirrorRef>,
    /// Headers of the request for the Ignition config.
    #[serde(
        rename = "ignitionEndpointHTTPHeaders",
        deserialize_with = "nullable",
        skip_serializing_if = "zero"
    )]
    pub ignition_endpoint_http_headers: BTreeMap<String, String>,
    /// Labels of the Node.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub node_labels: BTreeMap<String, String>,
    /// Name of the Secret with the fencing credentials.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub fencing_credentials_secret_ref: Option<String>,
}

/// Returns the rules of upstream's admission webhook that need no look-up.
///
/// A new Agent may set both the id and the path of the installation disk, because upstream's webhook sees updates only.
/// Such an Agent must remain editable: otherwise the controller could not write its finalizer or its status.
fn rules() -> Vec<ValidationRule> {
    vec![rule(
        "!has(self.installation_disk_id) || self.installation_disk_id == '' || \
         !has(self.installation_disk_path) || self.installation_disk_path == '' || \
         (has(oldSelf.installation_disk_id) && oldSelf.installation_disk_id != '' && \
         has(oldSelf.installation_disk_path) && oldSelf.installation_disk_path != '')",
        "Either InstallationDiskID or InstallationDiskPath can be set, not both.",
    )]
}

/// The state of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentStatus {
    /// The host is the bootstrap host.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub bootstrap: bool,
    /// Effective role. The suggested role if the requested one is `auto-assign`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub role: String,
    /// Hardware of the host.
    #[serde(deserialize_with = "nullable")]
    pub inventory: AgentInventory,
    /// Progress of the installation. Empty if the host has no stage.
    #[serde(deserialize_with = "nullable")]
    pub progress: AgentProgress,
    /// NTP sources that the host uses.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub ntp_sources: Vec<NtpSource>,
    /// Conditions of the host.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub conditions: Vec<AgentInstallCondition>,
    /// State of the host record, and URLs for troubleshooting.
    #[serde(deserialize_with = "nullable")]
    pub debug_info: AgentDebugInfo,
    /// Results of the validations by category.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub validations_info: BTreeMap<String, Vec<ValidationResult>>,
    /// Id of the installation disk.
    #[serde(rename = "installation_disk_id", deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub installation_disk_id: String,
    /// Objects to remove from the installed cluster when the host is unbound.
    #[serde(rename = "deprovision_info", skip_serializing_if = "Option::is_none")]
    pub deprovision_info: Option<DeprovisionInfo>,
    /// Certificate signing requests of the host that the service approved.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub csr_status: CsrStatus,
    /// `Host` for a new cluster, `AddToExistingClusterHost` for an installed one.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub kind: String,
}

/// The progress of an installation on a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentProgress {
    /// Name of the current stage.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub current_stage: String,
    /// Names of all stages of this host, in order.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub progress_stages: Vec<String>,
    /// Details of the current stage.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub progress_info: String,
    /// Estimated progress in percent.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub installation_percentage: i64,
    /// Start of the current stage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage_start_time: Option<Timestamp>,
    /// Last update of the current stage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage_update_time: Option<Timestamp>,
}

/// An NTP source of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct NtpSource {
    /// Name or address.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub source_name: String,
    /// `synced`, `combined`, `not_combined`, `error`, `variable` or `unreachable`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub source_state: String,
}

/// The state of a host record, and URLs for troubleshooting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentDebugInfo {
    /// URL of the events.
    #[serde(rename = "eventsURL", deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub events_url: String,
    /// URL of the logs.
    #[serde(rename = "logsURL", deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub logs_url: String,
    /// Status of the host record.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub state: String,
    /// Status info of the host record.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub state_info: String,
}

/// The result of one validation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["id", "message", "status"]))]
pub struct ValidationResult {
    /// Id of the validation.
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    /// `success`, `failure`, `pending`, `disabled` or `error`.
    #[serde(deserialize_with = "nullable")]
    pub status: String,
    /// Cause of the result.
    #[serde(deserialize_with = "nullable")]
    pub message: String,
}

/// What is removed from an installed cluster after its host is unbound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DeprovisionInfo {
    /// Name of the ClusterDeployment.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub cluster_name: String,
    /// Namespace of the ClusterDeployment.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub cluster_namespace: String,
    /// Name of the Node.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub node_name: String,
    /// State of the removal.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub message: String,
}

/// Certificate signing requests of a host that joins a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CsrStatus {
    /// Requests that the service approved.
    #[serde(rename = "approvedCSRs", deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub approved_csrs: Vec<ApprovedCsr>,
    /// Time of the last attempt to approve a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_approval_attempt: Option<Timestamp>,
}

/// An approved certificate signing request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["approvedAt", "name", "type"]))]
pub struct ApprovedCsr {
    /// Name of the request.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// `client` or `serving`.
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub type_: String,
    /// Time of the approval.
    #[serde(deserialize_with = "nullable")]
    pub approved_at: Timestamp,
}
