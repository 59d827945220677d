//! Image inputs from an inventory in another process: an Assisted Service that is called over HTTP.
//!
//! An image is made from up to three answers of that service. None of them says how long it stays valid. They are
//! cached as a [`Memo`]. Every request for an image costs one call: a conditional request for the Ignition config with
//! the caller's own credentials. That call decides two things.
//!
//! **Access.** The service decides about each caller and each call. Answers are cached under the caller's credentials,
//! so no caller gets what was rendered for another one. Requests within [`TRUST`] after the start of a successful check
//! need no check of their own: hosts read an image in bursts of small ranges. So a caller whose token is revoked keeps
//! access for at most that long. A refusal is not cached: it applies only to the requests that were waiting for that
//! call.
//!
//! **Identity of the image.** All three answers depend on one record of the service, and on its settings. The Go
//! service sends the time of the record's last change as `Last-Modified` of the config, in whole seconds. Every change
//! moves it: kernel arguments, proxy and network as well as the config itself, and even a PATCH that changes nothing.
//! The Go service sends no entity tag and ignores conditions: it sends the config again, and this module compares it.
//! So a memo stays valid if both `Last-Modified` and the config are the same. Three cases need care:
//!
//! * Two changes within one second have the same time. Only an answer that was requested well after that second, by the
//!   clock of the service itself, is known to follow the last of them (RFC 9110, 8.8.2.2). If the request was sent
//!   earlier than [`QUIET`] after the change, all answers are requested again.
//! * With `AUTH_TYPE=local`, the config contains a token that is signed again for each answer, with an algorithm whose
//!   signatures are random. Configs of the same time that differ only in these signatures count as equal, and the first
//!   one is kept; otherwise each range would belong to another image. The key of the service has not changed, because
//!   it also signed the caller's token.
//! * A service that was reinstalled, for example with another agent image, may write another config with the same time
//!   of change. This is why configs are compared. Other settings affect only the early boot archive, and are picked up
//!   at the next change.
//!
//! If the service sends no `Last-Modified` or no `Date`, all answers are requested each time, as the Go image service
//! does. If it sends entity tags, as the inventory of this program does, it does not send an unchanged config again;
//! its times have the same meaning.

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

/// Image inputs from another service.
#[derive(Debug)]
pub struct External {
    service: Service,
    memos: Memos,
    trust: Duration,
    quiet: Duration,
}

impl External {
    /// Creates image inputs from a service, which may still be down.
    ///
    /// # Errors
    ///
    /// Returns an error if the certificate file is invalid, or if no HTTP client can be created.
    pub fn new(settings: &ExternalSettings) -> Result<Self, ExternalError> {
        Ok(Self {
            service: Service::new(settings)?,
            memos: Memos::default(),
            trust: settings.trust,
            quiet: settings.quiet,
        })
    }

    /// Checks the caller's access to an image, and whether the image has changed since `kept`.
    async fn check(&self, subject: &Subject<'_>, kept: Option<&Arc<Memo>>) -> Result<Arc<Memo>, ApiError> {
        let condition = kept.map(|memo| memo.condition()).unwrap_or_default();
        let answer = self.service.config(subject, &condition).await?;
        if let Some(memo) = kept.filter(|memo| memo.holds(&answer)) {
            return Ok(Arc::clone(memo));
        }
        let config = match (&answer.body, kept) {
            (Some(_), Some(memo)) if memo.differs_in_signatures(&answer) => memo.config(),
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
        // An invalid value does not matter if URLs name the base image.
        let live_image = infra_env.and_then(|infra_env| infra_env.live_image().ok());
        let memo = Memo::new(
            (RenderedConfig { config, network, kernel_arguments }, live_image),
            &answer,
            self.quiet,
        );
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
        // Requests that arrive during a call wait, and use its answer if the call began after they arrived.
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

    /// Only the other service knows. The time for which its answers are trusted is applied in the cache of memos.
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

/// Returns the error for a request that needs more than the calls of the Assisted Image Service.
fn only_there(what: &str) -> ApiError {
    ApiError::not_found(format!("{what} are not served for an inventory elsewhere: ask that inventory"))
}
