//! The inventory: clusters, infra-envs and hosts, with the API of the Assisted Installer.
//!
//! [`Inventory`] is the service. [`Inventory::router`] returns its API. Each area has a folder with its `model` (API
//! types), its `record` (stored types), its rules and its `routes`. `docs/api-compatibility.md` lists the differences
//! from the Assisted Installer.

mod address_finding;
pub mod api;
pub mod auth;
mod background;
mod bucket;
pub mod catalogue;
pub mod cluster;
pub mod discovery;
pub mod events;
pub mod files;
pub mod host;
pub mod id;
pub mod infra_env;
pub mod jobs;
pub mod logs;
pub mod monitor;
mod nearest_name;
mod retention;
mod rules;
mod settings;
#[cfg(test)]
mod state_machines;
pub mod store;
mod string_enum;
pub mod time;
pub mod version;

use std::sync::Arc;

pub use address_finding::AddressFinding;
pub use assisted::Secret;
pub use background::in_background;
pub use bucket::{BucketError, BucketFailure, BucketTransport, s3_from_env, without_response};
pub use nearest_name::nearest_name;
pub use settings::{AddedImageRule, AllowedHosts, ClusterNetworks, HostLimits, Settings};

use ignition::network::KeyfileCache;

use api::{AvailableMemory, LargeBodies, WorkRoom};
use auth::Policy;
use catalogue::Catalogue;
use files::FileStore;
use host::HostRecord;
use infra_env::InfraEnvRecord;
use monitor::MonitorState;
use store::{RecordCache, Records, Store};

/// The inventory. Clones are the same inventory.
#[derive(Clone, Debug)]
pub struct Inventory(Arc<InventoryParts>);

#[derive(Debug)]
struct InventoryParts {
    records: Records,
    files: FileStore,
    catalogue: Catalogue,
    settings: Settings,
    policy: Policy,
    keyfiles: KeyfileCache,
    infra_env_cache: RecordCache<InfraEnvRecord>,
    host_cache: RecordCache<HostRecord>,
    recent_replies: host::RecentReplies,
    large_bodies: LargeBodies,
    uploads: LargeBodies,
    work_room: WorkRoom,
    monitor: MonitorState,
}

/// The most bytes of network files that are cached.
const MAX_KEYFILES: usize = 64 << 20;

impl Inventory {
    /// Returns an inventory that uses these stores.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        files: FileStore,
        catalogue: Catalogue,
        settings: Settings,
        policy: Policy,
    ) -> Self {
        let keyfiles = KeyfileCache::new(MAX_KEYFILES);
        let infra_env_cache = infra_env::infra_env_cache(store.feed());
        let host_cache = host::host_cache(store.feed());
        let memory = AvailableMemory::from_process();
        let work_room = WorkRoom::within(memory, settings.after_large_request);
        Self(Arc::new(InventoryParts {
            records: Records::new(store),
            files,
            catalogue,
            settings,
            policy,
            keyfiles,
            infra_env_cache,
            host_cache,
            recent_replies: host::RecentReplies::default(),
            large_bodies: LargeBodies::within(memory),
            uploads: LargeBodies::within(memory),
            work_room,
            monitor: MonitorState::new(),
        }))
    }

    /// Returns the records.
    #[must_use]
    pub fn records(&self) -> &Records {
        &self.0.records
    }

    /// Returns the file store.
    #[must_use]
    pub fn files(&self) -> &FileStore {
        &self.0.files
    }

    /// Returns the configured base images and releases.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.0.catalogue
    }

    /// Returns the settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Returns the cache of infra-envs, for the image server and for agents.
    pub(crate) fn infra_env_cache(&self) -> &RecordCache<InfraEnvRecord> {
        &self.0.infra_env_cache
    }

    /// Returns the cache of hosts, for their agents.
    pub(crate) fn host_cache(&self) -> &RecordCache<HostRecord> {
        &self.0.host_cache
    }

    /// Returns the recent replies of agents.
    pub(crate) fn recent_replies(&self) -> &host::RecentReplies {
        &self.0.recent_replies
    }

    /// Returns the memory limit for bodies that are read whole.
    pub(crate) fn large_bodies(&self) -> &LargeBodies {
        &self.0.large_bodies
    }

    /// Returns the memory limit for bodies that are streamed to the file store.
    pub(crate) fn uploads(&self) -> &LargeBodies {
        &self.0.uploads
    }

    /// Returns the memory limit for the work on bodies that were read whole.
    pub(crate) fn work_room(&self) -> &WorkRoom {
        &self.0.work_room
    }

    /// Returns the cache of generated network files.
    pub(crate) fn keyfiles(&self) -> &KeyfileCache {
        &self.0.keyfiles
    }

    /// Returns the state of the monitor of this process.
    #[must_use]
    pub fn monitor(&self) -> &MonitorState {
        &self.0.monitor
    }

    /// Returns the authentication policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.0.policy
    }
}
