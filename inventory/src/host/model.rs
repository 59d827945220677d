//! Hosts as clients see and send them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::stage::{ChosenRole, HostRole, HostStage, LogsState};
use super::status::{HostKind, HostStatus, MediaStatus};
use crate::api::request_bodies;
use crate::id::{ClusterId, HostId, InfraEnvId};
use crate::time::{Micros, Millis};

/// A host: a machine that booted the image of an infra-env.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = host)]
pub(crate) struct Host {
    /// Kind of the host.
    pub kind: HostKind,
    /// Id, chosen by the agent. The same machine has the same id in every infra-env.
    pub id: HostId,
    /// Path of the resource.
    pub href: String,
    /// Infra-env whose image the host booted.
    pub infra_env_id: InfraEnvId,
    /// Cluster that the host is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// Status of the host.
    pub status: HostStatus,
    /// Reason for the status, as text.
    pub status_info: String,
    /// Time of the last change of the status.
    pub status_updated_at: Millis,
    /// Role that the user chose.
    pub role: HostRole,
    /// Role that the service suggests.
    pub suggested_role: HostRole,
    /// Whether this host runs the temporary bootstrap control plane.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bootstrap: bool,
    /// Host name that the user chose.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub requested_hostname: String,
    /// Progress of the installation.
    pub progress: HostProgress,
    /// Stages of the installation, in order.
    pub progress_stages: Option<Vec<HostStage>>,
    /// Time when the stage started.
    pub stage_started_at: Millis,
    /// Time of the last progress report for the stage.
    pub stage_updated_at: Millis,
    /// Inventory report about the hardware, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub inventory: String,
    /// Connectivity to other hosts, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub connectivity: String,
    /// Connectivity to the API of the cluster that the host joins, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_vip_connectivity: String,
    /// Connectivity to the Tang servers, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tang_connectivity: String,
    /// Results of disk speed checks, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub disks_info: String,
    /// Time servers of the host and their state, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ntp_sources: String,
    /// Availability of container images, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub images_status: String,
    /// Results of DNS lookups, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub domain_name_resolutions: String,
    /// Results of the host's validations, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub validations_info: String,
    /// Labels of the node, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node_labels: String,
    /// Credentials of the BMC, for fencing, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fencing_credentials: String,
    /// Id of the installation disk.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub installation_disk_id: String,
    /// Device path of the installation disk.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub installation_disk_path: String,
    /// Ids of the disks that are formatted, separated by commas.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub disks_to_be_formatted: String,
    /// Ids of the disks that are not formatted, separated by commas.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub skip_formatting_disks: String,
    /// Arguments of coreos-installer: a list, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub installer_args: String,
    /// Version of the installer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub installer_version: String,
    /// User-supplied Ignition override, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ignition_config_overrides: String,
    /// Whether a token for the Ignition endpoint is set. The service never returns the token.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignition_endpoint_token_set: bool,
    /// Machine config pool of the host.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub machine_config_pool_name: String,
    /// Container image of the agent.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub discovery_agent_version: String,
    /// Whether the host can read its boot media.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_status: Option<MediaStatus>,
    /// Whether the connection to the host timed out in a state where this does not change the status.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub connection_timed_out: bool,
    /// State of the host's log upload.
    #[serde(skip_serializing_if = "is_unset")]
    pub logs_info: LogsState,
    /// Time of the last log upload.
    pub logs_collected_at: Millis,
    /// Time when log collection started.
    pub logs_started_at: Millis,
    /// Time of the agent's last check-in.
    pub checked_in_at: Millis,
    /// Clock of the host at that check-in, in seconds since 1970.
    #[serde(skip_serializing_if = "is_zero")]
    pub timestamp: i64,
    /// Time when the agent last registered.
    pub registered_at: Millis,
    /// Creation time.
    pub created_at: Micros,
    /// Time of the last change.
    pub updated_at: Micros,
    /// Always null: deleted hosts are not returned.
    pub deleted_at: Option<Micros>,
    /// User name of the owner.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_name: String,
}

/// Progress of an installation.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = host_progress_info)]
pub(crate) struct HostProgress {
    /// Progress of the whole installation, in percent.
    #[serde(skip_serializing_if = "is_zero")]
    pub installation_percentage: i64,
    /// Current stage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_stage: Option<HostStage>,
    /// Details of the progress.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub progress_info: String,
    /// Time when the stage started.
    pub stage_started_at: Millis,
    /// Time of the last progress report for the stage.
    pub stage_updated_at: Millis,
    /// Whether the stage has timed out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stage_timed_out: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_unset(state: &LogsState) -> bool {
    *state == LogsState::None
}

/// Parameters of a host registration.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = host_create_params)]
pub(crate) struct HostCreateParams {
    /// Id of the host.
    pub host_id: HostId,
    /// Container image of the agent.
    #[schema(max_length = 2048)]
    pub discovery_agent_version: Option<String>,
}

/// A registered host, and the command that its agent runs next.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = host_registration_response)]
pub(crate) struct RegisteredHost {
    /// The registered host.
    #[serde(flatten)]
    pub host: Host,
    /// Command that the agent runs next.
    pub next_step_runner_command: RunnerCommand,
}

/// Arguments with which an agent starts its step runner.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = next_step_runner_command)]
pub(crate) struct RunnerCommand {
    /// Arguments: one JSON object, in a string.
    pub args: Vec<String>,
}

/// Changes to a host. Absent and null fields stay unchanged.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = host_update_params)]
pub(crate) struct HostUpdateParams {
    /// Role of the host.
    pub host_role: Option<ChosenRole>,
    /// Host name.
    pub host_name: Option<String>,
    /// Choice of the installation disk.
    pub disks_selected_config: Option<Vec<DiskChoice>>,
    /// Disks for which formatting is changed.
    pub disks_skip_formatting: Option<Vec<DiskFormatting>>,
    /// Machine config pool of the host.
    #[schema(max_length = 253)]
    pub machine_config_pool_name: Option<String>,
    /// Token for the Ignition endpoint. Empty: removes it.
    #[schema(max_length = 65535)]
    pub ignition_endpoint_token: Option<String>,
    /// HTTP headers for the Ignition endpoint. Replaces all.
    pub ignition_endpoint_http_headers: Option<Vec<Header>>,
    /// Labels of the node. Replaces all.
    pub node_labels: Option<Vec<NodeLabel>>,
    /// Credentials of the BMC, for fencing.
    pub fencing_credentials: Option<FencingCredentials>,
}

/// Use of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = disk_config_params)]
pub(crate) struct DiskChoice {
    /// Id of the disk.
    pub id: String,
    /// Use of the disk.
    pub role: Option<DiskRole>,
}

/// Possible uses of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = disk_role)]
pub(crate) enum DiskRole {
    /// Not used.
    None,
    /// Installation disk.
    Install,
}

/// Whether a disk is formatted during the installation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = disk_skip_formatting_params)]
pub(crate) struct DiskFormatting {
    /// Id of the disk.
    pub disk_id: String,
    /// Whether the disk is left unformatted.
    pub skip_formatting: bool,
}

/// A header of an HTTP request.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ignition_endpoint_http_headers_params)]
pub(crate) struct Header {
    /// Name of the header.
    pub key: String,
    /// Value of the header.
    pub value: String,
}

/// A label of a node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = node_label_params)]
pub(crate) struct NodeLabel {
    /// Key of the label.
    pub key: String,
    /// Value of the label.
    pub value: String,
}

/// Credentials of a host's BMC, for fencing.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = fencing_credentials_params)]
#[expect(dead_code, reason = "clients may send credentials, and the service refuses them")]
pub(crate) struct FencingCredentials {
    /// Address of the BMC.
    pub address: String,
    /// User name.
    pub username: String,
    /// Password.
    pub password: String,
    /// Whether the BMC's certificate is verified.
    pub certificate_verification: Option<CertificateVerification>,
    /// MAC address of an interface of the host.
    pub mac_address: Option<String>,
}

/// Whether a certificate is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[schema(as = certificate_verification)]
pub(crate) enum CertificateVerification {
    /// The certificate is verified.
    Enabled,
    /// The certificate is not verified.
    Disabled,
}

/// Parameters of binding a host to a cluster.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = bind_host_params)]
pub(crate) struct BindHostParams {
    /// Id of the cluster.
    pub cluster_id: ClusterId,
}

/// Arguments of coreos-installer for a host.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = installer_args_params)]
pub(crate) struct InstallerArgsParams {
    /// Arguments of coreos-installer. Replaces all.
    #[serde(default)]
    #[schema(required = false)]
    pub args: Vec<String>,
}

/// User-supplied Ignition override of a host.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = host_ignition_params)]
pub(crate) struct HostIgnitionParams {
    /// Ignition config, as JSON in a string.
    #[serde(default)]
    #[schema(required = false)]
    pub config: String,
}

/// Progress of an installation, as the installer reports it.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = host_progress)]
pub(crate) struct HostProgressParams {
    /// Current stage.
    pub current_stage: Option<HostStage>,
    /// Details of the progress.
    #[schema(max_length = 2048)]
    pub progress_info: Option<String>,
}

/// State of a log upload.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = logs_progress_params)]
pub(crate) struct LogsProgressParams {
    /// State of the upload.
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
