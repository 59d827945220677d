//! Groups of cluster validations. A status rule can require that all validations of a group are satisfied.

/// A group of cluster validations. A status rule can require that all of them are satisfied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterGroup {
    /// The user has provided the required settings. Otherwise the cluster is `pending-for-input`.
    PendingConditions,
    /// The virtual IP addresses are set.
    VipsDefined,
    /// All conditions for an installation are met.
    RequiredForInstall,
}
