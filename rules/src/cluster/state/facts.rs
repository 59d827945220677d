//! The facts that the rules of each event read.

use crate::validation::cluster::{ClusterGroup, ClusterOutcome, ClusterValidationId};
use crate::validation::{IgnoredValidations, ValidationResults};

/// The conclusions that decide the status of a cluster before its installation.
#[derive(Clone, Copy, Debug)]
pub struct ClusterConclusions {
    /// A DHCP server assigns the virtual IP addresses.
    pub(super) has_vip_dhcp_allocation: bool,
    /// The user has made all required settings, except the virtual IP addresses.
    pub(super) has_required_settings: bool,
    /// The virtual IP addresses are known.
    pub(super) has_vips: bool,
    /// No other validation blocks the installation.
    pub(super) is_installable: bool,
}

impl ClusterConclusions {
    /// Returns the conclusions from the results of a cluster. `has_vip_dhcp_allocation`: a DHCP server assigns its virtual
    /// IP addresses.
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
