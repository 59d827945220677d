//! Groups of cluster validations. The status rules of clusters require whole groups.

/// A group of cluster validations, which a status rule requires as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterGroup {
    /// Settings that the user must make. The cluster has status `pending-for-input` until then.
    PendingConditions,
    /// The virtual IP addresses are set.
    VipsDefined,
    /// All conditions for an installation are met.
    RequiredForInstall,
}
