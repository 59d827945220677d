//! One host's nmstate document, parsed once.

use nmstate::NetworkState;
use serde::Deserialize as _;
use serde::de::value::MapDeserializer;
use serde_json::{Map, Value};

use super::generate::check_len;
use super::{NetworkError, isolation, yaml};

/// A parsed document. nmstate gets its values as JSON and never parses YAML itself.
pub(super) struct Document<'a> {
    text: &'a str,
    root: Value,
}

impl<'a> Document<'a> {
    /// Parses a document, YAML or JSON. Documents pasted from web pages may have no-break spaces in their indentation: such
    /// a document is read with spaces instead, unless it is a network state as it is.
    pub(super) fn parse(text: &'a str) -> Result<Self, NetworkError> {
        const NO_BREAK_SPACE: char = '\u{a0}';
        check_len(text.len())?;
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

    /// The document as nmstate reads it.
    ///
    /// # Errors
    ///
    /// Returns an error that names the first part that nmstate refuses alone.
    pub(super) fn state(&self) -> Result<NetworkState, NetworkError> {
        let read = isolation::run(|| state(&self.root)).map_err(|message| NetworkError::Panic { message })?;
        read.map_err(|source| {
            let Fault { path, source } = locate(&self.root).unwrap_or(Fault { path: String::new(), source });
            let line = yaml::Lines::read(self.text).find(&path);
            NetworkError::Parse { path, line, source }
        })
    }
}

/// Empty sections are left out, as `nmstatectl` reads them in YAML. In JSON, nmstate refuses null for most.
fn state(root: &Value) -> Result<NetworkState, serde_json::Error> {
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

/// A part of a document that nmstate refuses.
struct Fault {
    path: String,
    source: serde_json::Error,
}

/// Finds the first part that nmstate refuses alone: an entry of a section's list, else a section.
fn locate(root: &Value) -> Option<Fault> {
    root.as_object()?.iter().find_map(|(name, section)| {
        let source = refusal(name, section.clone())?;
        let (list, path) = match section.get("config") {
            Some(config) => (config, format!("{name}.config")),
            None => (section, name.clone()),
        };
        let entries = list.as_array().into_iter().flatten().enumerate();
        let entry = entries.filter_map(|(index, entry)| {
            let alone = Value::Array(vec![entry.clone()]);
            let is_config = section.get("config").is_some();
            let alone = if is_config { object("config", alone) } else { alone };
            Some(Fault { path: format!("{path}[{index}]"), source: refusal(name, alone)? })
        });
        Some(entry.into_iter().next().unwrap_or(Fault { path: name.clone(), source }))
    })
}

fn refusal(name: &str, section: Value) -> Option<serde_json::Error> {
    isolation::run(|| state(&object(name, section)).err()).ok()?
}

fn object(key: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(key.to_owned(), value)]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every kind of scalar and collection, and all that YAML has besides.
    const SYNTAX: &str = include_str!("../../../fuzz/src/network/syntax.yaml");

    /// Compares a document with what nmstate's own YAML parser makes of it, if both accept it.
    fn compare(text: &str) -> bool {
        let peer = isolation::run(|| NetworkState::new_from_yaml(text));
        let own = Document::parse(text).and_then(|document| document.state());
        match (own, peer) {
            (Ok(own), Ok(Ok(peer))) => {
                assert_eq!(own, peer, "{text}");
                true
            }
            _ => false,
        }
    }

    #[test]
    fn syntax_means_the_same_to_the_yaml_parser_of_nmstate() {
        assert!(compare(SYNTAX));
        assert!(compare(&SYNTAX.replace('\n', "\r\n")));
    }

    const PIECES: [&str; 44] = [
        "[", "]", "{", "}", ",", ", ", "\"", "'", "''", "\\", "\\n", "#", " #", "\n", "\n  ", "\n- ", "\r",
        "\r\n", "\t", " ", "a", ": ", ":", "? ", "- ", "!", "!!str ", "!!int ", "!t ", "&a ", "*a", "*one",
        "*ipv4", "<<: ", "|", "|-\n", ">2\n", "\u{85}", "\u{2028}", "\u{feff}", "\u{a0}", "---\n", "...\n",
        "%",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn changed_documents_mean_the_same_to_the_yaml_parser_of_nmstate(
            changes in prop::collection::vec((0..SYNTAX.len(), 0..4_usize, prop::sample::select(&PIECES[..])), 1..4),
        ) {
            let mut text = SYNTAX.to_owned();
            for (at, len, piece) in changes {
                let (at, end) = (at.min(text.len()), (at + len).min(text.len()));
                if text.is_char_boundary(at) && text.is_char_boundary(end) {
                    text.replace_range(at..end, piece);
                }
            }
            compare(&text);
        }
    }

    fn fault(text: &str) -> String {
        Document::parse(text).unwrap().state().unwrap_err().to_string()
    }

    #[test]
    fn refused_parts_are_named_with_their_lines() {
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
            assert_eq!(fault(text), format!("parsing nmstate{expected}"), "{text}");
        }
    }

    #[test]
    fn empty_sections_are_left_out() {
        for text in ["", "---\n", "~", "interfaces:\nroutes:\nroute-rules:\ndns-resolver:\nhostname:\novn:\n"]
        {
            assert_eq!(Document::parse(text).unwrap().state().unwrap(), NetworkState::new(), "{text:?}");
        }
    }
}
