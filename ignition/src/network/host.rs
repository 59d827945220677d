//! One host's network: its document and the MAC addresses that tell which machine it is for.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Which logical interface name of a document stands for the interface with which MAC address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MacInterface {
    /// The name in the document.
    pub logical_nic_name: String,
    /// The MAC address, as somebody wrote it.
    pub mac_address: String,
}

/// The network of one host, as the inventory API has it in `static_network_config`.
///
/// Nothing about it is known to be right: see [`check`](super::check).
///
/// # Examples
///
/// ```
/// use ignition::network::HostNetwork;
///
/// let json = r#"{"network_yaml": "interfaces: [{name: eth0, type: ethernet, state: up}]",
///     "mac_interface_map": [{"mac_address": "52:54:00:aa:bb:01", "logical_nic_name": "eth0"}]}"#;
/// let host: HostNetwork = serde_json::from_str(json)?;
/// assert_eq!(host.interfaces().unwrap()[0].logical_nic_name, "eth0");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(from = "WireHost", into = "WireHost")]
pub struct HostNetwork {
    name: Option<Arc<str>>,
    document: Arc<str>,
    interfaces: Option<Arc<[MacInterface]>>,
    /// Where each entry of the map was before the map was sorted.
    positions: Arc<[usize]>,
    digest: Digest,
}

/// What a host's network is known by: a digest of its document and its map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Digest([u8; 32]);

/// Makes digests of another layout different ones.
const DIGEST_VERSION: u8 = 1;

impl HostNetwork {
    /// A document with its MAC addresses.
    #[must_use]
    pub fn new(document: impl Into<Arc<str>>, interfaces: Vec<MacInterface>) -> Self {
        Self::from_parts(document.into(), Some(interfaces))
    }

    /// A document by itself. It can be checked and gives keyfiles, but no machine would know that it is meant.
    #[must_use]
    pub fn without_macs(document: impl Into<Arc<str>>) -> Self {
        Self::from_parts(document.into(), None)
    }

    /// The order of the map means nothing; it is kept as the inventory keeps it, by name and then address.
    fn from_parts(document: Arc<str>, interfaces: Option<Vec<MacInterface>>) -> Self {
        let mut sorted: Vec<(usize, MacInterface)> =
            interfaces.iter().flatten().cloned().enumerate().collect();
        sorted.sort_by(|(_, one), (_, other)| one.cmp(other));
        let (positions, entries): (Vec<usize>, Vec<MacInterface>) = sorted.into_iter().unzip();
        let interfaces = interfaces.map(|_| Arc::from(entries));
        let digest = Digest::of(&document, interfaces.as_deref());
        Self { name: None, document, interfaces, positions: positions.into(), digest }
    }

    /// The same under a name for messages, such as that of its file.
    #[must_use]
    pub fn named(self, name: impl Into<Arc<str>>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// The same network with another text of the document.
    #[must_use]
    pub fn with_document(self, document: impl Into<Arc<str>>) -> Self {
        let document = document.into();
        let digest = Digest::of(&document, self.interfaces());
        Self { document, digest, ..self }
    }

    /// The name for messages.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The nmstate document.
    #[must_use]
    pub fn document(&self) -> &str {
        &self.document
    }

    /// The map, by name and then address; nothing where none was given.
    #[must_use]
    pub fn interfaces(&self) -> Option<&[MacInterface]> {
        self.interfaces.as_deref()
    }

    /// The entries of the map with the positions at which they were given, for the paths of findings.
    pub(super) fn positioned(&self) -> impl Iterator<Item = (usize, &MacInterface)> {
        self.positions.iter().copied().zip(self.interfaces.iter().flat_map(|it| it.iter()))
    }

    pub(super) fn digest(&self) -> Digest {
        self.digest
    }

    /// The name for messages, or one made of the host's index. Messages count hosts from 1.
    pub(super) fn label(&self, index: usize) -> String {
        self.name.as_deref().map_or_else(|| format!("host {}", index.saturating_add(1)), str::to_owned)
    }

    /// The inventory's order: by text, then shorter maps, then the maps. Names for messages count last, so that they
    /// change no image.
    pub(super) fn rank(&self) -> impl Ord {
        let interfaces = self.interfaces().unwrap_or_default();
        (self.document(), interfaces.len(), interfaces, self.name())
    }
}

impl Digest {
    fn of(document: &str, interfaces: Option<&[MacInterface]>) -> Self {
        let mut hash = Sha256::new_with_prefix([DIGEST_VERSION, u8::from(interfaces.is_some())]);
        let mut add = |text: &str| {
            hash.update(text.len().to_le_bytes());
            hash.update(text);
        };
        add(document);
        for MacInterface { logical_nic_name, mac_address } in interfaces.unwrap_or_default() {
            add(logical_nic_name);
            add(mac_address);
        }
        Self(hash.finalize().into())
    }
}

impl PartialEq for HostNetwork {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest && self.name == other.name
    }
}

impl Eq for HostNetwork {}

/// Documents may hold secrets.
impl fmt::Debug for HostNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostNetwork")
            .field("name", &self.name)
            .field("document_len", &self.document.len())
            .field("interfaces", &self.interfaces)
            .finish_non_exhaustive()
    }
}

/// The shape of the API.
#[derive(Serialize, Deserialize)]
struct WireHost {
    network_yaml: String,
    #[serde(default)]
    mac_interface_map: Vec<MacInterface>,
}

impl From<WireHost> for HostNetwork {
    fn from(host: WireHost) -> Self {
        Self::new(host.network_yaml, host.mac_interface_map)
    }
}

impl From<HostNetwork> for WireHost {
    fn from(host: HostNetwork) -> Self {
        let mac_interface_map = host.interfaces().unwrap_or_default().to_vec();
        Self { network_yaml: host.document().to_owned(), mac_interface_map }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> Vec<MacInterface> {
        let interface = |(mac, name): &(&str, &str)| MacInterface {
            logical_nic_name: (*name).to_owned(),
            mac_address: (*mac).to_owned(),
        };
        pairs.iter().map(interface).collect()
    }

    #[test]
    fn the_order_of_the_map_means_nothing() {
        let one = HostNetwork::new("a", map(&[("m1", "eth1"), ("m0", "eth0")]));
        let other = HostNetwork::new("a", map(&[("m0", "eth0"), ("m1", "eth1")]));
        assert_eq!(one, other);
        assert_eq!(one.interfaces().unwrap()[0].logical_nic_name, "eth0");
    }

    #[test]
    fn digests_tell_everything_apart() {
        let hosts = [
            HostNetwork::without_macs("ab"),
            HostNetwork::new("ab", vec![]),
            HostNetwork::new("a", map(&[("b", "c")])),
            HostNetwork::new("a", map(&[("c", "b")])),
            HostNetwork::new("ab", map(&[("b", "c")])),
            HostNetwork::new("a", map(&[("b", "c"), ("d", "e")])),
        ];
        let digests: std::collections::BTreeSet<Digest> = hosts.iter().map(HostNetwork::digest).collect();
        assert_eq!(digests.len(), hosts.len());
    }

    #[test]
    fn the_shape_is_that_of_the_api() {
        let json =
            r#"{"network_yaml":"a","mac_interface_map":[{"logical_nic_name":"eth0","mac_address":"m0"}]}"#;
        let host: HostNetwork = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&host).unwrap(), json);
        assert!(!format!("{:?}", HostNetwork::without_macs("password: x")).contains("password"));
    }
}
