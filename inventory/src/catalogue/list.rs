//! Parses the configured lists of images and releases, in JSON. Errors name the element, the key and the reason.

use assisted::architecture::CpuArchitecture;
use serde_json::error::Category;
use serde_json::{Map, Value};

use super::error::{CatalogueError, CatalogueList};
use crate::nearest_name;

#[derive(Debug)]
pub(super) struct CatalogueElement<'a> {
    list: CatalogueList,
    index: usize,
    map: &'a Map<String, Value>,
}

impl CatalogueList {
    /// Returns an error about the list as a whole.
    pub(super) fn error(self, reason: impl Into<String>) -> CatalogueError {
        CatalogueError::List { list: self, reason: reason.into() }
    }

    /// Returns an error about an element as a whole.
    pub(super) fn element_error(self, index: usize, reason: impl Into<String>) -> CatalogueError {
        CatalogueError::Element { list: self, index, key: None, reason: reason.into() }
    }

    /// Parses the list and reads each element with `element`.
    pub(super) fn read<T>(
        self,
        text: &str,
        element: impl Fn(&CatalogueElement<'_>) -> Result<T, CatalogueError>,
    ) -> Result<Vec<T>, CatalogueError> {
        let values: Vec<Value> =
            serde_json::from_str(text).map_err(|error| self.error(json_error(&error)))?;
        let read = |(index, value): (usize, &Value)| match value {
            Value::Object(map) => element(&CatalogueElement { list: self, index, map }),
            _ => Err(self.element_error(index, "must be an object")),
        };
        values.iter().enumerate().map(read).collect()
    }
}

/// Describes why a text is not a JSON list. The description omits the content, which may include credentials.
fn json_error(error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Data => format!("not a JSON list (line {}, column {})", error.line(), error.column()),
        _ => format!("not valid JSON: {error}"),
    }
}

impl CatalogueElement<'_> {
    /// Returns an error about a key of this element.
    pub(super) fn error(&self, key: &str, reason: impl std::fmt::Display) -> CatalogueError {
        let (key, reason) = (Some(key.to_owned()), reason.to_string());
        CatalogueError::Element { list: self.list, index: self.index, key, reason }
    }

    /// Requires that `known_keys` contains all keys, and that no key is repeated in another case.
    pub(super) fn require_known_keys(&self, known_keys: &[&str]) -> Result<(), CatalogueError> {
        for (index, key) in self.map.keys().enumerate() {
            if !known_keys.iter().any(|known_key| known_key.eq_ignore_ascii_case(key)) {
                return Err(self.unknown_key(key, known_keys));
            }
            if self.map.keys().take(index).any(|earlier| earlier.eq_ignore_ascii_case(key)) {
                return Err(self.error(key, "is set twice"));
            }
        }
        Ok(())
    }

    /// Refuses keys that are probably misspelt. Other unknown keys have no effect.
    pub(super) fn refuse_misspelt_keys(&self, known_keys: &[&str]) -> Result<(), CatalogueError> {
        let is_unknown =
            |key: &&String| !known_keys.iter().any(|known_key| known_key.eq_ignore_ascii_case(key));
        let is_misspelt = |key: &&String| nearest_name(key, known_keys.iter().copied()).is_some();
        match self.map.keys().filter(is_unknown).find(is_misspelt) {
            Some(key) => Err(self.unknown_key(key, known_keys)),
            None => Ok(()),
        }
    }

    fn unknown_key(&self, key: &str, known_keys: &[&str]) -> CatalogueError {
        let nearest = nearest_name(key, known_keys.iter().copied());
        let question = nearest.map(|name| format!(" (did you mean {name}?)")).unwrap_or_default();
        let known_keys = known_keys.join(", ");
        self.error(key, format_args!("is not a known key{question}; known keys are {known_keys}"))
    }

    /// Returns the value of a key. Keys are case-insensitive, as in Go.
    fn value(&self, key: &str) -> Option<&Value> {
        let is_key = |(name, value): &(&String, &Value)| name.eq_ignore_ascii_case(key) && !value.is_null();
        self.map.iter().rfind(is_key).map(|(_, value)| value)
    }

    /// Returns a string, or `None` if it is absent or empty.
    pub(super) fn optional(&self, key: &str) -> Result<Option<&str>, CatalogueError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
            Some(_) => Err(self.error(key, "must be a string")),
        }
    }

    /// Returns a string, or `None` if it is absent. An empty string is an error.
    pub(super) fn optional_text(&self, key: &str) -> Result<Option<&str>, CatalogueError> {
        match self.value(key) {
            Some(Value::String(text)) if text.is_empty() => Err(self.error(key, "is empty")),
            _ => self.optional(key),
        }
    }

    /// Returns a string. An absent or empty string is an error.
    pub(super) fn text(&self, key: &str) -> Result<&str, CatalogueError> {
        self.optional(key)?.ok_or_else(|| self.error(key, "is missing"))
    }

    /// Returns a Boolean, or `false` if it is absent.
    pub(super) fn flag(&self, key: &str) -> Result<bool, CatalogueError> {
        match self.value(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.error(key, "must be true or false")),
        }
    }

    /// Returns a list of strings, or an empty list if the key is absent.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<&str>, CatalogueError> {
        let wrong = || self.error(key, "must be a list of strings");
        match self.value(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(values)) => {
                values.iter().map(|value| value.as_str().ok_or_else(wrong)).collect()
            }
            Some(_) => Err(wrong()),
        }
    }

    pub(super) fn architecture(&self, key: &str) -> Result<CpuArchitecture, CatalogueError> {
        let name = self.text(key)?;
        CpuArchitecture::from_name(name).ok_or_else(|| {
            self.error(key, format_args!("is {name:?}, which is not a known CPU architecture"))
        })
    }
}
