//! The decoded contents of initrd archives: regular files by name.

use std::collections::BTreeMap;

use bytes::Bytes;

/// The name of the Ignition config in an initrd.
pub const IGNITION_CONFIG: &str = "config.ign";
/// The directory of an initrd for files that the live system copies to its NetworkManager connections.
pub const NETWORK_DIRECTORY: &str = "etc/coreos-firstboot-network/";

/// The regular files of a sequence of initrd archives, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Archive {
    pub(super) members: BTreeMap<String, Bytes>,
}

impl Archive {
    /// Creates an archive without members.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns `true` if the archive has no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns the number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns the contents of a member, or `None` if the archive has no member of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Bytes> {
        self.members.get(name)
    }

    /// Adds a member. It replaces an existing member of that name.
    pub fn insert(&mut self, name: impl Into<String>, contents: impl Into<Bytes>) {
        self.members.insert(name.into(), contents.into());
    }

    /// Removes a member and returns its contents, or `None` if the archive has no member of that name.
    pub fn remove(&mut self, name: &str) -> Option<Bytes> {
        self.members.remove(name)
    }

    /// Returns all members, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.members.iter().map(|(name, contents)| (name.as_str(), contents))
    }

    /// Returns the members in [`NETWORK_DIRECTORY`], at any depth, with their names relative to it.
    pub fn network_files(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.iter().filter_map(|(name, contents)| Some((name.strip_prefix(NETWORK_DIRECTORY)?, contents)))
    }

    /// Removes all members in [`NETWORK_DIRECTORY`].
    pub fn remove_network_files(&mut self) {
        self.members.retain(|name, _| !name.starts_with(NETWORK_DIRECTORY));
    }

    /// Adds a member to [`NETWORK_DIRECTORY`]. The name is relative to that directory.
    pub fn insert_network_file(&mut self, name: &str, contents: impl Into<Bytes>) {
        self.insert(format!("{NETWORK_DIRECTORY}{name}"), contents);
    }
}
