//! Merges a child config into its parent, as Ignition does.
//!
//! * A value in the child has precedence, even if it is empty. Values that the child omits are kept.
//! * List entries with the same key are merged at the parent's position. The child's other entries follow in their
//!   order.
//! * Lists without keys (appended contents, options) are concatenated, the parent's list first.
//! * Files, directories and links share their paths: a child's link replaces a parent's file. Likewise, a kernel
//!   argument in a child's `shouldNotExist` removes it from the parent's `shouldExist`, and vice versa.
//! * An HTTP header without a value deletes the parent's header.
//!
//! A merge never fails, but merging two valid configs can result in an invalid config. An example is a file whose owner
//! has a name in one config and an id in the other. Therefore, validate the result.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::config::Config;
use crate::json::{Json, Object};
use crate::schema::{CONFIG, EntryKey, EntryType, FieldSchema, FieldType, ObjectSchema};
use crate::spec::Spec;
use crate::translate::translate_if_older;

/// Merges the child's config over the parent's config. The result has the newer of the two spec versions.
///
/// Up to spec 3.2, the target of a link, the level of an array and a custom Clevis pin are plain values, as in
/// Ignition's own types. A child that omits such a value resets it. From 3.3 on, omitted values are kept.
///
/// # Examples
///
/// ```
/// use ignition::config::Config;
/// use ignition::merge::merge;
///
/// let read = |text: &str| Config::parse(text.as_bytes()).map(|parsed| parsed.config);
/// let parent = r#"{"ignition": {"version": "3.1.0"}, "storage": {"files": [{"path": "/a", "mode": 420}]}}"#;
/// let child = r#"{"ignition": {"version": "3.3.0"}, "storage": {"files": [{"path": "/a", "overwrite": true}]}}"#;
/// let (parent, child) = (read(parent)?, read(child)?);
/// let merged = r#"{"ignition":{"version":"3.3.0"},"storage":{"files":[{"mode":420,"overwrite":true,"path":"/a"}]}}"#;
/// assert_eq!(merge(&parent, &child).to_string(), merged);
/// # Ok::<(), ignition::config::ConfigError>(())
/// ```
#[must_use]
pub fn merge(parent: &Config, child: &Config) -> Config {
    let spec = parent.spec().max(child.spec());
    let (parent, child) = (translate_if_older(parent, spec), translate_if_older(child, spec));
    Config::new(spec, Merger { spec }.merge_objects(&CONFIG, parent.root(), child.root()))
}

struct Merger {
    spec: Spec,
}

impl Merger {
    fn merge_objects(&self, schema: &ObjectSchema, parent: &Object, child: &Object) -> Object {
        let keeps_joined =
            schema.merged_as_unit.iter().all(|name| self.is_unset_or_empty(schema, name, child));
        let field = |field: &FieldSchema| {
            let (old, new) = (parent.get(field.name), child.get(field.name));
            let new = new.filter(|_| !(keeps_joined && schema.merged_as_unit.contains(&field.name)));
            let value = match (&field.kind, old, new) {
                (_, None, None) => return None,
                (FieldType::List(..), ..) => self.merge_lists(schema, field, [parent, child])?,
                (FieldType::Struct(schema), Some(Json::Object(old)), Some(Json::Object(new))) => {
                    Json::non_empty_object(self.merge_objects(schema, old, new))?
                }
                (_, old, new) => new.or(old)?.clone(),
            };
            Some((field.name, value))
        };
        schema.fields.iter().filter_map(field).collect()
    }

    /// Returns `true` if an object omits a field or has an empty plain value for it. The two are equivalent.
    fn is_unset_or_empty(&self, schema: &ObjectSchema, name: &str, object: &Object) -> bool {
        let is_plain = schema.field(name).is_some_and(|field| field.is_plain(self.spec));
        object.get(name).is_none_or(|value| is_plain && value.as_text() == Some(""))
    }

    fn merge_lists(
        &self,
        schema: &ObjectSchema,
        field: &FieldSchema,
        [parent, child]: [&Object; 2],
    ) -> Option<Json> {
        let FieldType::List(item, key) = &field.kind else { return None };
        let (old, new) = (list_entries(parent, field), list_entries(child, field));
        if matches!(key, EntryKey::None) {
            return Json::non_empty_list(old.iter().chain(new).cloned().collect());
        }
        let replacements = index_by_key(*key, new);
        let elsewhere: HashMap<Cow<str>, &Json> = lists_with_shared_keys(schema, field)
            .flat_map(|(other, key)| index_by_key(key, list_entries(child, other)))
            .collect();
        let mut merged: Vec<Json> = old
            .iter()
            .filter_map(|old| match replacements.get(&*entry_key(*key, old)) {
                Some(new) => self.merge_entries(item, *key, [old, new]),
                None if elsewhere.contains_key(&*entry_key(*key, old)) => None,
                None => Some(old.clone()),
            })
            .collect();
        let present = index_by_key(*key, old);
        merged.extend(new.iter().filter(|new| !present.contains_key(&*entry_key(*key, new))).cloned());
        Json::non_empty_list(merged)
    }

    /// Merges two entries with the same key. Returns `None` if the child's entry deletes the parent's entry.
    fn merge_entries(&self, item: &EntryType, key: EntryKey, [old, new]: [&Json; 2]) -> Option<Json> {
        if matches!(key, EntryKey::Header) && new.get("value").is_none() {
            return None;
        }
        match (item, old, new) {
            (EntryType::Struct(schema), Json::Object(old), Json::Object(new)) => {
                Some(Json::Object(self.merge_objects(schema, old, new)))
            }
            _ => Some(new.clone()),
        }
    }
}

fn list_entries<'a>(object: &'a Object, field: &FieldSchema) -> &'a [Json] {
    object.get(field.name).and_then(Json::as_list).unwrap_or_default()
}

/// Returns the other lists of an object that share their keys with this list.
fn lists_with_shared_keys<'a>(
    schema: &'a ObjectSchema,
    field: &'a FieldSchema,
) -> impl Iterator<Item = (&'a FieldSchema, EntryKey)> {
    let shares = |other: &&FieldSchema| {
        field.group.is_some() && other.group == field.group && other.name != field.name
    };
    schema.fields.iter().filter(shares).filter_map(|other| match other.kind {
        FieldType::List(_, key) => Some((other, key)),
        _ => None,
    })
}

fn index_by_key(key: EntryKey, items: &[Json]) -> HashMap<Cow<'_, str>, &Json> {
    items.iter().map(|item| (entry_key(key, item), item)).collect()
}

/// Returns the key that identifies an entry of a list.
pub(crate) fn entry_key(key: EntryKey, item: &Json) -> Cow<'_, str> {
    let text = |name: &str| item.get(name).and_then(Json::as_text);
    match key {
        EntryKey::None => Cow::default(),
        EntryKey::Itself => item.as_text().unwrap_or_default().into(),
        EntryKey::Field(name) => text(name).unwrap_or_default().into(),
        EntryKey::Header => text("name").unwrap_or_default().into(),
        EntryKey::Partition => match (item.get("number").and_then(Json::as_integer), text("label")) {
            (Some(number), _) => format!("number:{number}").into(),
            (None, Some(label)) => format!("label:{label}").into(),
            (None, None) => Cow::default(),
        },
    }
}
