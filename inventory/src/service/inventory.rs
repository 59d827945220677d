//! The inventory: the stores, caches and settings that all operations share.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use ignition::network::KeyfileCache;
use rules::steps::StepSettings;
use uuid::Uuid;

use super::caches::{assessment_cache, host_cache, infra_env_cache};
use super::cluster_views::ClusterViews;
use super::hosts::measured_reports::MeasuredReports;
use super::hosts::recent_replies::RecentReplies;
use super::task_states::TaskStates;
use crate::auth::Policy;
use crate::catalogue::Catalogue;
use crate::clock::Clock;
use crate::cluster::AssessmentRecord;
use crate::files::FileStore;
use crate::host::HostRecord;
use crate::infra_env::InfraEnvRecord;
use crate::infra_env::revisions::RevisionCache;
use crate::journal::Journal;
use crate::request_id::RequestId;
use crate::settings::Settings;
use crate::store::{RecordCache, Records, Store};

/// The inventory service. Clones share the same state.
#[derive(Clone, Debug)]
pub struct Inventory(Arc<InventoryParts>);

#[derive(Debug)]
struct InventoryParts {
    records: Records,
    files: FileStore,
    catalogue: Catalogue,
    settings: Settings,
    steps: StepSettings,
    assessment_basis: String,
    policy: Policy,
    keyfiles: KeyfileCache,
    image_revisions: RevisionCache,
    infra_env_cache: RecordCache<InfraEnvRecord>,
    host_cache: RecordCache<HostRecord>,
    assessment_cache: RecordCache<AssessmentRecord>,
    cluster_views: ClusterViews,
    recent_replies: RecentReplies,
    measured_reports: MeasuredReports,
    replica: Uuid,
    tasks: TaskStates,
}

/// Maximum total size of the cached network files, in bytes.
const MAX_KEYFILES: usize = 64 << 20;

impl Inventory {
    /// Returns an inventory over a database and a file store.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        files: FileStore,
        catalogue: Catalogue,
        settings: Settings,
        policy: Policy,
    ) -> Self {
        let keyfiles = KeyfileCache::new(MAX_KEYFILES);
        let infra_env_cache = infra_env_cache(store.feed());
        let host_cache = host_cache(store.feed());
        let assessment_cache = assessment_cache(store.feed());
        let cluster_views = ClusterViews::on_feed(store.feed());
        Self(Arc::new(InventoryParts {
            records: Records::new(store),
            files,
            catalogue,
            steps: settings.step_settings(),
            assessment_basis: settings.assessment_basis(),
            settings,
            policy,
            keyfiles,
            image_revisions: RevisionCache::default(),
            infra_env_cache,
            host_cache,
            assessment_cache,
            cluster_views,
            recent_replies: RecentReplies::default(),
            measured_reports: MeasuredReports::default(),
            replica: Uuid::new_v4(),
            tasks: TaskStates::default(),
        }))
    }

    /// Returns typed access to the records in the database.
    #[must_use]
    pub fn records(&self) -> &Records {
        &self.0.records
    }

    /// Returns the store of uploaded files.
    #[must_use]
    pub fn files(&self) -> &FileStore {
        &self.0.files
    }

    /// Returns the configured base images and releases, without base images that users have added.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.0.catalogue
    }

    /// Returns the settings of the service.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Returns the settings that determine the steps of agents.
    pub(crate) fn step_settings(&self) -> &StepSettings {
        &self.0.steps
    }

    /// Returns a text that identifies the rules and settings of assessments. If it changes, clusters are assessed
    /// again.
    pub(crate) fn assessment_basis(&self) -> &str {
        &self.0.assessment_basis
    }

    /// Returns the clock that all operations use.
    #[must_use]
    pub fn clock(&self) -> &dyn Clock {
        &*self.0.settings.clock
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.clock().now()
    }

    /// Returns the journal for one attempt at an operation. `request` is the API request that caused it, if any.
    pub(crate) fn journal(&self, request: Option<RequestId>) -> Journal {
        Journal::new(self.now(), request)
    }

    /// Returns the cache of infra-envs for the image server and for agents.
    pub(crate) fn infra_env_cache(&self) -> &RecordCache<InfraEnvRecord> {
        &self.0.infra_env_cache
    }

    /// Returns the cache of hosts for their agents.
    pub(crate) fn host_cache(&self) -> &RecordCache<HostRecord> {
        &self.0.host_cache
    }

    pub(crate) fn assessment_cache(&self) -> &RecordCache<AssessmentRecord> {
        &self.0.assessment_cache
    }

    /// Returns the cache of clusters with the facts about their hosts.
    pub(crate) fn cluster_views(&self) -> &ClusterViews {
        &self.0.cluster_views
    }

    /// Returns the waiting connectivity reports in which only measured numbers have changed.
    pub(crate) fn measured_reports(&self) -> &MeasuredReports {
        &self.0.measured_reports
    }

    /// Returns the recent step replies of agents.
    pub(crate) fn recent_replies(&self) -> &RecentReplies {
        &self.0.recent_replies
    }

    /// Returns the cache of generated network files.
    pub(crate) fn keyfiles(&self) -> &KeyfileCache {
        &self.0.keyfiles
    }

    /// Returns the cache of image revisions.
    pub(crate) fn image_revisions(&self) -> &RevisionCache {
        &self.0.image_revisions
    }

    /// Returns the id under which this process holds the leader's lease.
    pub(crate) fn replica(&self) -> Uuid {
        self.0.replica
    }

    /// Returns the state of the background tasks of this process.
    #[must_use]
    pub fn tasks(&self) -> &TaskStates {
        &self.0.tasks
    }

    /// Returns the authentication policy for requests.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.0.policy
    }
}
