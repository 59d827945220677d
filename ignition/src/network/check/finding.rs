//! Findings of the checks.

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
    /// The generator rejects the document.
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
    /// The map contains a name that the document does not use.
    UnusedMac,
    /// The document has a network card for which the map has no MAC address.
    UnmappedInterface,
    /// A port or base interface is declared neither in the document nor in the map, or an interface depends on itself.
    UnknownInterface,
    /// The document declares an interface twice.
    DuplicateInterface,
    /// The kernel does not accept the name of an interface.
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
    /// A static address is a virtual address of the cluster.
    Vip,
    /// A host has no static address in the machine networks of its cluster.
    MachineNetwork,
    /// A gateway cannot be reached through its interface.
    Gateway,
    /// A route has no interface, or one that the document does not declare.
    RouteInterface,
    /// A name server has no interface with its address family.
    DnsInterface,
    /// The host has more findings than are listed.
    MoreFindings,
}

/// One problem in the network of a host.
///
/// `Display` writes it on one line, in the form of a compiler's message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NetworkFinding {
    /// The severity. With an error, the host will not get the intended network.
    pub severity: Severity,
    /// The rule.
    pub rule: Rule,
    /// The index of the host among the checked hosts. `Display` counts hosts from 1 instead.
    pub host: usize,
    /// The name of the host for messages.
    pub name: Option<String>,
    /// The name of the interface in the document.
    pub interface: Option<String>,
    /// The path of the value, such as `interfaces[0].ipv4` or `mac_interface_map[0].mac_address`; empty for the whole
    /// document.
    pub path: String,
    /// The line of the value in the document, if it is known.
    pub line: Option<usize>,
    /// The problem.
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

/// All findings, in the order of the hosts and, for each host, of the rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct NetworkReport {
    findings: Vec<NetworkFinding>,
}

impl NetworkReport {
    pub(super) fn new(findings: Vec<NetworkFinding>) -> Self {
        Self { findings }
    }

    /// Returns the findings.
    #[must_use]
    pub fn findings(&self) -> &[NetworkFinding] {
        &self.findings
    }

    /// Returns whether a finding is an error.
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

/// A finding that is not yet assigned to a host.
pub(super) struct DraftFinding {
    pub(super) severity: Severity,
    pub(super) rule: Rule,
    pub(super) interface: Option<String>,
    pub(super) path: String,
    /// The line, if it differs from that of the path.
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

/// Maximum length in characters of a name in a message.
const MAX_EXCERPT_CHARS: usize = 48;

/// Returns a text of a document for a message: shortened, with control characters escaped. An empty text is visible.
pub(super) fn excerpt(text: &str) -> String {
    visible(&shortened(text)).to_owned()
}

/// Returns a text of a document as [`excerpt`], for a place where quotes or a key surround it.
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
