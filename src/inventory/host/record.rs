//! Hosts as they are kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::stage::{HostRole, HostStage, LogsState};
use super::status::{HostKind, HostStatus, MediaStatus};
use super::validation::Validation;
use crate::inventory::Secret;
use crate::inventory::id::{ClusterId, HostId, InfraEnvId};
use crate::inventory::store::{Kind, Record};
use crate::inventory::time::{Micros, Millis};

/// A host with all that is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRecord {
    /// Its id, made by its agent.
    pub id: HostId,
    /// The infra-env whose image it booted.
    pub infra_env_id: InfraEnvId,
    /// The cluster that it belongs to.
    pub cluster_id: Option<ClusterId>,
    /// What kind of host it is.
    pub kind: HostKind,
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
    pub bootstrap: bool,
    /// Whether it is all of its cluster.
    pub single_node: bool,
    /// Whose it is.
    pub user_name: String,
    /// The image that its agent comes from.
    pub agent_version: String,
    /// When its agent asked last what to do.
    pub checked_in_at: Millis,
    /// What its clock said then, in seconds since 1970.
    pub clock: i64,
    /// When its agent registered last.
    pub registered_at: Millis,
    /// When it was made.
    pub created_at: Micros,
    /// When it changed last.
    pub updated_at: Micros,
    /// When it was deleted.
    pub deleted_at: Option<Micros>,
    /// What users chose.
    #[serde(default)]
    pub choices: Choices,
    /// What its agent found out.
    #[serde(default)]
    pub findings: Findings,
    /// How far its installation is.
    #[serde(default)]
    pub progress: Progress,
    /// How far its logs are.
    #[serde(default)]
    pub logs: Logs,
    /// When something was told of it last that is not told every time.
    #[serde(default)]
    pub told: BTreeMap<String, Millis>,
}

/// What users chose of a host. It outlives whatever its agent finds out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Choices {
    /// Its name; the one that it brings if empty.
    pub hostname: String,
    /// The disk that it is installed on, also where nobody chose it.
    pub installation_disk: Option<InstallationDisk>,
    /// The disks that are formatted, by id.
    pub disks_to_be_formatted: Vec<String>,
    /// The disks that are not, by id.
    pub skip_formatting_disks: Vec<String>,
    /// The pool that its configuration comes from.
    pub machine_config_pool_name: String,
    /// Arguments of the installer: a list, as JSON.
    pub installer_args: String,
    /// What shall be otherwise in its Ignition config, as JSON.
    pub ignition_config_overrides: String,
    /// The token for the place that its configuration comes from.
    pub ignition_endpoint_token: Secret,
    /// Headers for that place.
    pub ignition_endpoint_http_headers: Vec<(String, Secret)>,
    /// Labels of its node.
    pub node_labels: BTreeMap<String, String>,
    /// How it is switched off by force: an object, as JSON.
    pub fencing_credentials: String,
}

/// A disk that a system goes to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstallationDisk {
    /// Its id.
    pub id: String,
    /// Its device.
    pub path: String,
}

/// What the agent of a host found out. It is forgotten when the agent registers again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Findings {
    /// What the machine is made of, as JSON.
    pub inventory: String,
    /// Its name, out of that.
    pub hostname: String,
    /// What that says about whether it can be installed.
    pub validations: Vec<Validation>,
    /// Which other hosts it reaches, as JSON.
    pub connectivity: String,
    /// Whether it reaches the cluster that it joins, as JSON.
    pub api_vip_connectivity: String,
    /// Whether it reaches what unlocks its disks.
    pub tang_connectivity: String,
    /// How fast disks are, as JSON.
    pub disks_info: String,
    /// Its time servers, as JSON.
    pub ntp_sources: String,
    /// Which container images it could fetch, as JSON.
    pub images_status: String,
    /// Which names it resolves, as JSON.
    pub domain_name_resolutions: String,
    /// Which addresses nobody uses, as JSON.
    pub free_addresses: String,
    /// Whether it can read what it booted from, once it said so.
    pub media: Option<MediaStatus>,
}

/// How far the installation of a host is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// The stage.
    pub stage: Option<HostStage>,
    /// More about it.
    pub info: String,
    /// How much of all is done, in percent.
    pub percentage: i64,
    /// Since when it is in this stage.
    pub started_at: Millis,
    /// When anything was last said about this stage.
    pub updated_at: Millis,
    /// Whether it is in this stage for too long.
    pub timed_out: bool,
    /// Whether it fell silent where that ends nothing.
    pub connection_timed_out: bool,
    /// The version of what installs it.
    pub installer_version: String,
}

/// How far the logs of a host are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Logs {
    /// How far.
    pub state: LogsState,
    /// When somebody began to collect them.
    pub started_at: Millis,
    /// When they came last.
    pub collected_at: Millis,
}

impl HostRecord {
    /// What it is called: as users want, or else as it calls itself, or else by its id.
    #[must_use]
    pub fn name(&self) -> String {
        let names = [&self.choices.hostname, &self.findings.hostname];
        let name = names.into_iter().find(|name| !name.is_empty());
        name.cloned().unwrap_or_else(|| self.id.to_string())
    }

    /// Whether it joins a cluster that is there already.
    #[must_use]
    pub fn joins(&self) -> bool {
        self.kind == HostKind::Joining
    }
}

impl Record for HostRecord {
    const KIND: Kind = Kind::Host;

    fn id(&self) -> Uuid {
        self.id.0
    }

    fn parent(&self) -> Option<Uuid> {
        Some(self.infra_env_id.0)
    }

    fn cluster(&self) -> Option<Uuid> {
        self.cluster_id.map(|id| id.0)
    }

    fn is_deleted(&self) -> bool {
        self.deleted_at.is_some()
    }
}
