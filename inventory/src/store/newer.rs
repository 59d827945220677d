//! Documents of a newer release, whose unknown fields survive a write by this one.

use serde_json::Value;

use super::record::Record;
use super::{Row, SCHEMA_VERSION};

/// A document that a newer release wrote, and the part of it that this release understands.
#[derive(Clone, Debug)]
pub(super) struct NewerDocument {
    version: i64,
    stored: Value,
    understood: Value,
}

impl NewerDocument {
    /// Returns the newer document of a row, whose record this release has read. Returns `None` for the documents of
    /// this release and of older ones.
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
        let written = serde_json::from_str(&row.document)?;
        row.document = merge_newer_fields(&self.stored, &self.understood, written).to_string();
        row.schema_version = self.version;
        Ok(())
    }
}

/// Returns what was written, with everything that this release did not understand.
///
/// A value that this release did not change keeps its stored form, including lists. In a changed object, this holds for
/// each field, at any depth, and fields that were not understood are kept. A changed list or scalar is replaced.
fn merge_newer_fields(stored: &Value, understood: &Value, written: Value) -> Value {
    if written == *understood {
        return stored.clone();
    }
    match (stored, understood, written) {
        (Value::Object(stored), Value::Object(understood), Value::Object(mut written)) => {
            for (key, value) in &mut written {
                if let (Some(stored), Some(understood)) = (stored.get(key), understood.get(key)) {
                    *value = merge_newer_fields(stored, understood, value.take());
                }
            }
            let unknown = stored
                .iter()
                .filter(|(key, _)| !understood.contains_key(*key) && !written.contains_key(*key));
            let unknown: Vec<_> = unknown.map(|(key, value)| (key.clone(), value.clone())).collect();
            written.extend(unknown);
            Value::Object(written)
        }
        (_, _, written) => written,
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
        let written = json!({"a": 5, "deep": {"b": 6}, "same": [{"c": 1}], "list": [{"d": 2}], "absent": 1});
        let expected = json!({"a": 5, "deep": {"b": 6, "new": {"x": 1}}, "same": [{"c": 1, "new": 2}],
            "list": [{"d": 2}], "absent": 1, "new": 1});
        assert_eq!(merge_newer_fields(&stored, &understood, written), expected);
        assert_eq!(merge_newer_fields(&stored, &understood, understood.clone()), stored);
    }
}
