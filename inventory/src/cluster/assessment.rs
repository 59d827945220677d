//! The stored assessment of a cluster.

use rules::validation::ClusterResults;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::id::ClusterId;
use crate::store::{AssessedState, Columns, Kind, Record};

/// The last assessment of a cluster: its results, and the records that it saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssessmentRecord {
    /// The cluster.
    pub cluster: ClusterId,
    seen_cluster: i64,
    seen_hosts: i64,
    seen_generations: i64,
    /// The results of the cluster.
    pub results: ClusterResults,
}

impl AssessmentRecord {
    /// Returns the assessment of a cluster in this state.
    pub(crate) fn new(cluster: ClusterId, seen: AssessedState, results: ClusterResults) -> Self {
        let AssessedState { cluster: seen_cluster, hosts: seen_hosts, generations: seen_generations } = seen;
        Self { cluster, seen_cluster, seen_hosts, seen_generations, results }
    }

    /// Returns the state of the cluster and its hosts that it saw.
    #[must_use]
    pub fn seen(&self) -> AssessedState {
        AssessedState {
            cluster: self.seen_cluster,
            hosts: self.seen_hosts,
            generations: self.seen_generations,
        }
    }
}

impl Record for AssessmentRecord {
    const KIND: Kind = Kind::Assessment;

    fn id(&self) -> Uuid {
        self.cluster.0
    }

    fn columns(&self) -> Columns {
        self.seen().columns()
    }
}
