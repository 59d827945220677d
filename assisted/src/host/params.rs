//! The request bodies of the operations on hosts.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::stage::{ChosenRole, HostStage, LogsState};
use crate::id::{ClusterId, HostId};
use crate::secret::{Redacted, Secret};
use crate::wire::{empty_as_none, lenient};

/// Parameters of a host registration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = host_create_params))]
pub struct HostCreateParams {
    /// Id of the host.
    pub host_id: HostId,
    /// Container image of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 2048))]
    pub discovery_agent_version: Option<String>,
}

/// Changes to a host. Absent and null fields stay unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = host_update_params))]
pub struct HostUpdateParams {
    /// Role of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_role: Option<ChosenRole>,
    /// Host name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
    /// Choice of the installation disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disks_selected_config: Option<Vec<DiskChoice>>,
    /// Disks for which formatting is changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disks_skip_formatting: Option<Vec<DiskFormatting>>,
    /// Machine config pool of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 253))]
    pub machine_config_pool_name: Option<String>,
    /// Token for the Ignition endpoint. Empty: removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, max_length = 65535))]
    pub ignition_endpoint_token: Option<Secret>,
    /// HTTP headers for the Ignition endpoint. Replaces all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_endpoint_http_headers: Option<Vec<Header>>,
    /// Labels of the node. Replaces all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_labels: Option<Vec<NodeLabel>>,
    /// Credentials of the BMC, for fencing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fencing_credentials: Option<FencingCredentials>,
}

/// Use of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = disk_config_params))]
pub struct DiskChoice {
    /// Id of the disk.
    pub id: String,
    /// Use of the disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<DiskRole>,
}

/// Possible uses of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = disk_role))]
pub enum DiskRole {
    /// Not used.
    None,
    /// Installation disk.
    Install,
}

/// Whether a disk is formatted during the installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = disk_skip_formatting_params))]
pub struct DiskFormatting {
    /// Id of the disk.
    pub disk_id: String,
    /// Whether the disk is left unformatted.
    pub skip_formatting: bool,
}

/// A header of an HTTP request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ignition_endpoint_http_headers_params))]
pub struct Header {
    /// Name of the header.
    pub key: String,
    /// Value of the header.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub value: Secret,
}

/// A label of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = node_label_params))]
pub struct NodeLabel {
    /// Key of the label.
    pub key: String,
    /// Value of the label.
    pub value: String,
}

/// Credentials of a host's BMC, for fencing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = fencing_credentials_params))]
pub struct FencingCredentials {
    /// Address of the BMC.
    pub address: String,
    /// User name.
    pub username: String,
    /// Password.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub password: Secret,
    /// Whether the BMC's certificate is verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_verification: Option<CertificateVerification>,
    /// MAC address of an interface of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
}

/// Whether a certificate is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = certificate_verification))]
pub enum CertificateVerification {
    /// The certificate is verified.
    Enabled,
    /// The certificate is not verified.
    Disabled,
}

/// Parameters of binding a host to a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = bind_host_params))]
pub struct BindHostParams {
    /// Id of the cluster.
    pub cluster_id: ClusterId,
}

/// Arguments of coreos-installer for a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = installer_args_params))]
pub struct InstallerArgsParams {
    /// Arguments of coreos-installer. Replaces all.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub args: Vec<String>,
}

/// User-supplied Ignition override of a host, in a request.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(
    feature = "openapi",
    derive(utoipa::ToSchema),
    schema(as = host_ignition_params, description = "User-supplied Ignition override of a host.")
)]
pub struct HostIgnitionParams {
    /// Ignition config, as JSON in a string.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub config: String,
}

/// User-supplied Ignition override of a host, in a response.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostIgnition {
    /// Ignition config, as JSON in a string. Empty: no override.
    #[serde(default)]
    pub config: String,
}

/// Redacts the config, which may contain passwords and keys. Shows only its length.
impl fmt::Debug for HostIgnition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostIgnition").field("config", &Redacted(&self.config)).finish()
    }
}

/// Progress of an installation, as the installer reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = host_progress))]
pub struct HostProgressParams {
    /// Current stage.
    #[serde(default, deserialize_with = "empty_as_none", skip_serializing_if = "Option::is_none")]
    pub current_stage: Option<HostStage>,
    /// Details of the progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 2048))]
    pub progress_info: Option<String>,
}

/// State of a log upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = logs_progress_params))]
pub struct LogsProgressParams {
    /// State of the upload.
    pub logs_state: LogsState,
}

/// Redacts the config, which may contain passwords and keys. Shows only its length.
impl fmt::Debug for HostIgnitionParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostIgnitionParams").field("config", &Redacted(&self.config)).finish()
    }
}

// Arguments of a step also contain headers, and agents must ignore keys that newer services add.
lenient!(Header);

impl HostProgressParams {
    /// Returns a report of a stage. `info` contains details of the progress, and may be empty.
    pub fn new(stage: HostStage, info: impl Into<String>) -> Self {
        Self { current_stage: Some(stage), progress_info: Some(info.into()) }
    }
}

impl HostCreateParams {
    /// Returns the parameters for a host, without the container image of its agent.
    ///
    /// # Examples
    ///
    /// ```
    /// use assisted::HostId;
    /// use assisted::host::HostCreateParams;
    ///
    /// let image = Some("quay.io/example/agent:1".to_owned());
    /// let params =
    ///     HostCreateParams { discovery_agent_version: image, ..HostCreateParams::new(HostId::fresh()) };
    /// ```
    #[must_use]
    pub fn new(host_id: HostId) -> Self {
        Self { host_id, discovery_agent_version: None }
    }
}
