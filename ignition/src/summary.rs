//! What a config does, in a few numbers: for people who look at an image.

use serde::Serialize;
use serde_json::Value;

use crate::config::{self, ConfigError};
use crate::document::Parsed;

/// The contents of a config, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The spec version.
    pub version: String,
    /// Configs that it merges at boot.
    pub merges: usize,
    /// Files that it writes.
    pub files: usize,
    /// Directories that it makes.
    pub directories: usize,
    /// Links that it makes.
    pub links: usize,
    /// Units that it writes or enables, by name.
    pub units: Vec<String>,
    /// Users that it makes or changes, by name.
    pub users: Vec<String>,
    /// Users that it removes, by name.
    pub removed_users: Vec<String>,
    /// Things that Ignition would ignore.
    pub warnings: Vec<String>,
}

impl Summary {
    /// Counts what a config of any supported spec does.
    ///
    /// # Errors
    ///
    /// When it is no such config.
    ///
    /// # Examples
    ///
    /// ```
    /// let config = br#"{"ignition": {"version": "3.3.0"}, "systemd": {"units": [{"name": "a.service"}]}}"#;
    /// let summary = ignition::summary::Summary::of(config)?;
    /// assert_eq!((summary.version.as_str(), summary.units.len()), ("3.3.0", 1));
    /// # Ok::<(), ignition::config::ConfigError>(())
    /// ```
    pub fn of(json: &[u8]) -> Result<Self, ConfigError> {
        let parsed = config::parse(json)?;
        let config: Value = serde_json::from_slice(&config::to_json(&parsed.config)?).unwrap_or_default();
        Ok(Self::count(&config, parsed.warnings.iter().map(ToString::to_string).collect()))
    }

    fn count(config: &Value, warnings: Vec<String>) -> Self {
        let list = |path: &str| config.pointer(path).and_then(Value::as_array);
        let count = |path: &str| list(path).map_or(0, Vec::len);
        let items = |path: &str| list(path).map_or(&[][..], Vec::as_slice).iter();
        let name = |item: &Value| Some(item.get("name")?.as_str()?.to_owned());
        let is_removed = |item: &&Value| item.get("shouldExist").and_then(Value::as_bool) == Some(false);
        let version = config.pointer("/ignition/version").and_then(Value::as_str);
        Self {
            version: version.unwrap_or_default().to_owned(),
            merges: count("/ignition/config/merge"),
            files: count("/storage/files"),
            directories: count("/storage/directories"),
            links: count("/storage/links"),
            units: items("/systemd/units").filter_map(name).collect(),
            users: items("/passwd/users").filter(|item| !is_removed(item)).filter_map(name).collect(),
            removed_users: items("/passwd/users").filter(is_removed).filter_map(name).collect(),
            warnings,
        }
    }
}

impl From<&Parsed> for Summary {
    fn from(parsed: &Parsed) -> Self {
        let warnings = parsed.warnings.findings().iter().map(ToString::to_string).collect();
        Self::count(&parsed.document.to_value(), warnings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_stay_or_go() {
        let text = br#"{"ignition": {"version": "3.2.0"}, "passwd": {"users": [
            {"name": "a", "shouldExist": false}, {"name": "b", "shouldExist": true}, {"name": "c"}]}}"#;
        let summary = Summary::of(text).unwrap();
        assert_eq!((summary.users, summary.removed_users), (vec!["b".into(), "c".into()], vec!["a".into()]));
        let parsed = crate::document::Document::parse(text).unwrap();
        assert_eq!(Summary::from(&parsed), Summary::of(text).unwrap());
    }
}
