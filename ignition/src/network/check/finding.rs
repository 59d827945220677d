//! What is found in the networks of hosts.

use std::fmt;

use serde::Serialize;

use crate::report::Severity;

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Rule {
    /// The document cannot be read.
    Unreadable,
    /// The generator makes no keyfiles of the document.
    NoKeyfiles,
    /// There is no interface in the document.
    NoInterfaces,
    /// There is no MAC address for the host.
    NoMacs,
    /// A text is not a MAC address, or one that no interface has.
    MalformedMac,
    /// Two interfaces have one MAC address.
    DuplicateMac,
    /// The map has a name twice.
    DuplicateName,
    /// The map has a name that is not in the document.
    UnusedMac,
    /// The document has an interface for which the map has no MAC address.
    UnmappedInterface,
    /// A port or base interface is declared neither in the document nor in the map, or is the interface itself.
    UnknownInterface,
    /// The document has an interface twice.
    DuplicateInterface,
    /// The kernel takes no such name.
    InterfaceName,
    /// An interface is a port of two.
    PortOfTwo,
    /// There is no such VLAN.
    VlanId,
    /// An interface cannot have such an MTU.
    Mtu,
    /// A text is not an IP address or network.
    MalformedAddress,
    /// The prefix of an address has no such length.
    PrefixLength,
    /// Two interfaces have one static address.
    DuplicateAddress,
    /// Two hosts have one name.
    DuplicateHostname,
    /// A static address is a virtual address of the cluster.
    Vip,
    /// A host has no static address in the machine networks of its cluster.
    MachineNetwork,
    /// A gateway cannot be reached through its interface.
    Gateway,
    /// A route leads to no interface.
    RouteInterface,
    /// There are name servers, but no interface to reach them through.
    DnsInterface,
    /// A host has more findings than are listed.
    MoreFindings,
}

/// One thing that was found.
///
/// As text it is one line, in the form of a compiler's message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is: with an error, the host will not have the network that is meant.
    pub severity: Severity,
    /// What it is about.
    pub rule: Rule,
    /// The index of the host among those that were checked. The text of a finding counts from 1 instead.
    pub host: usize,
    /// The host's name.
    pub name: Option<String>,
    /// The interface, by its name in the document.
    pub interface: Option<String>,
    /// The value, such as `interfaces[0].ipv4` or `mac_interface_map[0].mac_address`; empty for the whole document.
    pub path: String,
    /// The line of the value in the document, where it has one.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
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

/// All that was found, in the order of the hosts and, for each, of the rules' look at them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Report {
    findings: Vec<Finding>,
}

impl Report {
    pub(super) fn new(findings: Vec<Finding>) -> Self {
        Self { findings }
    }

    /// What was found.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// How many findings are this bad.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// Whether any host will not have its network.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.count(Severity::Error) > 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.findings.iter().try_for_each(|finding| writeln!(f, "{finding}"))
    }
}

/// A finding without its host.
pub(super) struct Draft {
    pub(super) severity: Severity,
    pub(super) rule: Rule,
    pub(super) interface: Option<String>,
    pub(super) path: String,
    /// The line, if it is not that of the path.
    pub(super) line: Option<usize>,
    pub(super) message: String,
}

impl Draft {
    pub(super) fn error(rule: Rule, path: impl Into<String>, message: impl Into<String>) -> Self {
        let (path, message) = (path.into(), message.into());
        Self { severity: Severity::Error, rule, interface: None, path, line: None, message }
    }

    pub(super) fn warning(rule: Rule, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(rule, path, message) }
    }

    pub(super) fn of(self, interface: &str) -> Self {
        Self { interface: Some(shown(interface)), ..self }
    }
}

/// Most characters of a name that a message repeats.
const MAX_SHOWN: usize = 48;

/// A text of a document, as a message has it: short, and without control characters.
pub(super) fn shown(text: &str) -> String {
    let short: String = text.chars().take(MAX_SHOWN).collect();
    let end = if short.len() < text.len() { "..." } else { "" };
    format!("{}{end}", short.escape_debug())
}
