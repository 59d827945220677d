//! YAML as JSON values, read within a budget, and the lines of its values.

mod lines;
mod reader;
mod scalar;

use std::borrow::Cow;

use serde_json::Value;

use super::NetworkError;

pub use lines::Lines;
pub use reader::{MAX_ALIAS_TEXT, MAX_DEPTH, MAX_VALUES, YamlError};

/// Most values of one nmstate document. At [`MAX_DOCUMENT_LEN`](super::MAX_DOCUMENT_LEN) this is one in four bytes, which
/// no document of interfaces reaches.
pub const MAX_DOCUMENT_VALUES: usize = 128 << 10;

/// Reads one YAML document of any length that the caller accepts.
///
/// # Errors
///
/// Returns an error if the text is not one YAML document that JSON can express, or if it nests deeper than [`MAX_DEPTH`],
/// has more than [`MAX_VALUES`] values or more than [`MAX_ALIAS_TEXT`] bytes of text from aliases.
pub fn read(text: &str) -> Result<Value, YamlError> {
    reader::read(text, MAX_VALUES)
}

/// Reads one nmstate document.
pub(super) fn read_document(text: &str) -> Result<Value, NetworkError> {
    reader::read(text, MAX_DOCUMENT_VALUES).map_err(NetworkError::Yaml)
}

/// Longest text that a message quotes.
const MAX_SHOWN: usize = 60;

/// A text in quotes for a message.
fn shown(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN).and_then(|(end, _)| text.get(..end)) {
        Some(start) => format!("{start:?}..."),
        None => format!("{text:?}"),
    }
}

/// The value of a key, if the value around it is a mapping.
pub(super) fn get<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.as_object()?.get(key)
}

/// The values in a list below a value.
pub(super) fn list<'a>(value: &'a Value, keys: &[&str]) -> &'a [Value] {
    let found = keys.iter().try_fold(value, |value, key| get(value, key));
    found.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A text, a number or a boolean as text: nmstate takes them for one another.
pub(super) fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::Bool(value) => Some(Cow::Borrowed(if *value { "true" } else { "false" })),
        _ => None,
    }
}

/// A text below a mapping.
pub(super) fn text_at<'a>(value: &'a Value, key: &str) -> Option<Cow<'a, str>> {
    text(get(value, key)?)
}

/// A number below a mapping, in nmstate's way, or the text of a value that is not a number.
pub(super) fn number<'a>(value: &'a Value, key: &str) -> Option<Result<i128, Cow<'a, str>>> {
    let text = text_at(value, key)?;
    let number = match text.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16),
        None => text.parse(),
    };
    Some(number.map_err(|_| text))
}

/// The text of a key in a mapping that is read as a boolean, in nmstate's way.
pub(super) fn flag(value: &Value, key: &str) -> bool {
    let text = text_at(value, key).map(|text| text.to_ascii_lowercase());
    matches!(text.as_deref(), Some("true" | "yes" | "on" | "1" | "y"))
}

/// Sorts the keys of all mappings.
pub(super) fn sort(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(sort),
        Value::Object(fields) => {
            fields.sort_keys();
            fields.values_mut().for_each(sort);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_as_nmstate_does() {
        let value = read("{a: true, b: 'yes', c: 1, d: 'false', e: 0}").unwrap();
        let read: Vec<bool> = ["a", "b", "c", "d", "e", "f"].iter().map(|key| flag(&value, key)).collect();
        assert_eq!(read, [true, true, true, false, false, false]);
    }

    #[test]
    fn numbers_are_read_as_nmstate_does() {
        let value = read("{a: 9, b: '9', c: '0x9', d: -9, e: nine, f: 9.5, g: [9], h: ~}").unwrap();
        let read = |key| number(&value, key).map(|number| number.map_err(Cow::into_owned));
        for (key, expected) in [("a", 9), ("b", 9), ("c", 9), ("d", -9)] {
            assert_eq!(read(key), Some(Ok(expected)), "{key}");
        }
        assert_eq!((read("e"), read("f")), (Some(Err("nine".to_owned())), Some(Err("9.5".to_owned()))));
        assert!(["g", "h", "i"].into_iter().all(|key| read(key).is_none()));
    }
}
