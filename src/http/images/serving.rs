//! Creates the plan of a requested image, and the response for the plan.

use std::sync::Arc;
use std::time::Instant;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use ignition::network::{Cancel, HostError, MacAddr};
use isogen::{Digest, PackedArchive, Plan};

use super::artifact::{Artifact, BaseImageFile};
use super::boot_trace::{BootTrace, ReaderKey, ReaderTrace};
use super::counted_body::{TransferRecords, count_response};
use super::download_log::{DownloadLog, DownloadedFile};
use super::inputs::{Currency, ImageCredentials, InfraEnvSnapshot};
use super::plans::{PlanKey, PlanKind, PlannedFile};
use super::requested_image::{ImageRequest, RequestedImage};
use super::server::{ImageServer, bad_version_error, no_such_image_error};
use super::shared_digest::SharedDigest;
use crate::http::content::ServedFile;
use crate::images::library::{ImageNotReady, OpenBaseImage};
use discovery::representation::Representation;
use discovery::{BaseContext, DiscoveryError, PackedConfig};
use ignition::discovery::ipxe::{Credential, NetworkBoot};
use ignition::discovery::{AgentToken, InfraEnvId as DiscoveryId};
use inventory::api::ApiError;
use inventory::catalogue::{CpuArchitecture, ImageType, OsImage};
use inventory::id::InfraEnvId;
use inventory::in_background;
use inventory::service::infra_envs::ipxe_architecture;

/// The `Retry-After` delay after the file of a base image has changed.
const CHANGED_FILE_RETRY: TimeDelta = TimeDelta::seconds(1);
/// The `Retry-After` delay while a base image is being downloaded.
const DOWNLOAD_RETRY: TimeDelta = TimeDelta::seconds(10);

impl ImageServer {
    /// Returns the current state of an infra-env if the caller has access to its images.
    pub(super) async fn current_snapshot(
        &self,
        id: InfraEnvId,
        artifact: Artifact,
        access: &ImageCredentials,
    ) -> Result<InfraEnvSnapshot, ApiError> {
        // Release the slot before the wait for a base image, which may take minutes.
        let _slot = self.1.acquire().await?;
        Ok(self.0.inputs.current_snapshot(id.0, artifact, access).await?)
    }

    /// Returns the version and CPU architecture of an infra-env's base image.
    pub(super) async fn base_image_version(
        &self,
        current: &InfraEnvSnapshot,
        (id, access): (InfraEnvId, &ImageCredentials),
    ) -> Result<(String, CpuArchitecture), ApiError> {
        match &current.live_image {
            Some(version) => Ok(version.clone()),
            None => Ok(self.0.inputs.base_image_version(id.0, access).await?),
        }
    }

    /// Returns the response to a request for an image.
    pub(super) async fn answer_image(
        &self,
        target: &RequestedImage,
        request: &ImageRequest,
    ) -> Result<Response, ApiError> {
        let current = self.current_snapshot(target.infra_env, target.artifact, &target.access).await?;
        let default_version;
        let (version, architecture) = match &target.live_image {
            Some(base_version) => base_version,
            None => {
                default_version =
                    self.base_image_version(&current, (target.infra_env, &target.access)).await?;
                &default_version
            }
        };
        let mut artifacts = Artifact::all(*architecture).chain([Artifact::DisconnectedIso]);
        if !artifacts.any(|artifact| artifact == target.artifact) {
            return Err(unavailable_file_error(target.artifact.name(), *architecture));
        }
        let is_version_in_query = target.live_image.is_some() && !target.artifact.is_iso();
        let missing_error = if is_version_in_query { bad_version_error } else { no_such_image_error };
        let image = self.os_image((version, *architecture), target.artifact.base_image_type());
        let image = image.ok_or_else(|| missing_error((version, *architecture)))?;
        let base = self.base_image(&image, request).await?;
        let of_machine = (target.artifact, target.machine);
        let infra_env = (target.infra_env, &current);
        let planned = match &target.revision {
            None => self.planned_image(infra_env, (&image, &base), of_machine).await?,
            Some(revision) => self.planned_revision((target, revision), &current, (&image, &base)).await?,
        };
        let owner = Some((target.infra_env, current));
        self.send_planned_file(planned, target.is_digest, owner, request).await
    }

    /// Returns the response to a request for a file of a base image. `owner` is the infra-env, if the URL selects one.
    pub(super) async fn answer_boot_file(
        &self,
        (file, is_digest): (BaseImageFile, bool),
        (version, architecture): (&str, CpuArchitecture),
        owner: Option<(InfraEnvId, InfraEnvSnapshot)>,
        request: &ImageRequest,
    ) -> Result<Response, ApiError> {
        if !BaseImageFile::all(architecture).any(|other| other == file) {
            return Err(unavailable_file_error(file.name(), architecture));
        }
        let missing_error = if owner.is_none() { bad_version_error } else { no_such_image_error };
        let image = self.os_image((version, architecture), ImageType::Full);
        let image = image.ok_or_else(|| missing_error((version, architecture)))?;
        let base = self.base_image(&image, request).await?;
        let planned = self.planned_file(&base, file).await?;
        self.send_planned_file(planned, is_digest, owner, request).await
    }

    pub(super) async fn answer_ipxe_script(
        &self,
        id: InfraEnvId,
        access: &ImageCredentials,
    ) -> Result<Response, ApiError> {
        let current = self.current_snapshot(id, Artifact::Initrd, access).await?;
        let script = match self.0.inputs.ipxe_script(id.0, access).await? {
            Some(script) => script,
            None => self.own_ipxe_script(&current, (id, access)).await?,
        };
        let headers = [
            (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
            (header::CACHE_CONTROL, "private, no-cache"),
        ];
        Ok((headers, script).into_response())
    }

    /// Generates an iPXE script with the URLs of this server.
    async fn own_ipxe_script(
        &self,
        current: &InfraEnvSnapshot,
        (id, access): (InfraEnvId, &ImageCredentials),
    ) -> Result<String, ApiError> {
        let (version, architecture) = self.base_image_version(current, (id, access)).await?;
        let rendered = self.0.inputs.render_config(current, Artifact::Initrd, None).await?;
        let script = || {
            let id = DiscoveryId::parse(&id.to_string())?;
            let architecture = ipxe_architecture(architecture);
            let mut boot = NetworkBoot::new(self.0.base_url.clone(), id, &version, architecture)?;
            boot.kernel_arguments = rendered.kernel_arguments;
            if let ImageCredentials::ApiKey(token) = access {
                boot.credential = Some(Credential::ApiKey(AgentToken::new(token.reveal())?));
            }
            boot.script()
        };
        script().map_err(|error| cannot_make_error(&error))
    }

    /// Returns the base image for an entry of the catalogue. Waits for its download, because the server sends no byte
    /// of a base image before it has verified the digest. Returns an error after the maximum wait, or when the server
    /// shuts down.
    async fn base_image(
        &self,
        image: &OsImage,
        request: &ImageRequest,
    ) -> Result<Arc<OpenBaseImage>, ApiError> {
        let library = &self.0.live_images;
        let outcome = match library.base_now(image) {
            Err(ImageNotReady::OnItsWay { .. }) => tokio::select! {
                biased;
                outcome = library.base(image) => outcome,
                () = tokio::time::sleep(self.2) => library.base_now(image),
                () = request.shutdown_begun() => library.base_now(image),
            },
            outcome => outcome,
        };
        let base = outcome.map_err(not_ready_error)?;
        if base.is_unchanged() {
            return Ok(base);
        }
        library.recheck(image);
        let reason = "base image file has changed and is being hashed again";
        Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, reason)
            .with_retry_at(Utc::now() + CHANGED_FILE_RETRY))
    }

    /// Returns the plan of an image. Creates it if it is not cached.
    pub(super) async fn planned_image(
        &self,
        (infra_env, current): (InfraEnvId, &InfraEnvSnapshot),
        (image, base): (&OsImage, &Arc<OpenBaseImage>),
        (artifact, machine): (Artifact, Option<MacAddr>),
    ) -> Result<Arc<PlannedFile>, ApiError> {
        let what = PlanKind::Image(artifact, machine);
        let revision = Some((infra_env, Arc::clone(&current.revision)));
        let key = PlanKey { what, revision, base: base.id() };
        let is_removed = || self.0.inputs.currency(&current.state) == Currency::Outdated;
        self.0
            .plans
            .get((key, base), is_removed, async || {
                let rendered = {
                    let _slot = self.1.acquire().await?;
                    self.0.inputs.render_config(current, artifact, machine).await?
                };
                let architecture = image.cpu_architecture;
                let is_mainframe = architecture == CpuArchitecture::S390x;
                if is_mainframe && artifact.is_iso() && !rendered.kernel_arguments.changes().is_empty() {
                    return Err(ApiError::bad("kargs cannot be modified in s390x architecture ISOs"));
                }
                let nmstatectl = match artifact {
                    Artifact::FullIso | Artifact::DisconnectedIso => None,
                    _ if rendered.network.is_empty() => None,
                    _ => base.nmstatectl().await.map_err(|error| cannot_make_error(&error))?,
                };
                let form = self.form(artifact, image).map_err(|error| cannot_make_error(&error))?;
                let (entry, image) = (image.clone(), Arc::clone(base.image()));
                let work = self.make_in_request_slot(move |cancel| {
                    let context = BaseContext { base: &image, nmstatectl: nmstatectl.as_ref() };
                    let packing = PackedConfig::new(&rendered)?;
                    if cancel.is_cancelled() {
                        return Err(HostError::Cancelled.into());
                    }
                    let plan = match artifact {
                        Artifact::InitrdAddrsize => {
                            image.initrd_addrsize(packing.network_initrd(context)?.len())?
                        }
                        _ => packing.plan(&form, context)?,
                    };
                    let program = nmstatectl.as_ref().map(PackedArchive::as_bytes);
                    let shared =
                        image.shared_bytes(&plan) + program.map_or(0, |bytes| plan.bytes_within(bytes));
                    // Compute the revision from the same archives as the plan, so that a URL with this revision never
                    // returns other bytes.
                    let revision = packing.revision(&form, &entry.revision_entry());
                    Ok((plan.identity()?, plan, shared, revision))
                });
                let (identity, plan, shared, revision) = work.await?;
                let saved_as = (artifact.media_type(), artifact.file_name(infra_env, architecture));
                let planned = wrap_plan((what, base), (plan, identity), Some(current.changed_at), saved_as)?;
                let memory_bytes = planned.memory_bytes - shared;
                Ok(PlannedFile { memory_bytes, revision: Some(revision), ..planned })
            })
            .await
    }

    /// Returns the plan of a file of a base image. Creates it if it is not cached.
    pub(super) async fn planned_file(
        &self,
        base: &Arc<OpenBaseImage>,
        file: BaseImageFile,
    ) -> Result<Arc<PlannedFile>, ApiError> {
        let what = PlanKind::File(file);
        let key = PlanKey { what, revision: None, base: base.id() };
        // The file belongs to no infra-env that could be removed.
        let is_removed = || false;
        self.0
            .plans
            .get((key, base), is_removed, async || {
                let image = Arc::clone(base.image());
                let work = self.make_in_request_slot(move |_| {
                    let plan = match file {
                        BaseImageFile::Kernel => image.kernel()?,
                        BaseImageFile::Rootfs => image.rootfs()?,
                        BaseImageFile::LoadList => image.load_list()?,
                    };
                    Ok((plan.identity()?, plan))
                });
                let (identity, plan) = work.await?;
                let saved_as = ("application/octet-stream", file.file_name().to_owned());
                let planned = wrap_plan((what, base), (plan, identity), base.changed_at(), saved_as)?;
                // The file is an unmodified part of the base image, so it contains no secrets.
                Ok(PlannedFile { content: planned.content.with_public_caching(), ..planned })
            })
            .await
    }

    /// Returns the boot trace of an infra-env if the caller has access to its images. `with_ranges` adds the ranges
    /// sent to each reader.
    pub(super) async fn boot_trace(
        &self,
        id: InfraEnvId,
        access: &ImageCredentials,
        with_ranges: bool,
    ) -> Result<BootTrace, ApiError> {
        self.current_snapshot(id, Artifact::FullIso, access).await?;
        Ok(self.0.traces.boot_trace(id, with_ranges))
    }

    /// Runs `make` in a request slot, on a background thread.
    pub(super) async fn make_in_request_slot<T: Send + 'static>(
        &self,
        make: impl FnOnce(&Cancel) -> Result<T, DiscoveryError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let _slot = self.1.acquire().await?;
        let start = Instant::now();
        let result = in_background(move |cancel| Ok::<_, ApiError>(make(cancel))).await?;
        self.0.metrics.count_plan(start.elapsed(), result.is_ok());
        result.map_err(|error| cannot_make_error(&error))
    }

    /// Returns the response with a plan's bytes or digest. For images of an infra-env, the boot trace records the sent
    /// bytes.
    async fn send_planned_file(
        &self,
        planned: Arc<PlannedFile>,
        is_digest: bool,
        owner: Option<(InfraEnvId, InfraEnvSnapshot)>,
        request: &ImageRequest,
    ) -> Result<Response, ApiError> {
        if is_digest {
            return self.digest_response(&planned).await;
        }
        let response =
            planned.content.answer(request.mode, (&request.method, &request.headers, request.version));
        let meter = self.0.metrics.file_meter(planned.what.name());
        let (infra_env, current) = owner.unzip();
        if response.body().byte_span().is_none() {
            return Ok(count_response(response, TransferRecords::default(), meter));
        }
        let trace = infra_env.map(|infra_env| {
            let reader = ReaderKey { infra_env, client: request.client, what: planned.what };
            self.0.traces.get_or_start(reader, &planned)
        });
        let (name, len) = (planned.what.name(), planned.content.representation().plan().len());
        let file = DownloadedFile { client: request.client, infra_env, name, len };
        self.remember_answer(request, current, &planned, (trace.as_ref(), &meter, file));
        let now = Instant::now();
        let begin = |trace| ReaderTrace::begin_transfer(trace, response.body(), now);
        let records = TransferRecords {
            trace: trace.as_ref().and_then(begin),
            log: DownloadLog::begin(file, (response.status(), response.body()), now),
        };
        Ok(count_response(response, records, meter))
    }
}

/// Adds to a plan everything needed to serve it.
fn wrap_plan(
    (what, base): (PlanKind, &OpenBaseImage),
    (plan, identity): (Plan, Digest),
    changed_at: Option<DateTime<Utc>>,
    (media_type, file_name): (&'static str, String),
) -> Result<PlannedFile, ApiError> {
    let (etag, memory_bytes) = (format!("\"{identity}\""), plan.memory_bytes());
    let content = Representation::new(Arc::new(plan), etag, changed_at, media_type, Some(file_name));
    let content = content.map_err(|error| cannot_make_error(&error))?;
    let content = ServedFile::new(content, Arc::clone(base.file()));
    Ok(PlannedFile {
        what,
        base: Arc::clone(base.image()),
        content,
        revision: None,
        memory_bytes,
        sha256: SharedDigest::default(),
    })
}

fn unavailable_file_error(name: &str, architecture: CpuArchitecture) -> ApiError {
    ApiError::not_found(format!("{name:?} does not exist for architecture {architecture}"))
}

/// Logs why an image cannot be generated, and returns the error for the client.
pub(super) fn cannot_make_error(error: &(dyn std::error::Error + 'static)) -> ApiError {
    tracing::error!(error, "cannot make image");
    ApiError::internal(format!("cannot make the image: {error}"))
}

/// Returns the error for a base image that is not ready. It reveals neither the URL of the base image nor why the
/// download failed. The library logs both.
fn not_ready_error(error: ImageNotReady) -> ApiError {
    match error {
        ImageNotReady::Failed { retry_at, .. } => {
            let time = retry_at.to_rfc3339_opts(SecondsFormat::Secs, true);
            let reason = format!("base image is not available, next attempt at {time}");
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, reason).with_retry_at(retry_at)
        }
        error @ ImageNotReady::OnItsWay { .. } => {
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
                .with_retry_at(Utc::now() + DOWNLOAD_RETRY)
        }
        error @ ImageNotReady::OtherDigest { .. } => {
            tracing::error!(%error, "the catalogue contradicts an added base image");
            ApiError::internal("base image has another SHA-256 digest than the one that its entry names")
        }
        error => ApiError::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A retry would not help, so the status is not 503. The digests are of no use to clients, so the reason contains
    /// none.
    #[test]
    fn contradictory_digest_is_an_internal_error_without_details() {
        let (expected, found) = (Digest::from_data(b"one"), Digest::from_data(b"two"));
        let error =
            not_ready_error(ImageNotReady::OtherDigest { image: "a.iso".to_owned(), expected, found });
        let reason = "base image has another SHA-256 digest than the one that its entry names";
        assert_eq!((error.status(), error.reason()), (StatusCode::INTERNAL_SERVER_ERROR, reason));
    }
}
