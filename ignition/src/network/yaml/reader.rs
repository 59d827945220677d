//! Parses YAML into JSON values, event by event and within limits.
//!
//! For each token, libyaml's scanner visits all open brackets, so its time is proportional to the product of a
//! document's length and its nesting depth. This reader stops at the first event with too much nesting. At that point,
//! the scanner is at most one simple key (1,024 bytes) ahead, so the time is linear in the length of the document.

use std::collections::HashMap;

use libyaml_safer::{Encoding, Event, EventData, Mark, Parser, ScalarStyle};
use serde_json::{Map, Value};

use super::position::position;
use super::{quoted, scalar};
use crate::network::panics;

/// Maximum number of nested collections. serde_json and serde_yaml have the same limit.
pub(super) const MAX_DEPTH: usize = 128;

/// Maximum number of values in a text. Each value takes about a hundred bytes of memory.
///
/// A list of [`MAX_HOSTS`](crate::network::MAX_HOSTS) hosts with four MAC addresses each has 1.5 million values.
pub(super) const MAX_VALUES: usize = 2 << 20;

/// Maximum number of bytes of text that aliases may add to a document.
///
/// It equals the maximum length of an nmstate document. Typical documents use aliases only to share a few settings.
const MAX_ALIAS_TEXT: usize = 512 << 10;

/// Maximum number of `%TAG` directives. The parser compares each directive with all earlier ones. nmstate and
/// Kubernetes do not use any.
const MAX_TAG_DIRECTIVES: usize = 16;

const SECOND_DOCUMENT: &str = "a second document begins";

/// The reason why a text is rejected as YAML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at line {line} column {column}")]
pub struct YamlError {
    problem: String,
    line: usize,
    column: usize,
}

impl YamlError {
    fn new(problem: impl Into<String>, text: &str, mark: Mark) -> Self {
        let (line, column) = position(text, mark);
        Self { problem: problem.into(), line, column }
    }

    /// Returns the problem without its position.
    #[must_use]
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// Returns `true` if the error is that the text contains a second document.
    pub(in crate::network) fn is_second_document(&self) -> bool {
        self.problem == SECOND_DOCUMENT
    }

    /// Returns the line number of the problem, counted from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }
}

/// Parses the single YAML document in a text. JSON is valid YAML. An empty text is `null`.
///
/// # Errors
///
/// Returns an error if the text is not YAML. It also returns an error for a second document, a duplicate key, a key
/// that is not a scalar, an application-specific tag, and a number that JSON cannot express. Finally, it returns an
/// error if the text exceeds [`MAX_DEPTH`], `max_values` or [`MAX_ALIAS_TEXT`].
pub(super) fn read(text: &str, max_values: usize) -> Result<Value, YamlError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    check_directives(text)?;
    let mut reader = YamlReader { max_values, ..YamlReader::default() };
    let read = panics::catch_panic(|| reader.run(text));
    read.unwrap_or_else(|panic| {
        Err(YamlError::new(format!("the YAML parser failed: {panic}"), text, reader.last_mark))
    })?;
    Ok(reader.root.unwrap_or(Value::Null))
}

fn check_directives(text: &str) -> Result<(), YamlError> {
    let is_break = |it| matches!(it, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
    if text.split(is_break).filter(|line| line.starts_with("%TAG")).nth(MAX_TAG_DIRECTIVES).is_none() {
        return Ok(());
    }
    Err(YamlError::new(format!("more than {MAX_TAG_DIRECTIVES} %TAG directives"), text, Mark::default()))
}

/// The size of a value, including all values in it.
#[derive(Clone, Copy, Default)]
struct ValueSize {
    values: usize,
    /// Number of bytes in scalars and keys.
    text: usize,
}

impl ValueSize {
    fn add_size(&mut self, other: Self) {
        self.values = self.values.saturating_add(other.values);
        self.text = self.text.saturating_add(other.text);
    }
}

/// A collection that is not complete yet.
struct OpenCollection {
    anchor: Option<usize>,
    /// The size of the document before this collection.
    before: ValueSize,
    /// Depth of the nested collections, including this collection.
    height: usize,
    items: CollectionItems,
}

enum CollectionItems {
    List(Vec<Value>),
    Fields { fields: Map<String, Value>, key: Option<String> },
}

/// A copy of a value with an anchor, for aliases.
#[derive(Clone)]
struct AnchoredValue {
    value: Value,
    size: ValueSize,
    height: usize,
}

#[derive(Default)]
struct YamlReader {
    max_values: usize,
    root: Option<Value>,
    open: Vec<OpenCollection>,
    /// The index in `anchors` of the latest anchor with each name.
    names: HashMap<String, usize>,
    /// The values of all anchors. The value is missing while its collection is incomplete.
    anchors: Vec<Option<AnchoredValue>>,
    /// The size of the document so far, including the values of aliases.
    size: ValueSize,
    /// The total size of the copied values of anchors.
    kept_size: ValueSize,
    /// Number of bytes of text that aliases have added.
    alias_text: usize,
    last_mark: Mark,
}

impl YamlReader {
    fn run(&mut self, text: &str) -> Result<(), YamlError> {
        let mut parser = Parser::new();
        parser.set_encoding(Encoding::Utf8);
        parser.set_input(text.as_bytes());
        for event in parser {
            let Event { data, start_mark, .. } = event.map_err(|error| self.syntax_error(text, &error))?;
            self.last_mark = start_mark;
            self.handle_event(data).map_err(|problem| YamlError::new(problem, text, start_mark))?;
        }
        Ok(())
    }

    fn syntax_error(&self, text: &str, error: &libyaml_safer::Error) -> YamlError {
        let context = error.context().map(|context| format!(" {context}")).unwrap_or_default();
        let problem = format!("{}{context}", error.problem());
        match error.problem_mark() {
            Some(mark) => tab_indentation(text, mark).unwrap_or_else(|| YamlError::new(problem, text, mark)),
            // The parser decodes a text before it scans it, so errors about invalid characters have no line.
            None => {
                forbidden_character(text).unwrap_or_else(|| YamlError::new(problem, text, self.last_mark))
            }
        }
    }

    fn handle_event(&mut self, event: EventData) -> Result<(), String> {
        match event {
            EventData::DocumentStart { .. } if self.root.is_some() => Err(SECOND_DOCUMENT.to_owned()),
            EventData::Alias { anchor } => self.add_alias(&anchor),
            EventData::Scalar { anchor, tag, value, style, .. } => {
                let anchor = anchor.map(|name| self.register_anchor(name));
                self.add_scalar(anchor, tag.as_deref(), value, style == ScalarStyle::Plain)
            }
            EventData::SequenceStart { anchor, tag, .. } => {
                self.start_collection(anchor, tag.as_deref(), CollectionItems::List(Vec::new()))
            }
            EventData::MappingStart { anchor, tag, .. } => self.start_collection(
                anchor,
                tag.as_deref(),
                CollectionItems::Fields { fields: Map::new(), key: None },
            ),
            EventData::SequenceEnd | EventData::MappingEnd => self.end_collection(),
            _ => Ok(()),
        }
    }

    /// Adds a scalar as a key or value. A key is the text of its scalar, regardless of the scalar's type.
    fn add_scalar(
        &mut self,
        anchor: Option<usize>,
        tag: Option<&str>,
        text: String,
        is_plain: bool,
    ) -> Result<(), String> {
        let size = ValueSize { values: 1, text: text.len() };
        self.count_values(size)?;
        let key = self.is_key_next().then(|| text.clone());
        if key.is_some() && anchor.is_none() {
            scalar::check_tag(tag)?;
            return self.add_value(Value::Null, key, 0);
        }
        let value = scalar::resolve(text, tag, is_plain)?;
        self.keep_anchored(anchor, &value, size, 0)?;
        self.add_value(value, key, 0)
    }

    fn start_collection(
        &mut self,
        anchor: Option<String>,
        tag: Option<&str>,
        items: CollectionItems,
    ) -> Result<(), String> {
        scalar::check_tag(tag)?;
        if self.is_key_next() {
            return Err("a mapping key is a collection; only scalars are accepted".to_owned());
        }
        check_depth(self.open.len().saturating_add(1))?;
        let before = self.size;
        self.count_values(ValueSize { values: 1, text: 0 })?;
        let anchor = anchor.map(|name| self.register_anchor(name));
        self.open.push(OpenCollection { anchor, before, height: 1, items });
        Ok(())
    }

    fn end_collection(&mut self) -> Result<(), String> {
        let Some(OpenCollection { anchor, before, height, items }) = self.open.pop() else {
            return Err("a collection ends without a beginning".to_owned());
        };
        let value = match items {
            CollectionItems::List(items) => Value::Array(items),
            CollectionItems::Fields { fields, .. } => Value::Object(fields),
        };
        let size = ValueSize { values: self.size.values - before.values, text: self.size.text - before.text };
        self.keep_anchored(anchor, &value, size, height)?;
        self.add_value(value, None, height)
    }

    /// Adds a copy of an alias's value. The limits are checked before the copy is made.
    fn add_alias(&mut self, name: &str) -> Result<(), String> {
        let id = self.names.get(name).ok_or_else(|| format!("alias {} has no anchor", quoted(name)))?;
        let anchored = self.anchors.get(*id).and_then(Option::as_ref);
        let anchored = anchored.ok_or_else(|| format!("alias {} contains itself", quoted(name)))?;
        let (size, height) = (anchored.size, anchored.height);
        check_depth(self.open.len().saturating_add(height))?;
        self.alias_text = self.alias_text.saturating_add(size.text);
        if self.alias_text > MAX_ALIAS_TEXT {
            return Err(format!("aliases add more than {MAX_ALIAS_TEXT} bytes of text to the document"));
        }
        check_values(self.size.values.saturating_add(size.values), self.kept_size, self.max_values)?;
        let value = anchored.value.clone();
        self.size.add_size(size);
        if !self.is_key_next() {
            return self.add_value(value, None, height);
        }
        let Value::String(key) = value else {
            return Err(format!("a mapping key is the alias {}, which is not a string", quoted(name)));
        };
        self.add_value(Value::Null, Some(key), 0)
    }

    fn is_key_next(&self) -> bool {
        matches!(
            self.open.last(),
            Some(OpenCollection { items: CollectionItems::Fields { key: None, .. }, .. })
        )
    }

    /// Adds a key or a value to the innermost collection.
    fn add_value(&mut self, value: Value, new_key: Option<String>, height: usize) -> Result<(), String> {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(value);
            return Ok(());
        };
        open.height = open.height.max(height.saturating_add(1));
        match &mut open.items {
            CollectionItems::List(items) => items.push(value),
            CollectionItems::Fields { fields, key } => match (key.take(), new_key) {
                (Some(key), _) => drop(fields.insert(key, value)),
                (None, Some(key)) if fields.contains_key(&key) => {
                    return Err(format!("duplicate key {}", quoted(&key)));
                }
                (None, new_key) => *key = new_key,
            },
        }
        Ok(())
    }

    fn count_values(&mut self, size: ValueSize) -> Result<(), String> {
        self.size.add_size(size);
        check_values(self.size.values, self.kept_size, self.max_values)
    }

    /// Registers an anchor for the next value.
    fn register_anchor(&mut self, name: String) -> usize {
        let id = self.anchors.len();
        self.anchors.push(None);
        self.names.insert(name, id);
        id
    }

    /// Stores a copy of an anchored value. The copy counts towards the limit. Otherwise nested anchors would take a
    /// multiple of the document's memory.
    fn keep_anchored(
        &mut self,
        anchor: Option<usize>,
        value: &Value,
        size: ValueSize,
        height: usize,
    ) -> Result<(), String> {
        let Some(place) = anchor.and_then(|id| self.anchors.get_mut(id)) else { return Ok(()) };
        self.kept_size.add_size(size);
        if self.kept_size.text > MAX_ALIAS_TEXT {
            return Err(format!("anchors hold more than {MAX_ALIAS_TEXT} bytes of text"));
        }
        check_values(self.size.values, self.kept_size, self.max_values)?;
        *place = Some(AnchoredValue { value: value.clone(), size, height });
        Ok(())
    }
}

fn check_depth(depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("collections are nested more than {MAX_DEPTH} levels deep"));
    }
    Ok(())
}

fn check_values(values: usize, kept_size: ValueSize, max: usize) -> Result<(), String> {
    if values.saturating_add(kept_size.values) > max {
        return Err(format!("more than {max} values, with aliases resolved"));
    }
    Ok(())
}

/// Returns an error for a line with a tab in its indentation if a syntax error is on that line. The parser's own
/// message does not mention the tab, which editors do not show. In JSON, tabs are allowed.
fn tab_indentation(text: &str, mark: Mark) -> Option<YamlError> {
    if text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let (line, _) = position(text, mark);
    let indented = text.lines().nth(line.checked_sub(1)?)?;
    let (column, _) = (1..)
        .zip(indented.chars())
        .take_while(|(_, it)| [' ', '\t'].contains(it))
        .find(|(_, it)| *it == '\t')?;
    let problem = "the line is indented with a tab; YAML allows only spaces".to_owned();
    Some(YamlError { problem, line, column })
}

/// Returns an error for the first character that YAML does not allow, with its line number.
fn forbidden_character(text: &str) -> Option<YamlError> {
    let is_forbidden = |it: char| {
        it.is_control() && !matches!(it, '\t' | '\n' | '\r' | '\u{85}')
            || matches!(it, '\u{fffe}' | '\u{ffff}')
    };
    let (line, text) = (1..).zip(text.lines()).find(|(_, line)| line.contains(is_forbidden))?;
    let (column, char) = (1..).zip(text.chars()).find(|(_, char)| is_forbidden(*char))?;
    let problem = format!("the character {:?} is not allowed", char);
    Some(YamlError { problem, line, column })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(text: &str) -> Value {
        read(text, 1000).unwrap()
    }

    fn refusal(text: &str) -> String {
        read(text, 1000).unwrap_err().to_string()
    }

    #[test]
    fn documents_are_parsed_into_json() {
        assert_eq!(value(""), Value::Null);
        assert_eq!(value("\u{feff}%YAML 1.2\n---\na: [1, '1', ~]\n...\n"), json!({"a": [1, "1", null]}));
        assert_eq!(value("- &a {b: 0x10}\n- *a\n- &a 7\n- *a\n"), json!([{"b": 16}, {"b": 16}, 7, 7]));
        assert_eq!(value("&k key: 1\n0x10: 2\n"), json!({"key": 1, "0x10": 2}));
        assert_eq!(value("a: &k key\n*k : {<<: 1, ~: 2}"), json!({"a": "key", "key": {"<<": 1, "~": 2}}));
        assert_eq!(
            value("{\"a\": \"\\u00e4\", \"b\": [1.5, true]}"),
            json!({"a": "\u{e4}", "b": [1.5, true]})
        );
    }

    #[test]
    fn errors_have_problem_and_position() {
        for (text, expected) in [
            ("a: 1\n  b: 2\n", "mapping values are not allowed in this context at line 2 column 4"),
            ("a: 1\nb: 2\na: 3\n", "duplicate key \"a\" at line 3 column 1"),
            ("a: *b\n", "alias \"b\" has no anchor at line 1 column 4"),
            ("a: &b [*b]\n", "alias \"b\" contains itself at line 1 column 8"),
            ("? [a]\n: b\n", "a mapping key is a collection; only scalars are accepted at line 1 column 3"),
            (
                "a: &b [1]\n*b : 2\n",
                "a mapping key is the alias \"b\", which is not a string at line 2 column 1",
            ),
            ("a: !secret b\n", "unknown tag \"!secret\" at line 1 column 4"),
            ("a: !!int b\n", "\"b\" is not an integer at line 1 column 4"),
            ("a: 1\n---\nb: 2\n", "a second document begins at line 2 column 1"),
            ("a:\n\t- b\n", "the line is indented with a tab; YAML allows only spaces at line 2 column 1"),
            (
                "a:\n  b: 1\n  \tc: 2\n",
                "the line is indented with a tab; YAML allows only spaces at line 3 column 3",
            ),
            (
                "{\n\t\"a\": [\n",
                "did not find expected node content while parsing a flow node at line 2 column 8",
            ),
            ("a:\n- b\u{7}\n", "the character '\\u{7}' is not allowed at line 2 column 4"),
        ] {
            assert_eq!(refusal(text), expected);
        }
        for end in ["a: [", "a: [\n"] {
            assert!(refusal(end).ends_with(" at line 1 column 5"), "{end:?}: there is no second line");
        }
        assert!(refusal("\"\\").contains("line 1"), "an end that the parser does not expect");
    }

    #[test]
    fn line_numbers_of_errors_count_only_line_breaks_of_editors() {
        for line_break in ["\r", "\u{85}", "\u{2028}", "\u{2029}"] {
            let duplicate =
                format!("a: 1 #{line_break}b: {line_break} 2\nc: 3\n\u{e4}: 1 #{line_break}c: 4\n");
            assert_eq!(refusal(&duplicate), "duplicate key \"c\" at line 3 column 8", "{line_break:?}");
            let unfinished = format!("{{a: 1,{}\n b: [", line_break.repeat(60));
            assert!(refusal(&unfinished).ends_with(" at line 2 column 6"), "{line_break:?}");
            let tab = format!("# a{line_break}# b\na:\n\t- b\n");
            let expected = "the line is indented with a tab; YAML allows only spaces at line 3 column 1";
            assert_eq!(refusal(&tab), expected, "{line_break:?}");
        }
        assert_eq!(refusal("a: 1\r\nb: 2\r\na: 3\r\n"), "duplicate key \"a\" at line 3 column 1");
    }

    #[test]
    fn rejects_deep_nesting_with_aliases_resolved() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        value(&nested(MAX_DEPTH));
        assert!(
            refusal(&nested(MAX_DEPTH + 1)).starts_with("collections are nested more than 128 levels deep")
        );
        let half = MAX_DEPTH / 2;
        let with_alias = |inner: usize| {
            let outer = half - 1;
            format!("- &a {}\n- {}*a{}\n", nested(inner), "[".repeat(outer), "]".repeat(outer))
        };
        value(&with_alias(half));
        assert!(refusal(&with_alias(half + 1)).contains("levels deep at line 2"));
    }

    #[test]
    fn rejects_too_many_values_with_aliases_resolved() {
        let list = |count: usize| format!("[{}]", "1,".repeat(count));
        value(&list(999));
        assert_eq!(
            refusal(&list(1000)),
            "more than 1000 values, with aliases resolved at line 1 column 2000"
        );
        // The anchor stores 101 values, and each alias adds 101 values.
        let aliases = |count: usize| format!("- &a {}\n- [{}]\n", list(100), "*a,".repeat(count));
        value(&aliases(7));
        assert!(refusal(&aliases(8)).starts_with("more than 1000 values"));
    }

    #[test]
    fn rejects_too_much_text_from_aliases() {
        let aliases =
            |count: usize| format!("- &a {}\n- [{}]\n", "x".repeat(MAX_ALIAS_TEXT / 4), "*a,".repeat(count));
        value(&aliases(4));
        assert!(refusal(&aliases(5)).starts_with("aliases add more than 524288 bytes of text"));
        let nested = format!("- &a {}", "x".repeat(MAX_ALIAS_TEXT + 1));
        assert!(refusal(&nested).starts_with("anchors hold more than 524288 bytes of text"));
        value(&"x".repeat(2 * MAX_ALIAS_TEXT));
    }
}
