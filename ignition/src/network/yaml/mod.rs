//! Parses YAML into JSON values, within limits, and finds the line numbers of values.

mod lines;
mod position;
mod reader;
mod scalar;

use std::borrow::Cow;

use serde_json::Value;

use super::NetworkError;

pub use lines::LineIndex;
use reader::MAX_VALUES;
pub use reader::YamlError;

/// Maximum number of values in an nmstate document. In a document of the maximum length, it allows one value per four
/// bytes. Documents about interfaces do not reach this limit.
const MAX_DOCUMENT_VALUES: usize = 128 << 10;

/// Parses a YAML document. The caller must limit the length of the text.
///
/// # Errors
///
/// Returns an error if the text is not a single YAML document that JSON can express. Also returns an error if the
/// nesting is deeper than 128 levels, or if the document has more than 2,097,152 values or more than 512 KiB of text
/// from aliases.
///
/// # Examples
///
/// ```
/// use ignition::network::yaml::read;
///
/// assert_eq!(read("mtu: 0x10\nup: yes\n")?.to_string(), r#"{"mtu":16,"up":"yes"}"#);
/// assert_eq!(read("a: 1\na: 2\n").unwrap_err().line(), 2);
/// # Ok::<(), ignition::network::yaml::YamlError>(())
/// ```
pub fn read(text: &str) -> Result<Value, YamlError> {
    reader::read(text, MAX_VALUES)
}

pub(super) fn read_document(text: &str) -> Result<Value, NetworkError> {
    reader::read(text, MAX_DOCUMENT_VALUES).map_err(NetworkError::Yaml)
}

/// Maximum length of a quoted text in a message, in characters.
const MAX_QUOTED_CHARS: usize = 60;

fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED_CHARS).and_then(|(end, _)| text.get(..end)) {
        Some(start) => format!("{start:?}..."),
        None => format!("{text:?}"),
    }
}

/// Returns the value of a key, or `None` if `value` is not a mapping or has no such key.
pub(super) fn value_at<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.as_object()?.get(key)
}

/// Returns the list at a path of keys, or an empty list if that list does not exist.
pub(super) fn list_at<'a>(value: &'a Value, keys: &[&str]) -> &'a [Value] {
    let list = keys.iter().try_fold(value, |value, key| value_at(value, key));
    list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns a text, number or boolean as text. nmstate accepts each of these types in place of the others.
pub(super) fn scalar_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::Bool(value) => Some(Cow::Borrowed(if *value { "true" } else { "false" })),
        _ => None,
    }
}

/// Returns the scalar at a key of a mapping as text.
pub(super) fn text_at<'a>(value: &'a Value, key: &str) -> Option<Cow<'a, str>> {
    scalar_text(value_at(value, key)?)
}

/// Returns the number at a key as nmstate parses it. If the value is not a number, returns its text as an error.
pub(super) fn number_at<'a>(value: &'a Value, key: &str) -> Option<Result<i128, Cow<'a, str>>> {
    let text = text_at(value, key)?;
    let number = match text.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16),
        None => text.parse(),
    };
    Some(number.map_err(|_| text))
}

/// Returns the boolean at a key as nmstate parses it. An absent key is `false`.
pub(super) fn flag_at(value: &Value, key: &str) -> bool {
    let text = text_at(value, key).map(|text| text.to_ascii_lowercase());
    matches!(text.as_deref(), Some("true" | "yes" | "on" | "1" | "y"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_parsed_as_by_nmstate() {
        let value = read("{a: true, b: 'yes', c: 1, d: 'false', e: 0}").unwrap();
        let read: Vec<bool> = ["a", "b", "c", "d", "e", "f"].iter().map(|key| flag_at(&value, key)).collect();
        assert_eq!(read, [true, true, true, false, false, false]);
    }

    #[test]
    fn numbers_are_parsed_as_by_nmstate() {
        let value = read("{a: 9, b: '9', c: '0x9', d: -9, e: nine, f: 9.5, g: [9], h: ~}").unwrap();
        let read = |key| number_at(&value, key).map(|number| number.map_err(Cow::into_owned));
        for (key, expected) in [("a", 9), ("b", 9), ("c", 9), ("d", -9)] {
            assert_eq!(read(key), Some(Ok(expected)), "{key}");
        }
        assert_eq!((read("e"), read("f")), (Some(Err("nine".to_owned())), Some(Err("9.5".to_owned()))));
        assert!(["g", "h", "i"].into_iter().all(|key| read(key).is_none()));
    }
}
