//! The facts that validations of a cluster read.

use crate::requirements::HardwareRequirements;
use crate::validation::settings::ValidationSettings;
use crate::view::ClusterView;

/// The facts that validations of a cluster read.
#[derive(Clone, Copy, Debug)]
pub struct ClusterInput<'a> {
    /// The cluster with its hosts. Their statuses and roles are those of the same assessment.
    pub view: &'a ClusterView,
    /// The hardware that hosts need.
    pub hardware: &'a HardwareRequirements,
    /// The settings of the service.
    pub settings: &'a ValidationSettings,
}
