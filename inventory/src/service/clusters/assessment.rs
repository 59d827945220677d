//! Assessments of clusters: the validations of the cluster and of all its hosts together.
//!
//! An assessment reads the [current view](crate::service::cluster_views) of the cluster, outside of what its commit
//! requires. It requires the generation of the cluster's assessment record, so that an older assessment never overwrites
//! a newer one, and those of the hosts whose results it writes. A host that changes in the meantime leads to another
//! assessment.

use rules::cluster::vips::verified_vips;
use rules::validation::cluster::ClusterInput;
use rules::validation::{ClusterResults, ValidationResults};

use crate::cluster::{AssessmentRecord, SeenState};
use crate::error::Error;
use crate::host::HostRecord;
use crate::host::assessment::report_changes;
use crate::host::stored_results::AssessmentResults;
use crate::id::ClusterId;
use crate::service::cluster_views::{CurrentView, ViewedHost};
use crate::store::{Change, Key, ReadSet, Reader as _};
use crate::{Inventory, Settings};

/// Maximum number of hosts whose results one commit writes.
const BATCH: usize = 100;

/// The work of one assessment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AssessmentWork {
    /// Number of hosts whose results were written.
    pub(crate) hosts: usize,
    /// Whether anything was written.
    pub(crate) has_written: bool,
}

/// A part of an assessment that one commit writes.
#[derive(Clone, Copy, Debug)]
struct AssessedPart {
    /// Number of hosts whose results it writes.
    hosts: usize,
    /// Whether it is the last part.
    is_last: bool,
    /// Whether it writes the assessment record.
    writes_record: bool,
}

impl Inventory {
    /// Assesses a cluster, and stores what changed. Writes nothing if the last assessment saw the same records.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails or contains an invalid record.
    pub(crate) async fn assess_cluster(&self, cluster: ClusterId) -> Result<AssessmentWork, Error> {
        let mut work = AssessmentWork::default();
        loop {
            let attempt = |reads: ReadSet| async move { self.attempt_assessment(&reads, cluster).await };
            let part = self.records().change(attempt).await?;
            work.hosts += part.hosts;
            work.has_written |= part.hosts > 0 || part.writes_record;
            if part.is_last {
                return Ok(work);
            }
        }
    }

    /// Returns the results of the last assessment of a cluster; empty ones if it was not assessed yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub(crate) async fn cluster_results(&self, cluster: ClusterId) -> Result<ClusterResults, Error> {
        let key = Key::of_assessment(cluster.0);
        let (cache, records) = (self.assessment_cache(), self.records());
        let cached = match cache.current(key, records.store().feed()) {
            Some(cached) => Some(cached),
            None => cache.read(records, key).await?,
        };
        Ok(cached.map(|cached| cached.record().results.clone()).unwrap_or_default())
    }

    /// Returns the cluster of a host; `None` if it has none or does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub(crate) async fn cluster_of_host(&self, host: Key) -> Result<Option<ClusterId>, Error> {
        let (cache, records) = (self.host_cache(), self.records());
        let cached = match cache.current(host, records.store().feed()) {
            Some(cached) => Some(cached),
            None => cache.read(records, host).await?,
        };
        let record = cached.as_ref().map(|cached| cached.record());
        Ok(record.filter(|host| host.deleted_at.is_none()).and_then(|host| host.cluster_id))
    }

    async fn attempt_assessment(
        &self,
        reads: &ReadSet,
        cluster: ClusterId,
    ) -> Result<(Change, AssessedPart), Error> {
        let mut change = Change::new();
        let nothing = AssessedPart { hosts: 0, is_last: true, writes_record: false };
        let stored = reads.find::<AssessmentRecord>(None, cluster.0).await?;
        let view = self.cluster_views().of_cluster(self.records(), cluster).await?;
        let Some(view) = view else { return Ok((change, nothing)) };
        let record = new_record(&view, self.settings());
        if stored.as_ref().is_some_and(|stored| stored.record.seen() == record.seen()) {
            return Ok((change, nothing));
        }
        // Another assessment has seen changes that this process does not know yet.
        if stored.as_ref().is_some_and(|stored| record.seen().is_older_than(stored.record.seen())) {
            return Ok((change, nothing));
        }
        change.require_membership(cluster.0, view.membership());
        let mut changed = self.changed_results(&view).await?;
        let is_last = changed.len() <= BATCH;
        changed.truncate(BATCH);
        let mut journal = self.journal(None);
        let mut hosts = 0;
        for ChangedResults { host, results } in changed {
            // The commit requires the generation of the record that is read here.
            let found = reads.find::<HostRecord>(host.key.parent, host.key.id).await?;
            let Some(stored) = found.filter(|stored| stored.generation == host.generation) else { continue };
            report_changes(&stored.record, &host.view, host.results.as_deref(), &results, &mut journal);
            change.put_results(host.key, results.to_stored()?);
            hosts += 1;
        }
        if is_last {
            match &stored {
                Some(stored) => drop(change.replace(&record, stored.generation)?),
                None => change.insert(&record)?,
            }
        }
        journal.write(&mut change)?;
        // If all hosts of the batch have changed since they were read, another assessment follows.
        Ok((change, AssessedPart { hosts, is_last: is_last || hosts == 0, writes_record: is_last }))
    }

    /// Returns the hosts of a cluster whose results are not those that are stored.
    async fn changed_results<'a>(&self, view: &'a CurrentView) -> Result<Vec<ChangedResults<'a>>, Error> {
        let mut changed = Vec::new();
        for host in view.hosts() {
            let context = self.context_in_view(&host.view, view).await?;
            let results = context.results(&host.view);
            if host.results.as_ref().is_none_or(|stored| !stored.is_same(&results)) {
                changed.push(ChangedResults { host, results });
            }
        }
        Ok(changed)
    }
}

/// A host with new results.
struct ChangedResults<'a> {
    host: &'a ViewedHost,
    results: AssessmentResults,
}

/// Returns the record of an assessment of a view.
fn new_record(view: &CurrentView, settings: &Settings) -> AssessmentRecord {
    let generations: Vec<_> = view.hosts().iter().map(|host| host.generation).collect();
    let basis = settings.assessment_basis();
    let seen = SeenState::new(view.cluster_generation(), view.membership(), &generations, &basis);
    let input =
        ClusterInput { view: view.facts(), hardware: &settings.hardware, settings: &settings.validations };
    let outcomes = ValidationResults::evaluate(&input);
    let results = ClusterResults { outcomes, vips: verified_vips(view.facts()) };
    AssessmentRecord::new(view.facts().cluster.id, seen, results)
}

#[cfg(test)]
mod tests {
    use assisted::cluster::ClusterCreateParams;

    use super::*;
    use crate::Secret;
    use crate::service::test_inventory::{PULL_SECRET, TestInventory};

    #[tokio::test]
    async fn second_assessment_of_the_same_records_writes_nothing() {
        let test = TestInventory::open().await;
        let params = ClusterCreateParams::new("site", "4.18", Secret::new(PULL_SECRET));
        let cluster = test.inventory.register_cluster(params, None).await.unwrap().id;
        for has_written in [true, false, false] {
            let work = test.inventory.assess_cluster(cluster).await.unwrap();
            assert_eq!(work, AssessmentWork { hosts: 0, has_written });
        }
        let unknown = test.inventory.assess_cluster(ClusterId::fresh()).await.unwrap();
        assert_eq!(unknown, AssessmentWork::default());
    }
}
