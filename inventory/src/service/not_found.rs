//! The message for missing records, which is the same for all kinds.

/// The message for a record that does not exist.
pub(crate) const NOT_FOUND: &str = "record not found";
