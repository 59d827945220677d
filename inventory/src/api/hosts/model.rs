//! Hosts as clients see them.

use serde::Serialize;
use utoipa::ToSchema;

use crate::host::{HostKind, HostRole, HostStage, HostStatus, LogsState, MediaStatus};
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
