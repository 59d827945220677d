//! The interfaces that a document declares.

use super::interface::{is_network_card, parts};
use super::state::State;
use crate::network::document::Document;
use crate::network::{HostNetwork, yaml};

/// An interface that a document declares, or names as a port or base interface.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeclaredInterface {
    /// Its name in the document.
    pub name: String,
    /// Whether it is a network card, which needs a MAC address.
    pub is_network_card: bool,
    /// Its MAC address, as the document has it.
    pub mac_address: Option<String>,
}

/// Returns the interfaces of a host's document, in its order, each once. A document that cannot be read has none.
#[must_use]
pub fn interfaces(host: &HostNetwork) -> Vec<DeclaredInterface> {
    let Ok(document) = Document::parse(host.document()) else { return Vec::new() };
    let state = State::new(host, document.root());
    let declared = state.interfaces.iter().map(|interface| DeclaredInterface {
        name: interface.name.clone().into_owned(),
        is_network_card: is_network_card(interface),
        mac_address: yaml::text_at(interface.value, "mac-address").map(std::borrow::Cow::into_owned),
    });
    let named = state.interfaces.iter().flat_map(parts).map(|part| DeclaredInterface {
        name: part.name.into_owned(),
        is_network_card: true,
        mac_address: None,
    });
    let mut names = std::collections::HashSet::new();
    declared.chain(named).filter(|interface| names.insert(interface.name.clone())).collect()
}
