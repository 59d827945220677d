//! The result of a successful check.

use crate::finding::DiscoveryReport;

/// A checked value, and the warnings about it.
#[derive(Clone, Debug)]
#[must_use = "the value has warnings to report"]
pub struct Checked<T> {
    /// The value, without errors but possibly with warnings.
    pub value: T,
    /// The findings that are not errors. Most of them point to mistakes.
    pub warnings: DiscoveryReport,
}
