//! The static network of one host, and its location in the user's input.

use std::sync::Arc;

use ignition::network::check::NetworkFinding;
use ignition::network::{HostNetwork, yaml};

use crate::finding::SourceLocation;

/// The static network of one host.
#[derive(Clone, Debug)]
pub struct Host {
    /// The name of the host, used in file names and messages.
    pub name: String,
    /// The nmstate document and the MAC addresses of the host.
    pub network: HostNetwork,
    /// The location of the network in its document. Absent if the network is a whole file.
    pub origin: Option<Arc<HostOrigin>>,
}

/// The location of a host's network in a larger document.
#[derive(Clone, Debug)]
pub struct HostOrigin {
    /// The name of the file that contains the document.
    pub file: Arc<str>,
    /// The line numbers of the values in the document. `None` if the document is a value without text.
    pub lines: Option<Arc<yaml::LineIndex>>,
    /// The number of lines before the document in the file.
    pub skipped: usize,
    /// The path of the network in the document.
    pub network: String,
    /// The path of the list of MAC addresses in the document.
    pub interfaces: String,
}

impl Host {
    /// Returns the location of the host's network.
    #[must_use]
    pub fn place(&self) -> SourceLocation {
        self.origin
            .as_ref()
            .map_or_else(|| SourceLocation::whole(self.name.as_str()), |origin| origin.place(""))
    }

    /// Returns the location of a finding about this host, in the user's file.
    #[must_use]
    pub fn place_of(&self, finding: &NetworkFinding) -> SourceLocation {
        match &self.origin {
            // A document that cannot be parsed has no paths, so use only the line.
            Some(origin) if origin.network.is_empty() && finding.path.is_empty() => {
                let line = finding.line.unwrap_or(1).saturating_add(origin.skipped);
                SourceLocation { line: Some(line), ..origin.place("") }
            }
            Some(origin) => origin.place(&finding.path),
            None => {
                SourceLocation { file: self.name.clone(), line: finding.line, path: finding.path.clone() }
            }
        }
    }
}

impl HostOrigin {
    /// Returns the location of a value in the network or in its list of MAC addresses.
    fn place(&self, path: &str) -> SourceLocation {
        let path = match path.strip_prefix("mac_interface_map") {
            Some(entry) => {
                let entry =
                    entry.replace(".mac_address", ".macAddress").replace(".logical_nic_name", ".name");
                format!("{}{entry}", self.interfaces)
            }
            None if path.is_empty() => self.network.clone(),
            None if self.network.is_empty() => path.to_owned(),
            None => format!("{}.{path}", self.network),
        };
        // If the value has no line, use the first line of the document, which identifies the document in the file.
        let line = |lines: &Arc<yaml::LineIndex>| lines.find(&path).unwrap_or(1).saturating_add(self.skipped);
        SourceLocation { file: self.file.to_string(), line: self.lines.as_ref().map(line), path }
    }
}
