//! Lists the interfaces that a document declares.

use super::interface::{is_network_card, subordinates};
use super::state::HostState;
use crate::network::document::NetworkDocument;
use crate::network::{HostNetwork, yaml};

/// An interface that a document declares, or that it uses as a port or base interface.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeclaredInterface {
    /// The name of the interface in the document.
    pub name: String,
    /// `true` if the interface is a network card, which needs a MAC address.
    pub is_network_card: bool,
    /// The MAC address in the document's notation; `None` if the document has none.
    pub mac_address: Option<String>,
}

/// Returns the interfaces that a host's document declares, followed by the interfaces that it only uses as ports or
/// base interfaces, each once. Returns an empty list if the document cannot be parsed.
///
/// # Examples
///
/// ```
/// use ignition::network::HostNetwork;
/// use ignition::network::check::declared_interfaces;
///
/// let document = "interfaces: [{name: eno1.7, type: vlan, state: up, vlan: {id: 7, base-iface: eno1}}]";
/// let interfaces = declared_interfaces(&HostNetwork::without_macs(document));
/// assert_eq!((interfaces[0].name.as_str(), interfaces[0].is_network_card), ("eno1.7", false));
/// assert_eq!((interfaces[1].name.as_str(), interfaces[1].is_network_card), ("eno1", true));
/// ```
#[must_use]
pub fn declared_interfaces(host: &HostNetwork) -> Vec<DeclaredInterface> {
    let Ok(document) = NetworkDocument::parse(host.document()) else { return Vec::new() };
    let state = HostState::new(host, document.root());
    let declared = state.interfaces.iter().map(|interface| DeclaredInterface {
        name: interface.name.clone().into_owned(),
        is_network_card: is_network_card(interface),
        mac_address: yaml::text_at(interface.value, "mac-address").map(std::borrow::Cow::into_owned),
    });
    let others = state.interfaces.iter().flat_map(subordinates).map(|part| DeclaredInterface {
        name: part.name.into_owned(),
        is_network_card: true,
        mac_address: None,
    });
    let mut names = std::collections::HashSet::new();
    declared.chain(others).filter(|interface| names.insert(interface.name.clone())).collect()
}
