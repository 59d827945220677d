//! Documents written by a newer release. When this release writes them again, it keeps their unknown fields.

use serde_json::Value;

use super::record::Record;
use super::{Row, SCHEMA_VERSION};

/// A document written by a newer release, and the part of it that this release understands.
#[derive(Clone, Debug)]
pub(super) struct NewerDocument {
    version: i64,
    stored: Value,
    understood: Value,
}

impl NewerDocument {
    /// Returns the document of a row that a newer release has written. `record` is the row as this release reads it.
    /// Returns `None` for documents of this and older releases.
    pub(super) fn from_row(row: &Row, record: &impl Record) -> Result<Option<Self>, serde_json::Error> {
        if row.schema_version <= SCHEMA_VERSION {
            return Ok(None);
        }
        let stored = serde_json::from_str(&row.document)?;
        let understood = serde_json::to_value(record)?;
        Ok(Some(Self { version: row.schema_version, stored, understood }))
    }

    /// Adds the unknown fields to a row that replaces the document.
    pub(super) fn merge_into(&self, row: &mut Row) -> Result<(), serde_json::Error> {
        let replacement = serde_json::from_str(&row.document)?;
        row.document = merge_newer_fields(&self.stored, &self.understood, replacement).to_string();
        row.schema_version = self.version;
        Ok(())
    }
}

/// Returns the new document, completed with everything in `stored` that this release does not understand.
///
/// A value that this release has not changed keeps its stored form, including lists. A changed object is merged field
/// by field at any depth, and keeps its unknown fields. A changed list or scalar is replaced.
fn merge_newer_fields(stored: &Value, understood: &Value, replacement: Value) -> Value {
    if replacement == *understood {
        return stored.clone();
    }
    match (stored, understood, replacement) {
        (Value::Object(stored), Value::Object(understood), Value::Object(mut replacement)) => {
            for (key, value) in &mut replacement {
                if let (Some(stored), Some(understood)) = (stored.get(key), understood.get(key)) {
                    *value = merge_newer_fields(stored, understood, value.take());
                }
            }
            let unknown = stored
                .iter()
                .filter(|(key, _)| !understood.contains_key(*key) && !replacement.contains_key(*key));
            let unknown: Vec<_> = unknown.map(|(key, value)| (key.clone(), value.clone())).collect();
            replacement.extend(unknown);
            Value::Object(replacement)
        }
        (_, _, replacement) => replacement,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_survive_at_any_depth() {
        let stored = json!({"a": 1, "new": 1, "deep": {"b": 2, "new": {"x": 1}, "gone": 3}, "same": [{"c": 1, "new": 2}],
            "list": [{"d": 1, "new": 2}]});
        let understood = json!({"a": 1, "deep": {"b": 2, "gone": 3}, "same": [{"c": 1}], "list": [{"d": 1}], "absent": null});
        let replacement =
            json!({"a": 5, "deep": {"b": 6}, "same": [{"c": 1}], "list": [{"d": 2}], "absent": 1});
        let expected = json!({"a": 5, "deep": {"b": 6, "new": {"x": 1}}, "same": [{"c": 1, "new": 2}],
            "list": [{"d": 2}], "absent": 1, "new": 1});
        assert_eq!(merge_newer_fields(&stored, &understood, replacement), expected);
        assert_eq!(merge_newer_fields(&stored, &understood, understood.clone()), stored);
    }
}
