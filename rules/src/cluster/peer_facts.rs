//! Facts about all hosts of a cluster together, computed once for all validations.

use std::collections::BTreeMap;

use super::connectivity_groups::ConnectivityGroups;
use crate::view::ClusterView;

/// Facts that follow from all hosts of a cluster together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerFacts {
    /// The number of hosts with each name. Hosts without an inventory report do not count.
    name_counts: BTreeMap<Box<str>, usize>,
    /// The hosts that reach each other.
    pub groups: ConnectivityGroups,
}

impl PeerFacts {
    /// Computes the facts.
    #[must_use]
    pub fn new(view: &ClusterView) -> Self {
        let mut name_counts = BTreeMap::<Box<str>, usize>::new();
        for host in view.hosts.iter().filter(|host| host.summary.inventory.is_some()) {
            *name_counts.entry(host.hostname().into()).or_default() += 1;
        }
        Self { name_counts, groups: ConnectivityGroups::new(view) }
    }

    /// Returns the number of hosts with a name.
    #[must_use]
    pub fn name_count(&self, name: &str) -> usize {
        self.name_counts.get(name).copied().unwrap_or(0)
    }
}
