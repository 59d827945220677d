//! Assesses clusters: determines the machine networks, roles, validations and statuses of a cluster and its hosts.
//!
//! An assessment reads the [current view](crate::service::cluster_views) of the cluster, and writes everything that has
//! changed, with its events, in one commit. The commit does not require that the whole view is unchanged. It requires
//! the generations of the cluster, of its assessment record and of the hosts to write, and the membership of the
//! cluster. So an older assessment never overwrites a newer one, and concurrent assessments are harmless. A host that
//! changes during an assessment keeps its status until the next assessment.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ignition::version::Version;
use rules::assessment::{AssessedCluster, HostsAssessment, RoleAssignment, assess_cluster, assess_hosts};
use rules::validation::{ClusterResults, IgnoredListError};
use rules::view::HostView;
use uuid::Uuid;

use super::host_conclusion::HostConclusion;
use crate::Inventory;
use crate::blocking::in_background;
use crate::cluster::{AssessmentRecord, ClusterRecord, SeenState, Subnet};
use crate::error::{Error, ErrorKind};
use crate::host::HostRecord;
use crate::id::{ClusterId, InfraEnvId};
use crate::journal::Journal;
use crate::service::cluster_views::{CurrentView, ViewedHost};
use crate::store::{Change, Key, ReadSet, Reader as _, Record, StoreError, Stored};

/// Maximum time that the response to a user's change waits for an assessment.
const RESPONSE_TIME: Duration = Duration::from_secs(1);

/// Maximum number of hosts for an assessment on a thread that serves requests. Such an assessment takes about a
/// millisecond. Larger clusters are assessed in the background.
const SMALL_CLUSTER: usize = 32;

/// Maximum number of attempts while the feed has not yet reported the changes by another replica.
const MAX_ATTEMPTS: usize = 10;
/// Pause between two attempts at an assessment.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// The result of one assessment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AssessmentWork {
    /// Number of hosts whose record or validation results were written.
    pub(crate) hosts: usize,
    pub(crate) has_written: bool,
    /// Whether the cluster must be assessed again, because a record changed during the assessment.
    pub(crate) is_outdated: bool,
}

impl Inventory {
    /// Assesses a cluster and stores what has changed. Writes nothing if the last assessment was based on the same
    /// records.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails or contains an invalid record.
    pub(crate) async fn assess_cluster(&self, cluster: ClusterId) -> Result<AssessmentWork, Error> {
        for _ in 0..MAX_ATTEMPTS {
            let attempt = |reads: ReadSet| async move { self.attempt_assessment(&reads, cluster).await };
            let work = self.records().change(attempt).await?;
            if work.has_written || !work.is_outdated {
                return Ok(work);
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        Err(StoreError::Contended.into())
    }

    /// Assesses a cluster after a user's change, so that the response shows the result. If the assessment fails or
    /// takes too long, the change has still succeeded, and a background task assesses the cluster later.
    pub(crate) async fn assess_for_response(&self, cluster: ClusterId) {
        self.read_assessed::<ClusterRecord>(cluster, None, cluster.0).await;
    }

    /// Assesses a cluster after its change. Returns the assessed cluster, or `changed` if the assessment fails or takes
    /// too long.
    pub(crate) async fn assessed_cluster(&self, changed: ClusterRecord) -> ClusterRecord {
        let record = self.read_assessed::<ClusterRecord>(changed.id, None, changed.id.0).await;
        record.filter(|record| !record.is_deleted()).unwrap_or(changed)
    }

    /// Assesses the cluster of a changed host. Returns the assessed host, or `changed` if the assessment fails or takes
    /// too long.
    pub(crate) async fn assessed_host(&self, changed: HostRecord) -> HostRecord {
        let Some(cluster) = changed.cluster_id else { return changed };
        let record =
            self.read_assessed::<HostRecord>(cluster, Some(changed.infra_env_id.0), changed.id.0).await;
        record.filter(|record| record.deleted_at.is_none()).unwrap_or(changed)
    }

    /// Assesses a cluster and then reads a record, both within [`RESPONSE_TIME`]. A failure is only logged.
    async fn read_assessed<R: Record>(
        &self,
        cluster: ClusterId,
        parent: Option<Uuid>,
        id: Uuid,
    ) -> Option<R> {
        let work = async {
            let work = self.assess_cluster(cluster).await?;
            self.tasks().add_assessment(work.hosts);
            let stored = self.records().find::<R>(parent, id).await?;
            Ok::<_, Error>(stored.map(|stored| stored.record))
        };
        match tokio::time::timeout(RESPONSE_TIME, work).await {
            Ok(Ok(record)) => record,
            Ok(Err(error)) => {
                tracing::warn!(%cluster, %error, "cluster assessment failed, the response shows the stored status");
                None
            }
            Err(_) => {
                tracing::info!(%cluster, "cluster assessment timed out, the response shows the stored status");
                None
            }
        }
    }

    /// Returns the validation results of a cluster's last assessment. They are empty if the cluster has not been
    /// assessed yet.
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

    /// Returns the cluster of a host. Returns `None` if the host has no cluster, is deleted, or does not exist.
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
    ) -> Result<(Change, AssessmentWork), Error> {
        let nothing =
            |is_outdated| (Change::new(), AssessmentWork { is_outdated, ..AssessmentWork::default() });
        let assessed = reads.find::<AssessmentRecord>(None, cluster.0).await?;
        let Some(view) = self.view_with_all_members(cluster).await? else { return Ok(nothing(false)) };
        let state = seen_state(&view, self.assessment_basis(), |host| host.generation);
        if assessed.as_ref().is_some_and(|assessed| *assessed.record.seen() == state) {
            return Ok(nothing(false));
        }
        // Another replica has assessed changes that the feed has not yet reported to this replica, so the view is
        // outdated.
        if assessed.as_ref().is_some_and(|assessed| state.is_older_than(assessed.record.seen())) {
            self.cluster_views().discard(cluster);
            return Ok(nothing(true));
        }
        let Some(stored) = reads.find::<ClusterRecord>(None, cluster.0).await? else {
            return Ok(nothing(false));
        };
        if stored.generation != view.cluster_generation() {
            self.cluster_views().discard(cluster);
            return Ok(nothing(true));
        }
        let mut plan = AssessmentPlan::new(self, &view);
        let hosts = self.assess_hosts_of(&view, plan.journal.now()).await?;
        plan.add_hosts(reads, &hosts).await?;
        plan.add_cluster(stored, hosts, assessed)?;
        plan.finish()
    }

    /// Returns the current view of a cluster, including all hosts that have joined the cluster.
    async fn view_with_all_members(&self, cluster: ClusterId) -> Result<Option<Arc<CurrentView>>, Error> {
        let view = self.cluster_view(Some(cluster)).await?;
        let Some(view) = view else { return Ok(None) };
        if view.membership_changes() == self.records().membership_changes(cluster.0).await? {
            return Ok(Some(view));
        }
        // Another replica has added or removed a host that the feed has not yet reported, so the view is read again.
        self.cluster_views().discard(cluster);
        self.cluster_view(Some(cluster)).await
    }

    /// Returns the version of an infra-env's base image, if it is known. Damaged data, such as a host whose infra-env
    /// does not exist, must not prevent the assessment of the other hosts.
    async fn known_image_version(&self, infra_env: InfraEnvId) -> Result<Option<Version>, Error> {
        match self.image_version(infra_env).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                tracing::error!(%infra_env, "the infra-env of a host does not exist");
                Ok(None)
            }
            version => version,
        }
    }

    async fn assess_hosts_of(
        &self,
        view: &CurrentView,
        now: DateTime<Utc>,
    ) -> Result<HostsAssessment, Error> {
        let mut versions = BTreeMap::new();
        for host in view.hosts() {
            let infra_env = host.view.infra_env_id;
            if let Entry::Vacant(entry) = versions.entry(infra_env) {
                entry.insert(self.known_image_version(infra_env).await?);
            }
        }
        let assignment = if self.settings().auto_assign_roles {
            RoleAssignment::Automatic
        } else {
            RoleAssignment::Manual
        };
        let (inventory, facts) = (self.clone(), Arc::clone(view.facts()));
        let assess = move || {
            let version_of = |host: &HostView| versions.get(&host.infra_env_id).and_then(Option::as_ref);
            assess_hosts(&facts, version_of, inventory.settings().evaluation(), assignment, now)
        };
        let assessed = if view.hosts().len() > SMALL_CLUSTER {
            in_background(move |_| Ok::<_, Error>(assess())).await?
        } else {
            assess()
        };
        assessed.map_err(|error| damaged_list(view, &error))
    }
}

/// Collects the writes of an assessment for its commit.
struct AssessmentPlan<'a> {
    inventory: &'a Inventory,
    view: &'a CurrentView,
    change: Change,
    journal: Journal,
    /// The generation of each host of the view after the commit. `None` if the host has changed during the assessment.
    generations: Vec<Option<i64>>,
    hosts: usize,
}

impl<'a> AssessmentPlan<'a> {
    fn new(inventory: &'a Inventory, view: &'a CurrentView) -> Self {
        let (change, journal) = (Change::new(), inventory.journal(None));
        Self { inventory, view, change, journal, generations: Vec::new(), hosts: 0 }
    }

    /// Adds the hosts that the assessment changes.
    async fn add_hosts(&mut self, reads: &ReadSet, hosts: &HostsAssessment) -> Result<(), Error> {
        for (viewed, assessed) in self.view.hosts().iter().zip(&hosts.hosts) {
            let conclusion = HostConclusion::new(viewed, assessed);
            if !conclusion.is_change() {
                self.generations.push(Some(viewed.generation));
                continue;
            }
            // The commit requires that the record still has the generation read here.
            let stored = reads.find::<HostRecord>(viewed.key.parent, viewed.key.id).await?;
            let Some(stored) = stored.filter(|stored| stored.generation == viewed.generation) else {
                self.generations.push(None);
                continue;
            };
            let generation = conclusion.write(stored, &mut self.change, &mut self.journal)?;
            self.generations.push(Some(generation));
            self.hosts = self.hosts.saturating_add(1);
        }
        Ok(())
    }

    /// Adds the assessment record, and the cluster if it changes.
    fn add_cluster(
        &mut self,
        stored: Stored<ClusterRecord>,
        hosts: HostsAssessment,
        before: Option<Stored<AssessmentRecord>>,
    ) -> Result<(), Error> {
        let id = stored.record.id;
        let is_stored = |index: usize| self.generations.get(index).is_some_and(Option::is_some);
        let view = hosts.applied_to(self.view.facts(), is_stored);
        let settings = self.inventory.settings().evaluation();
        let assessed = assess_cluster(&view, hosts.peers.groups, settings, self.journal.now())
            .map_err(|error| damaged_list(self.view, &error))?;
        let mut record = stored.record.clone();
        if let Some(networks) = &hosts.machine_networks {
            record.spec.machine_networks =
                networks.iter().map(|network| Subnet(network.to_string())).collect();
        }
        let old_results = before.as_ref().map(|before| &before.record.results);
        let results = match assessed {
            Some(AssessedCluster { results, transition }) => {
                self.journal.add_cluster_validations(id, old_results, &results);
                if let Some(transition) = &transition {
                    self.journal.apply_to_cluster(&mut record, transition);
                }
                results
            }
            None => old_results.cloned().unwrap_or_default(),
        };
        let mut generation = stored.generation;
        if record != stored.record {
            record.updated_at = self.journal.micros();
            self.change.replace(&record, stored.generation)?;
            generation = generation.saturating_add(1);
        }
        let state = self.seen_after(generation);
        let assessment = AssessmentRecord::new(id, state, results);
        match &before {
            Some(before) => drop(self.change.replace(&assessment, before.generation)?),
            None => self.change.insert(&assessment)?,
        }
        self.change.require_membership(id.0, self.view.membership_changes());
        Ok(())
    }

    /// Returns the state on which the assessment is based, with the generations after the commit. If a host has changed
    /// during the assessment, its older generation is used.
    fn seen_after(&self, cluster_generation: i64) -> SeenState {
        let generations = self.generations.iter().zip(self.view.hosts());
        let hosts: Vec<_> =
            generations.map(|(generation, viewed)| generation.unwrap_or(viewed.generation)).collect();
        let basis = self.inventory.assessment_basis();
        SeenState::new(cluster_generation, self.view.membership_changes(), &hosts, basis)
    }

    fn finish(mut self) -> Result<(Change, AssessmentWork), Error> {
        self.journal.write(&mut self.change)?;
        let is_outdated = self.generations.iter().any(Option::is_none);
        Ok((self.change, AssessmentWork { hosts: self.hosts, has_written: true, is_outdated }))
    }
}

/// Returns the state on which an assessment of this view is based.
fn seen_state(view: &CurrentView, basis: &str, generation: impl Fn(&ViewedHost) -> i64) -> SeenState {
    let hosts: Vec<_> = view.hosts().iter().map(generation).collect();
    SeenState::new(view.cluster_generation(), view.membership_changes(), &hosts, basis)
}

fn damaged_list(view: &CurrentView, error: &IgnoredListError) -> Error {
    let cluster = view.facts().cluster.id;
    Error::broken(format_args!("the ignored validations of cluster {cluster} are damaged: {error}"))
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
            assert_eq!(work, AssessmentWork { has_written, ..AssessmentWork::default() });
        }
        let unknown = test.inventory.assess_cluster(ClusterId::fresh()).await.unwrap();
        assert_eq!(unknown, AssessmentWork::default());
    }
}
