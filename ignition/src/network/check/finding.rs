//! The findings of the checks.

use std::fmt;

use serde::Serialize;

use crate::report::Severity;
use crate::visible::visible;

/// The rule that a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Rule {
    /// The document cannot be parsed.
    Unreadable,
    /// The generator rejects the document, so there are no keyfiles.
    NoKeyfiles,
    /// The document has no interfaces.
    NoInterfaces,
    /// The host has no MAC addresses.
    NoMacs,
    /// A text is not a MAC address, or no interface can have this MAC address.
    MalformedMac,
    /// Two interfaces have the same MAC address.
    DuplicateMac,
    /// The MAC address map contains a name twice.
    DuplicateName,
    /// The MAC address map contains a name that the document does not use.
    UnusedMac,
    /// The MAC address map has no entry for a network card in the document.
    UnmappedInterface,
    /// Neither the document nor the map declares a port or base interface, or an interface depends on itself.
    UnknownInterface,
    /// The document declares an interface twice.
    DuplicateInterface,
    /// An interface name is not valid in the kernel.
    InterfaceName,
    /// An interface is a port of two controllers.
    PortOfTwo,
    /// A VLAN ID is invalid.
    VlanId,
    /// An MTU is invalid for its interface.
    Mtu,
    /// A text is not an IP address or network.
    MalformedAddress,
    /// A prefix length is missing or invalid.
    PrefixLength,
    /// Two interfaces have the same static address.
    DuplicateAddress,
    /// Two hosts have the same name.
    DuplicateHostname,
    /// A host uses a virtual address of the cluster as a static address.
    Vip,
    /// A host has no static address in the machine networks of its cluster.
    MachineNetwork,
    /// A gateway cannot be reached through its interface.
    Gateway,
    /// A route has no interface, or the document does not declare its interface.
    RouteInterface,
    /// A name server has no interface with its address family.
    DnsInterface,
    /// The host has more findings than the report contains.
    MoreFindings,
}

/// A problem in the network of a host.
///
/// `Display` writes the finding on one line, in the format of compiler messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NetworkFinding {
    /// The severity. An error means that the host will not get the intended network.
    pub severity: Severity,
    /// The rule that the finding is about, for programs.
    pub rule: Rule,
    /// The index of the host among the checked hosts. `Display` counts hosts from 1 instead.
    pub host: usize,
    /// The name of the host in messages, if one is set.
    pub name: Option<String>,
    /// The name of the interface in the document, if the finding is about an interface.
    pub interface: Option<String>,
    /// The path of the value, such as `interfaces[0].ipv4` or `mac_interface_map[0].mac_address`; empty for the whole
    /// document.
    pub path: String,
    /// The line of the value in the document, if known.
    pub line: Option<usize>,
    /// The problem in words.
    pub message: String,
}

impl fmt::Display for NetworkFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => write!(f, "{name}:")?,
            None => write!(f, "host {}:", self.host.saturating_add(1))?,
        }
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        if !self.path.is_empty() {
            write!(f, " {}:", self.path)?;
        }
        write!(f, " {}: {}", self.severity, self.message)
    }
}

/// All findings, in the order of the hosts. The findings of a host are in the order of the rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct NetworkReport {
    findings: Vec<NetworkFinding>,
}

impl NetworkReport {
    pub(super) fn new(findings: Vec<NetworkFinding>) -> Self {
        Self { findings }
    }

    /// Returns the findings, in the order of the hosts.
    #[must_use]
    pub fn findings(&self) -> &[NetworkFinding] {
        &self.findings
    }

    /// Returns `true` if at least one finding is an error.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }
}

impl fmt::Display for NetworkReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.findings.iter().try_for_each(|finding| writeln!(f, "{finding}"))
    }
}

/// A finding that is not assigned to a host yet.
pub(super) struct DraftFinding {
    pub(super) severity: Severity,
    pub(super) rule: Rule,
    pub(super) interface: Option<String>,
    pub(super) path: String,
    /// The line of the finding, if it differs from the line of the path.
    pub(super) line: Option<usize>,
    pub(super) message: String,
}

impl DraftFinding {
    pub(super) fn new(
        severity: Severity,
        rule: Rule,
        path: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { severity, rule, interface: None, path: path.into(), line: None, message: message.into() }
    }

    pub(super) fn error(rule: Rule, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, rule, path, message)
    }

    pub(super) fn warning(rule: Rule, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, rule, path, message)
    }

    pub(super) fn with_interface(self, interface: &str) -> Self {
        Self { interface: Some(shortened(interface)), ..self }
    }
}

/// Maximum length of a name in a message, in characters.
const MAX_EXCERPT_CHARS: usize = 48;

/// Returns a text from a document in the form for messages: shortened, quoted if empty, and with control characters
/// escaped.
pub(super) fn excerpt(text: &str) -> String {
    visible(&shortened(text)).to_owned()
}

/// Returns a text from a document like [`excerpt`], for a message in which quotes or a key surround the text.
pub(super) fn shortened(text: &str) -> String {
    let short: String = text.chars().take(MAX_EXCERPT_CHARS).collect();
    let end = if short.len() < text.len() { "..." } else { "" };
    format!("{}{end}", short.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_texts_are_visible() {
        assert_eq!((excerpt("").as_str(), shortened("").as_str()), ("\"\"", ""));
        let finding = NetworkFinding {
            severity: Severity::Error,
            rule: Rule::NoMacs,
            host: 2,
            name: Some(String::new()),
            interface: None,
            path: String::new(),
            line: None,
            message: "it has none".to_owned(),
        };
        assert_eq!(finding.to_string(), "host 3: error: it has none");
    }
}
