//! The owner of an infra-env: a resource outside of this service, such as a Kubernetes custom resource.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The resource that defines a record. Only the operator of this resource may change the record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResourceOwner {
    /// The Kubernetes kind of the resource, such as `InfraEnv`.
    pub kind: String,
    /// The Kubernetes namespace that contains the resource.
    pub namespace: String,
    /// The name of the resource in its namespace.
    pub name: String,
}

impl ResourceOwner {
    /// Returns the owner with the given kind, namespace and name.
    pub fn new(kind: impl Into<String>, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { kind: kind.into(), namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ResourceOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}
