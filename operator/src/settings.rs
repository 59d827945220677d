//! The settings that a program passes to the operator.

/// Settings that decide which objects the operator reconciles, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// The namespaces whose resources are reconciled. Empty means all namespaces.
    pub namespaces: Vec<String>,
    /// The namespace of the lease that decides which replica writes.
    pub lease_namespace: String,
    /// The name of this replica in the lease.
    pub identity: String,
    /// Maximum number of requests to the Kubernetes API per second.
    pub requests_per_second: u32,
}

impl Settings {
    /// The default of `requests_per_second`.
    pub const REQUESTS_PER_SECOND: u32 = 50;

    /// Returns settings for all namespaces.
    pub fn new(lease_namespace: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespaces: Vec::new(),
            lease_namespace: lease_namespace.into(),
            identity: identity.into(),
            requests_per_second: Self::REQUESTS_PER_SECOND,
        }
    }
}
