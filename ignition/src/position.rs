//! Finds the line and column of values in a JSON text by their JSON pointers.
//!
//! The parser records no positions, because most configs have no findings. Instead, one scan of the text finds all
//! requested pointers. The scan skips values that contain no requested pointer.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;

/// A position in a text. Lines and columns count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct TextPosition {
    /// The line number.
    pub line: usize,
    /// The column number, in bytes.
    pub column: usize,
}

impl fmt::Display for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Maximum nesting depth of the scan. The JSON parser rejects texts with a greater depth.
const MAX_DEPTH: usize = 128;

/// Returns the positions of the values at JSON pointers, in the order of the pointers.
///
/// If the text does not contain a value, the result is the position of the innermost existing value around it. If a key
/// is repeated, the last occurrence counts.
pub(crate) fn locate(text: &[u8], pointers: &[&str]) -> Vec<Option<TextPosition>> {
    let mut tree = PointerTree { nodes: vec![PointerNode::default()] };
    let nodes: Vec<usize> = pointers.iter().map(|pointer| tree.insert(pointer)).collect();
    JsonScanner { text, at: 0, wanted: &mut tree }.scan_value(Some(PointerTree::ROOT), MAX_DEPTH);
    positions_at_offsets(text, nodes.into_iter().map(|node| tree.offset(node)).collect())
}

/// The requested pointers, as a tree of their parts.
struct PointerTree {
    nodes: Vec<PointerNode>,
}

#[derive(Default)]
struct PointerNode {
    parent: Option<usize>,
    children: HashMap<String, usize>,
    offset: Option<usize>,
}

impl PointerTree {
    const ROOT: usize = 0;

    fn insert(&mut self, pointer: &str) -> usize {
        pointer.split('/').skip(1).take(MAX_DEPTH).fold(Self::ROOT, |place, part| {
            let new = self.nodes.len();
            let Some(node) = self.nodes.get_mut(place) else { return place };
            let child = *node.children.entry(unescape_part(part)).or_insert(new);
            if child == new {
                self.nodes.push(PointerNode { parent: Some(place), ..PointerNode::default() });
            }
            child
        })
    }

    fn child(&self, node: Option<usize>, part: &str) -> Option<usize> {
        self.nodes.get(node?)?.children.get(part).copied()
    }

    /// Returns the offset of the value, or of the innermost existing value around it.
    fn offset(&self, node: usize) -> Option<usize> {
        let parent = |node: &&PointerNode| self.nodes.get(node.parent?);
        std::iter::successors(self.nodes.get(node), parent).find_map(|node| node.offset)
    }
}

pub(crate) fn escape_part(part: &str) -> String {
    part.replace('~', "~0").replace('/', "~1")
}

fn unescape_part(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// A scanner of a JSON text. For invalid JSON, the positions are wrong, but the scan ends.
struct JsonScanner<'a> {
    text: &'a [u8],
    at: usize,
    wanted: &'a mut PointerTree,
}

impl JsonScanner<'_> {
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let eaten = self.peek() == Some(byte);
        self.at += usize::from(eaten);
        eaten
    }

    fn scan_value(&mut self, node: Option<usize>, depth: usize) {
        let first = self.peek();
        if let Some(node) = node.and_then(|node| self.wanted.nodes.get_mut(node)) {
            node.offset = Some(self.at);
        }
        let Some(depth) = depth.checked_sub(1) else { return };
        match first {
            Some(b'{') => self.scan_object(node, depth),
            Some(b'[') => self.scan_array(node, depth),
            Some(b'"') => {
                self.scan_string();
            }
            _ => self.scan_literal(),
        }
    }

    fn scan_object(&mut self, node: Option<usize>, depth: usize) {
        self.at += 1;
        while self.peek().is_some_and(|byte| byte != b'}') {
            let key: String = serde_json::from_slice(self.scan_string()).unwrap_or_default();
            if !self.eat(b':') {
                return;
            }
            let child = self.wanted.child(node, &key);
            self.scan_value(child, depth);
            self.eat(b',');
        }
        self.at += 1;
    }

    fn scan_array(&mut self, node: Option<usize>, depth: usize) {
        self.at += 1;
        let mut index = 0_usize;
        while self.peek().is_some_and(|byte| byte != b']') {
            let start = self.at;
            let child = self.wanted.child(node, &index.to_string());
            self.scan_value(child, depth);
            self.eat(b',');
            if self.at == start {
                return;
            }
            index += 1;
        }
        self.at += 1;
    }

    /// Skips a string and returns it, including its quotes.
    fn scan_string(&mut self) -> &[u8] {
        let first = self.peek();
        let start = self.at;
        self.at += usize::from(first.is_some());
        while let Some(byte) = self.text.get(self.at) {
            self.at += if *byte == b'\\' { 2 } else { 1 };
            if *byte == b'"' {
                break;
            }
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn scan_literal(&mut self) {
        while self.text.get(self.at).is_some_and(|byte| !b",]} \t\r\n".contains(byte)) {
            self.at += 1;
        }
    }
}

fn positions_at_offsets(text: &[u8], offsets: Vec<Option<usize>>) -> Vec<Option<TextPosition>> {
    let breaks = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let starts: Vec<usize> = std::iter::once(0).chain(breaks).collect();
    let position = |offset: usize| {
        let line = starts.partition_point(|start| *start <= offset);
        let start = starts.get(line.saturating_sub(1)).copied().unwrap_or_default();
        TextPosition { line, column: offset - start + 1 }
    };
    offsets.into_iter().map(|offset| offset.map(position)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn line_and_column(text: &str, pointer: &str) -> Option<(usize, usize)> {
        locate(text.as_bytes(), &[pointer])[0].map(|it| (it.line, it.column))
    }

    #[test]
    fn position_is_the_first_byte_of_the_value() {
        let text = "{\"a\": [1, {\"b/~\": \"x\\\"}\"}],\n \"c\\u0064\" :\tnull, \"e\":{}}\n";
        assert_eq!(line_and_column(text, ""), Some((1, 1)));
        assert_eq!(line_and_column(text, "/a"), Some((1, 7)));
        assert_eq!(line_and_column(text, "/a/0"), Some((1, 8)));
        assert_eq!(line_and_column(text, "/a/1/b~1~0"), Some((1, 19)));
        assert_eq!(line_and_column(text, "/cd"), Some((2, 14)));
        assert_eq!(line_and_column(text, "/e/gone/deeper"), Some((2, 24)), "the innermost value that exists");
        assert_eq!(line_and_column("", "/a"), Some((1, 1)));
    }

    #[test]
    fn repeated_key_has_position_of_the_last() {
        assert_eq!(line_and_column("{\"a\":1,\n\"a\":2}", "/a"), Some((2, 5)));
    }

    /// serde_json counts lines in the same way.
    #[test]
    fn lone_carriage_return_is_not_a_line_break() {
        let text = "{\"a\":\r1,\r\n\"b\":\r[\n\r2]}";
        assert_eq!(line_and_column(text, "/a"), Some((1, 7)));
        assert_eq!(line_and_column(text, "/b"), Some((2, 6)));
        assert_eq!(line_and_column(text, "/b/0"), Some((3, 2)));
        let error = serde_json::from_str::<Value>(&text.replace('2', "x")).unwrap_err();
        assert_eq!((error.line(), error.column()), (3, 2));
    }

    fn collect_pointers(value: &Value, pointer: String, values: &mut Vec<(String, Value)>) {
        match value {
            Value::Array(items) => items
                .iter()
                .enumerate()
                .for_each(|(index, item)| collect_pointers(item, format!("{pointer}/{index}"), values)),
            Value::Object(fields) => fields.iter().for_each(|(key, item)| {
                collect_pointers(item, format!("{pointer}/{}", escape_part(key)), values)
            }),
            _ => {}
        }
        values.push((pointer, value.clone()));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_value_is_found_at_its_position(value in any_json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = text.unwrap();
            let mut all = Vec::new();
            collect_pointers(&value, String::new(), &mut all);
            let names: Vec<&str> = all.iter().map(|(pointer, _)| pointer.as_str()).collect();
            for ((pointer, value), position) in all.iter().zip(locate(text.as_bytes(), &names)) {
                let position = position.unwrap();
                let line: usize = text.split_inclusive('\n').take(position.line - 1).map(str::len).sum();
                let rest = &text[line + position.column - 1..];
                let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
                prop_assert_eq!(&stream.next().unwrap().unwrap(), value, "{}", pointer);
            }
        }

        #[test]
        fn locate_does_not_panic_on_any_text(text: Vec<u8>, pointer in "(/[a-z0-9]{1,3}){0,3}") {
            let positions = locate(&text, &[&pointer]);
            prop_assert!(positions[0].is_none_or(|it| it.line >= 1 && it.column <= text.len() + 1));
        }
    }
}
