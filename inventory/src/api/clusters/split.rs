//! Splits the JSON text of an object at one of its lists, so that the items of the list can be sent in between.

use std::cell::Cell;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use crate::error::Error;

/// Returns the JSON text of an object in two parts. The list with the key `key` is empty, and its items belong between
/// the parts.
///
/// # Errors
///
/// Returns an error if the object cannot be written as JSON, or if it has no list with this key.
pub(super) fn split_at_list(object: &impl Serialize, key: &str) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let is_after = Cell::new(false);
    let mut parts = TextParts { start: Vec::new(), end: Vec::new(), is_after: &is_after };
    let finder = ListFinder { key, depth: 0, is_in_key: false, is_list_next: false, is_after: &is_after };
    object
        .serialize(&mut Serializer::with_formatter(&mut parts, finder))
        .map_err(|error| Error::broken(format_args!("a response cannot be written as JSON: {error}")))?;
    if !is_after.get() {
        return Err(Error::broken(format_args!("a response has no list {key:?}")));
    }
    Ok((parts.start, parts.end))
}

struct TextParts<'a> {
    start: Vec<u8>,
    end: Vec<u8>,
    /// Whether the next bytes belong to `end`.
    is_after: &'a Cell<bool>,
}

impl Write for TextParts<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let part = if self.is_after.get() { &mut self.end } else { &mut self.start };
        part.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A formatter that writes compact JSON, and finds the list in the outermost object. The second part of the text starts
/// after the opening bracket of the list.
struct ListFinder<'a> {
    key: &'a str,
    /// Number of objects that enclose the current value.
    depth: usize,
    is_in_key: bool,
    /// Whether the last key was the key of the list.
    is_list_next: bool,
    is_after: &'a Cell<bool>,
}

impl Formatter for ListFinder<'_> {
    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth = self.depth.saturating_add(1);
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth = self.depth.saturating_sub(1);
        writer.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.is_in_key = true;
        if first { Ok(()) } else { writer.write_all(b",") }
    }

    fn end_object_key<W: ?Sized + Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        self.is_in_key = false;
        Ok(())
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        if self.is_in_key {
            self.is_list_next = self.depth == 1 && text == self.key;
        }
        writer.write_all(text.as_bytes())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"[")?;
        if std::mem::take(&mut self.is_list_next) {
            self.is_after.set(true);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_split_after_the_start_of_the_list() {
        let object = json!({
            "name": "\"hosts\":[]",
            "other": {"hosts": []},
            "others": [{"hosts": []}],
            "hosts": [],
            "more": ["hosts", []],
        });
        let (start, end) = split_at_list(&object, "hosts").unwrap();
        let (start, end) = (String::from_utf8(start).unwrap(), String::from_utf8(end).unwrap());
        assert_eq!(end, r#"],"more":["hosts",[]]}"#);
        assert!(start.ends_with(r#","hosts":["#), "{start}");
        assert_eq!(format!("{start}{end}"), object.to_string());
    }

    #[test]
    fn rejects_an_object_without_the_list() {
        for object in [json!({}), json!({"hosts": null}), json!({"a": {"hosts": []}}), json!([])] {
            assert!(split_at_list(&object, "hosts").is_err(), "{object}");
        }
    }
}
