//! A cache of infra-envs for the image server, which reads them frequently.
//!
//! The change feed drops an infra-env from the cache when it changes. An image depends only on the record of its
//! infra-env, on the settings and on the base image. So changes to hosts, clusters and other infra-envs have no effect.
//! While the database is unreachable, cached infra-envs stay in use for a grace period.

use std::sync::Arc;
use std::time::Duration;

use ignition::discovery::DiscoveryImage;
use ignition::network::{Cancel, MacAddr};
use tokio::time::timeout;

use super::check::config_error;
use crate::auth::{AuthKind, Policy, Scope};
use crate::catalogue::ImageType;
use crate::error::Error;
use crate::id::InfraEnvId;
use crate::infra_env::InfraEnvRecord;
use crate::store::{CacheEntry, CachedRecord, Contact, Key, Kind, StoreError};
use crate::{Inventory, Secret, in_background};
use discovery::RenderedConfig;

/// Time for which a request waits while the change feed reconnects, or until the database responds. After that, a
/// cached infra-env is used.
const RECONNECT_PATIENCE: Duration = Duration::from_secs(1);

/// An infra-env in the cache, as the image server uses it.
pub type ServedInfraEnv = CachedRecord<InfraEnvRecord>;

fn key(id: InfraEnvId) -> Key {
    Key { kind: Kind::InfraEnv, parent: None, id: id.0 }
}

/// The state of the database, as far as it affects the serving of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseStatus {
    /// Whether the database responds and its tables can be read, as far as known.
    pub is_reachable: bool,
    /// Whether the images of cached infra-envs are served: either the database is reachable, or its outage is within
    /// the grace period.
    pub serves_known_images: bool,
    /// Time since the last response of the database. Zero while the database is reachable.
    pub silence: Duration,
}

impl Inventory {
    /// Returns the state of the database, without a query.
    #[must_use]
    pub fn database_status(&self) -> DatabaseStatus {
        let feed = self.records().store().feed();
        let is_reachable = !matches!(feed.contact(), Contact::Unreachable | Contact::Unusable);
        let silence = if is_reachable { Duration::ZERO } else { feed.silence() };
        let serves_known_images = silence <= self.settings().database_outage_grace;
        DatabaseStatus { is_reachable, serves_known_images, silence }
    }

    /// Returns the current record of an infra-env if the caller has access to its images.
    ///
    /// Changes by this process are visible immediately. Changes by other processes are visible within half a second.
    /// While the database is unreachable or unusable, an infra-env that the cache contains stays available for a grace
    /// period.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist, or if the caller has no access to its images.
    pub async fn served_infra_env(
        &self,
        id: InfraEnvId,
        url_token: Option<&Secret>,
        user_token: Option<&Secret>,
    ) -> Result<Arc<ServedInfraEnv>, Error> {
        self.require_image_access(id, url_token, user_token).await?;
        self.current_infra_env(id).await
    }

    /// Returns the current record of an infra-env for a caller that has already been authorized. As current as the
    /// result of [`served_infra_env`].
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist, or if the database fails.
    ///
    /// [`served_infra_env`]: Self::served_infra_env
    pub(crate) async fn current_infra_env(&self, id: InfraEnvId) -> Result<Arc<ServedInfraEnv>, Error> {
        let cached = match self.infra_env_cache().find(key(id)) {
            Some(CacheEntry::Present(cached)) => {
                self.records().store().feed().settled_contact(RECONNECT_PATIENCE).await;
                if self.is_current(&cached) {
                    return Ok(cached);
                }
                Some(cached)
            }
            Some(CacheEntry::Removed) | None => None,
        };
        let read = self.infra_env_cache().read(self.records(), key(id));
        let read = match &cached {
            Some(_) => timeout(RECONNECT_PATIENCE, read)
                .await
                .unwrap_or(Err(StoreError::Silent { doing: "reading a known infra-env" })),
            None => read.await,
        };
        match read {
            Ok(Some(read)) => Ok(read),
            Ok(None) => Err(Error::record_not_found()),
            Err(error) if error.is_of_database() => self.during_outage(id, cached, error),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns `true` if a cached infra-env is current, or may be used because the database is unreachable.
    #[must_use]
    pub fn is_current(&self, served: &ServedInfraEnv) -> bool {
        served.is_current(self.records().store().feed(), self.settings().database_outage_grace)
    }

    /// Returns `true` if the cache records that the infra-env was removed.
    #[must_use]
    pub fn is_removed(&self, served: &ServedInfraEnv) -> bool {
        let record = served.record();
        match self.infra_env_cache().find(key(record.id)) {
            Some(CacheEntry::Removed) => true,
            // Another infra-env has been created with the same id.
            Some(CacheEntry::Present(current)) => current.record().created_at != record.created_at,
            None => false,
        }
    }

    /// Returns a cached infra-env that could not be compared with the database. Returns `error` if the grace period has
    /// passed.
    fn during_outage(
        &self,
        id: InfraEnvId,
        cached: Option<Arc<ServedInfraEnv>>,
        error: StoreError,
    ) -> Result<Arc<ServedInfraEnv>, Error> {
        let silence = |cached: &ServedInfraEnv| self.records().store().feed().silence().min(cached.age());
        let is_usable = |cached: &Arc<ServedInfraEnv>| {
            !cached.is_outdated() && silence(cached) <= self.settings().database_outage_grace
        };
        if let Some(cached) = cached.filter(is_usable) {
            return Ok(cached);
        }
        match self.infra_env_cache().find(key(id)) {
            Some(CacheEntry::Removed) => Err(Error::record_not_found()),
            _ => Err(error.into()),
        }
    }

    /// Returns `true` if the cache contains the current record of an infra-env.
    pub(crate) fn has_current_infra_env(&self, id: InfraEnvId) -> bool {
        let cached = self.infra_env_cache().find(key(id));
        matches!(cached, Some(CacheEntry::Present(cached)) if self.is_current(&cached))
    }

    async fn require_image_access(
        &self,
        id: InfraEnvId,
        url_token: Option<&Secret>,
        user_token: Option<&Secret>,
    ) -> Result<(), Error> {
        if matches!(self.policy(), Policy::Open)
            || url_token.is_some_and(|token| self.policy().takes_url_token(self.now(), id, token))
        {
            return Ok(());
        }
        if let Some(token) = user_token {
            let scope = self.policy().judge(self, AuthKind::User, Some(token.reveal())).await?;
            if scope == Some(Scope::Everything) {
                return Ok(());
            }
        }
        Err(Error::unauthorized("unauthenticated for invalid credentials"))
    }

    /// Returns the rendered config for an image type. If `kind` is `None`, the config is for network boot. With a MAC
    /// address, the config contains only the network of that host.
    ///
    /// # Errors
    ///
    /// Returns an error if no valid config can be generated, or if no network has that MAC address.
    pub async fn render(
        &self,
        record: Arc<InfraEnvRecord>,
        kind: Option<DiscoveryImage>,
        machine: Option<MacAddr>,
    ) -> Result<RenderedConfig, Error> {
        let inventory = self.clone();
        in_background(move |cancel| inventory.render_now(&record, (kind, machine), cancel)).await
    }

    /// Renders a config like [`render`](Self::render), on the current thread.
    pub(super) fn render_now(
        &self,
        record: &InfraEnvRecord,
        (kind, machine): (Option<DiscoveryImage>, Option<MacAddr>),
        cancel: &Cancel,
    ) -> Result<RenderedConfig, Error> {
        let mut inputs = record.inputs(self.settings())?;
        if let Some(mac) = machine {
            let none = || Error::not_found(format!("this infra-env has no static network for {mac}"));
            inputs = inputs.of_machine(mac).ok_or_else(none)?;
        }
        let networks = inputs.networks_until(self.keyfiles(), cancel).map_err(config_error)?;
        let rendered = match kind {
            Some(kind) => inputs.rendered(kind, &networks),
            None if record.image.image_type == ImageType::Full => {
                inputs.rendered_for_network(DiscoveryImage::Full, &networks)
            }
            None => inputs.rendered_for_network(DiscoveryImage::Minimal, &networks),
        };
        rendered.map_err(config_error)
    }
}
