//! YAML to JSON values, event by event, within a budget.
//!
//! libyaml's scanner looks at all open brackets for each token, so its time is the product of a document's length and its
//! nesting. This reader stops at the first event that nests too deep. The scanner is then at most one simple key
//! (1,024 bytes) ahead, so the time of any document is linear in its length.

use std::collections::HashMap;

use libyaml_safer::{Encoding, Event, EventData, Mark, Parser, ScalarStyle};
use serde_json::{Map, Value};

use super::{scalar, shown};
use crate::network::isolation;

/// Most collections that may be open at once. serde_json and serde_yaml have the same limit.
pub const MAX_DEPTH: usize = 128;

/// Most values of a text of any length. Each takes about a hundred bytes of memory.
///
/// A list of [`MAX_HOSTS`](crate::network::MAX_HOSTS) hosts with four MAC addresses each has 1.5 million.
pub const MAX_VALUES: usize = 2 << 20;

/// Most bytes of text that aliases may add to a document.
///
/// This is as much as an nmstate document may have: documents share a few settings through aliases.
pub const MAX_ALIAS_TEXT: usize = 512 << 10;

/// Most `%TAG` directives. The parser compares each one with all before it, and nmstate and Kubernetes use none.
const MAX_TAG_DIRECTIVES: usize = 16;

const SECOND_DOCUMENT: &str = "a second document begins";

/// Why a text is refused as YAML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at line {line} column {column}")]
pub struct YamlError {
    problem: String,
    line: u64,
    column: u64,
}

impl YamlError {
    fn new(problem: impl Into<String>, mark: Mark) -> Self {
        Self { problem: problem.into(), line: mark.line + 1, column: mark.column + 1 }
    }

    /// What is wrong.
    #[must_use]
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// Whether the text has a second document.
    pub(in crate::network) fn is_second_document(&self) -> bool {
        self.problem == SECOND_DOCUMENT
    }

    /// The line where it is. The first line is 1.
    #[must_use]
    pub fn line(&self) -> usize {
        usize::try_from(self.line).unwrap_or(usize::MAX)
    }
}

/// Reads the one YAML document of a text. The text of a JSON document is YAML too. An empty text gives null.
///
/// # Errors
///
/// Returns an error if the text is not YAML; if it has a second document, a duplicate key, a key that is not a scalar, an
/// application's tag or a number that JSON does not have; or if it exceeds [`MAX_DEPTH`], `max_values` or
/// [`MAX_ALIAS_TEXT`].
pub(super) fn read(text: &str, max_values: usize) -> Result<Value, YamlError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    check_directives(text)?;
    let mut reader = Reader { max_values, ..Reader::default() };
    let read = isolation::run(|| reader.run(text));
    read.unwrap_or_else(|panic| {
        Err(YamlError::new(format!("the YAML parser failed: {panic}"), reader.last))
    })?;
    Ok(reader.root.unwrap_or(Value::Null))
}

fn check_directives(text: &str) -> Result<(), YamlError> {
    let is_break = |it| matches!(it, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
    if text.split(is_break).filter(|line| line.starts_with("%TAG")).nth(MAX_TAG_DIRECTIVES).is_none() {
        return Ok(());
    }
    Err(YamlError::new(format!("more than {MAX_TAG_DIRECTIVES} %TAG directives"), Mark::default()))
}

/// The size of a value with everything in it.
#[derive(Clone, Copy, Default)]
struct Size {
    values: usize,
    /// Bytes in scalars and keys.
    text: usize,
}

impl Size {
    fn add(&mut self, other: Self) {
        self.values = self.values.saturating_add(other.values);
        self.text = self.text.saturating_add(other.text);
    }
}

/// A collection whose end has not been read.
struct Open {
    anchor: Option<usize>,
    /// What had been read before it.
    before: Size,
    /// The most collections within one another, itself included.
    height: usize,
    items: Items,
}

enum Items {
    List(Vec<Value>),
    Fields { fields: Map<String, Value>, key: Option<String> },
}

/// What aliases stand for.
#[derive(Clone)]
struct Anchored {
    value: Value,
    size: Size,
    height: usize,
}

#[derive(Default)]
struct Reader {
    max_values: usize,
    root: Option<Value>,
    open: Vec<Open>,
    /// The latest anchor of each name.
    names: HashMap<String, usize>,
    /// The values of all anchors. That of a collection is missing until the collection ends.
    anchors: Vec<Option<Anchored>>,
    /// The size of the document so far, with its aliases resolved.
    size: Size,
    /// The size of what anchors keep.
    kept: Size,
    /// Bytes of text that aliases added.
    alias_text: usize,
    last: Mark,
}

impl Reader {
    fn run(&mut self, text: &str) -> Result<(), YamlError> {
        let mut parser = Parser::new();
        parser.set_encoding(Encoding::Utf8);
        parser.set_input(text.as_bytes());
        for event in parser {
            let Event { data, start_mark, .. } = event.map_err(|error| self.syntax(text, &error))?;
            self.last = start_mark;
            self.event(data).map_err(|problem| YamlError::new(problem, start_mark))?;
        }
        Ok(())
    }

    fn syntax(&self, text: &str, error: &libyaml_safer::Error) -> YamlError {
        let context = error.context().map(|context| format!(" {context}")).unwrap_or_default();
        let problem = format!("{}{context}", error.problem());
        match error.problem_mark() {
            Some(mark) => YamlError::new(problem, mark),
            // The parser decodes a text before it scans it, and reports no line for what it cannot decode.
            None => forbidden(text).unwrap_or_else(|| YamlError::new(problem, self.last)),
        }
    }

    fn event(&mut self, event: EventData) -> Result<(), String> {
        match event {
            EventData::DocumentStart { .. } if self.root.is_some() => Err(SECOND_DOCUMENT.to_owned()),
            EventData::Alias { anchor } => self.alias(&anchor),
            EventData::Scalar { anchor, tag, value, style, .. } => {
                let anchor = anchor.map(|name| self.anchor(name));
                self.scalar(anchor, tag.as_deref(), value, style == ScalarStyle::Plain)
            }
            EventData::SequenceStart { anchor, tag, .. } => {
                self.start(anchor, tag.as_deref(), Items::List(Vec::new()))
            }
            EventData::MappingStart { anchor, tag, .. } => {
                self.start(anchor, tag.as_deref(), Items::Fields { fields: Map::new(), key: None })
            }
            EventData::SequenceEnd | EventData::MappingEnd => self.end(),
            _ => Ok(()),
        }
    }

    /// A key is the text of its scalar, whatever its type.
    fn scalar(
        &mut self,
        anchor: Option<usize>,
        tag: Option<&str>,
        text: String,
        is_plain: bool,
    ) -> Result<(), String> {
        let size = Size { values: 1, text: text.len() };
        self.count(size)?;
        let key = self.is_key_next().then(|| text.clone());
        if key.is_some() && anchor.is_none() {
            scalar::check_tag(tag)?;
            return self.add(Value::Null, key, 0);
        }
        let value = scalar::resolve(text, tag, is_plain)?;
        self.keep(anchor, &value, size, 0)?;
        self.add(value, key, 0)
    }

    fn start(&mut self, anchor: Option<String>, tag: Option<&str>, items: Items) -> Result<(), String> {
        scalar::check_tag(tag)?;
        if self.is_key_next() {
            return Err("a mapping key is a collection; only scalars are accepted".to_owned());
        }
        check_depth(self.open.len().saturating_add(1))?;
        let before = self.size;
        self.count(Size { values: 1, text: 0 })?;
        let anchor = anchor.map(|name| self.anchor(name));
        self.open.push(Open { anchor, before, height: 1, items });
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        let Some(Open { anchor, before, height, items }) = self.open.pop() else {
            return Err("a collection ends that has not begun".to_owned());
        };
        let value = match items {
            Items::List(items) => Value::Array(items),
            Items::Fields { fields, .. } => Value::Object(fields),
        };
        let size = Size { values: self.size.values - before.values, text: self.size.text - before.text };
        self.keep(anchor, &value, size, height)?;
        self.add(value, None, height)
    }

    /// Adds a copy of what an alias stands for, after counting it.
    fn alias(&mut self, name: &str) -> Result<(), String> {
        let id = self.names.get(name).ok_or_else(|| format!("alias {} has no anchor", shown(name)))?;
        let anchored = self.anchors.get(*id).and_then(Option::as_ref);
        let anchored = anchored.ok_or_else(|| format!("alias {} contains itself", shown(name)))?;
        let (size, height) = (anchored.size, anchored.height);
        check_depth(self.open.len().saturating_add(height))?;
        self.alias_text = self.alias_text.saturating_add(size.text);
        if self.alias_text > MAX_ALIAS_TEXT {
            return Err(format!("aliases add more than {MAX_ALIAS_TEXT} bytes of text to the document"));
        }
        check_values(self.size.values.saturating_add(size.values), self.kept, self.max_values)?;
        let value = anchored.value.clone();
        self.size.add(size);
        if !self.is_key_next() {
            return self.add(value, None, height);
        }
        let Value::String(key) = value else {
            return Err(format!("a mapping key is the alias {}, which is not a string", shown(name)));
        };
        self.add(Value::Null, Some(key), 0)
    }

    fn is_key_next(&self) -> bool {
        matches!(self.open.last(), Some(Open { items: Items::Fields { key: None, .. }, .. }))
    }

    /// Adds a value to the innermost collection, or else a key.
    fn add(&mut self, value: Value, new_key: Option<String>, height: usize) -> Result<(), String> {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(value);
            return Ok(());
        };
        open.height = open.height.max(height.saturating_add(1));
        match &mut open.items {
            Items::List(items) => items.push(value),
            Items::Fields { fields, key } => match (key.take(), new_key) {
                (Some(key), _) => drop(fields.insert(key, value)),
                (None, Some(key)) if fields.contains_key(&key) => {
                    return Err(format!("duplicate key {}", shown(&key)));
                }
                (None, new_key) => *key = new_key,
            },
        }
        Ok(())
    }

    fn count(&mut self, size: Size) -> Result<(), String> {
        self.size.add(size);
        check_values(self.size.values, self.kept, self.max_values)
    }

    /// Makes a name stand for the value that follows.
    fn anchor(&mut self, name: String) -> usize {
        let id = self.anchors.len();
        self.anchors.push(None);
        self.names.insert(name, id);
        id
    }

    /// Keeps a copy of an anchored value. The copy counts: anchors within anchors would otherwise cost a multiple of the
    /// document.
    fn keep(
        &mut self,
        anchor: Option<usize>,
        value: &Value,
        size: Size,
        height: usize,
    ) -> Result<(), String> {
        let Some(place) = anchor.and_then(|id| self.anchors.get_mut(id)) else { return Ok(()) };
        self.kept.add(size);
        if self.kept.text > MAX_ALIAS_TEXT {
            return Err(format!("anchors hold more than {MAX_ALIAS_TEXT} bytes of text"));
        }
        check_values(self.size.values, self.kept, self.max_values)?;
        *place = Some(Anchored { value: value.clone(), size, height });
        Ok(())
    }
}

fn check_depth(depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("collections are nested more than {MAX_DEPTH} levels deep"));
    }
    Ok(())
}

fn check_values(values: usize, kept: Size, max: usize) -> Result<(), String> {
    if values.saturating_add(kept.values) > max {
        return Err(format!("more than {max} values, with aliases resolved"));
    }
    Ok(())
}

/// The first character that YAML does not allow, with its line.
fn forbidden(text: &str) -> Option<YamlError> {
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
    fn documents_become_json() {
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
    fn refusals_say_what_and_where() {
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
            ("a:\n- b\u{7}\n", "the character '\\u{7}' is not allowed at line 2 column 4"),
        ] {
            assert_eq!(refusal(text), expected);
        }
        assert!(refusal("\"\\").contains("line 1"), "an end that the parser does not expect");
    }

    #[test]
    fn nesting_is_limited_with_aliases_resolved() {
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
    fn values_are_limited_with_aliases_resolved() {
        let list = |count: usize| format!("[{}]", "1,".repeat(count));
        value(&list(999));
        assert_eq!(
            refusal(&list(1000)),
            "more than 1000 values, with aliases resolved at line 1 column 2000"
        );
        // The anchor keeps 101 values, and each alias adds as many.
        let aliases = |count: usize| format!("- &a {}\n- [{}]\n", list(100), "*a,".repeat(count));
        value(&aliases(7));
        assert!(refusal(&aliases(8)).starts_with("more than 1000 values"));
    }

    #[test]
    fn text_of_aliases_is_limited() {
        let aliases =
            |count: usize| format!("- &a {}\n- [{}]\n", "x".repeat(MAX_ALIAS_TEXT / 4), "*a,".repeat(count));
        value(&aliases(4));
        assert!(refusal(&aliases(5)).starts_with("aliases add more than 524288 bytes of text"));
        let nested = format!("- &a {}", "x".repeat(MAX_ALIAS_TEXT + 1));
        assert!(refusal(&nested).starts_with("anchors hold more than 524288 bytes of text"));
        value(&"x".repeat(2 * MAX_ALIAS_TEXT));
    }
}
