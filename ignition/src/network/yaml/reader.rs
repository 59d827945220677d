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
            EventData::DocumentStart { .. } if self.root.is_some() => {
                Err("a second document begins".to_owned())
            }
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
