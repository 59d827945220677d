//! The roles that the service suggests for the hosts of a cluster.

use assisted::HostId;
use assisted::host::HostRole;

use crate::requirements::HardwareRequirements;
use crate::view::ClusterView;

/// Returns the hosts whose suggested role must change, with their new roles.
#[must_use]
pub fn new_suggestions(_view: &ClusterView, _hardware: &HardwareRequirements) -> Vec<(HostId, HostRole)> {
    Vec::new()
}
