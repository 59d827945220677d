//! The network of one host: the nmstate document, and the MAC addresses that identify the host's machine.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::mac::MacAddr;

/// The name and the MAC address of an interface in a document, in the form of the API: two texts without validation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MacInterface {
    /// The name of the interface in the document.
    pub logical_nic_name: String,
    /// The MAC address as the user wrote it.
    pub mac_address: String,
}

/// The network of one host, as in `static_network_config` of the inventory API.
///
/// Neither the document nor a map of texts is validated here; [`check`](super::check) does that.
///
/// # Examples
///
/// ```
/// use ignition::network::HostNetwork;
///
/// let document = "interfaces: [{name: eth0, type: ethernet, state: up}]";
/// let host = HostNetwork::new(document, [("eth0", "52:54:00:aa:bb:01".parse()?)]);
/// assert_eq!(host.interfaces().unwrap()[0].mac_address, "52:54:00:AA:BB:01");
/// # Ok::<(), ignition::network::MacError>(())
/// ```
///
/// From the JSON form of the API:
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
#[serde(from = "HostNetworkJson", into = "HostNetworkJson")]
pub struct HostNetwork {
    name: Option<Arc<str>>,
    document: Arc<str>,
    interfaces: Option<Arc<[MacInterface]>>,
    /// The original position of each entry of the map, which is sorted.
    positions: Arc<[usize]>,
    digest: HostDigest,
}

/// A digest of a host's document and map. It identifies the host's network in caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct HostDigest([u8; 32]);

/// Version of the hashed data, which is a part of each digest. Increment the version if other data is hashed.
const DIGEST_VERSION: u8 = 1;

impl HostNetwork {
    /// Creates the network of a host from its document and its MAC address map. Each entry of the map is the name of an
    /// interface in the document and the MAC address that identifies the machine.
    #[must_use]
    pub fn new<N: Into<String>>(
        document: impl Into<Arc<str>>,
        interfaces: impl IntoIterator<Item = (N, MacAddr)>,
    ) -> Self {
        let interface = |(name, mac): (N, MacAddr)| MacInterface {
            logical_nic_name: name.into(),
            mac_address: mac.to_string(),
        };
        Self::from_unchecked(document, interfaces.into_iter().map(interface).collect())
    }

    /// Creates the network of a host from a user's texts, which may be invalid. The [checks](super::check::check_hosts)
    /// report a text that is not a MAC address, with its path.
    #[must_use]
    pub fn from_unchecked(document: impl Into<Arc<str>>, interfaces: Vec<MacInterface>) -> Self {
        Self::from_parts(document.into(), Some(interfaces))
    }

    /// Creates the network of a host without MAC addresses. It can be checked, and keyfiles can be generated, but no
    /// machine can be matched to the host.
    #[must_use]
    pub fn without_macs(document: impl Into<Arc<str>>) -> Self {
        Self::from_parts(document.into(), None)
    }

    /// Creates the network of a host. Sorts the map by name and address, as in the inventory, because the order of the
    /// map has no meaning.
    fn from_parts(document: Arc<str>, interfaces: Option<Vec<MacInterface>>) -> Self {
        let mut sorted: Vec<(usize, MacInterface)> =
            interfaces.iter().flatten().cloned().enumerate().collect();
        sorted.sort_by(|(_, one), (_, other)| one.cmp(other));
        let (positions, entries): (Vec<usize>, Vec<MacInterface>) = sorted.into_iter().unzip();
        let interfaces = interfaces.map(|_| Arc::from(entries));
        let digest = HostDigest::new(&document, interfaces.as_deref());
        Self { name: None, document, interfaces, positions: positions.into(), digest }
    }

    /// Sets the name of the host in messages, such as the name of a file. If the name is empty, messages use the host's
    /// index.
    #[must_use]
    pub fn with_name(self, name: impl Into<Arc<str>>) -> Self {
        Self { name: Some(name.into()).filter(|name| !name.is_empty()), ..self }
    }

    /// Replaces the document.
    #[must_use]
    pub fn with_document(self, document: impl Into<Arc<str>>) -> Self {
        let document = document.into();
        let digest = HostDigest::new(&document, self.interfaces());
        Self { document, digest, ..self }
    }

    /// Returns the name of the host in messages, if one is set.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the text of the nmstate document.
    #[must_use]
    pub fn document(&self) -> &str {
        &self.document
    }

    /// Returns the MAC address map, sorted by name and address, or `None` if the host has no map.
    #[must_use]
    pub fn interfaces(&self) -> Option<&[MacInterface]> {
        self.interfaces.as_deref()
    }

    /// Returns the entries of the map with their original positions, for the paths of findings.
    pub(super) fn interfaces_with_positions(&self) -> impl Iterator<Item = (usize, &MacInterface)> {
        self.positions.iter().copied().zip(self.interfaces.iter().flat_map(|it| it.iter()))
    }

    pub(super) fn digest(&self) -> HostDigest {
        self.digest
    }

    /// Returns the name of the host in messages. Without a name, it contains the host's index, counted from 1.
    pub(super) fn label(&self, index: usize) -> String {
        self.name.as_deref().map_or_else(|| format!("host {}", index.saturating_add(1)), str::to_owned)
    }

    /// Returns the key for sorting the hosts of an image, in the inventory's order: by document, then by length of the
    /// map, then by map. Names in messages come last, so that they do not affect the image.
    pub(super) fn sort_key(&self) -> impl Ord {
        let interfaces = self.interfaces().unwrap_or_default();
        (self.document(), interfaces.len(), interfaces, self.name())
    }
}

impl HostDigest {
    fn new(document: &str, interfaces: Option<&[MacInterface]>) -> Self {
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

/// Hides the document, which may contain secrets.
impl fmt::Debug for HostNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostNetwork")
            .field("name", &self.name)
            .field("document_len", &self.document.len())
            .field("interfaces", &self.interfaces)
            .finish_non_exhaustive()
    }
}

/// The JSON form of a host in the API.
#[derive(Serialize, Deserialize)]
struct HostNetworkJson {
    network_yaml: String,
    #[serde(default)]
    mac_interface_map: Vec<MacInterface>,
}

impl From<HostNetworkJson> for HostNetwork {
    fn from(host: HostNetworkJson) -> Self {
        Self::from_unchecked(host.network_yaml, host.mac_interface_map)
    }
}

impl From<HostNetwork> for HostNetworkJson {
    fn from(host: HostNetwork) -> Self {
        let mac_interface_map = host.interfaces().unwrap_or_default().to_vec();
        Self { network_yaml: host.document().to_owned(), mac_interface_map }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mac_interfaces(pairs: &[(&str, &str)]) -> Vec<MacInterface> {
        let interface = |(mac, name): &(&str, &str)| MacInterface {
            logical_nic_name: (*name).to_owned(),
            mac_address: (*mac).to_owned(),
        };
        pairs.iter().map(interface).collect()
    }

    #[test]
    fn order_of_the_map_has_no_effect() {
        let one = HostNetwork::from_unchecked("a", mac_interfaces(&[("m1", "eth1"), ("m0", "eth0")]));
        let other = HostNetwork::from_unchecked("a", mac_interfaces(&[("m0", "eth0"), ("m1", "eth1")]));
        assert_eq!(one, other);
        assert_eq!(one.interfaces().unwrap()[0].logical_nic_name, "eth0");
    }

    #[test]
    fn empty_name_is_ignored() {
        let host = HostNetwork::without_macs("").with_name("");
        assert_eq!((host.name(), host.label(4).as_str()), (None, "host 5"));
    }

    #[test]
    fn typed_addresses_are_written_in_upper_case() {
        let mac = MacAddr::from([0x52, 0x54, 0, 0xaa, 0xbb, 1]);
        let texts = HostNetwork::from_unchecked("a", mac_interfaces(&[("52:54:00:AA:BB:01", "eth0")]));
        assert_eq!(HostNetwork::new("a", [("eth0", mac)]), texts);
    }

    #[test]
    fn digests_differ_for_different_networks() {
        let hosts = [
            HostNetwork::without_macs("ab"),
            HostNetwork::from_unchecked("ab", vec![]),
            HostNetwork::from_unchecked("a", mac_interfaces(&[("b", "c")])),
            HostNetwork::from_unchecked("a", mac_interfaces(&[("c", "b")])),
            HostNetwork::from_unchecked("ab", mac_interfaces(&[("b", "c")])),
            HostNetwork::from_unchecked("a", mac_interfaces(&[("b", "c"), ("d", "e")])),
        ];
        let digests: std::collections::BTreeSet<HostDigest> = hosts.iter().map(HostNetwork::digest).collect();
        assert_eq!(digests.len(), hosts.len());
    }

    #[test]
    fn json_form_matches_the_api() {
        let json =
            r#"{"network_yaml":"a","mac_interface_map":[{"logical_nic_name":"eth0","mac_address":"m0"}]}"#;
        let host: HostNetwork = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&host).unwrap(), json);
        assert!(!format!("{:?}", HostNetwork::without_macs("password: x")).contains("password"));
    }
}
