//! The lines of a document's values.

use std::collections::HashMap;

use libyaml_safer::{Encoding, Event, EventData, Mark, Parser, ScalarStyle};
use serde_json::Value;

use super::reader::{MAX_DEPTH, MAX_VALUES};
use super::{scalar, text};
use crate::network::isolation;

/// Deepest value that has a line.
const MAX_LINE_DEPTH: usize = 12;

/// Longest key that a line is recorded for.
const MAX_KEY_LEN: usize = 64;

/// The lines of the values in a document, by paths such as `interfaces[0].ipv4`.
///
/// The line of a mapping's value is that of its key. Values that come from an alias have the line of the alias.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    lines: HashMap<String, usize>,
    numbers: HashMap<String, Number>,
}

/// A number whose text is not its value in decimal, such as `0x1388`.
#[derive(Clone, Debug)]
struct Number {
    decimal: String,
    written: String,
}

impl Lines {
    /// Reads the lines of a document, YAML or JSON, up to its first syntax error. The first line is 1.
    #[must_use]
    pub fn read(document: &str) -> Self {
        const NO_BREAK_SPACE: char = '\u{a0}';
        let found = walk(document);
        if !document.contains(NO_BREAK_SPACE) {
            return found;
        }
        // The reader accepts such documents with spaces instead.
        let replaced = walk(&document.replace(NO_BREAK_SPACE, " "));
        if replaced.lines.len() > found.lines.len() { replaced } else { found }
    }

    /// Returns a message about a value with the value as the user wrote it. The message has a number in decimal.
    pub(in crate::network) fn as_written(&self, path: &str, message: String) -> String {
        match self.numbers.get(path) {
            Some(Number { decimal, written }) => message.replacen(decimal, written, 1),
            None => message,
        }
    }

    /// Returns the line of a value, else that of the innermost value around it.
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

fn walk(text: &str) -> Lines {
    let mut walk = Walk::default();
    // What the walk has found before a panic of the parser is still right.
    let _ = isolation::run(|| walk.run(text));
    walk.found
}

/// An open collection.
struct Frame {
    /// The length of the collection's own path.
    path_len: usize,
    next: Next,
}

/// What follows in a collection.
enum Next {
    Item(usize),
    Key,
    Value { line: usize },
}

#[derive(Default)]
struct Walk {
    path: String,
    frames: Vec<Frame>,
    found: Lines,
}

impl Walk {
    fn run(&mut self, text: &str) {
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
            self.event(data, line_of(start_mark));
        }
    }

    fn event(&mut self, data: EventData, line: usize) {
        match data {
            EventData::Scalar { value, tag, style, .. } => {
                self.scalar(&value, line, tag.is_none() && style == ScalarStyle::Plain);
            }
            EventData::Alias { .. } => self.scalar("", line, false),
            EventData::SequenceStart { .. } => self.open(Next::Item(0), line),
            EventData::MappingStart { .. } => self.open(Next::Key, line),
            EventData::SequenceEnd | EventData::MappingEnd => {
                self.frames.pop();
                self.close();
            }
            _ => {}
        }
    }

    fn scalar(&mut self, text: &str, line: usize, is_plain: bool) {
        match self.frames.last_mut() {
            Some(frame) if matches!(frame.next, Next::Key) => {
                frame.next = Next::Value { line };
                let key = text.char_indices().nth(MAX_KEY_LEN).and_then(|(end, _)| text.get(..end));
                self.enter(&format!(".{}", key.unwrap_or(text)));
            }
            _ => {
                self.begin(line);
                if is_plain && self.frames.len() <= MAX_LINE_DEPTH {
                    self.found.numbers.extend(number(text).map(|number| (self.path.clone(), number)));
                }
                self.close();
            }
        }
    }

    fn open(&mut self, next: Next, line: usize) {
        self.begin(line);
        self.frames.push(Frame { path_len: self.path.len(), next });
    }

    /// Begins a value: completes the path, and records the line.
    fn begin(&mut self, line: usize) {
        let (part, line) = match self.frames.last().map(|frame| &frame.next) {
            Some(Next::Item(index)) => (format!("[{index}]"), line),
            Some(Next::Value { line }) => (String::new(), *line),
            Some(Next::Key) | None => (String::new(), line),
        };
        self.enter(&part);
        if self.frames.len() <= MAX_LINE_DEPTH && !self.path.is_empty() {
            self.found.lines.entry(self.path.clone()).or_insert(line);
        }
    }

    /// Ends a value: cuts the path back to the collection around it, in which another value may follow.
    fn close(&mut self) {
        let Some(frame) = self.frames.last_mut() else { return };
        self.path.truncate(frame.path_len);
        frame.next = match frame.next {
            Next::Item(index) => Next::Item(index + 1),
            Next::Key | Next::Value { .. } => Next::Key,
        };
    }

    fn enter(&mut self, part: &str) {
        if self.frames.len() <= MAX_LINE_DEPTH {
            self.path.push_str(if self.path.is_empty() { part.trim_start_matches('.') } else { part });
        }
    }
}

/// The number that a plain scalar is, if its text is another one.
fn number(written: &str) -> Option<Number> {
    if !written.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) {
        return None;
    }
    let value = scalar::resolve(written.to_owned(), None, true).ok().filter(Value::is_number)?;
    let decimal = text(&value)?.into_owned();
    (decimal != written).then(|| Number { decimal, written: written.to_owned() })
}

fn line_of(mark: Mark) -> usize {
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
            ("dns-resolver.config.server[1]", 25),
        ];
        for (path, line) in cases {
            assert_eq!(lines.find(path), Some(line), "{path}");
        }
        assert_eq!(lines.find("hostname"), None);
    }

    #[test]
    fn values_in_json_and_in_brackets_have_lines() {
        let json = Lines::read("{\"a\": [\n  {\"b\":\n  1},\n  {\"c\": 2}\n]}");
        let found = ["a", "a[0]", "a[0].b", "a[1].c"].map(|path| json.find(path));
        assert_eq!(found, [Some(1), Some(2), Some(2), Some(4)]);
        let alias = Lines::read("a: &x\n  b: 1\nc: *x\nd: 2\n");
        assert_eq!((alias.find("c.b"), alias.find("d")), (Some(3), Some(4)));
        let pasted = Lines::read("a:\n-\u{a0}b: 1\n\u{a0} c: 2\n");
        assert_eq!(pasted.find("a[0].c"), Some(3));
    }

    #[test]
    fn values_before_a_syntax_error_have_lines() {
        assert_eq!(Lines::read("a: 1\nb: [\n").find("a"), Some(1));
    }

    proptest! {
        #[test]
        fn lines_are_within_the_document(text in "[a: \\-\n#\\[{\u{a0}]{0,60}", path in "[a.\\[\\]0]{0,9}") {
            let count = text.lines().count();
            prop_assert!(Lines::read(&text).find(&path).is_none_or(|line| line <= count));
        }
    }
}
