//! The error for invalid inputs, and small identifiers that several inputs contain.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use crate::validate::is_guid;
use crate::visible::visible;

/// An invalid input for a config, with the name of its field.
///
/// The message contains the value unless the field is a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {reason}", visible(field), QuotedValue(found.as_deref()))]
#[non_exhaustive]
pub struct InputError {
    /// The name of the field in the inventory's API.
    pub field: &'static str,
    /// The invalid value; `None` for secrets.
    pub found: Option<String>,
    /// The reason why the value is invalid.
    pub reason: String,
}

struct QuotedValue<'a>(Option<&'a str>);

impl fmt::Display for QuotedValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Maximum length of a value in a message, in characters.
        const MAX_SHOWN_CHARS: usize = 100;
        match self.0 {
            None => Ok(()),
            Some(text) if text.chars().nth(MAX_SHOWN_CHARS).is_some() => {
                write!(f, " {:?}...", text.chars().take(MAX_SHOWN_CHARS).collect::<String>())
            }
            Some(text) => write!(f, " {text:?}"),
        }
    }
}

impl InputError {
    pub(crate) fn new(field: &'static str, value: &str, reason: impl Into<String>) -> Self {
        Self { field, found: Some(value.to_owned()), reason: reason.into() }
    }

    pub(crate) fn secret(field: &'static str, reason: impl Into<String>) -> Self {
        Self { field, found: None, reason: reason.into() }
    }
}

/// The UUID of an infra-env, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InfraEnvId(String);

impl InfraEnvId {
    /// Parses a UUID in the form with four dashes.
    ///
    /// # Errors
    ///
    /// Returns an error if the text has another form.
    pub fn parse(text: &str) -> Result<Self, InputError> {
        if is_guid(text) {
            return Ok(Self(text.to_ascii_lowercase()));
        }
        Err(InputError::new("infra_env_id", text, "is not a UUID of the form 8-4-4-4-12"))
    }

    /// Returns the UUID as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for InfraEnvId {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        Self::parse(text)
    }
}

impl fmt::Display for InfraEnvId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A container image reference in the form that podman accepts: registry and name, with a tag or a digest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageReference(String);

impl ImageReference {
    /// Maximum length of a reference in bytes. It allows a name of 255 bytes, a tag of 128 bytes and a SHA-256 digest.
    const MAX_LEN: usize = 512;

    /// Parses a reference. It checks only the characters and does not contact the registry.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is empty, too long, or contains invalid characters.
    pub fn parse(field: &'static str, text: &str) -> Result<Self, InputError> {
        let bad = text.chars().find(|it| !(it.is_ascii_alphanumeric() || "._-:/@".contains(*it)));
        let reason = match bad {
            Some(bad) => {
                format!("contains the character {bad:?}, which is not allowed in an image reference")
            }
            None if text.len() > Self::MAX_LEN => format!("is longer than {} characters", Self::MAX_LEN),
            // Podman would interpret a name that begins with a dash as an option.
            None if !text.starts_with(|it: char| it.is_ascii_alphanumeric()) => {
                "does not begin with a letter or a digit".to_owned()
            }
            None => return Ok(Self(text.to_owned())),
        };
        Err(InputError::new(field, text, reason))
    }

    /// Returns the reference as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The name of a machine: a lower-case host name that is short enough for Linux.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(String);

impl HostName {
    /// Maximum length of a host name in the Linux kernel. The kernel ignores a longer name; it does not truncate it.
    const MAX_LEN: usize = 64;

    /// Parses a name, with or without a domain.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a host name, has upper-case letters, or is too long.
    pub fn parse(field: &'static str, text: &str) -> Result<Self, InputError> {
        let reason = if !is_host_name(text) || text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            "is not a lower-case host name".to_owned()
        } else if text.len() > Self::MAX_LEN {
            format!("is longer than {} characters", Self::MAX_LEN)
        } else {
            return Ok(Self(text.to_owned()));
        };
        Err(InputError::new(field, text, reason))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Returns the entries of a comma-separated list. White space around an entry, empty entries and repeated entries are
/// removed.
pub(super) fn list_entries(list: &str) -> impl Iterator<Item = &str> {
    let mut unique = HashSet::new();
    list.split(',').map(str::trim).filter(move |entry| !entry.is_empty() && unique.insert(*entry))
}

/// Returns `true` if DNS allows the host name: labels of letters, digits and inner dashes, at most 253 bytes.
pub(crate) fn is_host_name(text: &str) -> bool {
    const MAX_LEN: usize = 253;
    const MAX_LABEL_LEN: usize = 63;
    let is_label = |label: &str| {
        (1..=MAX_LABEL_LEN).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= MAX_LEN && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_field_and_value_but_no_secret() {
        assert_eq!(InputError::new("a.b", "x\n", "is bad").to_string(), r#"a.b "x\n": is bad"#);
        assert_eq!(InputError::new("", "", "is bad").to_string(), r#""" "": is bad"#);
        assert_eq!(InputError::secret("a.b", "is bad").to_string(), "a.b: is bad");
        let long = InputError::new("a", &"x".repeat(1 << 20), "is bad").to_string();
        assert_eq!(long, format!("a \"{}\"...: is bad", "x".repeat(100)));
    }

    #[test]
    fn infra_env_id_is_a_uuid() {
        let id = InfraEnvId::parse("0F2A5D3C-1111-4222-8333-444455556666").unwrap();
        assert_eq!(id.as_str(), "0f2a5d3c-1111-4222-8333-444455556666");
        for bad in ["", "0f2a5d3c111142228333444455556666", "0f2a5d3c-1111-4222-8333-44445555666g", "a\nb"] {
            assert!(InfraEnvId::parse(bad).is_err(), "{bad:?}");
            assert_eq!(bad.parse::<InfraEnvId>().unwrap_err().field, "infra_env_id");
        }
    }

    #[test]
    fn rejects_invalid_image_references() {
        for good in ["a", "quay.io:443/a/b-c_d:v1.2", "localhost/a@sha256:00ff"] {
            assert_eq!(ImageReference::parse("agent_image", good).unwrap().as_str(), good);
        }
        for bad in ["", "-v", "a b", "a\nb", "a%b", "a$b", "a\"b", &"a".repeat(513)] {
            let error = ImageReference::parse("agent_image", bad).unwrap_err();
            assert!(error.to_string().starts_with("agent_image "), "{error}");
        }
    }

    #[test]
    fn rejects_long_and_upper_case_machine_names() {
        let longest = format!("{}.b", "a".repeat(62));
        for good in ["a", "node-0.lab.example.com", &longest] {
            assert_eq!(HostName::parse("hostname", good).unwrap().as_str(), good);
        }
        for (bad, reason) in [
            ("", "lower-case"),
            ("Node", "lower-case"),
            ("a b", "lower-case"),
            ("$(id)", "lower-case"),
            (&format!("{longest}c"), "longer than 64"),
        ] {
            let error = HostName::parse("hostname", bad).unwrap_err().to_string();
            assert!(error.starts_with("hostname ") && error.contains(reason), "{error}");
        }
    }

    #[test]
    fn host_names_consist_of_labels() {
        for good in ["a", "a-b.c", "0.pool.ntp.org", "A1", &format!("{0}.{0}.{0}", "a".repeat(63))] {
            assert!(is_host_name(good), "{good}");
        }
        for bad in ["", ".a", "a.", "a..b", "-a", "a-", "a_b", "a b", "ä", &"a".repeat(64)] {
            assert!(!is_host_name(bad), "{bad}");
        }
    }
}
