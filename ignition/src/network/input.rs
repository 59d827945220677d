//! Reads the networks of hosts from users' files.

use serde_json::Value;

use super::yaml::{self, LineIndex};
use super::{HostNetwork, MAX_HOSTS, MacInterface};
use crate::visible::visible;

/// The reason why a file cannot be read as a list of hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", location(file, *line, path))]
#[non_exhaustive]
pub struct HostsFileError {
    /// The name of the file.
    pub file: String,
    /// The line of the problem in the file, if known.
    pub line: Option<usize>,
    /// The path of the invalid value, such as `[1].mac_interface_map[0]`; empty for the whole file.
    pub path: String,
    /// The reason why the file or the value is not valid.
    pub reason: String,
}

impl HostsFileError {
    fn new(file: &str, line: Option<usize>, reason: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, path: String::new(), reason: reason.into() }
    }
}

fn location(file: &str, line: Option<usize>, path: &str) -> String {
    let line = line.map(|line| format!("{line}:")).unwrap_or_default();
    let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
    format!("{}:{line} {path}", visible(file))
}

/// Parses the hosts in a file. The file is either a list in the form of the inventory API's `static_network_config`, in
/// JSON or YAML, or a single nmstate document. A host from a single document has no MAC addresses.
///
/// The name of a host is the name of the file. In a list, the index follows: `hosts.json[3]`. A file that is not a list
/// is treated as a document without further checks.
///
/// # Errors
///
/// Returns an error if the file is not UTF-8 text, if it is a list with an entry that is not a host, or if the list has
/// more than [`MAX_HOSTS`] hosts.
///
/// # Examples
///
/// ```
/// use ignition::network::read_hosts;
///
/// let list = "- network_yaml: 'interfaces: []'\n  mac_interface_map: []\n- network_yaml: 7\n";
/// let error = read_hosts("hosts.yaml", list.as_bytes()).unwrap_err();
/// assert_eq!(error.to_string(), "hosts.yaml:3: [1].network_yaml: has to be a string");
/// ```
pub fn read_hosts(file: &str, bytes: &[u8]) -> Result<Vec<HostNetwork>, HostsFileError> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(HostsFileError::new(file, None, "is not UTF-8 text"));
    };
    if !is_host_list(text) {
        return Ok(vec![HostNetwork::without_macs(text).with_name(file)]);
    }
    let hosts = read_host_list(file, text)?;
    if hosts.len() > MAX_HOSTS {
        let reason = format!("lists {} hosts; at most {MAX_HOSTS} are accepted", hosts.len());
        return Err(HostsFileError::new(file, None, reason));
    }
    let with_index = |(index, host): (usize, HostNetwork)| host.with_name(format!("{file}[{index}]"));
    Ok(hosts.into_iter().enumerate().map(with_index).collect())
}

/// Returns `true` if the first value of a text starts a list of hosts. An nmstate document is never a list.
#[must_use]
pub fn is_host_list(text: &str) -> bool {
    let skipped = |line: &&str| line.is_empty() || line.starts_with('#') || line.starts_with("---");
    let first = text.trim_start_matches('\u{feff}').lines().map(str::trim).find(|line| !skipped(line));
    first.is_some_and(|line| line.starts_with('[') || line == "-" || line.starts_with("- "))
}

fn read_host_list(file: &str, text: &str) -> Result<Vec<HostNetwork>, HostsFileError> {
    let list = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(_) => yaml::read(text).map_err(|error| {
            let reason = match error.is_second_document() {
                true => "a list of hosts must be the only document in the file".to_owned(),
                false => format!("is not valid YAML: {}", error.problem()),
            };
            HostsFileError::new(file, Some(error.line()), reason)
        })?,
    };
    let host = |(index, item): (usize, &Value)| {
        parse_host(item).map_err(|(path, reason)| {
            let path = format!("[{index}]{path}");
            let line = LineIndex::read(text).find(&path);
            HostsFileError { path, ..HostsFileError::new(file, line, reason) }
        })
    };
    let Some(list) = list.as_array() else {
        return Err(HostsFileError::new(file, None, "is not a list of hosts"));
    };
    list.iter().enumerate().map(host).collect()
}

/// The path of a value, relative to the host, and the problem with it.
type HostProblem = (String, String);

/// Parses a host. Keys are case-insensitive, as in the API.
fn parse_host(item: &Value) -> Result<HostNetwork, HostProblem> {
    const MAP_KEY: &str = "mac_interface_map";
    if !item.is_object() {
        return Err((String::new(), "is not a host with network_yaml and mac_interface_map".to_owned()));
    }
    let document = required_text(item, "network_yaml", "")?;
    let entries = match field_in_any_case(item, MAP_KEY) {
        None | Some(Value::Null) => &[],
        Some(Value::Array(entries)) => entries.as_slice(),
        Some(_) => return Err((format!(".{MAP_KEY}"), "has to be a list".to_owned())),
    };
    let entry = |(index, entry): (usize, &Value)| {
        let path = format!(".{MAP_KEY}[{index}]");
        Ok(MacInterface {
            logical_nic_name: required_text(entry, "logical_nic_name", &path)?,
            mac_address: required_text(entry, "mac_address", &path)?,
        })
    };
    let map = entries.iter().enumerate().map(entry).collect::<Result<Vec<_>, HostProblem>>()?;
    Ok(HostNetwork::from_unchecked(document, map))
}

fn field_in_any_case<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    let fields = value.as_object()?;
    fields
        .get(key)
        .or_else(|| fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, it)| it))
}

fn required_text(value: &Value, key: &str, path: &str) -> Result<String, HostProblem> {
    match field_in_any_case(value, key) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err((format!("{path}.{key}"), "has to be a string".to_owned())),
        None => Err((path.to_owned(), format!("has no {key}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_documents_are_distinguished() {
        let json = r#"[{"network_yaml": "interfaces: []", "mac_interface_map": []}, {"network_yaml": "{}"}]"#;
        let yaml = "# hosts\n---\n- network_yaml: |\n    interfaces: []\n  mac_interface_map: []\n- network_yaml: '{}'\n";
        for text in [json, yaml] {
            let hosts = read_hosts("h", text.as_bytes()).unwrap();
            let names: Vec<_> = hosts.iter().filter_map(HostNetwork::name).collect();
            assert_eq!(names, ["h[0]", "h[1]"]);
            assert_eq!(hosts[0].document().trim_end(), "interfaces: []");
            assert!(hosts[0].interfaces().is_some());
        }
        let document = read_hosts("d.yaml", b"interfaces:\n- name: eth0\n").unwrap();
        assert_eq!((document.len(), document[0].name()), (1, Some("d.yaml")));
        assert!(document[0].interfaces().is_none());
        assert!(read_hosts("e", b"").unwrap()[0].document().is_empty());
    }

    #[test]
    fn keys_match_in_any_case() {
        let list = r#"[{"Network_YAML": "{}", "MAC_interface_map": [{"MAC_address": "m", "Logical_NIC_name": "n"}]}]"#;
        let hosts = read_hosts("h", list.as_bytes()).unwrap();
        let map = vec![MacInterface { logical_nic_name: "n".to_owned(), mac_address: "m".to_owned() }];
        assert_eq!(hosts, [HostNetwork::from_unchecked("{}", map).with_name("h[0]")]);
    }

    #[test]
    fn rejects_invalid_hosts() {
        let message = |bytes: &[u8]| read_hosts("h", bytes).unwrap_err().to_string();
        assert_eq!(message(b"[1]"), "h:1: [0]: is not a host with network_yaml and mac_interface_map");
        assert_eq!(message(b"- name: eth0\n"), "h:1: [0]: has no network_yaml");
        assert_eq!(message(b"--- |\n - network_yaml: ''\n"), "h: is not a list of hosts");
        assert_eq!(message(b"\xff"), "h: is not UTF-8 text");
        assert!(message(b"[{]").starts_with("h:1: is not valid YAML: "));
        let second = message(b"- network_yaml: ''\n---\n- network_yaml: ''\n");
        assert_eq!(second, "h:2: a list of hosts must be the only document in the file");
        let list = "- network_yaml: ''\n- network_yaml: ''\n  mac_interface_map:\n  - mac_address: a\n    logical_nic_name: 7\n";
        let path = "[1].mac_interface_map[0]";
        assert_eq!(message(list.as_bytes()), format!("h:5: {path}.logical_nic_name: has to be a string"));
        let list = list.replace("    logical_nic_name: 7\n", "");
        assert_eq!(message(list.as_bytes()), format!("h:4: {path}: has no logical_nic_name"));
        assert_eq!(message(b"[{\"network_yaml\": []}]"), "h:1: [0].network_yaml: has to be a string");
        let many = format!("[{}{{\"network_yaml\":\"\"}}]", "{\"network_yaml\":\"\"},".repeat(MAX_HOSTS));
        assert!(message(many.as_bytes()).contains("100001 hosts"));
    }
}
