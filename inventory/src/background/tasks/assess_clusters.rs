//! Assesses the clusters whose facts have changed.
//!
//! A change to a cluster or to one of its hosts marks the cluster. A full run queries the database for clusters that
//! have changed since their last assessment, so that no change is missed if notifications are lost or another replica
//! becomes the leader.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;

use super::super::task::{Task, TaskRun};
use crate::Inventory;
use crate::cluster::ClusterStatus;
use crate::error::Error;
use crate::id::ClusterId;
use crate::store::{Key, Kind, RecordChange};
use uuid::Uuid;

pub(super) const NAME: &str = "assess_clusters";
/// Time between two queries for clusters whose marks were lost.
const INTERVAL: Duration = Duration::from_secs(60);
/// Minimum pause between two runs. The hosts of a cluster often report at the same time.
const MIN_PAUSE: Duration = Duration::from_millis(250);
/// Maximum number of unmarked clusters that a run assesses, because marked clusters must not wait long.
const BATCH: usize = 100;

impl Inventory {
    /// Assesses the clusters that have changed since their last assessment, whether or not this process is the leader.
    /// Returns the number of hosts whose results were written. The leader's task does the same at intervals.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails. A cluster that cannot be assessed is logged, and the other clusters are
    /// still assessed.
    pub fn assess_clusters(&self) -> BoxFuture<'_, Result<u64, Error>> {
        Box::pin(async move {
            let (run, before) = (TaskRun::without_driver(), self.tasks().written_results());
            let task = AssessClusters::new(self.clone());
            while task.assess_stale(&run).await? {}
            for (cluster, error) in run.into_failures() {
                tracing::warn!(cluster = %cluster.id, error, "a cluster could not be assessed");
            }
            Ok(self.tasks().written_results().saturating_sub(before))
        })
    }
}

#[derive(Debug)]
pub(super) struct AssessClusters {
    inventory: Inventory,
    /// The clusters that full runs have assessed but that are still stale. The set is cleared when a full run finds no
    /// other stale cluster.
    stuck: Mutex<BTreeSet<Uuid>>,
}

#[async_trait]
impl Task for AssessClusters {
    fn name(&self) -> &'static str {
        NAME
    }

    fn interval(&self) -> Duration {
        INTERVAL
    }

    fn min_pause(&self) -> Duration {
        MIN_PAUSE
    }

    fn is_leader_only(&self) -> bool {
        true
    }

    fn follows_changes(&self) -> bool {
        true
    }

    fn keys_to_mark(&self, change: &RecordChange) -> Vec<Key> {
        match change.key.kind {
            Kind::Cluster => vec![change.key],
            // The host may have left its last known cluster, so mark that cluster too.
            Kind::Host => {
                let cluster = self.inventory.cluster_views().known_cluster(&change.key).map(key_of);
                std::iter::once(change.key).chain(cluster).collect()
            }
            // Results written by an assessment mark no cluster.
            _ => Vec::new(),
        }
    }

    async fn run(&self, run: &TaskRun) -> Result<Option<Duration>, Error> {
        self.assess_marked(run).await?;
        let has_more = run.is_full && self.assess_stale(run).await?;
        // If clusters remain, the next run starts immediately and is a full run again.
        Ok(has_more.then_some(Duration::ZERO))
    }
}

impl AssessClusters {
    pub(super) fn new(inventory: Inventory) -> Self {
        Self { inventory, stuck: Mutex::default() }
    }

    /// Assesses the clusters of the marked records. If an assessment fails, its key is marked again.
    async fn assess_marked(&self, run: &TaskRun) -> Result<(), Error> {
        let mut clusters = BTreeSet::new();
        for key in &run.keys {
            match key.kind {
                Kind::Host => match self.inventory.cluster_of_host(*key).await {
                    Ok(cluster) => clusters.extend(cluster),
                    Err(error) => run.fail_key(*key, &error),
                },
                _ => drop(clusters.insert(ClusterId(key.id))),
            }
        }
        for cluster in clusters {
            if !run.may_continue().await? {
                return Ok(());
            }
            self.assess(run, cluster).await;
        }
        Ok(())
    }

    /// Assesses a batch of the clusters that, according to the database, have changed since their last assessment.
    /// Returns `true` if more clusters may remain.
    async fn assess_stale(&self, run: &TaskRun) -> Result<bool, Error> {
        let statuses: Vec<_> = ClusterStatus::ALL.iter().map(|status| status.as_str()).collect();
        let basis = self.inventory.assessment_basis();
        let mut stuck = self.edit_stuck(std::mem::take);
        let limit = BATCH.saturating_add(stuck.len());
        let stale = self.inventory.records().stale_clusters(&statuses, basis, limit).await?;
        let (still_stuck, others): (BTreeSet<_>, BTreeSet<_>) =
            stale.into_iter().partition(|cluster| stuck.contains(cluster));
        if others.is_empty() {
            return Ok(false);
        }
        stuck = still_stuck;
        for cluster in others {
            if !run.may_continue().await? {
                return Ok(false);
            }
            // The view may lack a change whose notification was lost, so the assessment must read the cluster again.
            self.inventory.cluster_views().discard(ClusterId(cluster));
            self.assess(run, ClusterId(cluster)).await;
            stuck.insert(cluster);
        }
        self.edit_stuck(|all| *all = stuck);
        Ok(true)
    }

    fn edit_stuck<T>(&self, edit: impl FnOnce(&mut BTreeSet<Uuid>) -> T) -> T {
        edit(&mut self.stuck.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn assess(&self, run: &TaskRun, cluster: ClusterId) {
        match self.inventory.assess_cluster(cluster).await {
            Ok(work) => self.inventory.tasks().add_assessment(work.hosts),
            Err(error) => run.fail_key(key_of(cluster), &error),
        }
    }
}

fn key_of(cluster: ClusterId) -> Key {
    Key { kind: Kind::Cluster, parent: None, id: cluster.0 }
}
