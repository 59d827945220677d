//! Hosts recreated from their Kubernetes resources after the loss of the database.

use assisted::host::{HostKind, HostRole, HostStage, HostStatus};
use chrono::{DateTime, Utc};
use rules::host::state::Transition;

use super::assessment::HostContext;
use super::cluster::is_single_node;
use super::draft::HostDraft;
use super::progress::restore_stage;
use super::record::HostRecord;
use super::reply::{EvaluatedInventory, set_inventory};
use crate::cluster::ClusterRecord;
use crate::error::Error;
use crate::id::{ClusterId, HostKey};
use crate::time::Millis;

/// A host as recorded in the annotations of its `Agent` resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredHost {
    /// Cluster that the host is bound to.
    pub cluster_id: Option<ClusterId>,
    /// Kind of a host in a cluster. A host without a cluster has the kind [`HostKind::Host`].
    pub kind: HostKind,
    /// Status. If it is `None` or does not fit the cluster, the host becomes `known` or `known-unbound`.
    pub status: Option<HostStatus>,
    /// Role.
    pub role: HostRole,
    /// Stage of the installation. It is ignored if a host with this role does not have the stage.
    pub stage: Option<HostStage>,
    /// Inventory report, as JSON.
    pub inventory: Option<String>,
    /// Whether an administrator has approved the host.
    pub approved: bool,
    /// Time when the host registered.
    pub registered_at: DateTime<Utc>,
}

impl RestoredHost {
    /// Returns the record of the host. `now` counts as the last check-in, so that a running agent has time to check in
    /// before the host is disconnected.
    pub(crate) fn to_record(
        &self,
        key: HostKey,
        cluster: Option<&ClusterRecord>,
        now: DateTime<Utc>,
    ) -> HostRecord {
        let mut host = HostRecord::new(key, &Transition::restored(self.status, cluster.is_some(), now));
        host.registered_at = Millis::new(self.registered_at);
        (host.role, host.suggested_role) = (self.role, self.role);
        host.choices.approved = self.approved;
        if let Some(cluster) = cluster {
            host.cluster_id = Some(cluster.id);
            host.kind = self.kind;
            host.single_node = is_single_node(cluster);
            host.bootstrap = host.single_node;
        }
        if host.joins() {
            "worker".clone_into(&mut host.choices.machine_config_pool_name);
        }
        if let Some(stage) = self.stage {
            restore_stage(&mut host, stage, Millis::new(now));
        }
        host
    }

    /// Stores the inventory report with the host.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not an inventory report, or if it is too long.
    pub(crate) fn set_inventory(
        &self,
        draft: &mut HostDraft,
        context: &HostContext<'_>,
    ) -> Result<(), Error> {
        let Some(report) = self.inventory.as_deref().filter(|report| !report.is_empty()) else {
            return Ok(());
        };
        let evaluated = EvaluatedInventory::parse(report, &context.settings.host_limits)?;
        set_inventory(draft, &evaluated, context)
    }
}
