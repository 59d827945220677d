//! Extracts the URL of the service from a discovery config.
//!
//! The URL is the value of the agent's option `--url`, in the unit that runs the agent. Configs of other programs may
//! contain the unit in a merged config, or change it with a drop-in. The config is not trusted, because it may come
//! from an image of any server.

use std::collections::BTreeMap;

use serde_json::Value;

use super::agent::AGENT_UNIT;
use super::url::HttpUrl;
use crate::resource::gunzip;
use crate::validate::url::decode_data_url;

/// Maximum total size of all merged configs in bytes, after decompression.
const MAX_MERGED_BYTES: usize = 8 << 20;
/// Maximum depth of merged configs, including the outermost config.
const MAX_DEPTH: u8 = 4;

/// Returns the URL of the service with which the agent of a discovery config registers its machine.
///
/// Returns `None` if the text is not a config, if it does not run the agent, or if the URL is not known before boot,
/// such as a URL in an environment variable. Configs that Ignition would download are not read.
///
/// # Examples
///
/// ```
/// use ignition::discovery::service_url;
///
/// let config = br#"{"ignition": {"version": "3.1.0"}, "systemd": {"units": [{"name": "agent.service",
///     "contents": "[Service]\nExecStart=/usr/local/bin/agent --url https://assisted.example.com"}]}}"#;
/// assert_eq!(service_url(config).unwrap().as_str(), "https://assisted.example.com");
/// assert_eq!(service_url(br#"{"ignition": {"version": "3.1.0"}}"#), None);
/// ```
#[must_use]
pub fn service_url(config: &[u8]) -> Option<HttpUrl> {
    let mut agent = AgentUnit::default();
    ConfigReader { merged_bytes: MAX_MERGED_BYTES }.read(config, MAX_DEPTH, &mut agent);
    HttpUrl::parse("service URL", &url_option(&agent.command()?)?).ok()
}

/// A reader of a config and of the configs that it merges, up to a total size.
struct ConfigReader {
    merged_bytes: usize,
}

impl ConfigReader {
    /// Merges the agent's unit into `agent`, from a config and from the configs that it merges.
    fn read(&mut self, config: &[u8], depth: u8, agent: &mut AgentUnit) {
        let Ok(config) = serde_json::from_slice::<Value>(config) else { return };
        let Some(depth) = depth.checked_sub(1) else { return };
        if let Some(replacement) = config.pointer("/ignition/config/replace").filter(|it| has_source(it)) {
            return self.read_child(replacement, depth, agent);
        }
        for unit in items(&config, "/systemd/units").filter(|unit| text(unit, "name") == AGENT_UNIT) {
            agent.merge(unit);
        }
        for child in items(&config, "/ignition/config/merge") {
            self.read_child(child, depth, agent);
        }
    }

    fn read_child(&mut self, child: &Value, depth: u8, agent: &mut AgentUnit) {
        let Ok(mut config) = decode_data_url(text(child, "source")) else { return };
        if text(child, "compression") == "gzip" {
            let Ok(contents) = gunzip(&config, self.merged_bytes) else {
                // Stop decompressing merged configs, because the failed attempt may have produced as many bytes as the
                // limit allows. Ignition rejects such a config.
                self.merged_bytes = 0;
                return;
            };
            config = contents;
        }
        let Some(rest) = self.merged_bytes.checked_sub(config.len()) else { return };
        self.merged_bytes = rest;
        self.read(&config, depth, agent);
    }
}

fn has_source(resource: &Value) -> bool {
    !text(resource, "source").is_empty()
}

fn items<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// Returns the string value of a key, or an empty string if the key is absent, like Ignition.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The unit that runs the agent, merged from all configs.
#[derive(Default)]
struct AgentUnit {
    contents: String,
    /// Contents of the drop-ins by name. systemd reads drop-ins in the order of their names.
    dropins: BTreeMap<String, String>,
    is_masked: bool,
}

impl AgentUnit {
    /// Merges a later version of the unit into this one, like Ignition.
    fn merge(&mut self, unit: &Value) {
        let contents = text(unit, "contents");
        if !contents.is_empty() {
            contents.clone_into(&mut self.contents);
        }
        for dropin in items(unit, "/dropins") {
            let contents = text(dropin, "contents");
            if !contents.is_empty() {
                self.dropins.insert(text(dropin, "name").to_owned(), contents.to_owned());
            }
        }
        self.is_masked = unit.get("mask").and_then(Value::as_bool).unwrap_or(self.is_masked);
    }

    fn command(&self) -> Option<String> {
        let mut command = None;
        read_commands(&self.contents, &mut command);
        self.dropins.values().for_each(|dropin| read_commands(dropin, &mut command));
        command.filter(|_| !self.is_masked)
    }
}

/// Sets `command` to the last `ExecStart=` value in the text of a unit. An empty value removes the earlier values.
fn read_commands(unit: &str, command: &mut Option<String>) {
    let mut line = String::new();
    // The additional empty line ends a command whose last line ends in `\`.
    for part in unit.lines().chain([""]).filter(|part| !part.trim_start().starts_with(['#', ';'])) {
        if let Some(part) = part.strip_suffix('\\') {
            line.push_str(part);
            line.push(' ');
            continue;
        }
        line.push_str(part);
        if let Some(("ExecStart", value)) =
            line.split_once('=').map(|(key, value)| (key.trim(), value.trim()))
        {
            *command = Some(value.to_owned()).filter(|value| !value.is_empty());
        }
        line.clear();
    }
}

/// Returns the value of the last option `--url` in a command. Programs written in Go also accept one dash.
fn url_option(command: &str) -> Option<String> {
    let words = unit_words(command);
    let mut url = None;
    for (index, word) in words.iter().enumerate() {
        match word.strip_prefix("--").or_else(|| word.strip_prefix('-')) {
            Some("url") => url = words.get(index + 1).cloned(),
            Some(option) => url = option.strip_prefix("url=").map(str::to_owned).or(url),
            None => {}
        }
    }
    url
}

/// Splits a command of a systemd unit into words. It is the inverse of [`unit_argument`](super::escape::unit_argument).
fn unit_words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = command.chars().peekable();
    while let Some(next) = chars.next() {
        match next {
            '"' | '\'' if quote == Some(next) => quote = None,
            '"' | '\'' if quote.is_none() => {
                quote = Some(next);
                word.get_or_insert_default();
            }
            _ if quote.is_none() && next.is_ascii_whitespace() => words.extend(word.take()),
            '\\' => word.get_or_insert_default().extend(chars.next()),
            _ => {
                // `%%` and `$$` stand for single characters.
                if matches!(next, '%' | '$') {
                    chars.next_if_eq(&next);
                }
                word.get_or_insert_default().push(next);
            }
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::escape::unit_argument;
    use super::*;
    use crate::resource::{data_url, gzip};

    fn config_with_units(units: Value) -> Vec<u8> {
        json!({"ignition": {"version": "3.1.0"}, "systemd": {"units": units}}).to_string().into_bytes()
    }

    fn config_with_unit(contents: &str) -> Vec<u8> {
        config_with_units(json!([{"name": "agent.service", "contents": contents}]))
    }

    fn config_with_url(url: &str) -> Vec<u8> {
        config_with_unit(&format!("[Service]\nExecStart=/usr/local/bin/agent --url {url} --insecure=false\n"))
    }

    fn parent_of(key: &str, children: &Value) -> Vec<u8> {
        json!({"ignition": {"version": "3.1.0", "config": {key: children}}}).to_string().into_bytes()
    }

    fn gzip_child(config: &[u8]) -> Value {
        json!({"source": data_url(&gzip(config)), "compression": "gzip"})
    }

    fn url_in(config: &[u8]) -> String {
        service_url(config).map(|url| url.as_str().to_owned()).unwrap_or_default()
    }

    #[test]
    fn url_is_read_in_each_form_of_the_option() {
        for (command, url) in [
            ("agent --url http://a:1/x --agent-version v", "http://a:1/x"),
            ("agent --url=http://a", "http://a"),
            ("agent -url http://a", "http://a"),
            ("agent \"--url=http://a\"", "http://a"),
            ("agent --url \\\n    \"http://u%%40:p$$@a\" \\\n    --x", "http://u%40:p$@a"),
            ("agent \\\n# a comment\\\n  --url 'http://a'", "http://a"),
            ("agent --url http://a --url http://b", "http://b"),
            ("agent --url http://a \\", "http://a"),
            ("agent --url http://a \\\n# a comment", "http://a"),
            ("agent --url http://a\nExecStart=\nExecStart = agent --url http://b", "http://b"),
            ("agent --url http://a\nExecStart=", ""),
            ("agent --url", ""),
            ("agent --url ${SERVICE_URL}", ""),
            ("agent --url not-a-url", ""),
            ("agent --base-url http://a", ""),
            ("agent \"--url http://a", ""),
            ("agent\nExecStartPre=agent --url http://a\n#ExecStart=agent --url http://a", ""),
        ] {
            let unit = format!("[Service]\nExecStart={command}");
            assert_eq!(url_in(&config_with_unit(&unit)), url, "{command}");
        }
    }

    #[test]
    fn only_the_agent_unit_counts_and_the_last_one_wins() {
        let unit =
            |name: &str, url: &str| json!({"name": name, "contents": format!("ExecStart=agent --url {url}")});
        let units = json!([unit("agent.service", "http://a"), unit("agent.service", "http://b"),
            unit("other-agent.service", "http://c"), {"name": "agent.service"}, 1, {"contents": 2}]);
        assert_eq!(url_in(&config_with_units(units)), "http://b");
        assert_eq!(url_in(&config_with_units(json!([unit("my-agent.service", "http://a")]))), "");
    }

    #[test]
    fn dropins_and_mask_change_the_unit() {
        let unit = |mask: bool| {
            json!([{"name": "agent.service", "mask": mask, "contents": "ExecStart=agent --url http://a", "dropins": [
                {"name": "20.conf", "contents": "[Service]\nExecStart=\nExecStart=agent --url http://c"},
                {"name": "10.conf", "contents": "[Service]\nExecStart=\nExecStart=agent --url http://b"}]}])
        };
        assert_eq!(url_in(&config_with_units(unit(false))), "http://c");
        assert_eq!(url_in(&config_with_units(unit(true))), "");
    }

    #[test]
    fn merged_config_changes_parts_of_the_unit() {
        let command = |url: &str| format!("[Service]\nExecStart=\nExecStart=agent --url {url}");
        let dropin = |name: &str, url: &str| json!([{"name": name, "contents": command(url)}]);
        let parent = json!({"name": "agent.service", "mask": true, "contents": command("http://a"),
            "dropins": dropin("20.conf", "http://b")});
        for (child, url) in [
            (json!({"mask": false, "contents": command("http://c")}), "http://b"),
            (json!({"mask": false, "dropins": dropin("10.conf", "http://c")}), "http://b"),
            (json!({"mask": false, "dropins": dropin("20.conf", "http://c")}), "http://c"),
            (json!({"mask": false, "dropins": dropin("30.conf", "http://c")}), "http://c"),
            (json!({"contents": command("http://c")}), ""),
        ] {
            let mut child = child;
            child["name"] = "agent.service".into();
            let merged = data_url(&config_with_units(json!([child])));
            let config = json!({"ignition": {"version": "3.1.0", "config": {"merge": [{"source": merged}]}},
                "systemd": {"units": [parent]}});
            assert_eq!(url_in(config.to_string().as_bytes()), url, "{child}");
        }
    }

    #[test]
    fn merged_configs_are_read_plain_and_compressed() {
        let (first, second) = (config_with_url("http://a"), config_with_url("http://b"));
        let plain = json!({"source": data_url(&first)});
        assert_eq!(url_in(&parent_of("merge", &json!([plain, gzip_child(&second)]))), "http://b");
        assert_eq!(url_in(&parent_of("merge", &json!([gzip_child(&second), plain]))), "http://a");
        assert_eq!(url_in(&parent_of("replace", &plain)), "http://a");
        let remote = json!([plain, {"source": "http://192.0.2.1/config.ign"}, {"source": "data:;base64,!"}]);
        assert_eq!(url_in(&parent_of("merge", &remote)), "http://a");
    }

    #[test]
    fn merged_configs_are_limited_in_depth_and_size() {
        let wrap = |config: Vec<u8>| parent_of("merge", &json!([gzip_child(&config)]));
        let shallow = (1..MAX_DEPTH).fold(config_with_url("http://a"), |config, _| wrap(config));
        assert_eq!(url_in(&shallow), "http://a");
        assert_eq!(url_in(&wrap(shallow)), "");
        let bomb = gzip_child(&vec![b' '; MAX_MERGED_BYTES + 1]);
        let child = gzip_child(&config_with_url("http://a"));
        let damaged = json!({"source": "data:,damaged", "compression": "gzip"});
        for failure in [bomb, damaged] {
            assert_eq!(url_in(&parent_of("merge", &json!([failure, child]))), "");
            assert_eq!(url_in(&parent_of("merge", &json!([child, failure]))), "http://a");
        }
        let large = gzip_child(&vec![b' '; MAX_MERGED_BYTES]);
        assert_eq!(url_in(&parent_of("merge", &json!([large, child]))), "");
    }

    #[test]
    fn other_texts_have_no_service_url() {
        let other: [&[u8]; 7] = [
            b"",
            b"not JSON",
            b"[]",
            b"{\"systemd\": {\"units\": 1}}",
            b"{\"ignition\": {\"config\": {\"merge\": {}, \"replace\": {}}}}",
            b"{\"ignition\": {\"version\": \"3.1.0\"}}",
            b"\x1f\x8b\x08\0",
        ];
        for config in other {
            assert_eq!(service_url(config), None, "{config:?}");
        }
    }

    proptest! {
        #[test]
        fn words_are_the_inverse_of_escaping(values: Vec<String>) {
            let command = values.iter().map(|value| unit_argument(value)).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(unit_words(&command), values);
        }

        #[test]
        fn any_unit_is_read_without_panic(unit: String) {
            let _ = service_url(&config_with_unit(&unit));
        }
    }
}
