//! The inventory: clusters, infra-envs and hosts, over the API that clients of the Assisted Installer speak.
//!
//! [`Inventory`] is the service; [`Inventory::router`] puts the API in front of it. Each area has a folder: its `model` (what
//! clients see and send), its `record` (what is kept), its rules, and its `routes`. `docs/api-compatibility.md` says where
//! the API does otherwise than the one it follows.

pub mod auth;
mod background;
pub mod cluster;
pub mod event;
mod examples;
pub mod files;
pub mod host;
pub mod id;
pub mod infra_env;
mod list;
pub mod logs;
mod not_implemented;
mod remains;
mod request;
mod routes;
mod rules;
mod secret;
mod settings;
pub mod store;
pub mod time;
pub mod version;

use std::sync::Arc;

pub(crate) use background::in_background;
pub(crate) use request::Query;
#[cfg(test)]
pub(crate) use routes::operations;
pub use secret::Secret;
pub use settings::{AllowedHosts, ClusterNetworks, HostLimits, Settings};

use ignition::network::KeyfileCache;

use crate::images::Catalogue;
use auth::Policy;
use files::FileStore;
use request::LargeBodies;
use store::{Records, Store};

/// The inventory. Clones are the same inventory.
#[derive(Clone, Debug)]
pub struct Inventory(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    records: Records,
    files: FileStore,
    catalogue: Catalogue,
    settings: Settings,
    policy: Policy,
    keyfiles: KeyfileCache,
    served: infra_env::Served,
    large_bodies: LargeBodies,
    uploads: LargeBodies,
}

/// How much memory the network files of machines may take that are kept for the next image.
const MOST_KEYFILES: usize = 64 << 20;

impl Inventory {
    /// An inventory over a store of records and one of files.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        files: FileStore,
        catalogue: Catalogue,
        settings: Settings,
        policy: Policy,
    ) -> Self {
        let keyfiles = KeyfileCache::new(MOST_KEYFILES);
        let served = infra_env::Served::default();
        Self(Arc::new(Parts {
            records: Records::new(store),
            files,
            catalogue,
            settings,
            policy,
            keyfiles,
            served,
            large_bodies: LargeBodies::default(),
            uploads: LargeBodies::default(),
        }))
    }

    /// Its records.
    #[must_use]
    pub fn records(&self) -> &Records {
        &self.0.records
    }

    /// Its files.
    #[must_use]
    pub fn files(&self) -> &FileStore {
        &self.0.files
    }

    /// The images and releases that there are.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.0.catalogue
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The infra-envs whose images were served lately.
    pub(crate) fn served(&self) -> &infra_env::Served {
        &self.0.served
    }

    /// Room for what clients send.
    pub(crate) fn large_bodies(&self) -> &LargeBodies {
        &self.0.large_bodies
    }

    /// Room for what passes through to where files are kept.
    pub(crate) fn uploads(&self) -> &LargeBodies {
        &self.0.uploads
    }

    /// The network files of machines that were made before.
    pub(crate) fn keyfiles(&self) -> &KeyfileCache {
        &self.0.keyfiles
    }

    /// How it judges tokens.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.0.policy
    }
}
