//! Values that passed their checks.

use crate::finding::DiscoveryReport;

/// A value that passed its checks, and the warnings about it.
#[derive(Clone, Debug)]
#[must_use = "the value has warnings to report"]
pub struct Checked<T> {
    /// The value.
    pub value: T,
    /// The findings that are not errors. Most of them are mistakes.
    pub warnings: DiscoveryReport,
}
