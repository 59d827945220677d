//! The stored record of a host.

use std::collections::{BTreeMap, BTreeSet};

use assisted::host::{HostKind, HostRole, HostStage, HostStatus, LogsState};
use chrono::DateTime;
use rules::host::stages::{StageFacts, stages_of};
use rules::host::state::{HostReset, Transition};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::findings::HostFindings;
use super::owner::HostOwner;
use crate::Secret;
use crate::id::{ClusterId, HostId, HostKey, InfraEnvId};
use crate::store::{Columns, Kind, Record, ReportKind};
use crate::time::{Micros, Millis};

/// A stored host. The reports of its agent are stored separately.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRecord {
    /// Id, chosen by the agent.
    pub id: HostId,
    /// Infra-env whose image the host booted.
    pub infra_env_id: InfraEnvId,
    /// Cluster that the host is bound to.
    pub cluster_id: Option<ClusterId>,
    /// Kind of the host.
    pub kind: HostKind,
    status: HostStatus,
    status_info: String,
    status_updated_at: Millis,
    /// Role that the user chose.
    pub role: HostRole,
    /// Role that the service suggests.
    pub suggested_role: HostRole,
    /// Whether this host runs the temporary bootstrap control plane.
    pub bootstrap: bool,
    /// Whether the host's cluster has only one node.
    pub single_node: bool,
    /// User name of the owner.
    pub user_name: String,
    /// Container image of the agent.
    pub agent_version: String,
    /// Time of the agent's last check-in. A column of the database has the current value. The copy in the document is
    /// as old as the document's last write, and serves older releases that do not read the column.
    #[serde(default)]
    pub checked_in_at: Millis,
    /// Clock of the host at the last check-in, in seconds since 1970. A column of the database has the current value.
    #[serde(default)]
    pub clock: i64,
    /// Time when the agent last registered.
    pub registered_at: Millis,
    /// Time when the record was created.
    pub created_at: Micros,
    /// Time of the last change.
    pub updated_at: Micros,
    /// Time of the deletion.
    pub deleted_at: Option<Micros>,
    /// Choices of users.
    #[serde(default)]
    pub choices: Choices,
    /// Facts from the reports of the host's agent.
    #[serde(default)]
    pub findings: HostFindings,
    /// Progress of the installation.
    #[serde(default)]
    pub progress: Progress,
    /// State of the host's log upload.
    #[serde(default)]
    pub logs: Logs,
    /// Time of the last event with each name. Events with these names are added at most once an hour.
    #[serde(default, rename = "told")]
    pub hourly_events: BTreeMap<String, Millis>,
}

/// Choices of users for a host. They survive a new registration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Choices {
    /// Whether an administrator of the hub has approved the host. Only an operator sets this value. Hosts without an
    /// operator need no approval.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub approved: bool,
    /// The resource that owns choices for the host. `None`: API clients can change all choices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<HostOwner>,
    /// Host name. Empty: the name in the inventory report.
    pub hostname: String,
    /// Installation disk, chosen by a user or by the service.
    pub installation_disk: Option<InstallationDisk>,
    /// Ids of the disks to format.
    pub disks_to_be_formatted: Vec<String>,
    /// Ids of the disks not to format.
    pub skip_formatting_disks: Vec<String>,
    /// Machine config pool.
    pub machine_config_pool_name: String,
    /// Arguments of coreos-installer, as a JSON list.
    pub installer_args: String,
    /// User-supplied Ignition override, as JSON.
    pub ignition_config_overrides: String,
    /// Token for the Ignition endpoint.
    pub ignition_endpoint_token: Secret,
    /// HTTP headers for the Ignition endpoint.
    pub ignition_endpoint_http_headers: Vec<(String, Secret)>,
    /// Labels of the node.
    pub node_labels: BTreeMap<String, String>,
    /// Credentials of the BMC, for fencing, as a JSON object.
    pub fencing_credentials: String,
}

/// An installation disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstallationDisk {
    /// Id of the disk.
    pub id: String,
    /// Device path.
    pub path: String,
}

/// Progress of a host's installation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// Current stage.
    pub stage: Option<HostStage>,
    /// Details of the progress.
    pub info: String,
    /// Progress of the whole installation, in percent.
    pub percentage: i64,
    /// Time when the stage started.
    pub started_at: Millis,
    /// Time of the last progress report for the stage.
    pub updated_at: Millis,
    /// Whether the stage has timed out.
    pub timed_out: bool,
    /// Whether the connection timed out in a state where this does not change the status.
    pub connection_timed_out: bool,
    /// Version of the installer.
    pub installer_version: String,
}

/// State of a host's log upload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Logs {
    /// State of the upload.
    pub state: LogsState,
    /// Time when log collection started.
    pub started_at: Millis,
    /// Time of the last upload.
    pub collected_at: Millis,
}

/// Maximum length of a `status_info`, in characters. A longer text is truncated.
const MAX_STATUS_INFO: usize = 2040;

impl HostRecord {
    /// Returns a host that registers for the first time.
    pub(crate) fn new(key: HostKey, transition: &Transition) -> Self {
        let (millis, micros) = (Millis::new(transition.at()), Micros::new(transition.at()));
        let mut host = Self {
            id: key.host_id,
            infra_env_id: key.infra_env_id,
            cluster_id: None,
            kind: HostKind::Host,
            status: HostStatus::DiscoveringUnbound,
            status_info: String::new(),
            status_updated_at: millis,
            role: HostRole::AutoAssign,
            suggested_role: HostRole::AutoAssign,
            bootstrap: false,
            single_node: false,
            user_name: "admin".to_owned(),
            agent_version: String::new(),
            checked_in_at: millis,
            clock: 0,
            registered_at: millis,
            created_at: micros,
            updated_at: micros,
            deleted_at: None,
            choices: Choices::default(),
            findings: HostFindings::default(),
            progress: Progress::default(),
            logs: Logs::default(),
            hourly_events: BTreeMap::new(),
        };
        host.apply(transition);
        host
    }

    /// Returns the status of the host.
    #[must_use]
    pub fn status(&self) -> HostStatus {
        self.status
    }

    /// Returns the reason for the status, as text.
    #[must_use]
    pub fn status_info(&self) -> &str {
        &self.status_info
    }

    /// Returns the time of the last change of the status.
    #[must_use]
    pub fn status_updated_at(&self) -> Millis {
        self.status_updated_at
    }

    /// Applies a transition. Returns the previous status if the status changed.
    pub(crate) fn apply(&mut self, transition: &Transition) -> Option<HostStatus> {
        if let Some(info) = transition.info() {
            self.status_info = Self::cut_status_info(info).collect();
        }
        if transition.resets() == Some(HostReset::Boot) {
            self.bootstrap = self.single_node;
            self.findings = HostFindings::default();
            self.progress = Progress::default();
            self.logs = Logs::default();
        }
        let status = transition.status().filter(|status| *status != self.status)?;
        self.status_updated_at = Millis::new(transition.at());
        Some(std::mem::replace(&mut self.status, status))
    }

    /// Returns the part of a status text to store.
    pub(crate) fn cut_status_info(info: &str) -> impl Iterator<Item = char> {
        info.chars().take(MAX_STATUS_INFO)
    }

    /// Returns the name of the host: the chosen name, otherwise the name in the inventory report, otherwise the host
    /// id.
    #[must_use]
    pub fn name(&self) -> String {
        let names = [&self.choices.hostname, &self.findings.hostname];
        let name = names.into_iter().find(|name| !name.is_empty());
        name.cloned().unwrap_or_else(|| self.id.to_string())
    }

    /// Returns the stages of the host's installation, in order. A host without a role has no stages.
    #[must_use]
    pub(crate) fn stages(&self) -> &'static [HostStage] {
        let Self { kind, role, single_node, bootstrap, .. } = *self;
        stages_of(StageFacts { kind, role, single_node, bootstrap })
    }

    /// Returns `true` if the host joins an existing cluster.
    #[must_use]
    pub(crate) fn joins(&self) -> bool {
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

    fn columns(&self) -> Columns {
        let is_deleted = self.deleted_at.is_some();
        Columns {
            cluster: self.cluster_id.map(|id| id.0),
            deleted: is_deleted,
            status: self.status.as_str().to_owned(),
            role: self.role.as_str().to_owned(),
            checked_in_at: self.checked_in_at.0.map(|time| time.timestamp_micros()),
            clock: Some(self.clock),
            macs: Some(if is_deleted { BTreeSet::new() } else { self.findings.macs.clone() }),
            ..Columns::default()
        }
    }

    fn set_columns(&mut self, columns: &Columns) {
        // The document contains the check-in of the last change. It may be later than the column, if the clock was set
        // back since then.
        if let Some(time) = columns.checked_in_at.and_then(DateTime::from_timestamp_micros) {
            self.checked_in_at = Millis::new(time);
            self.clock = columns.clock.unwrap_or(self.clock);
        }
    }

    fn has_report(&self, kind: ReportKind) -> bool {
        self.findings.has_report(kind)
    }

    fn reports_len(&self) -> usize {
        self.findings.reports.values().map(|report| report.len).fold(0, usize::saturating_add)
    }
}
