//! The facts that the status rules of clusters read.

use crate::validation::cluster::{ClusterGroup, ClusterOutcome, ClusterValidationId};
use crate::validation::{IgnoredValidations, ValidationResults};

/// The facts that decide the status of a cluster before its installation.
#[derive(Clone, Copy, Debug)]
pub struct ClusterConclusions {
    /// `true` if a DHCP server assigns the virtual IP addresses.
    pub(super) has_vip_dhcp_allocation: bool,
    /// `true` if the user has provided all required settings, apart from the virtual IP addresses.
    pub(super) has_required_settings: bool,
    /// `true` if the virtual IP addresses are set.
    pub(super) has_vips: bool,
    /// `true` if no other validation blocks the installation.
    pub(super) is_installable: bool,
}

impl ClusterConclusions {
    /// Derives the facts from the validation results of a cluster. `has_vip_dhcp_allocation` is `true` if a DHCP server
    /// assigns its virtual IP addresses.
    #[must_use]
    pub fn new(
        has_vip_dhcp_allocation: bool,
        results: &ValidationResults<ClusterOutcome>,
        ignored: &IgnoredValidations<ClusterValidationId>,
    ) -> Self {
        let satisfies = |group| results.satisfies(group, ignored);
        Self {
            has_vip_dhcp_allocation,
            has_required_settings: satisfies(ClusterGroup::PendingConditions),
            has_vips: satisfies(ClusterGroup::VipsDefined),
            is_installable: satisfies(ClusterGroup::RequiredForInstall),
        }
    }
}
