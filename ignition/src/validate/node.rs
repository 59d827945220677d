//! An object of a config, with its place.

use std::slice;

use crate::json::{Json, Object};
use crate::place::Place;
use crate::schema::{Field, Item, Kind, Struct};

/// An object of a config, what it is, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node<'a> {
    pub(crate) schema: &'static Struct,
    pub(crate) place: Place<'a>,
    object: &'a Object,
}

impl<'a> Node<'a> {
    pub(crate) fn root(object: &'a Object, schema: &'static Struct) -> Self {
        Self { schema, place: Place::Root, object }
    }

    /// The place of a field.
    pub(crate) fn at<'n>(&'n self, field: &'n str) -> Place<'n> {
        Place::Field(&self.place, field)
    }

    fn get(&self, field: &str) -> Option<&'a Json> {
        debug_assert!(self.schema.field(field).is_some(), "{:?} has no field {field}", self.schema.name);
        self.object.get(field)
    }

    pub(crate) fn has(&self, field: &str) -> bool {
        self.get(field).is_some()
    }

    pub(crate) fn text(&self, field: &str) -> Option<&'a str> {
        self.get(field)?.as_text()
    }

    /// A text, where absent and empty are the same.
    pub(crate) fn filled(&self, field: &str) -> Option<&'a str> {
        self.text(field).filter(|text| !text.is_empty())
    }

    pub(crate) fn integer(&self, field: &str) -> Option<i64> {
        self.get(field)?.as_integer()
    }

    pub(crate) fn is(&self, field: &str, value: bool) -> bool {
        self.get(field).and_then(Json::as_boolean) == Some(value)
    }

    /// The entries of a list.
    pub(crate) fn values(&self, field: &str) -> &'a [Json] {
        self.get(field).and_then(Json::as_list).unwrap_or_default()
    }

    /// The entries of a list, each with its place.
    pub(crate) fn items<'n>(&'n self, field: &'n str) -> impl Iterator<Item = (Place<'n>, &'a Json)> {
        let place = move |index| Place::FieldEntry(&self.place, field, index);
        self.values(field).iter().enumerate().map(move |(index, item)| (place(index), item))
    }

    /// The texts of a list, each with its place.
    pub(crate) fn texts<'n>(&'n self, field: &'n str) -> impl Iterator<Item = (Place<'n>, &'a str)> {
        self.items(field).filter_map(|(place, item)| Some((place, item.as_text()?)))
    }

    /// The objects of a field: those of a list, or the one that there is.
    pub(crate) fn nodes<'n>(&'n self, field: &str) -> impl Iterator<Item = Node<'n>> {
        let found = self.schema.field(field).zip(self.get(field));
        found.into_iter().flat_map(|(field, value)| self.nodes_in(field, value))
    }

    fn nodes_in<'n>(&'n self, field: &'static Field, value: &'n Json) -> impl Iterator<Item = Node<'n>> {
        let (schema, values) = match &field.kind {
            Kind::Struct(schema) => (Some(*schema), slice::from_ref(value)),
            Kind::List(Item::Struct(schema), _) => (Some(*schema), value.as_list().unwrap_or_default()),
            _ => (None, &[][..]),
        };
        let place = |index| match field.kind {
            Kind::List(..) => Place::FieldEntry(&self.place, field.name, index),
            _ => self.at(field.name),
        };
        values.iter().enumerate().filter_map(move |(index, value)| {
            Some(Node { schema: schema?, place: place(index), object: value.as_object()? })
        })
    }

    /// The object of a field.
    pub(crate) fn child<'n>(&'n self, field: &str) -> Option<Node<'n>> {
        self.nodes(field).next()
    }

    /// All objects one level below.
    pub(crate) fn children(&self) -> impl Iterator<Item = Node<'_>> {
        let known = self.object.iter().filter_map(|(name, value)| Some((self.schema.field(name)?, value)));
        known.flat_map(|(field, value)| self.nodes_in(field, value))
    }
}
