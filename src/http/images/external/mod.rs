//! The inventory of another process: an Assisted Service that is asked over HTTP.
//!
//! An image is made of up to three answers of that service, and none of them tells for how long it stays right. They are
//! kept as a [`Memo`], and what every request costs is one call: the Ignition config is asked for again, on the condition
//! that it has changed, with what the caller itself has shown. Two things come of that call.
//!
//! **Who may have the image.** The service says so, for each caller and each time. What one caller was given is kept under
//! what that caller has shown, so that nobody gets what was rendered for somebody else. Requests within [`TRUST`] of a
//! check that said yes go without one of their own: machines read an image in bursts of small ranges. So a caller whose
//! token is withdrawn is let in for that long at most. A no is never kept: it holds for those who were waiting for that
//! very answer.
//!
//! **Whether the image is the same.** All three answers are made from one record of the service, and from its settings.
//! The Go service writes the time of the record's last change into `Last-Modified` of the config, in whole seconds, and
//! moves it with every change: of the kernel arguments, of a proxy or a network no less than of what is in the config,
//! even with a PATCH that changes nothing. It sends no entity tag and does not look at conditions: the config comes
//! again, and is compared. So a memo holds if `Last-Modified` is the same, and the config is. Three things need care:
//!
//! * Two changes within a second have one time. Only what was asked for when that second was well over, by the clock of
//!   the service itself, is known to be what comes after the last of them (RFC 9110, 8.8.2.2); what was asked for earlier
//!   than [`QUIET`] after the change is asked for again, all of it.
//! * With `AUTH_TYPE=local` the config holds a token that is signed anew each time, with an algorithm whose signatures
//!   are never the same. Configs that differ only there, of the same time, are one: the first of them stays, or else each
//!   range would be of another image. The key of the service has not changed meanwhile, since the caller's token was signed
//!   with it as well.
//! * A service that was set up anew, with another agent say, writes other configs at the same time of change. That is
//!   what configs are compared for. Other settings only count in the archive for the early boot from the next change on.
//!
//! A service that tells no time, or whose clock is not told, is asked everything each time, as the Go image service does.
//! One that has entity tags, as the inventory of this program, is spared the config; its times mean the same.

mod fingerprint;
mod image_kind;
mod memo;
mod service;
mod settings;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use ignition::network::MacAddr;
use isogen::Packed;

use super::artifact::Artifact;
use super::inputs::{Access, Current, ImageInputs, Origin};
use crate::api_error::ApiError;
use crate::discovery::RenderedConfig;
use crate::images::CpuArchitecture;
use crate::inventory::id::InfraEnvId;

use image_kind::ImageKind;
use memo::{Key, Memo, Memos};
use service::{Service, Subject};

pub use service::ExternalError;
pub use settings::{ExternalSettings, QUIET, TRUST};

/// Inputs from another service.
#[derive(Debug)]
pub struct External {
    service: Service,
    memos: Memos,
    trust: Duration,
    quiet: Duration,
}

impl External {
    /// Inputs from a service. It need not be there yet.
    ///
    /// # Errors
    ///
    /// When the file of certificates is none, or no requests can be made at all.
    pub fn new(settings: &ExternalSettings) -> Result<Self, ExternalError> {
        Ok(Self {
            service: Service::new(settings)?,
            memos: Memos::default(),
            trust: settings.trust,
            quiet: settings.quiet,
        })
    }

    /// Asks whether the caller may have an image, and for what has changed of it.
    async fn check(&self, subject: &Subject<'_>, kept: Option<&Arc<Memo>>) -> Result<Arc<Memo>, ApiError> {
        let condition = kept.map(|memo| memo.condition()).unwrap_or_default();
        let told = self.service.config(subject, &condition).await?;
        if let Some(memo) = kept.filter(|memo| memo.holds(&told)) {
            return Ok(Arc::clone(memo));
        }
        let config = match (&told.body, kept) {
            (Some(_), Some(memo)) if memo.differs_in_signatures(&told) => memo.config(),
            (None, Some(memo)) => memo.config(),
            (Some(body), _) => {
                service::require_config(body)?;
                body.clone()
            }
            (None, None) => {
                return Err(service::not_understood("304, and nobody has asked whether it changed"));
            }
        };
        let network = match subject.kind {
            ImageKind::Full | ImageKind::Disconnected => Packed::default(),
            ImageKind::Minimal | ImageKind::Network => self.service.early_boot(subject).await?,
        };
        let infra_env = match subject.kind {
            ImageKind::Network => None,
            _ => Some(self.service.infra_env(subject).await?),
        };
        let kernel_arguments = infra_env.as_ref().map(service::InfraEnv::kernel_arguments).transpose()?;
        let kernel_arguments = kernel_arguments.unwrap_or_default();
        // What the service says of it is of no use where URLs say it.
        let live_image = infra_env.and_then(|infra_env| infra_env.live_image().ok());
        let memo =
            Memo::new((RenderedConfig { config, network, kernel_arguments }, live_image), &told, self.quiet);
        Ok(Arc::new(memo))
    }
}

#[async_trait]
impl ImageInputs for External {
    async fn current(
        &self,
        id: InfraEnvId,
        artifact: Artifact,
        access: &Access,
    ) -> Result<Current, ApiError> {
        let arrived = Instant::now();
        let kind = ImageKind::from_artifact(artifact);
        let key = Key::new(id, kind, access);
        let entry = self.memos.entry(&key);
        // Whoever comes while it is asked waits, and takes the answer if the call began after that.
        let mut entry = entry.lock().await;
        let outcome = match entry.known(arrived, self.trust) {
            Some(outcome) => outcome,
            None => {
                let began = Instant::now();
                let outcome = self.check(&Subject { id, kind, access }, entry.memo()).await;
                entry.note(began, &outcome);
                self.memos.weigh(&key, &outcome);
                outcome
            }
        };
        outcome.map(|memo| memo.current())
    }

    /// Only the other service knows; how long its word is taken for granted is counted where it is kept.
    fn is_current(&self, _current: &Current) -> bool {
        false
    }

    async fn rendered(
        &self,
        current: &Current,
        _artifact: Artifact,
        machine: Option<MacAddr>,
    ) -> Result<RenderedConfig, ApiError> {
        if machine.is_some() {
            return Err(only_there("images for one machine"));
        }
        match &current.origin {
            Origin::Rendered(rendered) => Ok(RenderedConfig::clone(rendered)),
            Origin::Record(_) => Err(ApiError::internal("the infra-env is of an inventory of this process")),
        }
    }

    async fn live_image(
        &self,
        id: InfraEnvId,
        access: &Access,
    ) -> Result<(String, CpuArchitecture), ApiError> {
        let subject = Subject { id, kind: ImageKind::Network, access };
        self.service.infra_env(&subject).await?.live_image()
    }

    async fn ipxe_script(&self, id: InfraEnvId, access: &Access) -> Result<String, ApiError> {
        self.service.ipxe_script(&Subject { id, kind: ImageKind::Network, access }).await
    }
}

/// What a client hears of what the calls of the assisted image service are not enough for.
fn only_there(what: &str) -> ApiError {
    ApiError::not_found(format!("{what} are not served for an inventory elsewhere: ask that inventory"))
}
