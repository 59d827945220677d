//! Reading an Ignition config of any supported spec version, and writing it back.
//!
//! Reading checks the structure that the declared version demands and collects the keys that the version does
//! not know. It does not check values (paths, modes, URLs), and it neither merges nor translates.

use std::fmt;

pub use ignition_config::Config;

/// The oldest and newest spec versions that [`parse`] reads.
pub const SUPPORTED_VERSIONS: (&str, &str) = ("3.0.0", "3.6.0");

/// A config that was read, with what its version did not understand.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The config, in the types of its own spec version.
    pub config: Config,
    /// What was skipped, in the order of the text.
    pub warnings: Vec<Warning>,
}

/// Something in a config that has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A key that the declared spec version does not know; holds its path, such as `$.storage.luks`.
    UnusedKey(String),
    /// Any other remark of the reader.
    Other(String),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnusedKey(path) => write!(f, "unused key: {path}"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl From<ignition_config::Warning> for Warning {
    fn from(warning: ignition_config::Warning) -> Self {
        match warning {
            ignition_config::Warning::UnusedKey(path) => Self::UnusedKey(path),
            other => Self::Other(other.to_string()),
        }
    }
}

/// Why a config could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The text is not JSON, or not of the shape that its version demands.
    #[error("the config is not valid Ignition JSON")]
    Json(#[source] serde_json::Error),
    /// `ignition.version` is not a version number at all.
    #[error("ignition.version is not a version number such as 3.3.0")]
    Version(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// `ignition.version` names a version that this crate does not know.
    #[error(
        "ignition.version {found} is not supported; supported are {oldest} to {newest}",
        oldest = SUPPORTED_VERSIONS.0,
        newest = SUPPORTED_VERSIONS.1
    )]
    UnsupportedVersion {
        /// The version that the config declares.
        found: String,
    },
    /// Any other failure of the reader.
    #[error("the config cannot be read")]
    Other(#[source] ignition_config::Error),
    /// The config could not be written as JSON.
    #[error("the config cannot be written as JSON")]
    Write(#[source] serde_json::Error),
}

impl From<ignition_config::Error> for ConfigError {
    fn from(error: ignition_config::Error) -> Self {
        match error {
            ignition_config::Error::Serialization(source) => Self::Json(source),
            ignition_config::Error::InvalidVersion(source) => Self::Version(Box::new(source)),
            ignition_config::Error::UnknownVersion(found) => {
                Self::UnsupportedVersion { found: found.to_string() }
            }
            other => Self::Other(other),
        }
    }
}

/// Reads a config of spec 3.0 to 3.6.
///
/// # Errors
///
/// When the text is not JSON, when it lacks a mandatory key or holds a value of the wrong type, and when its
/// version is missing, malformed or unknown.
///
/// # Examples
///
/// ```
/// let parsed = ignition::config::parse(br#"{"ignition": {"version": "3.4.0"}, "colour": "blue"}"#)?;
/// assert_eq!(parsed.warnings[0].to_string(), "unused key: $.colour");
/// # Ok::<(), ignition::config::ConfigError>(())
/// ```
pub fn parse(json: &[u8]) -> Result<Parsed, ConfigError> {
    let (config, warnings) = Config::parse_slice(json)?;
    Ok(Parsed { config, warnings: warnings.into_iter().map(Warning::from).collect() })
}

/// Writes a config as JSON on one line, without a final newline.
///
/// Unset values of simple types appear as `null`; unset sections and lists do not appear. Unknown keys of the
/// text that was read are gone.
///
/// # Errors
///
/// Only when the JSON writer fails, which no config that [`parse`] returned makes it do.
pub fn to_json(config: &Config) -> Result<Vec<u8>, ConfigError> {
    serde_json::to_vec(config).map_err(ConfigError::Write)
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn every_minor_version_is_read_and_kept() {
        for minor in 0..=6 {
            let text = format!(r#"{{"ignition":{{"version":"3.{minor}.0"}}}}"#);
            let parsed = parse(text.as_bytes()).unwrap();
            assert!(parsed.warnings.is_empty());
            assert_eq!(to_json(&parsed.config).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn unknown_keys_are_warnings_with_their_path() {
        let text = br#"{"ignition":{"version":"3.0.0"},
            "storage":{"files":[{"path":"/a","shiny":1}],"luks":[]}}"#;
        let parsed = parse(text).unwrap();
        assert_eq!(
            parsed.warnings,
            [
                Warning::UnusedKey("$.storage.files.0.shiny".into()),
                Warning::UnusedKey("$.storage.luks".into()),
            ]
        );
    }

    #[test]
    fn writing_spells_out_unset_simple_values() {
        let text = br#"{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"/a"}]}}"#;
        let json = to_json(&parse(text).unwrap().config).unwrap();
        let json = String::from_utf8(json).unwrap();
        assert!(json.contains(r#""mode":null"#), "{json}");
        assert!(!json.contains("systemd"), "{json}");
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let json = parse(b"[connection]").unwrap_err();
        assert!(matches!(json, ConfigError::Json(_)), "{json:?}");
        assert!(json.source().is_some());
        let version = parse(br#"{"ignition":{"version":"3.1"}}"#).unwrap_err();
        assert!(matches!(version, ConfigError::Version(_)), "{version:?}");
        let future = parse(br#"{"ignition":{"version":"3.7.0-experimental"}}"#).unwrap_err();
        assert_eq!(
            future.to_string(),
            "ignition.version 3.7.0-experimental is not supported; supported are 3.0.0 to 3.6.0"
        );
        assert!(parse(b"{}").is_err());
        assert!(parse(br#"{"ignition":{"version":"3.0.0"},"storage":{"files":[{}]}}"#).is_err());
    }
}
