//! The assessment of a cluster, after the assessment of its hosts.

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

/// The result of the assessment of a cluster.
#[derive(Debug)]
pub struct AssessedCluster {
    /// Its results.
    pub results: ClusterResults,
    /// The transition, which may keep the status. `None`: no rule matches.
    pub transition: Option<ClusterTransition>,
}

/// Assesses a cluster. Its hosts have the statuses and roles of the same assessment, and `groups` are theirs. `None`: the
/// results of the cluster stay, because its installation has begun or it is not installed by this service.
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
    // In a status without a rule, nothing changes.
    let transition = decide(status, &ClusterEvent::Refresh(conclusions), now).ok();
    let results = ClusterResults {
        outcomes,
        vips: verified_vips(view),
        groups: Some(groups),
        forces_schedulable_masters: Some(forces_schedulable_masters(view)),
    };
    Ok(Some(AssessedCluster { results, transition }))
}
