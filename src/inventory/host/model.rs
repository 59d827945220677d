//! Hosts as clients see and send them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::stage::{ChosenRole, HostRole, HostStage, LogsState};
use super::status::{HostKind, HostStatus, MediaStatus};
use crate::inventory::id::{ClusterId, HostId, InfraEnvId};
use crate::inventory::request::request_bodies;
use crate::inventory::time::{Micros, Millis};

/// A host: a machine that booted the image of an infra-env.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = host)]
pub struct Host {
    /// What kind of host it is.
    pub kind: HostKind,
    /// Its id, made by its agent. The same machine has the same id in another infra-env.
    pub id: HostId,
    /// Its path.
    pub href: String,
    /// The infra-env whose image it booted.
    pub infra_env_id: InfraEnvId,
    /// The cluster that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// Its state.
    pub status: HostStatus,
    /// Why it is in that state.
    pub status_info: String,
    /// Since when.
    pub status_updated_at: Millis,
    /// What users want it to be.
    pub role: HostRole,
    /// What it is to be if users leave that open.
    pub suggested_role: HostRole,
    /// Whether it is the control plane until there is one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bootstrap: bool,
    /// What it is called.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub requested_hostname: String,
    /// How far its installation is.
    pub progress: HostProgress,
    /// What stages its installation has, in order.
    pub progress_stages: Option<Vec<HostStage>>,
    /// When the stage began.
    pub stage_started_at: Millis,
    /// When anything was last said about the stage.
    pub stage_updated_at: Millis,
    /// What it is made of, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub inventory: String,
    /// Which other hosts it reaches, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub connectivity: String,
    /// Whether it reaches the cluster that it joins, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_vip_connectivity: String,
    /// Whether it reaches what unlocks its disks, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tang_connectivity: String,
    /// How fast its disks are, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub disks_info: String,
    /// Its time servers, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ntp_sources: String,
    /// Which container images it could fetch, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub images_status: String,
    /// Which names it resolves, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub domain_name_resolutions: String,
    /// Whether it can be installed, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub validations_info: String,
    /// Labels of its node, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node_labels: String,
    /// How it is switched off by force, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fencing_credentials: String,
    /// The disk that it is installed on, by id.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub installation_disk_id: String,
    /// The same, by device.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub installation_disk_path: String,
    /// The disks that are formatted, by id, with commas between them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub disks_to_be_formatted: String,
    /// The disks that are not, by id, with commas between them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub skip_formatting_disks: String,
    /// Arguments of the installer: a list, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub installer_args: String,
    /// The version of what installs it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub installer_version: String,
    /// What shall be otherwise in its Ignition config, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ignition_config_overrides: String,
    /// Whether there is a token for the place that its configuration comes from. It is never shown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignition_endpoint_token_set: bool,
    /// The pool that its configuration comes from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub machine_config_pool_name: String,
    /// The image that its agent comes from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub discovery_agent_version: String,
    /// Whether it can read what it booted from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_status: Option<MediaStatus>,
    /// Whether it fell silent where that ends nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub connection_timed_out: bool,
    /// How far its logs are.
    #[serde(skip_serializing_if = "says_nothing")]
    pub logs_info: LogsState,
    /// When its logs came last.
    pub logs_collected_at: Millis,
    /// When somebody began to collect them.
    pub logs_started_at: Millis,
    /// When its agent asked last what to do.
    pub checked_in_at: Millis,
    /// What its clock said then, in seconds since 1970.
    #[serde(skip_serializing_if = "is_zero")]
    pub timestamp: i64,
    /// When its agent registered last.
    pub registered_at: Millis,
    /// When it was made.
    pub created_at: Micros,
    /// When it changed last.
    pub updated_at: Micros,
    /// Always null: what is deleted is not shown.
    pub deleted_at: Option<Micros>,
    /// Whose it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_name: String,
}

/// How far an installation is.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = host_progress_info)]
pub struct HostProgress {
    /// How much of all is done, in percent.
    #[serde(skip_serializing_if = "is_zero")]
    pub installation_percentage: i64,
    /// The stage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_stage: Option<HostStage>,
    /// More about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub progress_info: String,
    /// When the stage began.
    pub stage_started_at: Millis,
    /// When anything was last said about it.
    pub stage_updated_at: Millis,
    /// Whether it takes too long.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stage_timed_out: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn says_nothing(state: &LogsState) -> bool {
    *state == LogsState::None
}

/// A host that registers.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = host_create_params)]
pub struct HostCreateParams {
    /// Its id.
    pub host_id: HostId,
    /// The image that its agent comes from.
    #[schema(max_length = 2048)]
    pub discovery_agent_version: Option<String>,
}

/// A host that is registered, and what its agent runs then.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = host_registration_response)]
pub struct RegisteredHost {
    /// The host.
    #[serde(flatten)]
    pub host: Host,
    /// What the agent runs.
    pub next_step_runner_command: RunnerCommand,
}

/// How an agent runs what asks for steps.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = next_step_runner_command)]
pub struct RunnerCommand {
    /// What it asks for: one object, as JSON in a string.
    pub args: Vec<String>,
}

/// What a host is changed to. What is absent or null is left as it is.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = host_update_params)]
pub struct HostUpdateParams {
    /// What it does in its cluster.
    pub host_role: Option<ChosenRole>,
    /// What it is called.
    pub host_name: Option<String>,
    /// The disk that it is installed on.
    pub disks_selected_config: Option<Vec<DiskChoice>>,
    /// The disks that are formatted or not.
    pub disks_skip_formatting: Option<Vec<DiskFormatting>>,
    /// The pool that its configuration comes from.
    #[schema(max_length = 253)]
    pub machine_config_pool_name: Option<String>,
    /// The token for the place that its configuration comes from; none if empty.
    #[schema(max_length = 65535)]
    pub ignition_endpoint_token: Option<String>,
    /// Headers for that place, all of them.
    pub ignition_endpoint_http_headers: Option<Vec<Header>>,
    /// Labels of its node, all of them.
    pub node_labels: Option<Vec<NodeLabel>>,
    /// How it is switched off by force.
    pub fencing_credentials: Option<FencingCredentials>,
}

/// What a disk is for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = disk_config_params)]
pub struct DiskChoice {
    /// Its id.
    pub id: String,
    /// What for.
    pub role: Option<DiskRole>,
}

/// What a disk may be for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = disk_role)]
pub enum DiskRole {
    /// For nothing.
    None,
    /// For the system.
    Install,
}

/// Whether a disk is formatted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = disk_skip_formatting_params)]
pub struct DiskFormatting {
    /// Its id.
    pub disk_id: String,
    /// Whether it is left as it is.
    pub skip_formatting: bool,
}

/// A header of a request.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ignition_endpoint_http_headers_params)]
pub struct Header {
    /// Its name.
    pub key: String,
    /// What it says.
    pub value: String,
}

/// A label of a node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = node_label_params)]
pub struct NodeLabel {
    /// Its name.
    pub key: String,
    /// What it says.
    pub value: String,
}

/// How a host is switched off by force.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = fencing_credentials_params)]
pub struct FencingCredentials {
    /// Where its controller is.
    pub address: String,
    /// Who may.
    pub username: String,
    /// With which password.
    pub password: String,
    /// Whether the certificate of the controller is looked at.
    pub certificate_verification: Option<CertificateVerification>,
    /// The address of a card of the host.
    pub mac_address: Option<String>,
}

/// Whether a certificate is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[schema(as = certificate_verification)]
pub enum CertificateVerification {
    /// It is.
    Enabled,
    /// It is not.
    Disabled,
}

/// The cluster that a host becomes part of.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = bind_host_params)]
pub struct BindHostParams {
    /// The cluster.
    pub cluster_id: ClusterId,
}

/// Arguments of the installer.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = installer_args_params)]
pub struct InstallerArgsParams {
    /// The arguments, all of them.
    #[serde(default)]
    #[schema(required = false)]
    pub args: Vec<String>,
}

/// What shall be otherwise in the Ignition config of a host.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = host_ignition_params)]
pub struct HostIgnitionParams {
    /// A config, as JSON in a string.
    #[serde(default)]
    #[schema(required = false)]
    pub config: String,
}

/// How far an installation is, as the installer says it.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = host_progress)]
pub struct HostProgressParams {
    /// The stage.
    pub current_stage: Option<HostStage>,
    /// More about it.
    #[schema(max_length = 2048)]
    pub progress_info: Option<String>,
}

/// How far logs are.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = logs_progress_params)]
pub struct LogsProgressParams {
    /// How far.
    pub logs_state: LogsState,
}

request_bodies! {
    HostCreateParams: "newHostParams";
    HostUpdateParams: "hostUpdateParams";
    BindHostParams: "bindHostParams";
    InstallerArgsParams: "installerArgsParams";
    HostIgnitionParams: "hostIgnitionParams";
    HostProgressParams: "hostProgress";
    LogsProgressParams: "logsProgressParams";
}
