//! The members of a run of initrd archives.

use std::collections::BTreeMap;

use bytes::Bytes;

/// The name of the Ignition config in an initrd.
pub const IGNITION_CONFIG: &str = "config.ign";
/// The folder of an initrd whose files become NetworkManager connections.
pub const NETWORK_DIRECTORY: &str = "etc/coreos-firstboot-network/";

/// The regular files of a run of initrd archives, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Archive {
    pub(super) members: BTreeMap<String, Bytes>,
}

impl Archive {
    /// Begins with no members.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells whether there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// The contents of one member.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Bytes> {
        self.members.get(name)
    }

    /// Adds a member, or replaces the one of that name.
    pub fn insert(&mut self, name: impl Into<String>, contents: impl Into<Bytes>) {
        self.members.insert(name.into(), contents.into());
    }

    /// Removes one member and gives its contents.
    pub fn remove(&mut self, name: &str) -> Option<Bytes> {
        self.members.remove(name)
    }

    /// All members, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.members.iter().map(|(name, contents)| (name.as_str(), contents))
    }

    /// The network files: members of [`NETWORK_DIRECTORY`], at any depth, with their names below it.
    pub fn network(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.iter().filter_map(|(name, contents)| Some((name.strip_prefix(NETWORK_DIRECTORY)?, contents)))
    }

    /// Removes every network file.
    pub fn remove_network(&mut self) {
        self.members.retain(|name, _| !name.starts_with(NETWORK_DIRECTORY));
    }

    /// Adds a network file under its name below [`NETWORK_DIRECTORY`].
    pub fn insert_network(&mut self, name: &str, contents: impl Into<Bytes>) {
        self.insert(format!("{NETWORK_DIRECTORY}{name}"), contents);
    }
}
