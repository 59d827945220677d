//! The input and the output of the rules: a parsed nmstate document, prepared for the checks, and the findings.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::IpAddr;

use serde_json::Value;

use super::finding::{DraftFinding, Rule, shortened};
use crate::network::{HostNetwork, MacAddr, MacInterface, yaml};
use crate::report::Severity;

/// Maximum number of findings for one host. Users do not read more, and a hostile document could cause a finding for
/// every few bytes.
const MAX_FINDINGS: usize = 100;

/// An interface that a document configures.
pub(super) struct Interface<'a> {
    pub(super) value: &'a Value,
    pub(super) name: Cow<'a, str>,
    /// The value of `type`, if the document has one.
    pub(super) kind: Option<Cow<'a, str>>,
    pub(super) path: String,
}

impl<'a> Interface<'a> {
    /// Reads an interface. Returns `None` if the document removes or ignores the interface.
    fn read(index: usize, value: &'a Value) -> Option<Self> {
        let state = yaml::text_at(value, "state");
        if matches!(state.as_deref(), Some("absent" | "ignore")) {
            return None;
        }
        let name = yaml::text_at(value, "name")?;
        Some(Self { value, name, kind: yaml::text_at(value, "type"), path: format!("interfaces[{index}]") })
    }

    /// Returns an error finding about the value of a key.
    pub(super) fn error(&self, rule: Rule, key: &str, message: impl Into<String>) -> DraftFinding {
        DraftFinding::error(rule, format!("{}.{key}", self.path), message).with_interface(&self.name)
    }

    pub(super) fn has_type(&self, kinds: &[&str]) -> bool {
        self.kind.as_ref().is_some_and(|kind| kinds.contains(&&**kind))
    }

    pub(super) fn is_known_by_mac(&self) -> bool {
        yaml::text_at(self.value, "identifier").as_deref() == Some("mac-address")
    }
}

/// A value that must not be used by two interfaces or hosts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Identity {
    Mac(MacAddr),
    Address(IpAddr),
    Hostname(String),
}

/// The use of an identity by a host, and the position of the value in the document.
pub(super) struct IdentityClaim {
    pub(super) identity: Identity,
    /// The value in the user's notation.
    pub(super) written: String,
    pub(super) interface: Option<String>,
    pub(super) path: String,
}

impl IdentityClaim {
    /// Returns a finding about the claimed value.
    pub(super) fn finding(&self, severity: Severity, rule: Rule, message: String) -> DraftFinding {
        let interface = self.interface.as_deref().map(shortened);
        DraftFinding { interface, ..DraftFinding::new(severity, rule, &self.path, message) }
    }
}

/// The address families in which a host gets its addresses from the network.
#[derive(Clone, Copy, Default)]
pub(super) struct DynamicFamilies {
    pub(super) ipv4: bool,
    pub(super) ipv6: bool,
}

/// The results of the rules for one host.
#[derive(Default)]
pub(super) struct HostResult {
    pub(super) dynamic_families: DynamicFamilies,
    pub(super) findings: Vec<DraftFinding>,
    pub(super) claims: Vec<IdentityClaim>,
}

impl HostResult {
    pub(super) fn push(&mut self, finding: DraftFinding) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
            return;
        }
        if self.findings.len() == MAX_FINDINGS {
            let message = format!("only the first {MAX_FINDINGS} findings are listed");
            self.findings.push(DraftFinding::warning(Rule::MoreFindings, "", message));
        }
        // If the report is truncated at an error, the last finding must be an error.
        if let (Severity::Error, Some(last)) = (finding.severity, self.findings.last_mut()) {
            last.severity = Severity::Error;
        }
    }

    pub(super) fn claim(&mut self, identity: Identity, text: &str, interface: Option<&str>, path: String) {
        let (text, interface) = (text.to_owned(), interface.map(str::to_owned));
        self.claims.push(IdentityClaim { identity, written: text, interface, path });
    }
}

/// The prepared document and the MAC address map of one host.
pub(super) struct HostState<'a> {
    pub(super) root: &'a Value,
    pub(super) interfaces: Vec<Interface<'a>>,
    /// The interface names in the map, with their positions; `None` without a map.
    pub(super) mapped: Option<HashMap<&'a str, usize>>,
}

impl<'a> HostState<'a> {
    pub(super) fn new(host: &'a HostNetwork, root: &'a Value) -> Self {
        let interfaces = yaml::list_at(root, &["interfaces"]).iter().enumerate();
        let position = |(position, it): (usize, &'a MacInterface)| (it.logical_nic_name.as_str(), position);
        let mapped = host.interfaces().map(|_| host.interfaces_with_positions().map(position).collect());
        Self {
            root,
            interfaces: interfaces.filter_map(|(index, value)| Interface::read(index, value)).collect(),
            mapped,
        }
    }

    /// Returns the interfaces by name. If two interfaces have the same name, the last one counts, as in the generator.
    pub(super) fn interfaces_by_name(&self) -> HashMap<&str, &Interface<'a>> {
        self.interfaces.iter().map(|interface| (&*interface.name, interface)).collect()
    }

    pub(super) fn is_mapped(&self, name: &str) -> bool {
        self.mapped.as_ref().is_some_and(|mapped| mapped.contains_key(name))
    }
}

/// Returns `true` if the predictable naming scheme may assign this name to a network card.
pub(super) fn is_predictable_name(name: &str) -> bool {
    let kind = name.strip_prefix("en").and_then(|rest| rest.chars().next());
    kind.is_some_and(|kind| "PsvxXbucaipod".contains(kind))
}
