//! The stored assessment of a cluster: its validation results and the state that they are based on.

use rules::validation::ClusterResults;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::id::ClusterId;
use crate::store::{AssessedState, Columns, Kind, Record};

/// The offset to subtract from each generation to keep the sum of all generations small. The first generation of a new
/// record is the current time in microseconds since 1970, and the offset is a time in 2023.
const FIRST_GENERATION: i64 = 1_672_531_200_000_000;

/// The state of a cluster that an assessment was based on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenState {
    #[serde(rename = "seen_cluster")]
    cluster: i64,
    #[serde(rename = "seen_hosts")]
    hosts: i64,
    #[serde(rename = "seen_generations")]
    generations: i64,
    /// Number of times that hosts have joined or left the cluster.
    #[serde(rename = "seen_membership", default)]
    membership: i64,
    /// Sum of the hosts' generations. It never decreases while the membership is unchanged.
    #[serde(rename = "seen_progress", default)]
    progress: i64,
    /// The [basis](crate::Settings::assessment_basis) of the assessment.
    #[serde(rename = "seen_basis", default)]
    basis: String,
}

impl SeenState {
    /// Returns the state of a cluster at generation `cluster`, whose hosts have the generations `hosts`.
    pub(crate) fn new(cluster: i64, membership: i64, hosts: &[i64], basis: &str) -> Self {
        let AssessedState { cluster, hosts: count, generations } = AssessedState::new(cluster, hosts);
        let progress = hosts.iter().map(|generation| generation.saturating_sub(FIRST_GENERATION));
        let progress = progress.fold(0, i64::saturating_add);
        Self { cluster, hosts: count, generations, membership, progress, basis: basis.to_owned() }
    }

    /// Returns the part of the state that the database can compare with the current records.
    #[must_use]
    pub fn records(&self) -> AssessedState {
        AssessedState { cluster: self.cluster, hosts: self.hosts, generations: self.generations }
    }

    /// Returns `true` if the cluster, the membership or the hosts in this state are older than in `other`.
    pub(crate) fn is_older_than(&self, other: &Self) -> bool {
        // A view leaves out damaged hosts, so sums over different numbers of hosts cannot be compared.
        let has_same_hosts = self.membership == other.membership && self.hosts == other.hosts;
        self.cluster < other.cluster
            || self.membership < other.membership
            || (has_same_hosts && self.progress < other.progress)
    }
}

/// The latest assessment of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssessmentRecord {
    /// Id of the assessed cluster, which is also the id of this record.
    pub cluster: ClusterId,
    #[serde(flatten)]
    seen: SeenState,
    /// The results of the cluster's validations.
    pub results: ClusterResults,
}

impl AssessmentRecord {
    pub(crate) fn new(cluster: ClusterId, state: SeenState, results: ClusterResults) -> Self {
        Self { cluster, seen: state, results }
    }

    /// Returns the state of the cluster and its hosts that the assessment was based on.
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
    fn state_is_older_if_cluster_membership_or_hosts_are_older() {
        let now = 1_764_000_000_000_000;
        let state = |cluster, membership, hosts: &[i64]| SeenState::new(cluster, membership, hosts, "");
        let newer = state(2, 5, &[now, now + 2]);
        for (older, is_older) in [
            (state(2, 5, &[now, now + 2]), false),
            (state(1, 5, &[now, now + 2]), true),
            (state(2, 4, &[now]), true),
            (state(2, 5, &[now, now + 1]), true),
            (state(3, 6, &[now]), false),
            // Sums are not compared if the view lacks a damaged host.
            (state(2, 5, &[now + 2]), false),
        ] {
            assert_eq!(older.is_older_than(&newer), is_older, "{older:?}");
        }
        let many = state(1, 1, &[i64::MAX; 3]);
        assert!(!many.is_older_than(&many));
    }
}
