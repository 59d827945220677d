//! The facts that cluster validations receive as input.

use crate::requirements::HardwareRequirements;
use crate::validation::settings::ValidationSettings;
use crate::view::ClusterView;

/// The facts that cluster validations read.
#[derive(Clone, Copy, Debug)]
pub struct ClusterInput<'a> {
    /// The cluster and its hosts. The hosts must have the statuses and roles of the current assessment.
    pub view: &'a ClusterView,
    /// The hardware requirements of all versions and roles.
    pub hardware: &'a HardwareRequirements,
    /// The validations that the operator has disabled.
    pub settings: &'a ValidationSettings,
}
