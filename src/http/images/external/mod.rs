//! Image inputs from an inventory in another process: an Assisted Service, reached over HTTP.
//!
//! An image depends on up to three responses of that service, which do not specify how long they stay valid. They are
//! cached as an [`InputsMemo`]. For every request for an image, this module makes one call: a conditional request for
//! the Ignition config, with the caller's own credentials. The response decides two questions.
//!
//! **Does the caller have access?** The service decides this for each caller and each call. Responses are cached under
//! the caller's credentials, so no caller receives inputs rendered for another one. A successful check is also valid
//! for requests within [`trust`](ExternalSettings::trust) after its start, because hosts read an image in bursts of
//! small ranges. So a caller with a revoked token keeps access for at most that long. A refusal is not cached. It
//! applies only to the requests that were waiting for that call.
//!
//! **Is the image unchanged?** All three responses depend on one record of the service, and on the service's settings.
//! The Go service sends the time of the record's last change as `Last-Modified` of the config, in whole seconds. Every
//! change updates this time: of kernel arguments, proxy and network, of the config itself, and even a PATCH without
//! effect. The Go service sends no entity tag and ignores conditions. It always sends the config, and this module
//! compares it with the cached one. A memo stays valid if both `Last-Modified` and the config are the same. Three cases
//! need special care:
//!
//! * Two changes within one second have the same time. A response includes the last of them for certain only if it was
//!   requested well after that second, by the clock of the service (RFC 9110, 8.8.2.2). If the request was sent earlier
//!   than [`quiet`](ExternalSettings::quiet) after the change, all responses are requested again.
//! * With `AUTH_TYPE=local`, the config contains a token, which the service signs again for each response. The
//!   signatures are random. Two configs with the same time that differ only in these signatures count as equal, and the
//!   first one stays cached. Otherwise, each range would belong to another image. The key of the service cannot
//!   have changed, because it also signed the caller's token.
//! * A reinstalled service, for example with another agent image, may send another config with the same time. This is
//!   why configs are compared. Other settings of the service affect only the early boot archive. They take effect with
//!   the next change.
//!
//! **Outages.** While the service cannot be reached, the last confirmed responses for a caller are used for a
//! [grace period](ExternalSettings::outage_grace). A refusal ends this use. A caller without confirmed responses gets
//! 503 immediately, because only occasional calls check whether the service is back. If a call fails after the
//! connection was established, the service is checked with another request. If it responds, there is no outage, because
//! the fault may concern one infra-env only. Then only requests for that image use the last responses and pause their
//! calls.
//!
//! If the service sends no `Last-Modified` or no `Date`, all responses are requested each time, as the Go image service
//! does. The inventory of Kindling sends entity tags, and does not send an unchanged config again. Its times have the
//! same meaning.

mod fingerprint;
mod image_kind;
mod memo;
mod outage;
mod service;
mod settings;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use ignition::network::MacAddr;
use isogen::PackedArchive;

use super::artifact::Artifact;
use super::inputs::{ImageCredentials, ImageInputs, InfraEnvSnapshot, SourceStatus};
use super::source_error::SourceError;
use discovery::RenderedConfig;
use inventory::api::ApiError;
use inventory::catalogue::CpuArchitecture;
use inventory::id::InfraEnvId;
use uuid::Uuid;

use image_kind::ImageKind;
use memo::{InputsMemo, MemoEntry, MemoKey, SharedMemoCache};
use outage::CallError;
use service::{CallSubject, ServiceClient};

pub use service::ExternalError;
pub use settings::ExternalSettings;

/// Image inputs from an Assisted Service in another process.
#[derive(Debug)]
pub struct ExternalInputs {
    service: Arc<ServiceClient>,
    memos: SharedMemoCache,
    trust: Duration,
    quiet: Duration,
    outage_grace: Duration,
    retry: Duration,
}

/// Maximum time to wait for the service if confirmed responses are cached.
const KNOWN_PATIENCE: Duration = Duration::from_secs(10);

impl ExternalInputs {
    /// Creates a source from a service, which need not be running yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the certificate file is invalid, or if no HTTP client can be created.
    pub fn new(settings: &ExternalSettings) -> Result<Self, ExternalError> {
        Ok(Self {
            service: Arc::new(ServiceClient::new(settings)?),
            memos: SharedMemoCache::default(),
            trust: settings.trust,
            quiet: settings.quiet,
            outage_grace: settings.outage_grace,
            retry: settings.retry,
        })
    }

    /// Returns the inputs that the service confirms now. If it cannot be reached, returns the inputs confirmed last.
    async fn current_inputs(
        &self,
        subject: &CallSubject<'_>,
        key: &MemoKey,
        entry: &mut MemoEntry,
    ) -> Result<Arc<InputsMemo>, ApiError> {
        let confirmed = entry.confirmed_within(self.outage_grace);
        if let Some(memo) = &confirmed {
            if self.service.outage().length().is_some() {
                let service = Arc::clone(&self.service);
                tokio::spawn(async move { service.probe().await });
                return Ok(Arc::clone(memo));
            }
            if entry.is_pausing() {
                return Ok(Arc::clone(memo));
            }
        }
        let began = Instant::now();
        let check = self.check_access(subject, entry.memo());
        let outcome = match &confirmed {
            None => check.await,
            Some(_) => tokio::time::timeout(KNOWN_PATIENCE, check).await.unwrap_or_else(|_| {
                let service = Arc::clone(&self.service);
                tokio::spawn(async move { service.check().await });
                Err(outage::unreachable_error("the external inventory did not respond in time; try again"))
            }),
        };
        if let (Err(CallError::Unavailable(_)), Some(memo)) = (&outcome, confirmed) {
            // Pause at least as long as the call took, so that calls for this image take at most half of the time.
            entry.pause_calls(began.elapsed().max(self.retry));
            return Ok(memo);
        }
        let outcome = outcome.map_err(ApiError::from);
        entry.record_outcome(began, &outcome);
        self.memos.record_size(key, &outcome);
        outcome
    }

    /// Checks the caller's access to an image. Returns `cached` if the image is unchanged, and requests the new inputs
    /// otherwise.
    async fn check_access(
        &self,
        subject: &CallSubject<'_>,
        cached: Option<&Arc<InputsMemo>>,
    ) -> Result<Arc<InputsMemo>, CallError> {
        let condition = cached.map(|memo| memo.next_condition()).unwrap_or_default();
        let answer = self.service.config(subject, &condition).await?;
        if let Some(memo) = cached.filter(|memo| memo.matches_answer(&answer)) {
            return Ok(Arc::clone(memo));
        }
        let config = match (&answer.body, cached) {
            (Some(_), Some(memo)) if memo.differs_in_signatures(&answer) => memo.config(),
            (None, Some(memo)) => memo.config(),
            (Some(body), _) => {
                service::require_config(body)?;
                body.clone()
            }
            (None, None) => {
                return Err(service::invalid_answer_error(
                    "304 Not Modified to a request without a condition",
                )
                .into());
            }
        };
        let network = match subject.kind {
            ImageKind::Full | ImageKind::Disconnected => PackedArchive::default(),
            ImageKind::Minimal | ImageKind::Network => self.service.early_boot_archive(subject).await?,
        };
        let infra_env = match subject.kind {
            ImageKind::Network => None,
            _ => Some(self.service.infra_env(subject).await?),
        };
        let kernel_arguments =
            infra_env.as_ref().map(service::RemoteInfraEnv::kernel_arguments).transpose()?;
        // For network boot, the iPXE script contains the kernel arguments, so the image has none.
        let kernel_arguments = kernel_arguments.unwrap_or_default();
        // Ignore an invalid value, because the URL may select the base image.
        let live_image = infra_env.and_then(|infra_env| infra_env.base_image_version().ok());
        let memo = InputsMemo::new(
            (RenderedConfig { config, network, kernel_arguments }, live_image),
            &answer,
            self.quiet,
        )?;
        Ok(Arc::new(memo))
    }
}

#[async_trait]
impl ImageInputs for ExternalInputs {
    async fn current_snapshot(
        &self,
        id: Uuid,
        artifact: Artifact,
        access: &ImageCredentials,
    ) -> Result<InfraEnvSnapshot, SourceError> {
        let id = InfraEnvId(id);
        let arrived = Instant::now();
        let kind = ImageKind::from_artifact(artifact);
        let key = MemoKey::new(id, kind, access);
        let entry = self.memos.entry(&key);
        // Requests that arrive during a call wait for the lock. They use the outcome of a call that began after they
        // arrived.
        let mut entry = entry.lock().await;
        let outcome = match entry.last_outcome(arrived, self.trust) {
            Some(outcome) => outcome,
            None => self.current_inputs(&CallSubject { id, kind, access }, &key, &mut entry).await,
        };
        Ok(outcome?.to_snapshot())
    }

    async fn render_config(
        &self,
        current: &InfraEnvSnapshot,
        _artifact: Artifact,
        machine: Option<MacAddr>,
    ) -> Result<RenderedConfig, SourceError> {
        if machine.is_some() {
            return Err(missing_call_error("images for one machine").into());
        }
        let rendered = current.state.downcast_ref::<RenderedConfig>();
        rendered.cloned().ok_or_else(|| SourceError::internal("infra-env belongs to another inventory"))
    }

    async fn base_image_version(
        &self,
        id: Uuid,
        access: &ImageCredentials,
    ) -> Result<(String, CpuArchitecture), SourceError> {
        let subject = CallSubject { id: InfraEnvId(id), kind: ImageKind::Network, access };
        let infra_env = self.service.infra_env(&subject).await.map_err(ApiError::from)?;
        Ok(infra_env.base_image_version()?)
    }

    async fn ipxe_script(&self, id: Uuid, access: &ImageCredentials) -> Result<Option<String>, SourceError> {
        let subject = CallSubject { id: InfraEnvId(id), kind: ImageKind::Network, access };
        Ok(Some(self.service.ipxe_script(&subject).await.map_err(ApiError::from)?))
    }

    async fn source_status(&self) -> SourceStatus {
        // Without requests for images, only this check detects that the service responds again.
        self.service.probe().await;
        let length = self.service.outage().length();
        SourceStatus {
            is_reachable: length.is_none(),
            serves_known_images: length.is_none_or(|length| length <= self.outage_grace),
        }
    }
}

/// Returns the error for a request that the calls of the Assisted Image Service cannot satisfy.
fn missing_call_error(what: &str) -> ApiError {
    ApiError::not_found(format!(
        "{what} are not available with an external inventory; request them from that inventory"
    ))
}
