//! Where in a JSON text the values stand that a pointer names.
//!
//! Nothing is kept while a config is read: most configs have no findings. The text is walked once for all pointers that
//! are asked for, and only into values on the way to one of them.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;

/// A place in a text, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The byte in the line.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Deepest nesting that is walked into. The JSON reader refuses deeper texts.
const MAX_DEPTH: usize = 128;

/// The positions of the values that JSON pointers name, in the order of the pointers.
///
/// A pointer to what the text does not hold gets the position of the innermost value around it that is there. Of a
/// repeated key, the last counts.
///
/// # Examples
///
/// ```
/// let text = b"{\n  \"storage\": {\"files\": [{}, {\"mode\": 644}]}\n}";
/// let found = ignition::position::locate(text, &["/storage/files/1/mode", "/storage/files/1/path"]);
/// assert_eq!(found[0].map(|it| (it.line, it.column)), Some((2, 38)));
/// assert_eq!(found[1].map(|it| (it.line, it.column)), Some((2, 29)));
/// ```
#[must_use]
pub fn locate(text: &[u8], pointers: &[&str]) -> Vec<Option<Position>> {
    let mut wanted = Wanted::default();
    let nodes: Vec<usize> = pointers.iter().map(|pointer| wanted.insert(pointer)).collect();
    Walk { text, at: 0, wanted: &mut wanted }.value(Some(Wanted::ROOT), MAX_DEPTH);
    positions(text, nodes.into_iter().map(|node| wanted.offset(node)).collect())
}

/// The pointers that are asked for, as a tree of their parts.
struct Wanted {
    nodes: Vec<Node>,
}

#[derive(Default)]
struct Node {
    parent: Option<usize>,
    children: HashMap<String, usize>,
    offset: Option<usize>,
}

impl Wanted {
    const ROOT: usize = 0;

    fn insert(&mut self, pointer: &str) -> usize {
        pointer.split('/').skip(1).take(MAX_DEPTH).fold(Self::ROOT, |place, part| {
            let new = self.nodes.len();
            let Some(node) = self.nodes.get_mut(place) else { return place };
            let child = *node.children.entry(unescape(part)).or_insert(new);
            if child == new {
                self.nodes.push(Node { parent: Some(place), ..Node::default() });
            }
            child
        })
    }

    fn child(&self, node: Option<usize>, part: &str) -> Option<usize> {
        self.nodes.get(node?)?.children.get(part).copied()
    }

    /// Where the value stands, else the innermost around it.
    fn offset(&self, node: usize) -> Option<usize> {
        let parent = |node: &&Node| self.nodes.get(node.parent?);
        std::iter::successors(self.nodes.get(node), parent).find_map(|node| node.offset)
    }
}

impl Default for Wanted {
    fn default() -> Self {
        Self { nodes: vec![Node::default()] }
    }
}

/// A part of a pointer as it stands in one.
pub(crate) fn escape(part: &str) -> String {
    part.replace('~', "~0").replace('/', "~1")
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// A walk over a text that is JSON; over any other it goes astray, but comes to an end.
struct Walk<'a> {
    text: &'a [u8],
    at: usize,
    wanted: &'a mut Wanted,
}

impl Walk<'_> {
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

    fn value(&mut self, wanted: Option<usize>, depth: usize) {
        let first = self.peek();
        if let Some(node) = wanted.and_then(|node| self.wanted.nodes.get_mut(node)) {
            node.offset = Some(self.at);
        }
        let Some(depth) = depth.checked_sub(1) else { return };
        match first {
            Some(b'{') => self.object(wanted, depth),
            Some(b'[') => self.array(wanted, depth),
            Some(b'"') => {
                self.string();
            }
            _ => self.word(),
        }
    }

    fn object(&mut self, wanted: Option<usize>, depth: usize) {
        self.at += 1;
        while self.peek().is_some_and(|byte| byte != b'}') {
            let key: String = serde_json::from_slice(self.string()).unwrap_or_default();
            if !self.eat(b':') {
                return;
            }
            let child = self.wanted.child(wanted, &key);
            self.value(child, depth);
            self.eat(b',');
        }
        self.at += 1;
    }

    fn array(&mut self, wanted: Option<usize>, depth: usize) {
        self.at += 1;
        let mut index = 0_usize;
        while self.peek().is_some_and(|byte| byte != b']') {
            let start = self.at;
            let child = self.wanted.child(wanted, &index.to_string());
            self.value(child, depth);
            self.eat(b',');
            if self.at == start {
                return;
            }
            index += 1;
        }
        self.at += 1;
    }

    /// Passes a string and gives it with its quotes.
    fn string(&mut self) -> &[u8] {
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

    fn word(&mut self) {
        while self.text.get(self.at).is_some_and(|byte| !b",]} \t\r\n".contains(byte)) {
            self.at += 1;
        }
    }
}

fn positions(text: &[u8], offsets: Vec<Option<usize>>) -> Vec<Option<Position>> {
    let breaks = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let starts: Vec<usize> = std::iter::once(0).chain(breaks).collect();
    let position = |offset: usize| {
        let line = starts.partition_point(|start| *start <= offset);
        let start = starts.get(line.saturating_sub(1)).copied().unwrap_or_default();
        Position { line, column: offset - start + 1 }
    };
    offsets.into_iter().map(|offset| offset.map(position)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn at(text: &str, pointer: &str) -> Option<(usize, usize)> {
        locate(text.as_bytes(), &[pointer])[0].map(|it| (it.line, it.column))
    }

    #[test]
    fn values_are_found_at_their_first_byte() {
        let text = "{\"a\": [1, {\"b/~\": \"x\\\"}\"}],\n \"c\\u0064\" :\tnull, \"e\":{}}\n";
        assert_eq!(at(text, ""), Some((1, 1)));
        assert_eq!(at(text, "/a"), Some((1, 7)));
        assert_eq!(at(text, "/a/0"), Some((1, 8)));
        assert_eq!(at(text, "/a/1/b~1~0"), Some((1, 19)));
        assert_eq!(at(text, "/cd"), Some((2, 14)));
        assert_eq!(at(text, "/e/gone/deeper"), Some((2, 24)), "the innermost value that is there");
        assert_eq!(at("", "/a"), Some((1, 1)));
    }

    #[test]
    fn the_last_of_a_repeated_key_counts() {
        assert_eq!(at("{\"a\":1,\n\"a\":2}", "/a"), Some((2, 5)));
    }

    fn pointers(value: &Value, pointer: String, found: &mut Vec<(String, Value)>) {
        match value {
            Value::Array(items) => items
                .iter()
                .enumerate()
                .for_each(|(index, item)| pointers(item, format!("{pointer}/{index}"), found)),
            Value::Object(fields) => fields
                .iter()
                .for_each(|(key, item)| pointers(item, format!("{pointer}/{}", escape(key)), found)),
            _ => {}
        }
        found.push((pointer, value.clone()));
    }

    fn json() -> impl Strategy<Value = Value> {
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
        fn what_stands_at_a_position_is_the_value(value in json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = text.unwrap();
            let mut all = Vec::new();
            pointers(&value, String::new(), &mut all);
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
        fn a_text_that_is_no_json_does_no_harm(text: Vec<u8>, pointer in "(/[a-z0-9]{1,3}){0,3}") {
            let found = locate(&text, &[&pointer]);
            prop_assert!(found[0].is_none_or(|it| it.line >= 1 && it.column <= text.len() + 1));
        }
    }
}
