//! Serves one revision of an image, or an error if the revision is no longer available.

use std::sync::Arc;

use axum::http::StatusCode;
use discovery::{Form, ImageRevision, PackedConfig};
use ignition::discovery::ipxe::{Credential, NetworkBoot};
use ignition::discovery::{AgentToken, InfraEnvId as DiscoveryId, InputError};

use super::artifact::Artifact;
use super::inputs::{ImageCredentials, InfraEnvSnapshot};
use super::plans::{PlanKind, PlannedFile, RevisionKey};
use super::requested_image::{RequestedImage, RequestedRevision, RevisionUrl};
use super::server::ImageServer;
use super::serving::cannot_make_error;
use crate::images::library::OpenBaseImage;
use inventory::api::ApiError;
use inventory::catalogue::{CpuArchitecture, OsImage};
use inventory::service::infra_envs::ipxe_architecture;

impl ImageServer {
    /// Returns the plan of the revision in a URL. The revision must be cached or current. Otherwise, returns an error
    /// with the URL of the current image.
    pub(super) async fn planned_revision(
        &self,
        (target, of): (&RequestedImage, &RequestedRevision),
        current: &InfraEnvSnapshot,
        (image, base): (&OsImage, &Arc<OpenBaseImage>),
    ) -> Result<Arc<PlannedFile>, ApiError> {
        let (infra_env, revision) = (target.infra_env, of.revision);
        let what = PlanKind::Image(target.artifact, target.machine);
        let key = RevisionKey { what, infra_env, revision, base: base.id() };
        if let Some(planned) = self.0.plans.find_content(&key) {
            return Ok(planned);
        }
        let of_machine = (target.artifact, target.machine);
        let planned = self.planned_image((infra_env, current), (image, base), of_machine).await?;
        // Compare the revisions, because the infra-env may have changed since the URL was published, or since the
        // client read the first range.
        if planned.revision == Some(revision) {
            return Ok(planned);
        }
        let url = self.current_url((target, of.form), current, (image, &planned)).await?;
        let reason = format!(
            "image revision {revision} of infra-env {infra_env} is no longer available; the current image is {url}"
        );
        Err(ApiError::new(StatusCode::GONE, reason))
    }

    /// Returns the URL of the current image, with the same credential as the requested URL.
    async fn current_url(
        &self,
        (target, form): (&RequestedImage, RevisionUrl),
        current: &InfraEnvSnapshot,
        (image, planned): (&OsImage, &PlannedFile),
    ) -> Result<String, ApiError> {
        let requested = target.live_image.as_ref();
        let (version, architecture) = current.live_image.as_ref().or(requested).ok_or_else(|| {
            ApiError::broken(format_args!("URL of infra-env {} has no version", target.infra_env))
        })?;
        let kind = target.artifact.base_image_type();
        let revision = match self.os_image((version, *architecture), kind) {
            Some(other) if *other != *image => {
                self.current_revision(current, (target.artifact, &other)).await?
            }
            Some(_) => planned.revision,
            // The catalogue has no such base image. Return a URL without a revision: a request for it reports that
            // error.
            None => None,
        };
        let of = (version.as_str(), *architecture);
        let url = match form {
            RevisionUrl::Initrd => self.initrd_url(target, of, revision),
            _ => Ok(self.iso_url((target, form), of, revision)),
        };
        url.map_err(|error| cannot_make_error(&error))
    }

    /// Returns the revision that the current image has on a base image.
    async fn current_revision(
        &self,
        current: &InfraEnvSnapshot,
        (artifact, image): (Artifact, &OsImage),
    ) -> Result<Option<ImageRevision>, ApiError> {
        let rendered = self.0.inputs.render_config(current, artifact, None).await?;
        let form = self.form(artifact, image).map_err(|error| cannot_make_error(&error))?;
        let image = image.clone();
        let revision = self.make_in_request_slot(move |_| {
            Ok(PackedConfig::new(&rendered)?.revision(&form, &image.revision_entry()))
        });
        Ok(Some(revision.await?))
    }

    /// Returns the form in which a config is packed into an artifact.
    pub(super) fn form(&self, artifact: Artifact, image: &OsImage) -> Result<Form, InputError> {
        Ok(match artifact {
            Artifact::FullIso | Artifact::DisconnectedIso => Form::Full,
            Artifact::MinimalIso => Form::Minimal { rootfs_url: image.rootfs_url(&self.0.base_url)? },
            Artifact::Initrd | Artifact::InitrdAddrsize => Form::Initrd,
        })
    }

    fn iso_url(
        &self,
        (target, form): (&RequestedImage, RevisionUrl),
        (version, architecture): (&str, CpuArchitecture),
        revision: Option<ImageRevision>,
    ) -> String {
        let base = self.0.base_url.as_str().trim_end_matches('/');
        let (place, query) = match (form, &target.access) {
            (RevisionUrl::ByApiKey, ImageCredentials::ApiKey(token)) => {
                (format!("byapikey/{}", token.reveal()), String::new())
            }
            (RevisionUrl::ByToken, ImageCredentials::ImageToken(token)) => {
                (format!("bytoken/{}", token.reveal()), String::new())
            }
            (_, ImageCredentials::ApiKey(token)) => by_id(target, &format!("?api_key={}", token.reveal())),
            (_, ImageCredentials::ImageToken(token)) => {
                by_id(target, &format!("?image_token={}", token.reveal()))
            }
            (_, ImageCredentials::Authorization(_) | ImageCredentials::Nothing) => by_id(target, ""),
        };
        let revision = revision.map(|revision| format!("{revision}/")).unwrap_or_default();
        let file = target.artifact.name();
        format!("{base}/{place}/{version}/{architecture}/{revision}{file}{query}")
    }

    fn initrd_url(
        &self,
        target: &RequestedImage,
        (version, architecture): (&str, CpuArchitecture),
        revision: Option<ImageRevision>,
    ) -> Result<String, InputError> {
        let id = DiscoveryId::parse(&target.infra_env.to_string())?;
        let architecture = ipxe_architecture(architecture);
        let mut boot = NetworkBoot::new(self.0.base_url.clone(), id, version, architecture)?;
        boot.credential = match &target.access {
            ImageCredentials::ApiKey(token) => Some(Credential::ApiKey(AgentToken::new(token.reveal())?)),
            ImageCredentials::ImageToken(token) => {
                Some(Credential::ImageToken(AgentToken::new(token.reveal())?))
            }
            ImageCredentials::Authorization(_) | ImageCredentials::Nothing => None,
        };
        Ok(match revision {
            Some(revision) => boot.initrd_url_at_revision(revision),
            None => boot.files().initrd,
        })
    }
}

/// Returns the start of the path with the id of the infra-env, and the query.
fn by_id(target: &RequestedImage, query: &str) -> (String, String) {
    (format!("byid/{}", target.infra_env), query.to_owned())
}
