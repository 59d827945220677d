//! Infra-envs as the image server asks for them: many times a second, and hardly ever changed.

use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use ignition::discovery::ImageType as DiscoveryImage;
use ignition::network::MacAddr;

use super::record::InfraEnvRecord;
use super::rules::refused;
use crate::api_error::ApiError;
use crate::discovery::RenderedConfig;
use crate::images::ImageType;
use crate::inventory::auth::{AuthKind, Policy, Scope};
use crate::inventory::id::InfraEnvId;
use crate::inventory::{Inventory, Secret, in_background};
use crate::recent::Recent;

/// How many infra-envs are kept at least.
const MOST_KEPT: usize = 1024;
/// How long a record is taken to be current where other processes change records too. The image server takes answers for
/// granted as long again.
const FRESH: Duration = Duration::from_millis(500);

/// The records that were served lately.
#[derive(Debug)]
pub(crate) struct Served(Mutex<Recent<InfraEnvId, Kept>>);

/// A record, and when it was read: after how many changes of this process, and at which time.
#[derive(Clone, Debug)]
struct Kept {
    record: Arc<InfraEnvRecord>,
    changes: u64,
    read_at: Instant,
}

impl Default for Served {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(MOST_KEPT)))
    }
}

impl Served {
    fn with<T>(&self, use_it: impl FnOnce(&mut Recent<InfraEnvId, Kept>) -> T) -> T {
        // Whoever panicked over the map left it whole: what is in it can be read again.
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Inventory {
    /// An infra-env for a caller who may have its images, as it is now.
    ///
    /// A change that went through this process counts at once; one of another process within a second.
    ///
    /// # Errors
    ///
    /// When there is no such infra-env, or the caller may not have its images.
    pub async fn served_infra_env(
        &self,
        id: InfraEnvId,
        url_token: Option<&Secret>,
        user_token: Option<&Secret>,
    ) -> Result<Arc<InfraEnvRecord>, ApiError> {
        self.require_image_access(id, url_token, user_token).await?;
        let changes = self.records().changes();
        let is_current = |kept: &Kept| {
            kept.changes == changes && (self.records().store().is_alone() || kept.read_at.elapsed() < FRESH)
        };
        if let Some(kept) = self.served().with(|kept| kept.get(id)).filter(is_current) {
            return Ok(kept.record);
        }
        let read_at = Instant::now();
        let record = Arc::new(self.stored_infra_env(id).await?.record);
        let kept = Kept { record: Arc::clone(&record), changes, read_at };
        self.served().with(|all| all.insert(id, kept));
        Ok(record)
    }

    async fn require_image_access(
        &self,
        id: InfraEnvId,
        url_token: Option<&Secret>,
        user_token: Option<&Secret>,
    ) -> Result<(), ApiError> {
        if matches!(self.policy(), Policy::Open)
            || url_token.is_some_and(|token| self.policy().takes_url_token(id, token))
        {
            return Ok(());
        }
        if let Some(token) = user_token {
            let scope = self.policy().judge(self.records(), AuthKind::User, Some(token.reveal())).await?;
            if scope == Some(Scope::Everything) {
                return Ok(());
            }
        }
        Err(ApiError::at_gate(StatusCode::UNAUTHORIZED, "unauthenticated for invalid credentials"))
    }

    /// What goes into a kind of image of an infra-env, or into what boots over the network; with an address, only the
    /// network of the machine that has it.
    ///
    /// # Errors
    ///
    /// When the infra-env gives no valid config, or has no network with that address.
    pub async fn render(
        &self,
        record: Arc<InfraEnvRecord>,
        kind: Option<DiscoveryImage>,
        machine: Option<MacAddr>,
    ) -> Result<RenderedConfig, ApiError> {
        let inventory = self.clone();
        in_background(move |cancel| {
            let mut inputs = record.inputs(inventory.settings())?;
            if let Some(mac) = machine {
                let none = || ApiError::not_found(format!("no network of this infra-env is for {mac}"));
                inputs = inputs.of_machine(mac).ok_or_else(none)?;
            }
            let networks = inputs.networks_until(inventory.keyfiles(), cancel).map_err(refused)?;
            let rendered = match kind {
                Some(kind) => inputs.rendered(kind, &networks),
                None if record.image.image_type == ImageType::Full => {
                    inputs.rendered_for_network(DiscoveryImage::Full, &networks)
                }
                None => inputs.rendered_for_network(DiscoveryImage::Minimal, &networks),
            };
            rendered.map_err(refused)
        })
        .await
    }
}
