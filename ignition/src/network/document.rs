//! The nmstate document of one host, which is parsed only once.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use nmstate::NetworkState;
use serde::Deserialize as _;
use serde::de::value::MapDeserializer;
use serde_json::{Map, Value};

use super::generate::check_document_len;
use super::{NetworkError, panics, yaml};

/// A parsed document. This crate parses the YAML and passes the values to nmstate as JSON.
pub(super) struct NetworkDocument<'a> {
    text: &'a str,
    root: Value,
}

impl<'a> NetworkDocument<'a> {
    /// Parses a document in YAML or JSON. Documents copied from web pages may be indented with no-break spaces. If
    /// nmstate rejects such a document, it is parsed again with spaces instead.
    pub(super) fn parse(text: &'a str) -> Result<Self, NetworkError> {
        const NO_BREAK_SPACE: char = '\u{a0}';
        check_document_len(text.len())?;
        let document = yaml::read_document(text).map(|root| Self { text, root });
        if !text.contains(NO_BREAK_SPACE) || document.as_ref().is_ok_and(|it| it.state().is_ok()) {
            return document;
        }
        let root = yaml::read_document(&text.replace(NO_BREAK_SPACE, " "))?;
        Ok(Self { text, root })
    }

    pub(super) fn root(&self) -> &Value {
        &self.root
    }

    /// Returns the document as an nmstate state.
    ///
    /// # Errors
    ///
    /// Returns an error that names the first part that nmstate rejects even without the other parts.
    pub(super) fn state(&self) -> Result<NetworkState, NetworkError> {
        let read = panics::catch_panic(|| parse_state(&self.root))
            .map_err(|message| NetworkError::Panic { message })?;
        read.map_err(|source| {
            let (path, source) = first_rejected_part(&self.root).unwrap_or((String::new(), source));
            NetworkError::Parse { line: self.line(&path), path, source }
        })
    }

    /// Returns the line of the value at a path, if known.
    pub(super) fn line(&self, path: &str) -> Option<usize> {
        yaml::LineIndex::read(self.text).find(path)
    }

    /// Returns a state for each interface, with the path of the interface. The state contains that interface and all
    /// interfaces that it refers to, directly or indirectly. Interfaces are in ascending order of the number of their
    /// references, so an interface comes after the interfaces that it refers to. Returns nothing if the total length of
    /// all states could exceed `max_len` bytes.
    pub(super) fn interface_states(&self, max_len: usize) -> impl Iterator<Item = (String, NetworkState)> {
        let interfaces = yaml::list_at(&self.root, &["interfaces"]);
        let is_small = self.text.len().saturating_mul(interfaces.len()) <= max_len;
        let interfaces = if is_small { interfaces } else { &[] };
        let index_by_name: HashMap<Cow<str>, usize> = interfaces
            .iter()
            .enumerate()
            .filter_map(|(at, it)| Some((yaml::text_at(it, "name")?, at)))
            .collect();
        let mut parts: Vec<(usize, BTreeSet<usize>)> = (0..interfaces.len())
            .map(|at| (at, with_referenced_interfaces(at, interfaces, &index_by_name)))
            .collect();
        parts.sort_by_key(|(_, part)| part.len());
        parts.into_iter().filter_map(|(at, part)| {
            let part = part.iter().filter_map(|it| interfaces.get(*it).cloned()).collect();
            Some((format!("interfaces[{at}]"), parse_state(&single_key_object("interfaces", part)).ok()?))
        })
    }
}

/// Returns the indices of an interface and of all interfaces that it refers to, directly or indirectly. Every value
/// equal to the name of an interface counts as a reference.
fn with_referenced_interfaces(
    at: usize,
    interfaces: &[Value],
    index_by_name: &HashMap<Cow<str>, usize>,
) -> BTreeSet<usize> {
    let mut members = BTreeSet::new();
    let mut pending = vec![at];
    while let Some(next) = pending.pop() {
        if members.insert(next) {
            interfaces
                .get(next)
                .into_iter()
                .for_each(|it| collect_references(it, index_by_name, &mut pending));
        }
    }
    members
}

/// Collects the interfaces whose names are in a value, at any depth. The parser limits the depth.
fn collect_references(value: &Value, index_by_name: &HashMap<Cow<str>, usize>, indices: &mut Vec<usize>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, index_by_name, indices)),
        Value::Object(fields) => {
            fields.values().for_each(|value| collect_references(value, index_by_name, indices))
        }
        other => indices.extend(yaml::scalar_text(other).and_then(|text| index_by_name.get(&*text).copied())),
    }
}

/// Parses a state without its empty sections, like `nmstatectl` does for YAML. In JSON, nmstate rejects `null` as the
/// value of almost every section.
fn parse_state(root: &Value) -> Result<NetworkState, serde_json::Error> {
    match root {
        Value::Null => Ok(NetworkState::new()),
        Value::Object(sections) => {
            let sections = sections.iter().filter(|(_, value)| !value.is_null());
            NetworkState::deserialize(MapDeserializer::new(
                sections.map(|(key, value)| (key.as_str(), value)),
            ))
        }
        other => NetworkState::deserialize(other),
    }
}

/// Returns the path and the error of the first part that nmstate rejects even without the other parts. A part is an
/// entry of a section's list or, if no such entry is at fault, a section.
fn first_rejected_part(root: &Value) -> Option<(String, serde_json::Error)> {
    root.as_object()?.iter().find_map(|(name, section)| {
        let source = section_error(name, section.clone())?;
        let config = section.get("config");
        let path = if config.is_some() { format!("{name}.config") } else { name.clone() };
        let entries = config.unwrap_or(section).as_array().into_iter().flatten();
        let entry = entries.enumerate().find_map(|(index, entry)| {
            let alone = Value::Array(vec![entry.clone()]);
            let alone = if config.is_some() { single_key_object("config", alone) } else { alone };
            Some((format!("{path}[{index}]"), section_error(name, alone)?))
        });
        Some(entry.unwrap_or_else(|| (name.clone(), source)))
    })
}

fn section_error(name: &str, section: Value) -> Option<serde_json::Error> {
    panics::catch_panic(|| parse_state(&single_key_object(name, section)).err()).ok()?
}

fn single_key_object(key: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(key.to_owned(), value)]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A document with every type of scalar and collection, and the rest of YAML's syntax.
    const SYNTAX: &str = include_str!("../../../fuzz/src/network/syntax.yaml");

    /// Returns `true` if both this crate and nmstate's own YAML parser accept a document. Panics if their results
    /// differ.
    fn agrees_with_nmstate(text: &str) -> bool {
        let peer = panics::catch_panic(|| NetworkState::new_from_yaml(text));
        let own = NetworkDocument::parse(text).and_then(|document| document.state());
        match (own, peer) {
            (Ok(own), Ok(Ok(peer))) => {
                assert_eq!(own, peer, "{text}");
                true
            }
            _ => false,
        }
    }

    #[test]
    fn yaml_syntax_is_read_as_nmstate_reads_it() {
        assert!(agrees_with_nmstate(SYNTAX));
        assert!(agrees_with_nmstate(&SYNTAX.replace('\n', "\r\n")));
    }

    const YAML_PIECES: [&str; 44] = [
        "[", "]", "{", "}", ",", ", ", "\"", "'", "''", "\\", "\\n", "#", " #", "\n", "\n  ", "\n- ", "\r",
        "\r\n", "\t", " ", "a", ": ", ":", "? ", "- ", "!", "!!str ", "!!int ", "!t ", "&a ", "*a", "*one",
        "*ipv4", "<<: ", "|", "|-\n", ">2\n", "\u{85}", "\u{2028}", "\u{feff}", "\u{a0}", "---\n", "...\n",
        "%",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn changed_documents_are_read_as_nmstate_reads_them(
            changes in prop::collection::vec((0..SYNTAX.len(), 0..4_usize, prop::sample::select(&YAML_PIECES[..])), 1..4),
        ) {
            let mut text = SYNTAX.to_owned();
            for (at, len, piece) in changes {
                let (at, end) = (at.min(text.len()), (at + len).min(text.len()));
                if text.is_char_boundary(at) && text.is_char_boundary(end) {
                    text.replace_range(at..end, piece);
                }
            }
            agrees_with_nmstate(&text);
        }
    }

    fn error_text(text: &str) -> String {
        NetworkDocument::parse(text).unwrap().state().unwrap_err().to_string()
    }

    #[test]
    fn rejected_parts_are_reported_with_lines() {
        for (text, expected) in [
            ("interfaces:\n- name: eth0\n- name: eth1\n  state: 7\n", " at interfaces[1], line 3"),
            ("interfaces: []\ncolour: blue\n", " at colour, line 2"),
            (
                "routes:\n  config:\n  - destination: 0.0.0.0/0\n  - metric: x\n",
                " at routes.config[1], line 4",
            ),
            ("dns-resolver:\n  config:\n    server: 7\n", " at dns-resolver, line 1"),
            ("{\"interfaces\": [{\"name\": 7}]}", " at interfaces[0], line 1"),
            ("7", ""),
        ] {
            assert_eq!(error_text(text), format!("parsing nmstate{expected}"), "{text}");
        }
    }

    #[test]
    fn empty_sections_are_left_out() {
        for text in ["", "---\n", "~", "interfaces:\nroutes:\nroute-rules:\ndns-resolver:\nhostname:\novn:\n"]
        {
            assert_eq!(
                NetworkDocument::parse(text).unwrap().state().unwrap(),
                NetworkState::new(),
                "{text:?}"
            );
        }
    }
}
