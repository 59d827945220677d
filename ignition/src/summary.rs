//! Summarises a config for users who inspect an image.

use serde::Serialize;
use serde_json::Value;

use crate::config::{Config, ConfigError, ParsedConfig};

/// A summary of a config: counts and names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ConfigSummary {
    /// The spec version, for example `3.4.0`.
    pub version: String,
    /// Number of configs that Ignition merges at boot.
    pub merges: usize,
    /// Number of files.
    pub files: usize,
    /// Number of directories.
    pub directories: usize,
    /// Number of links.
    pub links: usize,
    /// The names of the units that the config writes or enables.
    pub units: Vec<String>,
    /// The names of the users that the config creates or changes.
    pub users: Vec<String>,
    /// The names of the users that the config removes.
    pub removed_users: Vec<String>,
    /// Warnings about keys that Ignition would ignore.
    pub warnings: Vec<String>,
}

impl ConfigSummary {
    /// Summarises a config of any supported spec version.
    ///
    /// # Errors
    ///
    /// Returns an error if [`Config::parse`] rejects the text.
    ///
    /// # Examples
    ///
    /// ```
    /// let config = br#"{"ignition": {"version": "3.3.0"}, "systemd": {"units": [{"name": "a.service"}]}}"#;
    /// let summary = ignition::summary::ConfigSummary::parse(config)?;
    /// assert_eq!((summary.version.as_str(), summary.units.len()), ("3.3.0", 1));
    /// # Ok::<(), ignition::config::ConfigError>(())
    /// ```
    pub fn parse(json: &[u8]) -> Result<Self, ConfigError> {
        Ok(Self::from(&Config::parse(json)?))
    }
}

impl From<&ParsedConfig> for ConfigSummary {
    fn from(parsed: &ParsedConfig) -> Self {
        let config = parsed.config.to_value();
        // The tree contains no empty lists, so an empty list is absent.
        let items = |path: &str| config.pointer(path).and_then(Value::as_array).into_iter().flatten();
        let count = |path: &str| items(path).count();
        let name = |item: &Value| Some(item.get("name")?.as_str()?.to_owned());
        let is_removed = |item: &&Value| item.get("shouldExist").and_then(Value::as_bool) == Some(false);
        Self {
            version: parsed.config.spec().to_string(),
            merges: count("/ignition/config/merge"),
            files: count("/storage/files"),
            directories: count("/storage/directories"),
            links: count("/storage/links"),
            units: items("/systemd/units").filter_map(name).collect(),
            users: items("/passwd/users").filter(|item| !is_removed(item)).filter_map(name).collect(),
            removed_users: items("/passwd/users").filter(is_removed).filter_map(name).collect(),
            warnings: parsed.warnings.findings().iter().map(ToString::to_string).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_users_are_listed_separately() {
        let text = br#"{"ignition": {"version": "3.2.0"}, "passwd": {"users": [
            {"name": "a", "shouldExist": false}, {"name": "b", "shouldExist": true}, {"name": "c"}]}}"#;
        let summary = ConfigSummary::parse(text).unwrap();
        assert_eq!((summary.users, summary.removed_users), (vec!["b".into(), "c".into()], vec!["a".into()]));
    }
}
