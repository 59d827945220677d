//! Parameters of operations on hosts, as clients send them.

pub(crate) use assisted::host::{
    BindHostParams, DiskChoice, DiskFormatting, DiskRole, HostCreateParams, InstallerArgsParams,
    LogsProgressParams, NodeLabel,
};
use assisted::host::{CertificateVerification, ChosenRole, HostStage};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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
