//! Hosts from files, which contain nmstate documents, `NMStateConfig` manifests, or lists in the format of the API.

use std::sync::Arc;

use ignition::network::check::ClusterNetworks;
use ignition::network::yaml::LineIndex;
use ignition::network::{HostNetwork, HostsFileError, MAX_HOSTS, is_host_list};

use super::cluster;
use super::nmstate_config::host_as_written;
use super::object::Object;
use super::read::{ReadError, documents, parse};
use crate::{DiscoveryReport, Host, HostOrigin, SourceLocation};

/// The hosts from one or more files. The files may also contain manifests of other kinds.
#[derive(Debug)]
pub struct HostFiles {
    /// The hosts, in the order of the files and of the documents in them.
    pub hosts: Vec<Host>,
    /// The findings about the manifests.
    pub findings: DiscoveryReport,
    /// The manifests of kinds other than `NMStateConfig`.
    others: Vec<Object>,
    /// The files that contain manifests but no host.
    without_hosts: Vec<String>,
    max_hosts: usize,
}

impl Default for HostFiles {
    fn default() -> Self {
        Self::with_max_hosts(MAX_HOSTS)
    }
}

impl HostFiles {
    /// Returns an empty set that accepts at most `max_hosts` hosts.
    #[must_use]
    pub fn with_max_hosts(max_hosts: usize) -> Self {
        Self {
            hosts: Vec::new(),
            findings: DiscoveryReport::default(),
            others: Vec::new(),
            without_hosts: Vec::new(),
            max_hosts,
        }
    }

    /// Adds the hosts of a file. Each YAML document is either the nmstate document of one host or a manifest. A JSON or
    /// YAML list has the format of `static_network_config` in the inventory API.
    ///
    /// A host has the name of its manifest, or else of its file. An index is added in a list (`hosts.json[3]`), and the
    /// first line of the document if the file has several documents (`hosts.yaml:12`).
    ///
    /// # Errors
    ///
    /// Returns an error if the file is not text, or if it is a list with too many items or with items that are not
    /// hosts. Too many documents only cause a finding.
    pub fn add(&mut self, file: &str, bytes: &[u8]) -> Result<(), HostsFileError> {
        let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| !is_host_list(text)) else {
            let networks = ignition::network::read_hosts(file, bytes)?;
            self.hosts.extend(networks.into_iter().map(|it| host_without_manifest(file, it)));
            self.limit_hosts(file);
            return Ok(());
        };
        let name: Arc<str> = file.into();
        let parts: Vec<_> = documents(text).filter(|(_, document)| has_content(document)).collect();
        let (count, max) = (self.hosts.len().saturating_add(parts.len()), self.max_hosts);
        if count > max {
            let reason =
                format!("with this file there are {count} documents; at most {max} hosts are accepted");
            self.findings.error(SourceLocation::whole(file), reason);
            return Ok(());
        }
        let (hosts_before, errors_before) = (self.hosts.len(), self.findings.as_slice().len());
        for part in &parts {
            self.add_part(&name, *part, parts.len());
            if self.limit_hosts(file) {
                return Ok(());
            }
        }
        if parts.is_empty() {
            self.hosts.push(host_without_manifest(file, HostNetwork::without_macs(text).with_name(file)));
        } else if (self.hosts.len(), self.findings.as_slice().len()) == (hosts_before, errors_before) {
            self.without_hosts.push(file.to_owned());
        }
        Ok(())
    }

    /// Removes the hosts beyond the limit, and adds a finding. Returns `true` if any hosts were removed.
    fn limit_hosts(&mut self, file: &str) -> bool {
        let max = self.max_hosts;
        let is_exceeded = self.hosts.len() > max;
        if is_exceeded {
            let reason = format!("with this file there are more than {max} hosts, which is the limit");
            self.findings.error(SourceLocation::whole(file), reason);
            self.hosts.truncate(max);
        }
        is_exceeded
    }

    /// Adds one document of a file.
    fn add_part(&mut self, file: &Arc<str>, (skipped, document): (usize, &str), count: usize) {
        let value = match parse(file, skipped, document) {
            Ok(value) => Some(value),
            // Report the syntax error with its line in the file. Later checks of the host would count lines from the
            // start of the document.
            Err(ReadError::Malformed { place, reason }) if count > 1 || skipped > 0 => {
                return self.findings.error(place, reason);
            }
            Err(_) => None,
        };
        let Some(value) = value.filter(|value| value.get("kind").is_some()) else {
            let begin = format!("{file}:{}", skipped.saturating_add(1));
            let label = if count == 1 { file } else { begin.as_str() };
            return self.hosts.push(host_of_document((file, label), skipped, document));
        };
        for object in Object::from_document(file, (skipped, document), value, &mut self.findings) {
            if object.kind() == "NMStateConfig" {
                self.hosts.extend(host_as_written(&object, &mut self.findings));
            } else {
                self.others.push(object);
            }
        }
    }

    /// Returns the networks of the cluster from the only `AgentClusterInstall` in the files. Returns an empty value if
    /// there are several.
    pub fn cluster(&mut self) -> ClusterNetworks {
        let mut installs = self.others.iter().filter(|object| object.kind() == "AgentClusterInstall");
        match (installs.next(), installs.next()) {
            (Some(install), None) => cluster::networks(install, &mut self.findings),
            _ => ClusterNetworks::default(),
        }
    }

    /// Adds findings about the files without hosts if no file contains a host.
    pub fn require_hosts(&mut self) {
        if self.hosts.is_empty() {
            for file in &self.without_hosts {
                self.findings.error(SourceLocation::whole(file.as_str()), "has no NMStateConfig");
            }
        }
    }
}

/// Returns `true` if a document contains more than comments, directives and markers.
fn has_content(document: &str) -> bool {
    let is_mark =
        |line: &str| line.is_empty() || line.starts_with(['#', '%']) || line == "---" || line == "...";
    document.lines().any(|line| !is_mark(line.trim()))
}

/// Creates a host from a list item or a file that is not a manifest. Hosts in lists already have names.
fn host_without_manifest(file: &str, network: HostNetwork) -> Host {
    Host { name: network.name().unwrap_or(file).to_owned(), network, origin: None }
}

/// Creates the host of an nmstate document.
fn host_of_document((file, label): (&Arc<str>, &str), skipped: usize, document: &str) -> Host {
    let origin = HostOrigin {
        file: Arc::clone(file),
        lines: Some(Arc::new(LineIndex::read(document))),
        skipped,
        network: String::new(),
        interfaces: "mac_interface_map".to_owned(),
    };
    let network = HostNetwork::without_macs(document).with_name(label);
    Host { name: label.to_owned(), network, origin: Some(Arc::new(origin)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_all_forms_count_against_the_limit() {
        let list = r#"[{"network_yaml": "{}"}, {"network_yaml": "{}"}]"#;
        let manifest = "{kind: NMStateConfig, spec: {config: {}, interfaces: [{name: a, macAddress: m}]}}";
        let manifests = format!("kind: List\nitems: [{manifest}, {manifest}]\n");
        for text in [list, &manifests, "a: 1\n---\nb: 1\n"] {
            let mut files = HostFiles::with_max_hosts(2);
            files.add("one.yaml", b"interfaces: []\n").unwrap();
            files.add("two.yaml", text.as_bytes()).unwrap();
            assert!((1..=2).contains(&files.hosts.len()), "{text}");
            let last = files.findings.as_slice().last().map(ToString::to_string).unwrap_or_default();
            assert!(last.starts_with("two.yaml: error: with this file there are"), "{text}: {last}");
        }
    }

    #[test]
    fn rejects_more_documents_than_hosts() {
        let mut files = HostFiles::default();
        files.add("one.yaml", b"interfaces: []\n").unwrap();
        files.add("many.yaml", "---\n0\n".repeat(MAX_HOSTS).as_bytes()).unwrap();
        assert_eq!(files.hosts.len(), 1);
        let [finding] = files.findings.as_slice() else { panic!("{:?}", files.findings) };
        let text = finding.to_string();
        assert!(text.contains("many.yaml") && text.contains("100001 documents"), "{text}");
    }
}
