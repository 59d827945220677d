//! Merging a child config into its parent, as Ignition does it.
//!
//! * A value that the child sets wins, also an empty one. What it leaves out stays.
//! * Entries of a list that have the same key are merged in the parent's place; the child's others follow in its order.
//! * Lists without keys (appended contents, options) are joined, the parent's first.
//! * Files, directories and links share their paths: a child's link takes the place of a parent's file. So do the
//!   kernel arguments that shall and that shall not exist.
//! * An HTTP header without a value deletes the parent's.
//!
//! A merge never fails, but two good configs can make a bad one: an owner with a name in the one and an id in the other.
//! So the result wants to be validated.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::document::Document;
use crate::json::{Json, Object};
use crate::schema::{CONFIG, Field, Item, Key, Kind, Struct};
use crate::spec::Spec;
use crate::translate::upward;

/// The child's config on top of the parent's, in the newer one of their spec versions.
///
/// Up to 3.2, the target of a link, the level of an array and a custom Clevis pin are plain values that a child resets by
/// leaving them out, as it is in Ignition's own types of these versions. From 3.3 on, they stay.
///
/// # Examples
///
/// ```
/// use ignition::document::Document;
/// use ignition::merge::merge;
///
/// let read = |text: &str| Document::parse(text.as_bytes()).map(|parsed| parsed.document);
/// let parent = read(r#"{"ignition": {"version": "3.1.0"}, "storage": {"files": [{"path": "/a", "mode": 420}]}}"#)?;
/// let child = read(r#"{"ignition": {"version": "3.3.0"}, "storage": {"files": [{"path": "/a", "overwrite": true}]}}"#)?;
/// let merged = r#"{"ignition":{"version":"3.3.0"},"storage":{"files":[{"mode":420,"overwrite":true,"path":"/a"}]}}"#;
/// assert_eq!(merge(&parent, &child).to_string(), merged);
/// # Ok::<(), ignition::document::ReadError>(())
/// ```
#[must_use]
pub fn merge(parent: &Document, child: &Document) -> Document {
    let spec = parent.spec().max(child.spec());
    let (parent, child) = (upward(parent, spec), upward(child, spec));
    Document::new(spec, Merge { spec }.objects(&CONFIG, parent.root(), child.root()))
}

struct Merge {
    spec: Spec,
}

impl Merge {
    fn objects(&self, schema: &Struct, parent: &Object, child: &Object) -> Object {
        let keeps_joined = schema.joined.iter().all(|name| self.is_zero(schema, name, child));
        let field = |field: &Field| {
            let (old, new) = (parent.get(field.name), child.get(field.name));
            let new = new.filter(|_| !(keeps_joined && schema.joined.contains(&field.name)));
            let value = match (&field.kind, old, new) {
                (_, None, None) => return None,
                (Kind::List(..), ..) => self.lists(schema, field, [parent, child])?,
                (Kind::Struct(schema), Some(Json::Object(old)), Some(Json::Object(new))) => {
                    let merged = self.objects(schema, old, new);
                    if merged.is_empty() {
                        return None;
                    }
                    merged.into()
                }
                (_, old, new) => new.or(old)?.clone(),
            };
            Some((field.name, value))
        };
        schema.fields.iter().filter_map(field).collect()
    }

    /// Whether an object leaves a field out, or has an empty plain value there, which is the same.
    fn is_zero(&self, schema: &Struct, name: &str, object: &Object) -> bool {
        let is_plain = schema.field(name).is_some_and(|field| field.is_plain(self.spec));
        object.get(name).is_none_or(|value| is_plain && value.as_text() == Some(""))
    }

    fn lists(&self, schema: &Struct, field: &Field, [parent, child]: [&Object; 2]) -> Option<Json> {
        let Kind::List(item, key) = &field.kind else { return None };
        let (old, new) = (items(parent, field), items(child, field));
        if matches!(key, Key::None) {
            return some(old.iter().chain(new).cloned().collect());
        }
        let replacements = index(*key, new);
        let elsewhere: HashMap<Cow<str>, &Json> =
            siblings(schema, field).flat_map(|(other, key)| index(key, items(child, other))).collect();
        let mut merged: Vec<Json> = old
            .iter()
            .filter_map(|old| match replacements.get(&*key_of(*key, old)) {
                Some(new) => self.entries(item, *key, [old, new]),
                None if elsewhere.contains_key(&*key_of(*key, old)) => None,
                None => Some(old.clone()),
            })
            .collect();
        let present = index(*key, old);
        merged.extend(new.iter().filter(|new| !present.contains_key(&*key_of(*key, new))).cloned());
        some(merged)
    }

    /// Two entries with the same key as one; nothing where the child's deletes the parent's.
    fn entries(&self, item: &Item, key: Key, [old, new]: [&Json; 2]) -> Option<Json> {
        if matches!(key, Key::Header) && new.get("value").is_none() {
            return None;
        }
        match (item, old, new) {
            (Item::Struct(schema), Json::Object(old), Json::Object(new)) => {
                Some(self.objects(schema, old, new).into())
            }
            _ => Some(new.clone()),
        }
    }
}

fn some(list: Vec<Json>) -> Option<Json> {
    (!list.is_empty()).then_some(Json::List(list))
}

fn items<'a>(object: &'a Object, field: &Field) -> &'a [Json] {
    object.get(field.name).and_then(Json::as_list).unwrap_or_default()
}

/// The other lists of an object that share their keys with this one.
pub(crate) fn siblings<'a>(schema: &'a Struct, field: &'a Field) -> impl Iterator<Item = (&'a Field, Key)> {
    let shares =
        |other: &&Field| field.group.is_some() && other.group == field.group && other.name != field.name;
    schema.fields.iter().filter(shares).filter_map(|other| match other.kind {
        Kind::List(_, key) => Some((other, key)),
        _ => None,
    })
}

fn index(key: Key, items: &[Json]) -> HashMap<Cow<'_, str>, &Json> {
    items.iter().map(|item| (key_of(key, item), item)).collect()
}

/// What tells an entry from the others.
pub(crate) fn key_of(key: Key, item: &Json) -> Cow<'_, str> {
    let text = |name: &str| item.get(name).and_then(Json::as_text);
    match key {
        Key::None => Cow::default(),
        Key::Itself => item.as_text().unwrap_or_default().into(),
        Key::Field(name) => text(name).unwrap_or_default().into(),
        Key::Header => text("name").unwrap_or_default().into(),
        Key::Partition => match (item.get("number").and_then(Json::as_integer), text("label")) {
            (Some(number), _) => format!("number:{number}").into(),
            (None, Some(label)) => format!("label:{label}").into(),
            (None, None) => Cow::default(),
        },
    }
}
