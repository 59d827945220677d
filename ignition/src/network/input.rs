//! Hosts out of files.

use serde::Deserialize as _;

use super::yaml::{self, YamlError};
use super::{HostNetwork, MAX_HOSTS};

/// Why a file has no hosts.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The file is not text.
    #[error("{file} is not UTF-8 text")]
    NotText {
        /// The name of the file.
        file: String,
    },
    /// The file is a list, but not of hosts.
    #[error("{file} is a list, but not of hosts with network_yaml and mac_interface_map")]
    NotHosts {
        /// The name of the file.
        file: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// The list has more than [`MAX_HOSTS`] hosts.
    #[error("{file} lists {found} hosts; at most {MAX_HOSTS} are accepted")]
    TooManyHosts {
        /// The name of the file.
        file: String,
        /// How many it lists.
        found: usize,
    },
    /// The list is not YAML, or exceeds the budget of the reader.
    #[error("{file} is not valid YAML")]
    Yaml {
        /// The name of the file.
        file: String,
        /// Where and why.
        #[source]
        source: YamlError,
    },
}

/// Reads the hosts of a file: a list in the shape of the inventory API's `static_network_config`, JSON or YAML, or one
/// nmstate document, whose MAC addresses are then not known.
///
/// Hosts are named after the file, those of a list with their place: `hosts.json[3]`. A file that is no list is taken
/// for a document, whatever is in it.
///
/// # Errors
///
/// When the file is not text, or a list of something else or of too many hosts.
pub fn read_hosts(file: &str, bytes: &[u8]) -> Result<Vec<HostNetwork>, InputError> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(InputError::NotText { file: file.to_owned() });
    };
    if !is_host_list(text) {
        return Ok(vec![HostNetwork::without_macs(text).named(file)]);
    }
    let hosts = read_list(file, text)?;
    if hosts.len() > MAX_HOSTS {
        return Err(InputError::TooManyHosts { file: file.to_owned(), found: hosts.len() });
    }
    let named = |(index, host): (usize, HostNetwork)| host.named(format!("{file}[{index}]"));
    Ok(hosts.into_iter().enumerate().map(named).collect())
}

/// Whether a text is a list of hosts, by its first value. An nmstate document is never a list.
#[must_use]
pub fn is_host_list(text: &str) -> bool {
    let skipped = |line: &&str| line.is_empty() || line.starts_with('#') || line.starts_with("---");
    let first = text.trim_start_matches('\u{feff}').lines().map(str::trim).find(|line| !skipped(line));
    first.is_some_and(|line| line.starts_with('[') || line == "-" || line.starts_with("- "))
}

fn read_list(file: &str, text: &str) -> Result<Vec<HostNetwork>, InputError> {
    if let Ok(hosts) = serde_json::from_str(text) {
        return Ok(hosts);
    }
    let list = yaml::read(text).map_err(|source| InputError::Yaml { file: file.to_owned(), source })?;
    Vec::<HostNetwork>::deserialize(list)
        .map_err(|source| InputError::NotHosts { file: file.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_documents_are_told_apart() {
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
    fn what_is_no_host_is_refused() {
        let message = |bytes: &[u8]| read_hosts("h", bytes).unwrap_err().to_string();
        assert!(message(b"[1]").contains("not of hosts"));
        assert!(message(b"- name: eth0\n").contains("not of hosts"));
        assert!(message(b"\xff").contains("not UTF-8"));
        assert!(message(b"[{]").contains("not valid YAML"));
        let many = format!("[{}{{\"network_yaml\":\"\"}}]", "{\"network_yaml\":\"\"},".repeat(MAX_HOSTS));
        assert!(message(many.as_bytes()).contains("100001 hosts"));
    }
}
