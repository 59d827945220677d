//! The sets of cluster validations that rules require together.

/// A set of cluster validations that rules require together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterGroup {
    /// Settings without which the cluster waits for its user.
    PendingConditions,
    /// The virtual IP addresses are known.
    VipsDefined,
    /// The cluster can be installed.
    RequiredForInstall,
}
