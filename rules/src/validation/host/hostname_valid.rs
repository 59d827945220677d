//! Validation `hostname-valid`: whether the name of the host is valid. The API checks requested names with the same
//! rules.

use serde::{Deserialize, Serialize};

use super::group::HostGroup;
use super::input::HostInput;
use super::missing_inventory::{MISSING_INVENTORY, WAIT_FOR_INVENTORY};
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};

/// Variants of `localhost`, which do not identify a host.
pub const FORBIDDEN_HOSTNAMES: [&str; 6] = [
    "localhost",
    "localhost.localdomain",
    "localhost4",
    "localhost4.localdomain4",
    "localhost6",
    "localhost6.localdomain6",
];

/// The pattern of a valid name, as messages show it. [`has_pattern`] implements it.
const PATTERN: &str = "^[a-z0-9][a-z0-9-]{0,62}(?:[.][a-z0-9-]{1,63})*$";

/// Maximum length of a name, and of each label in it.
const MAX_LEN: usize = 63;

const CHOOSE_NAME: &str = "Set another name of the host: lower-case letters, digits, hyphens and dots.";

/// The reason why a name is invalid. Clients see the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostnameError {
    /// The name has too many characters.
    #[error("hostname is too long, must be {MAX_LEN} characters or less. Hostname: {0} has {len} characters", len = .0.len())]
    TooLong(Box<str>),
    /// The name does not match the pattern.
    #[error("Hostname does not pass required regex validation: {PATTERN}. Hostname: {0}")]
    Pattern(Box<str>),
    /// The name does not identify a host.
    #[error("The host name {0} is forbidden")]
    Forbidden(Box<str>),
}

/// Checks a host name.
///
/// # Errors
///
/// Returns an error if the name is too long, does not match the pattern or is a variant of `localhost`.
pub fn check_hostname(name: &str) -> Result<(), HostnameError> {
    if name.len() > MAX_LEN {
        return Err(HostnameError::TooLong(name.into()));
    }
    if !has_pattern(name) {
        return Err(HostnameError::Pattern(name.into()));
    }
    if FORBIDDEN_HOSTNAMES.contains(&name) {
        return Err(HostnameError::Forbidden(name.into()));
    }
    Ok(())
}

/// Returns `true` if a name matches [`PATTERN`].
fn has_pattern(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_label = |label: &str| (1..=MAX_LEN).contains(&label.len()) && label.bytes().all(is_allowed);
    !name.starts_with('-') && name.split('.').all(is_label)
}

/// The outcome of the validation `hostname-valid`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostnameOutcome {
    /// No inventory report is stored.
    MissingInventory,
    /// The name is valid.
    Allowed {
        /// Name of the host.
        name: Box<str>,
    },
    /// The name is a variant of `localhost`, which does not identify a host.
    Forbidden {
        /// Name of the host.
        name: Box<str>,
    },
    /// The name is not a valid DNS name, or it is too long.
    Malformed {
        /// Name of the host.
        name: Box<str>,
    },
}

impl TypedOutcome for HostnameOutcome {
    type Group = HostGroup;
    type Input<'a> = HostInput<'a>;

    const DEFINITION: ValidationDefinition<HostGroup> = ValidationDefinition {
        category: ValidationCategory::Hardware,
        groups: &[HostGroup::SufficientForInstall, HostGroup::Unbound],
        is_ignorable: false,
        hidden_in: &[],
        applies_to: "all hosts",
        passes_if: "the name is a DNS name of at most 63 characters, and not a name that every host has, such as `localhost`",
    };

    fn evaluate(input: &HostInput<'_>) -> Self {
        if input.inventory().is_none() {
            return Self::MissingInventory;
        }
        let name: Box<str> = input.host.hostname().into();
        match check_hostname(&name) {
            Ok(()) => Self::Allowed { name },
            Err(HostnameError::Forbidden(_)) => Self::Forbidden { name },
            Err(HostnameError::TooLong(_) | HostnameError::Pattern(_)) => Self::Malformed { name },
        }
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            // Unlike other validations, this one fails without an inventory report, as in the Assisted Installer.
            Self::MissingInventory => OutcomeDescription::failure(MISSING_INVENTORY, WAIT_FOR_INVENTORY),
            Self::Allowed { name } => OutcomeDescription::success(format!("Hostname {name} is allowed")),
            Self::Forbidden { name } => {
                OutcomeDescription::failure(format!("The host name {name} is forbidden"), CHOOSE_NAME)
            }
            Self::Malformed { name } => OutcomeDescription::failure(
                format!("Hostname {name} is forbidden, hostname should match pattern {PATTERN}"),
                CHOOSE_NAME,
            ),
        }
    }

    fn samples() -> Vec<Self> {
        let name = || Box::from("*name*");
        vec![
            Self::MissingInventory,
            Self::Allowed { name: name() },
            Self::Forbidden { name: "localhost".into() },
            Self::Malformed { name: name() },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_dns_names() {
        for name in ["a", "node-1", "node-1.example.com", "0a", "a.-b", "a-", &"a".repeat(63)] {
            check_hostname(name).unwrap();
        }
        let long = "a".repeat(64);
        for name in [
            "",
            "-a",
            "A",
            "a_b",
            "a..b",
            ".a",
            "a.",
            "localhost",
            "localhost6.localdomain6",
            "a\n",
            "ä",
            &long,
        ] {
            assert!(check_hostname(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn check_agrees_with_the_pattern() {
        let pattern = regex::Regex::new(PATTERN).unwrap();
        let parts = ["", "a", "9", "-", ".", "_", "A", "\n", &"a".repeat(62)];
        for first in parts {
            for second in parts {
                for third in parts {
                    let name = format!("{first}{second}{third}");
                    assert_eq!(has_pattern(&name), pattern.is_match(&name), "{name:?}");
                }
            }
        }
    }

    #[test]
    fn error_texts_match_the_api() {
        let long = "a".repeat(64);
        let too_long = format!(
            "hostname is too long, must be 63 characters or less. Hostname: {long} has 64 characters"
        );
        let pattern = format!("Hostname does not pass required regex validation: {PATTERN}. Hostname: A");
        for (name, reason) in [
            (long.as_str(), too_long.as_str()),
            ("A", pattern.as_str()),
            ("localhost", "The host name localhost is forbidden"),
        ] {
            assert_eq!(check_hostname(name).unwrap_err().to_string(), reason);
        }
    }
}
