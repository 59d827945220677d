//! The errors for invalid tables of hardware requirements.

/// The reason why a table of hardware requirements is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRequirements {
    /// The text is not a JSON list of entries.
    #[error("hardware requirements are not a valid JSON list")]
    Json(#[source] serde_json::Error),
    /// An entry has no version, or an empty one.
    #[error("entry {index} of the hardware requirements has no \"version\"")]
    NoVersion {
        /// Position of the entry in the list, from 0.
        index: usize,
    },
    /// An entry has an unknown `match_type`.
    #[error(
        "match_type {match_type:?} of version {version:?} is invalid (expected \"exact\" or \"min_version\")"
    )]
    MatchType {
        /// Version of the entry.
        version: String,
        /// The invalid `match_type`.
        match_type: String,
    },
    /// Two entries have the same version and the same `match_type`.
    #[error("version {version:?} has two entries with the same match_type")]
    Duplicate {
        /// Version of the later entry.
        version: String,
    },
    /// An entry with `match_type` `min_version` has a version that does not parse.
    #[error("{version:?} cannot be a lowest version (expected a version such as 4.22)")]
    MinVersion {
        /// The version that does not parse.
        version: String,
    },
    /// The table has no `default` entry, so some versions would have no requirements.
    #[error("hardware requirements need an entry for version \"default\"")]
    NoDefault,
    /// A role is missing in an entry and in the `default` entry.
    #[error("version {version:?} has no requirements for role {role}")]
    NoRole {
        /// Version of the entry.
        version: String,
        /// Name of the role.
        role: &'static str,
    },
    /// A requirement is missing or too low.
    #[error("{field} of role {role} for version {version:?} must be at least {minimum}, got {value}")]
    TooLow {
        /// Version of the entry.
        version: String,
        /// Name of the role.
        role: &'static str,
        /// JSON key of the requirement.
        field: &'static str,
        /// Minimum valid value.
        minimum: i64,
        /// The invalid value. 0 if the key is missing.
        value: i64,
    },
}
