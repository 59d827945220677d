//! An index of the line numbers of a document's values.

use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};

use libyaml_safer::{Encoding, Event, EventData, Parser, ScalarStyle};
use serde_json::Value;

use super::position::LineCounter;
use super::reader::{MAX_DEPTH, MAX_VALUES};
use super::{scalar, scalar_text};
use crate::network::panics;

/// The line numbers of the values in a document, by paths such as `interfaces[0].ipv4`.
///
/// The line of a value in a mapping is the line of its key. The line of a value from an alias is the line of the alias.
///
/// The index stores hashes of paths instead of paths, so a value takes 16 bytes, even if its path is long. A number in
/// a notation other than plain decimal takes another 16 bytes and its text.
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
    /// The random key of the hashes. The key prevents an author of a document from creating two paths with equal
    /// hashes.
    key: RandomState,
    /// The lines of the values, sorted by the hash of the path, with one entry per path.
    lines: Vec<ValueLine>,
    /// The numbers in notations other than plain decimal, sorted by the hash of the path.
    numbers: Vec<NonDecimalNumber>,
    /// The concatenated texts of all `numbers`.
    written: String,
}

/// The line of a value, by the hash of the value's path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ValueLine {
    path: u64,
    line: u32,
}

/// A number in a notation other than plain decimal, such as `0x1388`, and the range of its text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NonDecimalNumber {
    path: u64,
    start: u32,
    end: u32,
}

impl LineIndex {
    /// Reads the line numbers of a YAML or JSON document, up to the first syntax error. Lines count from 1.
    #[must_use]
    pub fn read(document: &str) -> Self {
        const NO_BREAK_SPACE: char = '\u{a0}';
        let index = record_lines(document);
        if !document.contains(NO_BREAK_SPACE) {
            return index;
        }
        // The parser may have replaced no-break spaces with spaces, so use the text that has more lines with values.
        let replaced = record_lines(&document.replace(NO_BREAK_SPACE, " "));
        if replaced.lines.len() > index.lines.len() { replaced } else { index }
    }

    /// Replaces the decimal value in a message about a number with the number in the user's notation.
    pub(in crate::network) fn as_written(&self, path: &str, message: String) -> String {
        let mut hash = PathHash::new(&self.key);
        hash.push(path);
        let text = self.written_number(hash.finish());
        match text.and_then(|text| Some((non_decimal_value(text)?, text))) {
            Some((decimal, text)) => message.replacen(&decimal, text, 1),
            None => message,
        }
    }

    fn written_number(&self, path: u64) -> Option<&str> {
        let number = self.numbers.get(self.numbers.partition_point(|it| it.path < path))?;
        let range = usize::try_from(number.start).ok()?..usize::try_from(number.end).ok()?;
        self.written.get(range).filter(|_| number.path == path)
    }

    /// Returns the line of a value, or the line of the innermost value around it that has a line.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<usize> {
        let mut hash = PathHash::new(&self.key);
        let mut innermost = None;
        let mut hashed = 0;
        // The path is read in one pass, because it may contain a key that is almost as long as the document.
        for (end, _) in path.match_indices(['.', '[']).chain([(path.len(), "")]) {
            hash.push(path.get(hashed..end)?);
            hashed = end;
            innermost = self.line(hash.finish()).or(innermost);
        }
        innermost
    }

    fn line(&self, path: u64) -> Option<usize> {
        let entry = self.lines.get(self.lines.partition_point(|it| it.path < path))?;
        usize::try_from(entry.line).ok().filter(|_| entry.path == path)
    }
}

/// The hash of a path. The hash does not depend on how the text of the path is split into pieces.
#[derive(Clone)]
struct PathHash {
    hasher: DefaultHasher,
    is_empty: bool,
}

impl PathHash {
    fn new(key: &RandomState) -> Self {
        Self { hasher: key.build_hasher(), is_empty: true }
    }

    fn push(&mut self, text: &str) {
        self.is_empty &= text.is_empty();
        // Write single bytes, because the hash of several bytes may depend on where the text is split.
        text.bytes().for_each(|byte| self.hasher.write_u8(byte));
    }

    fn push_key(&mut self, key: &str) {
        if !self.is_empty {
            self.push(".");
        }
        self.push(key);
    }

    fn finish(&self) -> u64 {
        self.hasher.finish()
    }
}

fn record_lines(text: &str) -> LineIndex {
    let index = LineIndex::default();
    let mut walk = LineRecorder { path: PathHash::new(&index.key), frames: Vec::new(), found: index };
    // The lines recorded before a panic of the parser are correct.
    let _ = panics::catch_panic(|| walk.record(text));
    let mut index = walk.found;
    // If several values have the same path, the first one counts.
    index.lines.sort_unstable();
    index.lines.dedup_by_key(|value| value.path);
    index.numbers.sort_unstable();
    index.lines.shrink_to_fit();
    index.numbers.shrink_to_fit();
    index.written.shrink_to_fit();
    index
}

/// A collection that is not complete yet.
struct PathFrame {
    /// The path of the collection.
    path: PathHash,
    next: NextValue,
}

/// The kind of the next value in a collection.
enum NextValue {
    Item(usize),
    Key,
    Value { line: u32 },
}

struct LineRecorder {
    path: PathHash,
    frames: Vec<PathFrame>,
    /// The recorded lines, not sorted yet.
    found: LineIndex,
}

impl LineRecorder {
    fn record(&mut self, text: &str) {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut parser = Parser::new();
        parser.set_encoding(Encoding::Utf8);
        parser.set_input(text.as_bytes());
        let mut lines = LineCounter::new(text);
        let mut documents = 0;
        for event in parser {
            let Ok(Event { data, start_mark, .. }) = event else { return };
            documents += usize::from(matches!(data, EventData::DocumentStart { .. }));
            if documents > 1 || self.frames.len() > MAX_DEPTH || self.found.lines.len() >= MAX_VALUES {
                return;
            }
            let line = u32::try_from(lines.advance_to(start_mark)).unwrap_or(u32::MAX);
            self.handle_event(data, line);
        }
    }

    fn handle_event(&mut self, data: EventData, line: u32) {
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

    fn handle_scalar(&mut self, text: &str, line: u32, is_plain: bool) {
        match self.frames.last_mut() {
            Some(frame) if matches!(frame.next, NextValue::Key) => {
                frame.next = NextValue::Value { line };
                self.path.push_key(text);
            }
            _ => {
                self.begin_value(line);
                if is_plain && non_decimal_value(text).is_some() {
                    self.record_number(text);
                }
                self.end_value();
            }
        }
    }

    fn record_number(&mut self, text: &str) {
        let start = self.found.written.len();
        if let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(start.saturating_add(text.len())))
        {
            self.found.written.push_str(text);
            self.found.numbers.push(NonDecimalNumber { path: self.path.finish(), start, end });
        }
    }

    fn open_collection(&mut self, next: NextValue, line: u32) {
        self.begin_value(line);
        self.frames.push(PathFrame { path: self.path.clone(), next });
    }

    /// Begins a value: extends the path and records the line.
    fn begin_value(&mut self, mut line: u32) {
        match self.frames.last().map(|frame| &frame.next) {
            Some(NextValue::Item(index)) => self.path.push(&format!("[{index}]")),
            Some(NextValue::Value { line: of_key }) => line = *of_key,
            Some(NextValue::Key) | None => {}
        }
        if !self.path.is_empty {
            self.found.lines.push(ValueLine { path: self.path.finish(), line });
        }
    }

    /// Ends a value: resets the path to the path of the collection, which may contain more values.
    fn end_value(&mut self) {
        let Some(frame) = self.frames.last_mut() else { return };
        self.path.clone_from(&frame.path);
        frame.next = match frame.next {
            NextValue::Item(index) => NextValue::Item(index + 1),
            NextValue::Key | NextValue::Value { .. } => NextValue::Key,
        };
    }
}

/// Returns the decimal form of a plain scalar, or `None` if the scalar is not a number or is already in plain decimal.
fn non_decimal_value(text: &str) -> Option<String> {
    if !text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) {
        return None;
    }
    let value = scalar::resolve(text.to_owned(), None, true).ok().filter(Value::is_number)?;
    let decimal = scalar_text(&value)?;
    (decimal != text).then(|| decimal.into_owned())
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
        let numbers = ["a", "a[0]", "a[0].b", "a[1].c"].map(|path| json.find(path));
        assert_eq!(numbers, [Some(1), Some(2), Some(2), Some(4)]);
        let alias = LineIndex::read("a: &x\n  b: 1\nc: *x\nd: 2\n");
        assert_eq!((alias.find("c.b"), alias.find("d")), (Some(3), Some(4)));
        let pasted = LineIndex::read("a:\n-\u{a0}b: 1\n\u{a0} c: 2\n");
        assert_eq!(pasted.find("a[0].c"), Some(3));
    }

    #[test]
    fn lines_of_deep_values_and_of_keys_with_separators_are_found() {
        let long = "k".repeat(1000);
        let deep = format!("{}\n0{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        let cases = [
            ("a.b:\n  c[0]: 1\na:\n  b: 2\n", "a.b.c[0]", 2),
            ("a:\n  b: 1\na.b: 2\n", "a.b", 2),
            (".a:\n  .b: 1\n", ".a..b", 2),
            (&format!("a:\n  {long}: 1\n  {long}l: 2\n"), &format!("a.{long}l"), 3),
            (&deep, &"[0]".repeat(MAX_DEPTH), 2),
        ];
        for (text, path, line) in cases {
            assert_eq!(LineIndex::read(text).find(path), Some(line), "{path}");
        }
    }

    #[test]
    fn line_numbers_count_only_line_breaks_of_editors() {
        for line_break in ["\r", "\u{85}", "\u{2028}", "\u{2029}"] {
            let breaks = line_break.repeat(60);
            let text = format!(
                "a: 1 #{line_break}b:{line_break} 2\nc: {{d: 1,{breaks} e: 2,\n f: 3}} #{line_break}g: |\n  x{line_break}  y\nh: 1\n"
            );
            let lines = LineIndex::read(&text);
            let numbers = ["a", "b", "c", "c.d", "c.e", "c.f", "g", "h"].map(|path| lines.find(path));
            assert_eq!(numbers, [1, 1, 2, 2, 2, 3, 3, 5].map(Some), "{line_break:?}");
        }
        let lines = LineIndex::read("a: 1\r\nb:\r\n- c\r\n");
        assert_eq!(["a", "b", "b[0]"].map(|path| lines.find(path)), [1, 2, 3].map(Some));
    }

    /// JSON documents may repeat a key, so several values may have the same path.
    #[test]
    fn first_of_repeated_keys_is_found() {
        assert_eq!(LineIndex::read("{\"a\": 1,\n\"a\": 2,\n\"a\": 3}").find("a"), Some(1));
    }

    #[test]
    fn numbers_are_quoted_as_they_are_written() {
        let lines = LineIndex::read("a: 0x1388\nb: [5000, +7, '0x9']\nc: 0o17\n");
        let message = |path| lines.as_written(path, "5000, 7, 9 or 15".to_owned());
        assert_eq!(message("a"), "0x1388, 7, 9 or 15");
        assert_eq!(message("b[1]"), "5000, +7, 9 or 15");
        assert_eq!(message("c"), "5000, 7, 9 or 0o17");
        for path in ["", "b", "b[0]", "b[2]", "d"] {
            assert_eq!(message(path), "5000, 7, 9 or 15", "{path}");
        }
    }

    #[test]
    fn lines_before_a_syntax_error_are_found() {
        assert_eq!(LineIndex::read("a: 1\nb: [\n").find("a"), Some(1));
    }

    proptest! {
        #[test]
        fn reported_lines_are_within_the_document(text in "[a: \\-\n\r\u{85}\u{2028}#\\[{\u{a0}\u{7}]{0,60}", path in "[a.\\[\\]0]{0,9}") {
            let count = text.lines().count();
            prop_assert!(LineIndex::read(&text).find(&path).is_none_or(|line| line <= count));
            let error = crate::network::yaml::read(&text).err();
            prop_assert!(error.is_none_or(|error| error.line() <= count.max(1)));
        }
    }
}
