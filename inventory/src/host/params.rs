//! Parameters of operations on hosts, as clients send them.

use assisted::host::{ChosenRole, HostStage, LogsState};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::id::{ClusterId, HostId};

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
