//! Infra-envs that a resource outside of this service defines, such as a custom resource of Kubernetes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The resource that defines a record. Only the operator of that resource changes the record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResourceOwner {
    /// The kind, such as `InfraEnv`.
    pub kind: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ResourceOwner {
    /// Returns the owner with this kind, namespace and name.
    pub fn new(kind: impl Into<String>, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { kind: kind.into(), namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ResourceOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}
