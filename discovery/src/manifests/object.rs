//! A Kubernetes object in a manifest, with access to its values by path and to their line numbers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use ignition::network::yaml::LineIndex;
use serde_json::Value;

use crate::{DiscoveryReport, Located, SourceLocation, Text};

/// A Kubernetes object.
#[derive(Clone)]
pub struct Object {
    value: Value,
    document: Arc<ManifestDocument>,
    /// The path of the object in its document, if it is an item of a `List`.
    prefix: String,
}

/// The document that contains the object.
struct ManifestDocument {
    /// The name of the file or of another source, for messages.
    file: Arc<str>,
    /// `None` if the object is a value in memory.
    text: Option<DocumentText>,
}

struct DocumentText {
    /// Number of lines before the document in the file.
    skipped: usize,
    text: Box<str>,
    lines: OnceLock<Arc<LineIndex>>,
    /// The byte offset of each line in `text`.
    line_starts: OnceLock<Vec<usize>>,
}

impl ManifestDocument {
    /// Returns the line of a value in the file, or else the first line of the document.
    fn line_of(&self, path: &str) -> Option<usize> {
        let text = self.text.as_ref()?;
        Some(text.lines().find(path).unwrap_or(1).saturating_add(text.skipped))
    }
}

impl DocumentText {
    fn new(skipped: usize, text: &str) -> Self {
        Self { skipped, text: text.into(), lines: OnceLock::new(), line_starts: OnceLock::new() }
    }

    /// Returns the text from a line to the end. Lines are counted from 1.
    fn text_at_line(&self, line: usize) -> &str {
        let starts = self.line_starts.get_or_init(|| {
            let ends = self.text.match_indices('\n').map(|(end, _)| end.saturating_add(1));
            std::iter::once(0).chain(ends).collect()
        });
        starts.get(line.saturating_sub(1)).and_then(|start| self.text.get(*start..)).unwrap_or_default()
    }

    fn lines(&self) -> &Arc<LineIndex> {
        self.lines.get_or_init(|| Arc::new(LineIndex::read(&self.text)))
    }
}

impl Object {
    /// Returns the only object of a document, or the items of a `List`. Skips a document that is not a Kubernetes
    /// object with a warning, because a directory of manifests may contain other files.
    pub(super) fn from_document(
        file: &Arc<str>,
        (skipped, text): (usize, &str),
        value: Value,
        findings: &mut DiscoveryReport,
    ) -> Vec<Self> {
        let text = Some(DocumentText::new(skipped, text));
        Self::of_document(ManifestDocument { file: Arc::clone(file), text }, value, findings)
    }

    /// Returns the objects of a value, like [`from_document`](Self::from_document). `source` names the value in
    /// messages.
    pub(super) fn from_value(source: &str, value: Value, findings: &mut DiscoveryReport) -> Vec<Self> {
        Self::of_document(ManifestDocument { file: source.into(), text: None }, value, findings)
    }

    fn of_document(document: ManifestDocument, value: Value, findings: &mut DiscoveryReport) -> Vec<Self> {
        let document = Arc::new(document);
        let mut one = |prefix: String, value: Value| {
            let reason = match value.as_object() {
                None => "is not an object",
                Some(map) if !map.get("kind").is_some_and(Value::is_string) => "has no kind",
                Some(_) => {
                    let object = Self { value, document: Arc::clone(&document), prefix };
                    return object.has_sound_metadata(findings).then_some(object);
                }
            };
            let line = document.text.as_ref().map(|text| text.skipped.saturating_add(1));
            let place = SourceLocation { file: document.file.to_string(), line, path: prefix };
            findings.warning(place, format!("{reason}, ignored"));
            None
        };
        let is_list = value.get("kind").and_then(Value::as_str).is_some_and(|kind| kind == "List");
        match value.get("items").filter(|_| is_list).and_then(Value::as_array) {
            Some(items) => {
                let items = items.iter().enumerate();
                items.filter_map(|(at, item)| one(format!("items[{at}]"), item.clone())).collect()
            }
            None => one(String::new(), value).into_iter().collect(),
        }
    }

    /// Returns `true` if the name, namespace and labels have the right types. Reports wrong types, because ignoring
    /// such a label or namespace could leave out a host or select another secret.
    fn has_sound_metadata(&self, findings: &mut DiscoveryReport) -> bool {
        let before = findings.as_slice().len();
        for path in ["metadata.name", "metadata.namespace"] {
            self.text(path, findings);
        }
        match self.get("metadata.labels") {
            None => {}
            Some(Value::Object(labels)) => {
                for (key, _) in labels.iter().filter(|(_, value)| !value.is_string()) {
                    let place = self.location_of_key("metadata.labels", key);
                    findings.error(place, format!("the value of {key} has to be a string"));
                }
            }
            Some(_) => findings.error(self.location_of("metadata.labels"), "has to be an object"),
        }
        findings.as_slice().len() == before
    }

    /// Returns the kind of the object, such as `InfraEnv`.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.get("kind").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the name, or an empty string if the object has no name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.get("metadata.name").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the namespace, or an empty string if the object has no namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.get("metadata.namespace").and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn labels(&self) -> BTreeMap<&str, &str> {
        let labels = self.get("metadata.labels").and_then(Value::as_object).into_iter().flatten();
        labels.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
    }

    /// Returns the value at a path such as `spec.proxy.httpProxy`, or `None` if it is absent or `null`. A key that
    /// contains a dot cannot be part of a path.
    pub(super) fn get(&self, path: &str) -> Option<&Value> {
        let target = path.split('.').try_fold(&self.value, |value, key| value.get(key));
        target.filter(|value| !value.is_null())
    }

    /// Returns the location of a value. If the value is absent, uses the line of the innermost existing parent, or else
    /// the first line of the document.
    pub(super) fn location_of(&self, path: &str) -> SourceLocation {
        let full = self.full_path(path);
        SourceLocation {
            file: self.document.file.to_string(),
            line: self.document.line_of(&full),
            path: full,
        }
    }

    /// Returns the lines of the document, starting at the line of a value.
    pub(super) fn lines_from(&self, path: &str) -> Option<impl Iterator<Item = &str>> {
        let text = self.document.text.as_ref()?;
        let line = text.lines().find(&self.full_path(path))?;
        Some(text.text_at_line(line).lines())
    }

    fn full_path(&self, path: &str) -> String {
        match (self.prefix.as_str(), path) {
            ("", path) => path.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, path) => format!("{prefix}.{path}"),
        }
    }

    /// Returns the string at a path, or `None` if it is absent. Reports a value of another type.
    pub(super) fn text(&self, path: &str, findings: &mut DiscoveryReport) -> Option<Text> {
        match self.get(path)? {
            Value::String(text) => Some(Located::new(text.clone(), self.location_of(path))),
            _ => {
                findings.error(self.location_of(path), "has to be a string");
                None
            }
        }
    }

    /// Returns the list of strings at a path, or `None` if it is absent. Reports a value of another type.
    pub(super) fn texts(&self, path: &str, findings: &mut DiscoveryReport) -> Option<Located<Vec<String>>> {
        let value = self.get(path)?;
        let texts: Option<Vec<String>> =
            value.as_array().and_then(|list| list.iter().map(|it| it.as_str().map(str::to_owned)).collect());
        if texts.is_none() {
            findings.error(self.location_of(path), "has to be a list of strings");
        }
        Some(Located::new(texts?, self.location_of(path)))
    }

    /// Returns `true` if a value is absent or an object. Reports other types, and unknown keys, which are probably
    /// typing errors.
    pub(super) fn has_fields(&self, path: &str, fields: &[&str], findings: &mut DiscoveryReport) -> bool {
        self.get(path).is_none_or(|value| self.are_fields((path, value), fields, findings))
    }

    /// Checks the fields of `value`, which is at `path`, like [`has_fields`](Self::has_fields).
    pub(super) fn are_fields(
        &self,
        (path, value): (&str, &Value),
        fields: &[&str],
        findings: &mut DiscoveryReport,
    ) -> bool {
        let Some(map) = value.as_object() else {
            findings.error(self.location_of(path), "has to be an object");
            return false;
        };
        for key in map.keys().filter(|key| !fields.contains(&key.as_str())) {
            let similar = fields.iter().find(|field| field.eq_ignore_ascii_case(key));
            let hint = similar.map(|field| format!("; did you mean {field}?")).unwrap_or_default();
            findings.warning(self.location_of(&format!("{path}.{key}")), format!("unknown field{hint}"));
        }
        true
    }

    /// Returns the list at a path, or an empty list if it is absent. Reports a value of another type.
    pub(super) fn list(&self, path: &str, findings: &mut DiscoveryReport) -> Option<&[Value]> {
        match self.get(path) {
            None => Some(&[]),
            Some(Value::Array(list)) => Some(list),
            Some(_) => {
                findings.error(self.location_of(path), "has to be a list");
                None
            }
        }
    }

    /// Returns a string field of `value`, which is at `path`, if the field is present. Reports a value of another type.
    pub(super) fn text_in<'a>(
        &self,
        (path, value): (&str, &'a Value),
        key: &str,
        findings: &mut DiscoveryReport,
    ) -> Result<Option<&'a str>, ()> {
        match value.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => {
                findings.error(self.location_of(&format!("{path}.{key}")), "has to be a string");
                Err(())
            }
        }
    }

    /// Returns the location of a host in this document. `network` and `interfaces` are the paths of the host's network
    /// and of the list of MAC addresses.
    pub(super) fn host_origin(&self, network: &str, interfaces: &str) -> crate::HostOrigin {
        crate::HostOrigin {
            file: Arc::clone(&self.document.file),
            // The hosts of one list share the line table of their document.
            lines: self.document.text.as_ref().map(|text| Arc::clone(text.lines())),
            skipped: self.document.text.as_ref().map_or(0, |text| text.skipped),
            network: self.full_path(network),
            interfaces: self.full_path(interfaces),
        }
    }
}

/// Leaves out the contents, because manifests contain secrets.
impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("kind", &self.kind())
            .field("namespace", &self.namespace())
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace() {
            "" => write!(f, "{} {}", self.kind(), self.name()),
            namespace => write!(f, "{} {namespace}/{}", self.kind(), self.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Draft;
    use crate::manifests::Manifests;

    fn findings(text: &str) -> String {
        let mut manifests = Manifests::default();
        manifests.add("a.yaml", text).unwrap();
        let (draft, findings) = manifests.draft(None, Draft::default()).unwrap();
        assert!(findings.is_fatal() && draft.hosts.is_empty(), "{findings}");
        findings.to_string()
    }

    fn host(metadata: &str) -> String {
        let env = "kind: InfraEnv\nmetadata: {name: env}\nspec: {nmStateConfigLabelSelector: {matchLabels: {rack: \"1\"}}}\n";
        format!(
            "{env}---\nkind: NMStateConfig\nmetadata:\n{metadata}spec:\n  config: {{interfaces: []}}\n  interfaces: [{{name: eth0, \
             macAddress: '52:54:00:00:00:01'}}]\n"
        )
    }

    /// If invalid metadata were ignored, the host would silently lose its label, name or namespace.
    #[test]
    fn rejects_metadata_of_wrong_types() {
        for (metadata, expected) in [
            (
                "  name: a\n  labels:\n    rack: 1\n",
                "a.yaml:9: metadata.labels: error: the value of rack has to be a string\n",
            ),
            ("  name: a\n  labels: [rack]\n", "a.yaml:8: metadata.labels: error: has to be an object\n"),
            ("  name: 7\n  labels: {rack: \"1\"}\n", "a.yaml:7: metadata.name: error: has to be a string\n"),
            (
                "  name: a\n  namespace: 7\n  labels: {rack: \"1\"}\n",
                "a.yaml:8: metadata.namespace: error: has to be a string\n",
            ),
        ] {
            let report = findings(&host(metadata));
            assert!(report.contains(expected), "{metadata}: {report}");
        }
    }

    #[test]
    fn rejects_infra_env_without_a_name() {
        let report = findings("kind: InfraEnv\nmetadata: {namespace: site}\n");
        assert!(report.contains("metadata.name: error: the InfraEnv has no name"), "{report}");
    }
}
