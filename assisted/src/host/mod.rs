//! The host resource, its parts, and the request bodies of its operations.

mod params;
mod registration;
mod stage;
mod status;
mod validation;

pub use params::{
    BindHostParams, CertificateVerification, DiskChoice, DiskFormatting, DiskRole, FencingCredentials,
    Header, HostCreateParams, HostIgnition, HostIgnitionParams, HostProgressParams, HostUpdateParams,
    InstallerArgsParams, LogsProgressParams, NodeLabel,
};
pub use registration::{RegisteredHost, RunnerArguments, RunnerCommand};
pub use stage::{ChosenRole, HostRole, HostStage, LogsState};
pub use status::{HostKind, HostStatus, MediaStatus};
pub use validation::{DiskInfo, DiskSpeedInfo, Validation, ValidationStatus};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::connectivity::ConnectivityReport;
use crate::extensible::Extensible;
use crate::id::{ClusterId, HostId, InfraEnvId};
use crate::inventory_report::InventoryReport;
use crate::reply::ImageReport;
use crate::secret::Secret;
use crate::time::{Micros, Millis};
use crate::wire::is_default;

/// A host: a machine that booted the image of an infra-env.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = host))]
pub struct Host {
    /// Kind of the host.
    #[cfg_attr(feature = "openapi", schema(value_type = HostKind))]
    pub kind: Extensible<HostKind>,
    /// Id, chosen by the agent. The same machine has the same id in every infra-env.
    pub id: HostId,
    /// Path of the resource.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub href: String,
    /// Infra-env whose image the host booted.
    pub infra_env_id: InfraEnvId,
    /// Cluster that the host is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// Status of the host.
    #[cfg_attr(feature = "openapi", schema(value_type = HostStatus))]
    pub status: Extensible<HostStatus>,
    /// Reason for the status, as text.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub status_info: String,
    /// Time of the last change of the status.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub status_updated_at: Millis,
    /// Role that the user chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = HostRole, required = true))]
    pub role: Option<Extensible<HostRole>>,
    /// Role that the service suggests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = HostRole, required = true))]
    pub suggested_role: Option<Extensible<HostRole>>,
    /// Whether this host runs the temporary bootstrap control plane.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bootstrap: bool,
    /// Host name that the user chose.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub requested_hostname: String,
    /// Progress of the installation.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub progress: HostProgress,
    /// Stages of the installation, in order.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<HostStage>>))]
    pub progress_stages: Option<Vec<Extensible<HostStage>>>,
    /// Time when the stage started.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub stage_started_at: Millis,
    /// Time of the last progress report for the stage.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub stage_updated_at: Millis,
    /// Inventory report about the hardware, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub inventory: String,
    /// Connectivity to other hosts, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub connectivity: String,
    /// Connectivity to the API of the cluster that the host joins, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_vip_connectivity: String,
    /// Connectivity to the Tang servers, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tang_connectivity: String,
    /// Results of disk speed checks, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub disks_info: String,
    /// Time servers of the host and their state, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ntp_sources: String,
    /// Availability of container images, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub images_status: String,
    /// Results of DNS lookups, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub domain_name_resolutions: String,
    /// Results of the host's validations, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub validations_info: String,
    /// Labels of the node, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_labels: String,
    /// Credentials of the BMC, for fencing, as JSON in a string.
    #[serde(default, skip_serializing_if = "Secret::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub fencing_credentials: Secret,
    /// Id of the installation disk.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub installation_disk_id: String,
    /// Device path of the installation disk.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub installation_disk_path: String,
    /// Ids of the disks to format, separated by commas.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub disks_to_be_formatted: String,
    /// Ids of the disks not to format, separated by commas.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub skip_formatting_disks: String,
    /// Arguments of coreos-installer: a list, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub installer_args: String,
    /// Version of the installer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub installer_version: String,
    /// User-supplied Ignition override, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ignition_config_overrides: String,
    /// Whether a token for the Ignition endpoint is set. The service never returns the token.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ignition_endpoint_token_set: bool,
    /// Machine config pool of the host.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine_config_pool_name: String,
    /// Container image of the agent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub discovery_agent_version: String,
    /// Whether the host can read its boot media.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<MediaStatus>))]
    pub media_status: Option<Extensible<MediaStatus>>,
    /// Whether the connection to the host timed out in a state where this does not change the status.
    #[serde(default, skip_serializing_if = "is_default")]
    pub connection_timed_out: bool,
    /// State of the host's log upload.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = LogsState))]
    pub logs_info: Extensible<LogsState>,
    /// Time of the last log upload.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub logs_collected_at: Millis,
    /// Time when log collection started.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub logs_started_at: Millis,
    /// Time of the agent's last check-in.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub checked_in_at: Millis,
    /// Clock of the host at that check-in, in seconds since 1970.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timestamp: i64,
    /// Time when the agent last registered.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub registered_at: Millis,
    /// Creation time.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub created_at: Micros,
    /// Time of the last change.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub updated_at: Micros,
    /// Always null: deleted hosts are not returned.
    #[serde(default)]
    pub deleted_at: Option<Micros>,
    /// User name of the owner.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user_name: String,
}

/// Progress of an installation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = host_progress_info))]
pub struct HostProgress {
    /// Progress of the whole installation, in percent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub installation_percentage: i64,
    /// Current stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<HostStage>))]
    pub current_stage: Option<Extensible<HostStage>>,
    /// Details of the progress.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub progress_info: String,
    /// Time when the stage started.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub stage_started_at: Millis,
    /// Time of the last progress report for the stage.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub stage_updated_at: Millis,
    /// Whether the stage has timed out.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stage_timed_out: bool,
}

impl Host {
    /// Parses the inventory report. Returns `None` if the host has not sent an inventory report.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not an inventory report.
    pub fn inventory_report(&self) -> Result<Option<InventoryReport<'_>>, serde_json::Error> {
        parsed(&self.inventory)
    }

    /// Parses the connectivity report. Returns `None` if the host has not sent a connectivity report.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a connectivity report.
    pub fn connectivity_report(&self) -> Result<Option<ConnectivityReport<'_>>, serde_json::Error> {
        parsed(&self.connectivity)
    }

    /// Parses the results of the disk speed checks. Keys are device paths.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not an object of results.
    pub fn disk_results(&self) -> Result<BTreeMap<String, DiskInfo<'_>>, serde_json::Error> {
        parsed(&self.disks_info).map(Option::unwrap_or_default)
    }

    /// Parses the availability of container images. Keys are image references.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not an object of results.
    pub fn image_results(&self) -> Result<BTreeMap<String, ImageReport<'_>>, serde_json::Error> {
        parsed(&self.images_status).map(Option::unwrap_or_default)
    }

    /// Parses the results of the validations. Keys are categories.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not an object of lists of validations.
    pub fn validations(&self) -> Result<BTreeMap<String, Vec<Validation>>, serde_json::Error> {
        parsed(&self.validations_info).map(Option::unwrap_or_default)
    }
}

/// Parses JSON in a string. An empty string counts as absent.
fn parsed<'a, T: Deserialize<'a>>(text: &'a str) -> Result<Option<T>, serde_json::Error> {
    if text.is_empty() { Ok(None) } else { serde_json::from_str(text).map(Some) }
}
