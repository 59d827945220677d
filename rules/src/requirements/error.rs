//! The errors of hardware requirements.

/// The reason why a table of hardware requirements is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRequirements {
    /// The text is not a JSON list of entries.
    #[error("hardware requirements are not a valid JSON list")]
    Json(#[source] serde_json::Error),
    /// An entry has no version.
    #[error("entry {index} of the hardware requirements has no \"version\"")]
    NoVersion {
        /// Position in the list, from 0.
        index: usize,
    },
    /// The way in which an entry matches versions is unknown.
    #[error(
        "match_type {match_type:?} of version {version:?} is invalid (expected \"exact\" or \"min_version\")"
    )]
    MatchType {
        /// Version of the entry.
        version: String,
        /// The value.
        match_type: String,
    },
    /// Two entries match the same version in the same way.
    #[error("version {version:?} has two entries with the same match_type")]
    Duplicate {
        /// Version of the second entry.
        version: String,
    },
    /// The lowest version of an entry is not a version.
    #[error("{version:?} cannot be a lowest version (expected a version such as 4.22)")]
    MinVersion {
        /// The text.
        version: String,
    },
    /// The table has no default entry, so that it would have no requirements for other versions.
    #[error("hardware requirements need an entry for version \"default\"")]
    NoDefault,
    /// An entry has no requirements for a role, and neither has the default entry.
    #[error("version {version:?} has no requirements for role {role}")]
    NoRole {
        /// Version of the entry.
        version: String,
        /// Role.
        role: &'static str,
    },
    /// A requirement is missing or too low.
    #[error("{field} of role {role} for version {version:?} must be at least {minimum}, got {value}")]
    TooLow {
        /// Version of the entry.
        version: String,
        /// Role.
        role: &'static str,
        /// Key of the requirement.
        field: &'static str,
        /// Lowest valid value.
        minimum: i64,
        /// The value. 0 if it is missing.
        value: i64,
    },
}
