//! YAML as JSON values, read within a budget, and the lines of its values.

mod reader;
mod scalar;

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;

use super::NetworkError;

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

/// A number below a mapping, in nmstate's way; the text of what is none.
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

/// Deepest value that has a line.
const MAX_LINE_DEPTH: usize = 12;

/// The lines of the values in a document, by paths such as `interfaces[0].ipv4`.
///
/// They are read off the indentation, without a YAML reader: values in braces and brackets have the line of the key
/// before them. A document that is JSON or in one line has none at all.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    lines: HashMap<String, usize>,
}

/// A key or a list that the current line is inside of, and the column where it began.
struct Frame {
    column: usize,
    /// For a list: the place of its current item.
    item: Option<usize>,
    /// How long the path is with it.
    path_len: usize,
}

impl Lines {
    /// Reads the lines of a document. The first one is line 1.
    #[must_use]
    pub fn read(document: &str) -> Self {
        let mut walk = Walk { path: String::new(), frames: Vec::new(), lines: HashMap::new() };
        for (number, line) in document.lines().enumerate() {
            walk.line(line, number + 1);
        }
        Self { lines: walk.lines }
    }

    /// The line of a value, else that of the innermost value around it.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<usize> {
        let mut path = path;
        loop {
            if let Some(line) = self.lines.get(path) {
                return Some(*line);
            }
            path = path.get(..path.rfind(['.', '['])?)?;
        }
    }
}

struct Walk {
    path: String,
    frames: Vec<Frame>,
    lines: HashMap<String, usize>,
}

impl Walk {
    fn line(&mut self, line: &str, number: usize) {
        let (mut column, mut rest) = indentation(line);
        if rest.is_empty() || rest.starts_with(['#', '%']) || rest.starts_with("---") {
            return;
        }
        while let Some(item) =
            rest.strip_prefix('-').filter(|it| it.is_empty() || it.starts_with([' ', '\u{a0}']))
        {
            self.item(column, number);
            let (width, after) = indentation(item);
            rest = after;
            column += 1 + width;
        }
        if let Some(key) = key(rest) {
            self.leave(|frame| frame.column >= column);
            self.enter(&format!("{}{key}", if self.path.is_empty() { "" } else { "." }), column, None);
            self.record(number);
        }
    }

    /// A list may begin in the column of the key that it belongs to.
    fn item(&mut self, column: usize, number: usize) {
        self.leave(|frame| frame.column > column);
        let last = self.frames.last().filter(|frame| frame.column == column).and_then(|frame| frame.item);
        if last.is_some() {
            self.frames.pop();
            self.cut();
        }
        let item = last.map_or(0, |item| item + 1);
        self.enter(&format!("[{item}]"), column, Some(item));
        self.record(number);
    }

    fn leave(&mut self, is_left: impl Fn(&Frame) -> bool) {
        while self.frames.last().is_some_and(&is_left) {
            self.frames.pop();
        }
        self.cut();
    }

    fn cut(&mut self) {
        self.path.truncate(self.frames.last().map_or(0, |frame| frame.path_len));
    }

    fn enter(&mut self, part: &str, column: usize, item: Option<usize>) {
        self.path.push_str(part);
        self.frames.push(Frame { column, item, path_len: self.path.len() });
    }

    fn record(&mut self, number: usize) {
        if self.frames.len() <= MAX_LINE_DEPTH {
            self.lines.entry(self.path.clone()).or_insert(number);
        }
    }
}

/// The number of characters that indent a text, and the text after them.
fn indentation(text: &str) -> (usize, &str) {
    let rest = text.trim_start_matches([' ', '\u{a0}']);
    let indent = text.get(..text.len() - rest.len()).unwrap_or(text);
    (indent.chars().count(), rest)
}

/// Longest key that a line is recorded for.
const MAX_KEY_LEN: usize = 64;

/// The key that a line begins with.
fn key(line: &str) -> Option<&str> {
    let end = line.find(": ").or_else(|| line.trim_end().strip_suffix(':').map(str::len))?;
    let key = line.get(..end)?.trim().trim_matches(['"', '\'']);
    (!key.is_empty() && key.len() <= MAX_KEY_LEN && !key.starts_with(['{', '['])).then_some(key)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DOCUMENT: &str = "\
---
# A host.
interfaces:
- name: eth0
  ipv4:
    address:
      - ip: 192.0.2.10
        prefix-length: 24
      -   ip: 192.0.2.11
          prefix-length: 24
    enabled: true

- name: bond0
  link-aggregation:
    port:
    - eth1
    - eth2
  vlan: {id: 7}
routes:
  config:
  - destination: 0.0.0.0/0
    next-hop-interface: eth0
\"dns-resolver\":
  config: {server: [192.0.2.1]}
";

    #[test]
    fn values_have_lines() {
        let lines = Lines::read(DOCUMENT);
        let cases = [
            ("interfaces", 3),
            ("interfaces[0]", 4),
            ("interfaces[0].name", 4),
            ("interfaces[0].ipv4.address[0].prefix-length", 8),
            ("interfaces[0].ipv4.address[1].ip", 9),
            ("interfaces[0].ipv4.enabled", 11),
            ("interfaces[1].link-aggregation.port[1]", 17),
            ("interfaces[1].vlan.id", 18),
            ("routes.config[0].next-hop-interface", 22),
            ("routes.config[0].gone", 21),
            ("dns-resolver.config.server[0]", 24),
        ];
        for (path, line) in cases {
            assert_eq!(lines.find(path), Some(line), "{path}");
        }
        assert_eq!(lines.find("hostname"), None);
        assert_eq!(Lines::read("{\"interfaces\": []}").find("interfaces"), None);
    }

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

    proptest! {
        #[test]
        fn any_text_is_walked(text in "[a: \\-\n#\\[{\u{a0}]{0,60}", path in "[a.\\[\\]0]{0,9}") {
            let count = text.lines().count();
            prop_assert!(Lines::read(&text).find(&path).is_none_or(|line| line <= count));
        }
    }
}
