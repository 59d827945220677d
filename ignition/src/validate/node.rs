//! Typed access to the fields of an object in a config, for rules.

use std::slice;

use crate::json::{Json, Object};
use crate::json_pointer::JsonPointer;
use crate::schema::{EntryType, FieldSchema, FieldType, ObjectSchema};

/// An object in a config, with its schema and its JSON pointer.
#[derive(Clone, Debug)]
pub(crate) struct ConfigNode<'a> {
    pub(crate) schema: &'static ObjectSchema,
    pub(crate) pointer: JsonPointer<'a>,
    object: &'a Object,
}

impl<'a> ConfigNode<'a> {
    pub(crate) fn root(object: &'a Object, schema: &'static ObjectSchema) -> Self {
        Self { schema, pointer: JsonPointer::Root, object }
    }

    /// Returns the JSON pointer of a field.
    pub(crate) fn at<'n>(&'n self, field: &'n str) -> JsonPointer<'n> {
        JsonPointer::Field(&self.pointer, field)
    }

    fn get(&self, field: &str) -> Option<&'a Json> {
        debug_assert!(self.schema.field(field).is_some(), "{:?} has no field {field}", self.schema.name);
        self.object.get(field)
    }

    pub(crate) fn has_field(&self, field: &str) -> bool {
        self.get(field).is_some()
    }

    pub(crate) fn text(&self, field: &str) -> Option<&'a str> {
        self.get(field)?.as_text()
    }

    /// Returns a text field, or `None` if the text is empty or absent.
    pub(crate) fn non_empty_text(&self, field: &str) -> Option<&'a str> {
        self.text(field).filter(|text| !text.is_empty())
    }

    pub(crate) fn integer(&self, field: &str) -> Option<i64> {
        self.get(field)?.as_integer()
    }

    pub(crate) fn is_set_to(&self, field: &str, value: bool) -> bool {
        self.get(field).and_then(Json::as_boolean) == Some(value)
    }

    /// Returns the entries of a list. An absent list has no entries.
    pub(crate) fn values(&self, field: &str) -> &'a [Json] {
        self.get(field).and_then(Json::as_list).unwrap_or_default()
    }

    /// Returns the entries of a list, each with its JSON pointer.
    pub(crate) fn items<'n>(&'n self, field: &'n str) -> impl Iterator<Item = (JsonPointer<'n>, &'a Json)> {
        let pointer = move |index| JsonPointer::FieldEntry(&self.pointer, field, index);
        self.values(field).iter().enumerate().map(move |(index, item)| (pointer(index), item))
    }

    /// Returns the texts in a list, each with its JSON pointer.
    pub(crate) fn texts<'n>(&'n self, field: &'n str) -> impl Iterator<Item = (JsonPointer<'n>, &'a str)> {
        self.items(field).filter_map(|(pointer, item)| Some((pointer, item.as_text()?)))
    }

    /// Returns the objects in a field: the entries of a list, or a single object.
    pub(crate) fn nodes<'n>(&'n self, field: &str) -> impl Iterator<Item = ConfigNode<'n>> {
        let present = self.schema.field(field).zip(self.get(field));
        present.into_iter().flat_map(|(field, value)| self.nodes_in(field, value))
    }

    fn nodes_in<'n>(
        &'n self,
        field: &'static FieldSchema,
        value: &'n Json,
    ) -> impl Iterator<Item = ConfigNode<'n>> {
        let (schema, values) = match &field.kind {
            FieldType::Struct(schema) => (Some(*schema), slice::from_ref(value)),
            FieldType::List(EntryType::Struct(schema), _) => {
                (Some(*schema), value.as_list().unwrap_or_default())
            }
            _ => (None, &[][..]),
        };
        let pointer = |index| match field.kind {
            FieldType::List(..) => JsonPointer::FieldEntry(&self.pointer, field.name, index),
            _ => self.at(field.name),
        };
        values.iter().enumerate().filter_map(move |(index, value)| {
            Some(ConfigNode { schema: schema?, pointer: pointer(index), object: value.as_object()? })
        })
    }

    /// Returns the object in a field.
    pub(crate) fn child<'n>(&'n self, field: &str) -> Option<ConfigNode<'n>> {
        self.nodes(field).next()
    }

    /// Returns all objects that are fields or list entries of this object.
    pub(crate) fn children(&self) -> impl Iterator<Item = ConfigNode<'_>> {
        let fields = self.object.iter().filter_map(|(name, value)| Some((self.schema.field(name)?, value)));
        fields.flat_map(|(field, value)| self.nodes_in(field, value))
    }
}
