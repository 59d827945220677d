//! Identity and version of an object.

use std::fmt;

use kube::api::ObjectMeta;

/// The namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectKey {
    /// The namespace.
    pub(crate) namespace: String,
    /// The name.
    pub(crate) name: String,
}

impl ObjectKey {
    /// Returns the key with this namespace and name.
    pub(crate) fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// Returns the key of an object with this metadata. A stored object always has a namespace and a name.
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

/// A `resourceVersion`. Versions of one kind are ordered: the API server counts them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version(String);

impl Version {
    /// Returns the version of an object with this metadata. A stored object always has one.
    #[must_use]
    pub(crate) fn from_meta(meta: &ObjectMeta) -> Self {
        Self(meta.resource_version.clone().unwrap_or_default())
    }

    /// Returns the text of the version.
    #[must_use]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns `true` if this version is older than the other, or the same. Versions that are not numbers cannot be
    /// compared, so they never are.
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
