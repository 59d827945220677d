//! The assessment of one cluster: its validation results and its next status.

use assisted::cluster::ClusterStatus;
use chrono::{DateTime, Utc};

use super::evaluation::EvaluationSettings;
use crate::cluster::connectivity_groups::ConnectivityGroups;
use crate::cluster::roles::forces_schedulable_masters;
use crate::cluster::state::{ClusterConclusions, ClusterEvent, ClusterTransition, decide};
use crate::cluster::vips::verified_vips;
use crate::validation::cluster::ClusterInput;
use crate::validation::{
    ClusterResults, ClusterValidationId, IgnoredListError, IgnoredValidations, ValidationResults,
};
use crate::view::ClusterView;

/// The validation results and the status change of an assessed cluster.
#[derive(Debug)]
pub struct AssessedCluster {
    /// The results of all cluster validations.
    pub results: ClusterResults,
    /// The status transition of the cluster. The new status may equal the current status. `None` if no rule matches.
    pub transition: Option<ClusterTransition>,
}

/// Assesses a cluster whose hosts were assessed before.
///
/// `view` must contain the new statuses and roles of the hosts, and `groups` must be the connectivity groups of the
/// same hosts. Returns `None` if the stored results must stay: the installation has begun, or this service does not
/// install the cluster.
///
/// # Errors
///
/// Returns an error if the cluster's list of ignored validations is malformed.
pub fn assess_cluster(
    view: &ClusterView,
    groups: ConnectivityGroups,
    settings: EvaluationSettings<'_>,
    now: DateTime<Utc>,
) -> Result<Option<AssessedCluster>, IgnoredListError> {
    use ClusterStatus::{Insufficient, PendingForInput, PreparingForInstallation, Ready};
    let status = view.cluster.status;
    if !matches!(status, Insufficient | PendingForInput | Ready | PreparingForInstallation) {
        return Ok(None);
    }
    let input = ClusterInput { view, hardware: settings.hardware, settings: settings.validations };
    let outcomes = ValidationResults::evaluate(&input);
    let ignored =
        IgnoredValidations::<ClusterValidationId>::parse(&view.cluster.ignored_cluster_validations)?;
    let conclusions = ClusterConclusions::new(view.cluster.vip_dhcp_allocation, &outcomes, &ignored);
    // `decide` fails if the status has no rule, such as `PreparingForInstallation`. The cluster then keeps its status.
    let transition = decide(status, &ClusterEvent::Refresh(conclusions), now).ok();
    let results = ClusterResults {
        outcomes,
        vips: verified_vips(view),
        groups: Some(groups),
        forces_schedulable_masters: Some(forces_schedulable_masters(view)),
    };
    Ok(Some(AssessedCluster { results, transition }))
}
