//! The identity and the version of a Kubernetes object.

use std::fmt;

use kube::api::ObjectMeta;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectKey {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl ObjectKey {
    pub(crate) fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// Returns the key from the metadata of a stored object. `None` if the namespace or name is missing.
    #[must_use]
    pub(crate) fn from_meta(meta: &ObjectMeta) -> Option<Self> {
        Some(Self::new(meta.namespace.as_deref()?, meta.name.as_deref()?))
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A `resourceVersion`. The API server assigns increasing numbers to the versions of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version(String);

impl Version {
    /// Returns the version from the metadata of a stored object.
    #[must_use]
    pub(crate) fn from_meta(meta: &ObjectMeta) -> Self {
        Self(meta.resource_version.clone().unwrap_or_default())
    }

    #[must_use]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns `true` if this version is older than `other` or equal to it. Returns `false` if a version is not a
    /// number.
    #[must_use]
    pub(crate) fn is_at_most(&self, other: &Self) -> bool {
        match (self.0.parse::<u128>(), other.0.parse::<u128>()) {
            (Ok(this), Ok(other)) => this <= other,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let version = |text: &str| Version(text.to_owned());
        assert!(version("9").is_at_most(&version("10")));
        assert!(version("10").is_at_most(&version("10")));
        assert!(!version("11").is_at_most(&version("10")));
        assert!(!version("a").is_at_most(&version("b")));
    }
}
