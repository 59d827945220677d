//! Facts about all hosts of a cluster together. They are computed once and shared by all validations.

use std::collections::BTreeMap;

use super::connectivity_groups::ConnectivityGroups;
use crate::view::ClusterView;

/// Facts about all hosts of a cluster together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerFacts {
    /// Number of hosts with each name. Hosts without an inventory report are not counted.
    name_counts: BTreeMap<Box<str>, usize>,
    /// The connectivity groups of the cluster.
    pub groups: ConnectivityGroups,
}

impl PeerFacts {
    /// Computes the facts from the hosts of a cluster.
    #[must_use]
    pub fn new(view: &ClusterView) -> Self {
        let mut name_counts = BTreeMap::<Box<str>, usize>::new();
        for host in view.hosts.iter().filter(|host| host.summary.inventory.is_some()) {
            *name_counts.entry(host.hostname().into()).or_default() += 1;
        }
        Self { name_counts, groups: ConnectivityGroups::new(view) }
    }

    /// Returns the number of hosts named `name`.
    #[must_use]
    pub fn name_count(&self, name: &str) -> usize {
        self.name_counts.get(name).copied().unwrap_or(0)
    }
}
