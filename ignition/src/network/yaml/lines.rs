//! The line numbers of a document's values.

use std::collections::HashMap;

use libyaml_safer::{Encoding, Event, EventData, Mark, Parser, ScalarStyle};
use serde_json::Value;

use super::reader::{MAX_DEPTH, MAX_VALUES};
use super::{scalar, scalar_text};
use crate::network::panics;

/// Maximum depth of a value whose line is recorded.
const MAX_LINE_DEPTH: usize = 12;

/// Maximum length in characters of a key in a path.
const MAX_KEY_LEN: usize = 64;

/// The line numbers of the values in a document, by paths such as `interfaces[0].ipv4`.
///
/// The line of a value in a mapping is the line of its key. A value from an alias has the line of the alias.
///
/// # Examples
///
/// ```
/// use ignition::network::yaml::LineIndex;
///
/// let lines = LineIndex::read("interfaces:\n- name: eth0\n  ipv4: {enabled: true}\n");
/// assert_eq!(lines.find("interfaces[0].ipv4.enabled"), Some(3));
/// assert_eq!(lines.find("interfaces[0].ipv6"), Some(2), "the line of the innermost value around it");
/// assert_eq!(lines.find("routes"), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct LineIndex {
    lines: HashMap<String, usize>,
    numbers: HashMap<String, NonDecimalNumber>,
}

/// A number that is not written in plain decimal, such as `0x1388`.
#[derive(Clone, Debug)]
struct NonDecimalNumber {
    decimal: String,
    written: String,
}

impl LineIndex {
    /// Reads the line numbers of a document, YAML or JSON, up to its first syntax error. The first line is 1.
    #[must_use]
    pub fn read(document: &str) -> Self {
        const NO_BREAK_SPACE: char = '\u{a0}';
        let found = record_lines(document);
        if !document.contains(NO_BREAK_SPACE) {
            return found;
        }
        // The reader accepts such documents with spaces instead of no-break spaces.
        let replaced = record_lines(&document.replace(NO_BREAK_SPACE, " "));
        if replaced.lines.len() > found.lines.len() { replaced } else { found }
    }

    /// Replaces the decimal value in a message about a number with the number as the user wrote it.
    pub(in crate::network) fn as_written(&self, path: &str, message: String) -> String {
        match self.numbers.get(path) {
            Some(NonDecimalNumber { decimal, written }) => message.replacen(decimal, written, 1),
            None => message,
        }
    }

    /// Returns the line of a value, or of the innermost value around it that has a line.
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

fn record_lines(text: &str) -> LineIndex {
    let mut walk = LineRecorder::default();
    // The lines found before a panic of the parser are correct.
    let _ = panics::catch_panic(|| walk.record(text));
    walk.found
}

/// A collection whose end has not been read.
struct PathFrame {
    /// The length of the path of the collection itself.
    path_len: usize,
    next: NextValue,
}

/// What comes next in a collection.
enum NextValue {
    Item(usize),
    Key,
    Value { line: usize },
}

#[derive(Default)]
struct LineRecorder {
    path: String,
    frames: Vec<PathFrame>,
    found: LineIndex,
}

impl LineRecorder {
    fn record(&mut self, text: &str) {
        let mut parser = Parser::new();
        parser.set_encoding(Encoding::Utf8);
        parser.set_input(text.strip_prefix('\u{feff}').unwrap_or(text).as_bytes());
        let mut documents = 0;
        for event in parser {
            let Ok(Event { data, start_mark, .. }) = event else { return };
            documents += usize::from(matches!(data, EventData::DocumentStart { .. }));
            if documents > 1 || self.frames.len() > MAX_DEPTH || self.found.lines.len() >= MAX_VALUES {
                return;
            }
            self.handle_event(data, line_number(start_mark));
        }
    }

    fn handle_event(&mut self, data: EventData, line: usize) {
        match data {
            EventData::Scalar { value, tag, style, .. } => {
                self.handle_scalar(&value, line, tag.is_none() && style == ScalarStyle::Plain);
            }
            EventData::Alias { .. } => self.handle_scalar("", line, false),
            EventData::SequenceStart { .. } => self.open_collection(NextValue::Item(0), line),
            EventData::MappingStart { .. } => self.open_collection(NextValue::Key, line),
            EventData::SequenceEnd | EventData::MappingEnd => {
                self.frames.pop();
                self.end_value();
            }
            _ => {}
        }
    }

    fn handle_scalar(&mut self, text: &str, line: usize, is_plain: bool) {
        match self.frames.last_mut() {
            Some(frame) if matches!(frame.next, NextValue::Key) => {
                frame.next = NextValue::Value { line };
                let key = text.char_indices().nth(MAX_KEY_LEN).and_then(|(end, _)| text.get(..end));
                self.push_path(&format!(".{}", key.unwrap_or(text)));
            }
            _ => {
                self.begin_value(line);
                if is_plain && self.frames.len() <= MAX_LINE_DEPTH {
                    self.found
                        .numbers
                        .extend(non_decimal_number(text).map(|number| (self.path.clone(), number)));
                }
                self.end_value();
            }
        }
    }

    fn open_collection(&mut self, next: NextValue, line: usize) {
        self.begin_value(line);
        self.frames.push(PathFrame { path_len: self.path.len(), next });
    }

    /// Begins a value: completes the path and records the line.
    fn begin_value(&mut self, line: usize) {
        let (part, line) = match self.frames.last().map(|frame| &frame.next) {
            Some(NextValue::Item(index)) => (format!("[{index}]"), line),
            Some(NextValue::Value { line }) => (String::new(), *line),
            Some(NextValue::Key) | None => (String::new(), line),
        };
        self.push_path(&part);
        if self.frames.len() <= MAX_LINE_DEPTH && !self.path.is_empty() {
            self.found.lines.entry(self.path.clone()).or_insert(line);
        }
    }

    /// Ends a value: truncates the path to that of the collection, which may contain more values.
    fn end_value(&mut self) {
        let Some(frame) = self.frames.last_mut() else { return };
        self.path.truncate(frame.path_len);
        frame.next = match frame.next {
            NextValue::Item(index) => NextValue::Item(index + 1),
            NextValue::Key | NextValue::Value { .. } => NextValue::Key,
        };
    }

    fn push_path(&mut self, part: &str) {
        if self.frames.len() <= MAX_LINE_DEPTH {
            self.path.push_str(if self.path.is_empty() { part.trim_start_matches('.') } else { part });
        }
    }
}

/// Returns a plain scalar as a number, if it is one that is not written in plain decimal.
fn non_decimal_number(written: &str) -> Option<NonDecimalNumber> {
    if !written.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) {
        return None;
    }
    let value = scalar::resolve(written.to_owned(), None, true).ok().filter(Value::is_number)?;
    let decimal = scalar_text(&value)?.into_owned();
    (decimal != written).then(|| NonDecimalNumber { decimal, written: written.to_owned() })
}

fn line_number(mark: Mark) -> usize {
    usize::try_from(mark.line).map_or(usize::MAX, |line| line.saturating_add(1))
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
  config: {server: [192.0.2.1,
    192.0.2.2]}
";

    #[test]
    fn lines_of_values_are_found() {
        let lines = LineIndex::read(DOCUMENT);
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
            ("dns-resolver.config.server[1]", 25),
        ];
        for (path, line) in cases {
            assert_eq!(lines.find(path), Some(line), "{path}");
        }
        assert_eq!(lines.find("hostname"), None);
    }

    #[test]
    fn lines_in_json_and_flow_style_are_found() {
        let json = LineIndex::read("{\"a\": [\n  {\"b\":\n  1},\n  {\"c\": 2}\n]}");
        let found = ["a", "a[0]", "a[0].b", "a[1].c"].map(|path| json.find(path));
        assert_eq!(found, [Some(1), Some(2), Some(2), Some(4)]);
        let alias = LineIndex::read("a: &x\n  b: 1\nc: *x\nd: 2\n");
        assert_eq!((alias.find("c.b"), alias.find("d")), (Some(3), Some(4)));
        let pasted = LineIndex::read("a:\n-\u{a0}b: 1\n\u{a0} c: 2\n");
        assert_eq!(pasted.find("a[0].c"), Some(3));
    }

    #[test]
    fn lines_before_a_syntax_error_are_found() {
        assert_eq!(LineIndex::read("a: 1\nb: [\n").find("a"), Some(1));
    }

    proptest! {
        #[test]
        fn any_line_is_within_the_document(text in "[a: \\-\n#\\[{\u{a0}]{0,60}", path in "[a.\\[\\]0]{0,9}") {
            let count = text.lines().count();
            prop_assert!(LineIndex::read(&text).find(&path).is_none_or(|line| line <= count));
        }
    }
}
