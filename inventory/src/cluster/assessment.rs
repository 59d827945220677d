//! The stored assessment of a cluster.

use rules::validation::ClusterResults;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::id::ClusterId;
use crate::store::{AssessedState, Columns, Kind, Record};

/// Generations of new records are times in microseconds since 1970. This one, of 2023, is before all of them.
const FIRST_GENERATION: i64 = 1_672_531_200_000_000;

/// What an assessment has seen: the state of a cluster and its hosts, and what it depends on besides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenState {
    #[serde(rename = "seen_cluster")]
    cluster: i64,
    #[serde(rename = "seen_hosts")]
    hosts: i64,
    #[serde(rename = "seen_generations")]
    generations: i64,
    /// The membership of the cluster.
    #[serde(rename = "seen_membership", default)]
    membership: i64,
    /// Sum of the generations of all hosts. While the same hosts belong to the cluster, it only grows.
    #[serde(rename = "seen_progress", default)]
    progress: i64,
    /// The [basis](crate::Settings::assessment_basis).
    #[serde(rename = "seen_basis", default)]
    basis: String,
}

impl SeenState {
    /// Returns the state of a cluster with its membership. `hosts` are the generations of its hosts.
    pub(crate) fn new(cluster: i64, membership: i64, hosts: &[i64], basis: &str) -> Self {
        let AssessedState { cluster, hosts: count, generations } = AssessedState::new(cluster, hosts);
        let progress = hosts.iter().map(|generation| generation.saturating_sub(FIRST_GENERATION));
        let progress = progress.fold(0, i64::saturating_add);
        Self { cluster, hosts: count, generations, membership, progress, basis: basis.to_owned() }
    }

    /// Returns the state of the records.
    #[must_use]
    pub fn records(&self) -> AssessedState {
        AssessedState { cluster: self.cluster, hosts: self.hosts, generations: self.generations }
    }

    /// Returns `true` if this state is older than another one in some part.
    pub(crate) fn is_older_than(&self, other: &Self) -> bool {
        self.cluster < other.cluster
            || self.membership < other.membership
            || (self.membership == other.membership && self.progress < other.progress)
    }
}

/// The last assessment of a cluster: its results, and the records that it saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssessmentRecord {
    /// The cluster.
    pub cluster: ClusterId,
    #[serde(flatten)]
    seen: SeenState,
    /// The results of the cluster.
    pub results: ClusterResults,
}

impl AssessmentRecord {
    /// Returns the assessment of a cluster in this state.
    pub(crate) fn new(cluster: ClusterId, seen: SeenState, results: ClusterResults) -> Self {
        Self { cluster, seen, results }
    }

    /// Returns the state of the cluster and its hosts that it saw.
    #[must_use]
    pub fn seen(&self) -> &SeenState {
        &self.seen
    }
}

impl Record for AssessmentRecord {
    const KIND: Kind = Kind::Assessment;

    fn id(&self) -> Uuid {
        self.cluster.0
    }

    fn columns(&self) -> Columns {
        Columns { seen_basis: self.seen.basis.clone(), ..self.seen.records().columns() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_older_if_a_part_has_not_seen_a_change() {
        let now = 1_764_000_000_000_000;
        let state = |cluster, membership, hosts: &[i64]| SeenState::new(cluster, membership, hosts, "");
        let newer = state(2, 5, &[now, now + 2]);
        for (older, is_older) in [
            (state(2, 5, &[now, now + 2]), false),
            (state(1, 5, &[now, now + 2]), true),
            (state(2, 4, &[now]), true),
            (state(2, 5, &[now, now + 1]), true),
            (state(3, 6, &[now]), false),
        ] {
            assert_eq!(older.is_older_than(&newer), is_older, "{older:?}");
        }
        let many = state(1, 1, &[i64::MAX; 3]);
        assert!(!many.is_older_than(&many));
    }
}
