//! What all inputs share: the error that refuses one, and small identifiers.

use std::fmt;

/// A value that cannot go into a config, with the name of its field.
///
/// The value is in the message unless the field is a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}{}: {reason}", Quoted(found.as_deref()))]
#[non_exhaustive]
pub struct InputError {
    /// The field, as the inventory's API calls it.
    pub field: &'static str,
    /// The value; nothing for secrets.
    pub found: Option<String>,
    /// What is wrong with it.
    pub reason: String,
}

struct Quoted<'a>(Option<&'a str>);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Most characters of a value in a message.
        const SHOWN: usize = 100;
        match self.0 {
            None => Ok(()),
            Some(text) if text.chars().nth(SHOWN).is_some() => {
                write!(f, " {:?}...", text.chars().take(SHOWN).collect::<String>())
            }
            Some(text) => write!(f, " {text:?}"),
        }
    }
}

impl InputError {
    pub(crate) fn new(field: &'static str, found: &str, reason: impl Into<String>) -> Self {
        Self { field, found: Some(found.to_owned()), reason: reason.into() }
    }

    pub(crate) fn secret(field: &'static str, reason: impl Into<String>) -> Self {
        Self { field, found: None, reason: reason.into() }
    }
}

/// The UUID of an infra-env, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InfraEnvId(String);

impl InfraEnvId {
    /// Reads the form with four dashes.
    ///
    /// # Errors
    ///
    /// When the text is anything else.
    pub fn parse(text: &str) -> Result<Self, InputError> {
        const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
        let is_hex = |group: &str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
        if text.split('-').map(str::len).eq(GROUPS) && text.split('-').all(is_hex) {
            return Ok(Self(text.to_ascii_lowercase()));
        }
        Err(InputError::new("infra_env_id", text, "is no UUID of the form 8-4-4-4-12"))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InfraEnvId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A container image, as podman is asked for it: registry and name, with a tag or a digest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageReference(String);

impl ImageReference {
    /// A name of 255 bytes, a tag of 128 and a digest leave this one room.
    const MAX_LEN: usize = 512;

    /// Reads a reference. The characters are checked, the registry is not asked.
    ///
    /// # Errors
    ///
    /// When the text is empty, too long, or holds characters that no reference has.
    pub fn parse(field: &'static str, text: &str) -> Result<Self, InputError> {
        let bad = text.chars().find(|it| !(it.is_ascii_alphanumeric() || "._-:/@".contains(*it)));
        let reason = match bad {
            Some(bad) => format!("has the character {bad:?}, which no image reference has"),
            None if text.len() > Self::MAX_LEN => format!("is longer than {} characters", Self::MAX_LEN),
            // A name that begins with a dash would be an option of podman.
            None if !text.starts_with(|it: char| it.is_ascii_alphanumeric()) => {
                "does not begin with a letter or a digit".to_owned()
            }
            None => return Ok(Self(text.to_owned())),
        };
        Err(InputError::new(field, text, reason))
    }

    /// The text.
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

/// The name of a machine: a host name in lower case that Linux has room for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(String);

impl HostName {
    /// The kernel keeps so many bytes of a name. What does not fit is not cut off but ignored.
    const MAX_LEN: usize = 64;

    /// Reads a name, with a domain or without.
    ///
    /// # Errors
    ///
    /// When the text is no host name, has upper-case letters, or is too long.
    pub fn parse(field: &'static str, text: &str) -> Result<Self, InputError> {
        let reason = if !is_host_name(text) || text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            "is no host name in lower case".to_owned()
        } else if text.len() > Self::MAX_LEN {
            format!("is longer than {} characters", Self::MAX_LEN)
        } else {
            return Ok(Self(text.to_owned()));
        };
        Err(InputError::new(field, text, reason))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A host name that DNS can hold: labels of letters, digits and inner dashes, 253 bytes at most.
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
    fn an_error_names_field_and_value_but_no_secret() {
        assert_eq!(InputError::new("a.b", "x\n", "is bad").to_string(), r#"a.b "x\n": is bad"#);
        assert_eq!(InputError::secret("a.b", "is bad").to_string(), "a.b: is bad");
        let long = InputError::new("a", &"x".repeat(1 << 20), "is bad").to_string();
        assert_eq!(long, format!("a \"{}\"...: is bad", "x".repeat(100)));
    }

    #[test]
    fn an_infra_env_has_a_uuid() {
        let id = InfraEnvId::parse("0F2A5D3C-1111-4222-8333-444455556666").unwrap();
        assert_eq!(id.as_str(), "0f2a5d3c-1111-4222-8333-444455556666");
        for bad in ["", "0f2a5d3c111142228333444455556666", "0f2a5d3c-1111-4222-8333-44445555666g", "a\nb"] {
            assert!(InfraEnvId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_image_reference_has_no_room_for_anything_else() {
        for good in ["a", "quay.io:443/a/b-c_d:v1.2", "localhost/a@sha256:00ff"] {
            assert_eq!(ImageReference::parse("agent_image", good).unwrap().as_str(), good);
        }
        for bad in ["", "-v", "a b", "a\nb", "a%b", "a$b", "a\"b", &"a".repeat(513)] {
            let error = ImageReference::parse("agent_image", bad).unwrap_err();
            assert!(error.to_string().starts_with("agent_image "), "{error}");
        }
    }

    #[test]
    fn a_machine_has_a_short_name_in_lower_case() {
        let longest = format!("{}.b", "a".repeat(62));
        for good in ["a", "node-0.lab.example.com", &longest] {
            assert_eq!(HostName::parse("hostname", good).unwrap().as_str(), good);
        }
        for (bad, reason) in [
            ("", "lower case"),
            ("Node", "lower case"),
            ("a b", "lower case"),
            ("$(id)", "lower case"),
            (&format!("{longest}c"), "longer than 64"),
        ] {
            let error = HostName::parse("hostname", bad).unwrap_err().to_string();
            assert!(error.starts_with("hostname ") && error.contains(reason), "{error}");
        }
    }

    #[test]
    fn host_names_have_labels() {
        for good in ["a", "a-b.c", "0.pool.ntp.org", "A1", &format!("{0}.{0}.{0}", "a".repeat(63))] {
            assert!(is_host_name(good), "{good}");
        }
        for bad in ["", ".a", "a.", "a..b", "-a", "a-", "a_b", "a b", "ä", &"a".repeat(64)] {
            assert!(!is_host_name(bad), "{bad}");
        }
    }
}
