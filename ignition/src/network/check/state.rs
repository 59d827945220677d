//! A document as the rules see it, and what they have found in it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::IpAddr;

use serde_json::Value;

use super::finding::{Draft, Rule};
use crate::network::{HostNetwork, MacAddr, MacInterface, yaml};
use crate::report::Severity;

/// Most findings of one host. Someone who has that many would not read more, and a hostile document could have one for
/// every few bytes.
const MAX_FINDINGS: usize = 100;

/// An interface that is to be there.
pub(super) struct Interface<'a> {
    pub(super) value: &'a Value,
    pub(super) name: Cow<'a, str>,
    /// The type; nothing where none is given.
    pub(super) kind: Option<Cow<'a, str>>,
    pub(super) path: String,
}

impl<'a> Interface<'a> {
    /// Those that the document says are to go or to be left alone are none.
    fn read(index: usize, value: &'a Value) -> Option<Self> {
        let state = yaml::text_at(value, "state");
        if matches!(state.as_deref(), Some("absent" | "ignore")) {
            return None;
        }
        let name = yaml::text_at(value, "name")?;
        Some(Self { value, name, kind: yaml::text_at(value, "type"), path: format!("interfaces[{index}]") })
    }

    pub(super) fn is_kind(&self, kinds: &[&str]) -> bool {
        self.kind.as_ref().is_some_and(|kind| kinds.contains(&&**kind))
    }

    pub(super) fn is_known_by_mac(&self) -> bool {
        yaml::text_at(self.value, "identifier").as_deref() == Some("mac-address")
    }
}

/// What only one interface of all hosts may have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Identity {
    Mac(MacAddr),
    Address(IpAddr),
    Hostname(String),
}

/// That a host has an identity, and where it says so.
pub(super) struct Claim {
    pub(super) identity: Identity,
    /// The value as the user wrote it.
    pub(super) written: String,
    pub(super) interface: Option<String>,
    pub(super) path: String,
}

/// The address families in which a host gets addresses from the network.
#[derive(Clone, Copy, Default)]
pub(super) struct IsDynamic {
    pub(super) ipv4: bool,
    pub(super) ipv6: bool,
}

/// What was found in one host.
#[derive(Default)]
pub(super) struct Found {
    pub(super) is_dynamic: IsDynamic,
    pub(super) findings: Vec<Draft>,
    pub(super) claims: Vec<Claim>,
}

impl Found {
    pub(super) fn push(&mut self, finding: Draft) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
            return;
        }
        if self.findings.len() == MAX_FINDINGS {
            let message = format!("only the first {MAX_FINDINGS} findings are listed");
            self.findings.push(Draft::warning(Rule::MoreFindings, "", message));
        }
        // An error that is not listed still is one.
        if let (Severity::Error, Some(last)) = (finding.severity, self.findings.last_mut()) {
            last.severity = Severity::Error;
        }
    }

    pub(super) fn claim(&mut self, claim: Claim) {
        self.claims.push(claim);
    }
}

/// One host's document and map.
pub(super) struct State<'a> {
    pub(super) root: &'a Value,
    pub(super) interfaces: Vec<Interface<'a>>,
    /// The names in the map with their positions; nothing without a map.
    pub(super) mapped: Option<HashMap<&'a str, usize>>,
}

impl<'a> State<'a> {
    pub(super) fn new(host: &'a HostNetwork, root: &'a Value) -> Self {
        let interfaces = yaml::list(root, &["interfaces"]).iter().enumerate();
        let position = |(position, it): (usize, &'a MacInterface)| (it.logical_nic_name.as_str(), position);
        let mapped = host.interfaces().map(|_| host.positioned().map(position).collect());
        Self {
            root,
            interfaces: interfaces.filter_map(|(index, value)| Interface::read(index, value)).collect(),
            mapped,
        }
    }

    /// The interfaces by name. Of those that have one name, the last counts, as for the generator.
    pub(super) fn by_name(&self) -> HashMap<&str, &Interface<'a>> {
        self.interfaces.iter().map(|interface| (&*interface.name, interface)).collect()
    }

    pub(super) fn is_mapped(&self, name: &str) -> bool {
        self.mapped.as_ref().is_some_and(|mapped| mapped.contains_key(name))
    }
}

/// Whether the kernel's own naming may give this name to hardware.
pub(super) fn is_predictable(name: &str) -> bool {
    let kind = name.strip_prefix("en").and_then(|rest| rest.chars().next());
    kind.is_some_and(|kind| "PsvxXbucaipod".contains(kind))
}
