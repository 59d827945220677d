//! Overrides: configs that a user merges over a generated config.
//!
//! An override is validated alone first, as the inventory does when a user sets it. Then the merged config is
//! validated. If only the merged config is invalid, the error refers to a position in the override, because the user
//! has never seen the generated config.

use std::cell::LazyCell;
use std::fmt;

use super::secret::REDACTED;
use crate::config::{Config, ConfigError};
use crate::json::{Json, Object};
use crate::merge::{entry_key, merge};
use crate::position;
use crate::report::{ConfigFinding, ConfigReport};
use crate::schema::{CONFIG, EntryKey, EntryType, FieldType, ObjectSchema};
use crate::spec::Spec;
use crate::validate::validate;
use crate::visible::visible;

use super::input::InputError;

/// A config to merge over a generated config: JSON of any supported spec version.
#[derive(Clone, PartialEq, Eq)]
pub struct Override(Vec<u8>);

impl Override {
    /// Creates an override from the text of a config. The text is parsed when the override is applied.
    #[must_use]
    pub fn new(text: impl Into<Vec<u8>>) -> Self {
        Self(text.into())
    }

    /// Returns the text of the config. It may contain secrets.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Hides the text, because overrides contain secrets such as password hashes.
impl fmt::Debug for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Override({REDACTED}, {} bytes)", self.0.len())
    }
}

/// The reason why a config could not be composed.
///
/// The message contains the first finding. [`findings`](Self::findings) returns all findings, with their rules and
/// positions.
///
/// # Examples
///
/// ```
/// use ignition::discovery::ComposeError;
/// use ignition::report::ConfigRule;
///
/// fn has_wrong_path(error: &ComposeError) -> bool {
///     error.findings().any(|finding| finding.rule == ConfigRule::Path)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ComposeError {
    /// An input is invalid.
    #[error(transparent)]
    Input(#[from] InputError),
    /// An override cannot be parsed or is not valid.
    #[error("{field}: {}", FirstFinding(findings.first()))]
    Override {
        /// The API field of the override.
        field: &'static str,
        /// The errors and their positions in the override. There is at least one.
        findings: Vec<ConfigFinding>,
    },
    /// The override is valid, but the merged config is not.
    #[error("{field}: {}", FirstMergedFinding(findings.first()))]
    Merged {
        /// The API field of the override.
        field: &'static str,
        /// The errors. There is at least one, and at most 100.
        findings: Vec<MergedFinding>,
    },
    /// The result has a newer spec version than the live system supports.
    #[error("{field}: the config would have spec {found}, but the system reads only up to {newest}")]
    TooNew {
        /// The API field of the override.
        field: &'static str,
        /// The spec version of the result.
        found: Spec,
        /// The newest spec version that the live system supports.
        newest: Spec,
    },
    /// The mode of a file in the static network has bits other than the permission bits.
    #[error("file {} of the static network has the mode {mode:o}, expected at most 777", visible(path))]
    NetworkFileMode {
        /// The path of the file.
        path: String,
        /// The mode of the file.
        mode: u16,
    },
    /// Each input is valid, but their combination is not. For example, two files have the same path.
    #[error("the config is not valid: {}", FirstFinding(findings.first()))]
    Invalid {
        /// The errors. There is at least one.
        findings: Vec<ConfigFinding>,
    },
}

/// A problem in a merged config, caused by the override.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergedFinding {
    /// The problem, with the position in the override that causes it.
    pub finding: ConfigFinding,
    /// The JSON pointer of the invalid value in the merged config.
    pub merged_pointer: String,
}

impl ComposeError {
    /// Returns the problems in the override or in the composed config. Other kinds of errors have no findings.
    pub fn findings(&self) -> impl Iterator<Item = &ConfigFinding> {
        let (findings, merged): (&[ConfigFinding], &[MergedFinding]) = match self {
            Self::Override { findings, .. } | Self::Invalid { findings } => (findings, &[]),
            Self::Merged { findings, .. } => (&[], findings),
            Self::Input(_) | Self::TooNew { .. } | Self::NetworkFileMode { .. } => (&[], &[]),
        };
        findings.iter().chain(merged.iter().map(|merged| &merged.finding))
    }
}

/// The message of an error without findings, which this crate never returns.
const NO_FINDING: &str = "invalid";

struct FirstFinding<'a>(Option<&'a ConfigFinding>);

impl fmt::Display for FirstFinding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(finding) = self.0 else { return f.write_str(NO_FINDING) };
        finding.fmt(f)
    }
}

struct FirstMergedFinding<'a>(Option<&'a MergedFinding>);

impl fmt::Display for FirstMergedFinding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(MergedFinding { finding, merged_pointer }) = self.0 else { return f.write_str(NO_FINDING) };
        let merged_pointer = if merged_pointer.is_empty() { "/" } else { merged_pointer };
        write!(f, "{finding} (at {merged_pointer} of the config with the override)")
    }
}

impl From<ConfigError> for ComposeError {
    fn from(error: ConfigError) -> Self {
        Self::Invalid { findings: vec![error.to_finding()] }
    }
}

/// A config after the merge of its override, and the warnings about the override.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ComposedConfig {
    /// The config. It contains secrets.
    pub config: Config,
    /// Keys of the override without effect, and settings that are probably mistakes. Positions refer to the text of the
    /// override.
    pub warnings: ConfigReport,
}

impl fmt::Debug for ComposedConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spec = self.config.spec();
        f.debug_struct("ComposedConfig").field("spec", &spec).field("warnings", &self.warnings).finish()
    }
}

/// Validates a generated config without an override.
pub(crate) fn validated(config: Config) -> Result<Config, ComposeError> {
    let findings = validate(&config).into_errors();
    if findings.is_empty() { Ok(config) } else { Err(ComposeError::Invalid { findings }) }
}

/// Merges an override over a valid config.
pub(crate) fn apply_override(
    base: &Config,
    field: &'static str,
    over: &Override,
) -> Result<ComposedConfig, ComposeError> {
    let text = over.0.as_slice();
    let refuse = |findings| ComposeError::Override { field, findings };
    let parsed = Config::parse(text).map_err(|error| refuse(vec![error.to_finding()]))?;
    let mut warnings = parsed.warnings;
    let mut alone = validate(&parsed.config);
    alone.locate(text);
    if alone.is_fatal() {
        return Err(refuse(alone.into_errors()));
    }
    warnings.append(alone);
    let config = merge(base, &parsed.config);
    let findings = validate(&config).into_errors();
    if findings.is_empty() {
        return Ok(ComposedConfig { config, warnings });
    }
    let findings = findings_in_override(base, &parsed.config, &config, findings, text);
    Err(ComposeError::Merged { field, findings })
}

/// Maximum number of findings in a merged config. Each finding causes a search in the override.
const MAX_MERGED_FINDINGS: usize = 100;

/// Converts findings in a merged config to findings with positions in the override. If the override contains the
/// invalid value, the finding has the JSON pointer of that value. Otherwise it has the pointer of the first list entry
/// that makes the merged config invalid.
fn findings_in_override(
    base: &Config,
    child: &Config,
    merged: &Config,
    findings: Vec<ConfigFinding>,
    text: &[u8],
) -> Vec<MergedFinding> {
    let [merged, tree] = [merged, child].map(|it| Json::Object(it.root().clone()));
    let culprit = LazyCell::new(|| first_invalidating_entry(base, child).unwrap_or_default());
    let findings = findings.into_iter().take(MAX_MERGED_FINDINGS).map(|finding| {
        let pointer = matching_pointer(&merged, &tree, &finding.pointer).unwrap_or_else(|| culprit.clone());
        MergedFinding {
            merged_pointer: finding.pointer.clone(),
            finding: ConfigFinding { pointer, ..finding },
        }
    });
    let mut findings: Vec<MergedFinding> = findings.collect();
    let pointers: Vec<&str> = findings.iter().map(|merged| merged.finding.pointer.as_str()).collect();
    let positions = position::locate(text, &pointers);
    for (merged, position) in findings.iter_mut().zip(positions) {
        merged.finding.position = position;
    }
    findings
}

/// Returns the pointer in the override for a value in the merged config. List entries are matched by their keys.
fn matching_pointer(merged: &Json, child: &Json, pointer: &str) -> Option<String> {
    let (mut merged, mut child, mut schema) = (merged, child, &CONFIG);
    let mut parts = pointer.split('/').skip(1);
    let mut child_pointer = String::new();
    while let Some(name) = parts.next() {
        let field = schema.field(name)?;
        let Some(inner) = child.get(name) else { return within_list_entry(&child_pointer) };
        (merged, child) = (merged.get(name)?, inner);
        child_pointer = format!("{child_pointer}/{name}");
        match &field.kind {
            FieldType::Struct(inner) => schema = inner,
            FieldType::List(item, key) => {
                let Some(index) = parts.next() else { return Some(child_pointer) };
                let index: usize = index.parse().ok()?;
                let (entries, own) = (merged.as_list()?, child.as_list()?);
                let entry = entries.get(index)?;
                let index = match key {
                    EntryKey::None => index.checked_sub(entries.len().checked_sub(own.len())?)?,
                    key => own.iter().position(|own| entry_key(*key, own) == entry_key(*key, entry))?,
                };
                (merged, child) = (entry, own.get(index)?);
                child_pointer = format!("{child_pointer}/{index}");
                match item {
                    EntryType::Struct(inner) => schema = inner,
                    EntryType::Text => return Some(child_pointer),
                }
            }
            _ => return Some(child_pointer),
        }
    }
    Some(child_pointer)
}

/// Returns the pointer if it leads into a list entry. A pointer to a whole section would not help the user.
fn within_list_entry(pointer: &str) -> Option<String> {
    pointer.split('/').any(|part| part.parse::<usize>().is_ok()).then(|| pointer.to_owned())
}

/// Finds the first list entry of an override that makes the merged config invalid, by bisection.
fn first_invalidating_entry(base: &Config, child: &Config) -> Option<String> {
    let mut entries = Vec::new();
    collect_list_entries(&CONFIG, child.root(), "", &mut entries);
    let is_bad = |count: usize| {
        let prefix = entries.get(..count).unwrap_or_default();
        validate(&merge(base, &with_entries(child, prefix))).is_fatal()
    };
    let (mut good, mut bad) = (0, entries.len());
    if is_bad(good) {
        return None;
    }
    while bad - good > 1 {
        let middle = good.midpoint(bad);
        if is_bad(middle) {
            bad = middle;
        } else {
            good = middle;
        }
    }
    entries.get(good).map(|(list, index)| format!("{list}/{index}"))
}

/// Collects all list entries that are not inside other entries, as pairs of the list's pointer and the entry's index.
fn collect_list_entries(
    schema: &ObjectSchema,
    object: &Object,
    pointer: &str,
    entries: &mut Vec<(String, usize)>,
) {
    for field in schema.fields {
        let Some(inner) = object.get(field.name) else { continue };
        let pointer = format!("{pointer}/{}", field.name);
        match (&field.kind, inner) {
            (FieldType::Struct(schema), Json::Object(inner)) => {
                collect_list_entries(schema, inner, &pointer, entries)
            }
            (FieldType::List(..), Json::List(items)) => {
                entries.extend((0..items.len()).map(|index| (pointer.clone(), index)));
            }
            _ => {}
        }
    }
}

/// Returns a copy of the override with only the list entries in `selection`. These must be the first entries of their
/// lists.
fn with_entries(child: &Config, selection: &[(String, usize)]) -> Config {
    let mut all = Vec::new();
    let mut tree = child.root().clone();
    collect_list_entries(&CONFIG, &tree, "", &mut all);
    let lists: std::collections::BTreeSet<&String> = all.iter().map(|(list, _)| list).collect();
    for pointer in lists {
        let count = selection.iter().filter(|(list, _)| list == pointer).count();
        if let Some(list) = tree.pointer_mut(pointer).and_then(Json::as_list_mut) {
            list.truncate(count);
        }
    }
    Config::new(child.spec(), tree)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::report::ConfigRule;

    use super::*;

    const FIELD: &str = "ignition_config_override";

    fn base() -> Config {
        let config = json!({
            "ignition": {"version": "3.1.0"},
            "storage": {"files": [
                {"path": "/etc/a", "user": {"name": "root"}, "contents": {"source": "data:,a"}},
                {"path": "/etc/b", "mode": 420, "user": {"name": "root"}, "contents": {"source": "data:,b"}},
            ]},
            "systemd": {"units": [{"name": "a.service", "contents": "[Unit]\nA=b\n"}]},
        });
        Config::parse(config.to_string().as_bytes()).unwrap().config
    }

    fn apply_text(text: &str) -> Result<ComposedConfig, ComposeError> {
        apply_override(&base(), FIELD, &Override::new(text))
    }

    fn error_text(text: &str) -> String {
        apply_text(text).unwrap_err().to_string()
    }

    #[test]
    fn invalid_override_is_reported_at_its_position() {
        assert_eq!(
            error_text("{"),
            "ignition_config_override: 1:1: error: /: not valid JSON: EOF while parsing an object at line 1 column 1"
        );
        assert!(
            error_text(r#"{"ignition":{"version":"2.2.0"}}"#).contains("/ignition/version: \"2.2.0\" is not")
        );
        let relative = "{\"ignition\":{\"version\":\"3.0.0\"},\n\"storage\":{\"files\":[{\"path\":\"a\"}]}}";
        let expected =
            "ignition_config_override: 2:29: error: /storage/files/0/path: the path \"a\" is not absolute";
        assert_eq!(error_text(relative), expected);
    }

    fn only_merged_finding(text: &str) -> (ConfigFinding, String) {
        let ComposeError::Merged { findings, .. } = apply_text(text).unwrap_err() else { panic!() };
        let [MergedFinding { finding, merged_pointer }] = findings.try_into().unwrap();
        (finding, merged_pointer)
    }

    #[test]
    fn all_errors_of_an_override_are_reported() {
        let text = r#"{"ignition":{"version":"3.0.0"},"storage":{
            "files":[{"path":"a"}, {"path":"/b","overwrite":true}], "links":[{"path":"/c","target":""}]}}"#;
        let error = apply_text(text).unwrap_err();
        let findings: Vec<_> = error.findings().map(|it| (it.rule, it.position.unwrap().line)).collect();
        assert_eq!(findings, [(ConfigRule::Path, 2), (ConfigRule::MissingValue, 2)]);
        assert!(error.to_string().contains(r#"2:30: error: /storage/files/0/path: the path "a""#), "{error}");
        assert!(apply_text("{").unwrap_err().findings().all(|it| it.rule == ConfigRule::Syntax));
    }

    #[test]
    fn conflict_is_reported_at_its_position_in_the_override() {
        let both = r#"{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/x"},{"path":"/etc/b","user":{"id":0}}]}}"#;
        let (finding, merged) = only_merged_finding(both);
        assert!(finding.pointer.starts_with("/storage/files/1/user"), "{finding}");
        assert!(merged.starts_with("/storage/files/1/user"), "{merged}");
        assert!(finding.position.is_some());
    }

    #[test]
    fn conflict_outside_the_override_is_traced_to_its_entry() {
        let link = r#"{"ignition":{"version":"3.1.0"},"storage":{
            "files":[{"path":"/x"},{"path":"/y"}],
            "links":[{"path":"/l","target":"/x"},{"path":"/etc","target":"/x"},{"path":"/m","target":"/x"}]}}"#;
        let ComposeError::Merged { findings, .. } = apply_text(link).unwrap_err() else { panic!() };
        // The link `/etc` conflicts with every file of the generated config, because `/etc` is in the path of each
        // file.
        let merged: Vec<_> = findings.iter().map(|merged| merged.merged_pointer.as_str()).collect();
        assert_eq!(merged, ["/storage/files/0", "/storage/files/1"]);
        let finding = &findings[0].finding;
        assert_eq!(finding.pointer, "/storage/links/1");
        assert!(findings.iter().all(|merged| merged.finding.pointer == finding.pointer));
        assert_eq!(finding.position.map(|position| position.line), Some(3));
    }

    #[test]
    fn key_without_effect_is_a_warning() {
        let composed = apply_text(r#"{"ignition":{"version":"3.1.0"},"storage":{"luks":[]}}"#).unwrap();
        assert_eq!(composed.warnings.findings()[0].pointer, "/storage/luks");
        assert_eq!(composed.config, base());
    }

    #[test]
    fn debug_hides_secrets_of_an_override() {
        let text = r#"{"ignition":{"version":"3.1.0"},"passwd":{"users":[{"name":"core","passwordHash":"hunter2"}]}}"#;
        assert!(!format!("{:?} {:?}", Override::new(text), apply_text(text)).contains("hunter2"));
    }
}
