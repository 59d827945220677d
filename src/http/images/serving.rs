//! Turns a requested image into a plan, and the plan into an answer.

use std::sync::Arc;
use std::time::Instant;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use ignition::network::MacAddr;
use isogen::{BaseImage, Digest, Extent, Packed, Plan, Segment};
use tokio::sync::OnceCell;

use super::artifact::{Artifact, BootFile};
use super::counted_body::count;
use super::inputs::{Access, Current};
use super::plans::{PlanKey, Planned, What};
use super::requested::{ImageRequest, RequestedImage};
use super::server::{ImageServer, bad_version, no_such_image};
use super::trace::{BootTrace, Reader, Trace};
use crate::api_error::ApiError;
use crate::discovery::{BaseContext, DiscoveryError};
use crate::http::content::Content;
use crate::http::zerocopy::BaseFile;
use crate::images::library::{Base, NotReady};
use crate::images::{CpuArchitecture, ImageType, OsImage};
use crate::inventory::id::InfraEnvId;
use crate::inventory::in_background;

/// The `Retry-After` delay after the file of a base image was changed.
const CHANGED_FILE_RETRY: TimeDelta = TimeDelta::seconds(1);

impl ImageServer {
    /// Returns the current state of an infra-env if the caller has access to its images.
    pub(super) async fn current(
        &self,
        id: InfraEnvId,
        artifact: Artifact,
        access: &Access,
    ) -> Result<Current, ApiError> {
        // The slot is released before the wait for a base image, which may take minutes.
        let _slot = self.1.next().await;
        self.0.inputs.current(id, artifact, access).await
    }

    /// Returns the version and CPU architecture of an infra-env's base image.
    pub(super) async fn live_image_of(
        &self,
        current: &Current,
        (id, access): (InfraEnvId, &Access),
    ) -> Result<(String, CpuArchitecture), ApiError> {
        match &current.live_image {
            Some(known) => Ok(known.clone()),
            None => self.0.inputs.live_image(id, access).await,
        }
    }

    /// Answers a request for an image.
    pub(super) async fn answer(
        &self,
        wanted: &RequestedImage,
        asked: &ImageRequest,
    ) -> Result<Response, ApiError> {
        let current = self.current(wanted.infra_env, wanted.artifact, &wanted.access).await?;
        let own;
        let (version, architecture) = match &wanted.live_image {
            Some(named) => named,
            None => {
                own = self.live_image_of(&current, (wanted.infra_env, &wanted.access)).await?;
                &own
            }
        };
        let mut given = Artifact::all(*architecture).chain([Artifact::DisconnectedIso]);
        if !given.any(|artifact| artifact == wanted.artifact) {
            return Err(unavailable_for(wanted.artifact.name(), *architecture));
        }
        let is_of_query = wanted.live_image.is_some() && !wanted.artifact.is_iso();
        let none = if is_of_query { bad_version } else { no_such_image };
        let image = self.os_image((version, *architecture), wanted.artifact.live_image());
        let image = image.ok_or_else(|| none((version, *architecture)))?;
        let base = self.base(image, wanted.is_digest).await?;
        let of_machine = (wanted.artifact, wanted.machine);
        let planned = self.planned_image((wanted.infra_env, &current), (image, &base), of_machine).await?;
        let of = Some((wanted.infra_env, current));
        self.send(planned, wanted.is_digest, of, asked).await
    }

    /// Answers a request for a file of a base image: for the file alone, or as a file of an infra-env.
    pub(super) async fn answer_boot_file(
        &self,
        (file, is_digest): (BootFile, bool),
        (version, architecture): (&str, CpuArchitecture),
        of: Option<(InfraEnvId, Current)>,
        asked: &ImageRequest,
    ) -> Result<Response, ApiError> {
        if !BootFile::all(architecture).any(|known| known == file) {
            return Err(unavailable_for(file.name(), architecture));
        }
        let none = if of.is_none() { bad_version } else { no_such_image };
        let image = self.os_image((version, architecture), ImageType::Full);
        let image = image.ok_or_else(|| none((version, architecture)))?;
        let base = self.base(image, is_digest).await?;
        let planned = self.planned_file(&base, file).await?;
        self.send(planned, is_digest, of, asked).await
    }

    /// Returns the iPXE script of an infra-env.
    pub(super) async fn script(&self, id: InfraEnvId, access: &Access) -> Result<Response, ApiError> {
        self.current(id, Artifact::Initrd, access).await?;
        let script = self.0.inputs.ipxe_script(id, access).await?;
        let headers = [
            (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
            (header::CACHE_CONTROL, "private, no-cache"),
        ];
        Ok((headers, script).into_response())
    }

    /// Returns the base image for an entry of the catalogue. If the entry has a digest, the base image is usable during
    /// its download: requests for downloaded ranges are answered, and other requests wait. Without a digest, the
    /// identity of the base image is unknown until the download ends, so the caller waits for all of it. A request for
    /// the digest of an image waits for all of it too.
    async fn base(&self, image: &OsImage, is_for_digest: bool) -> Result<Arc<Base>, ApiError> {
        let library = &self.0.live_images;
        let is_early = image.sha256.is_some() && !is_for_digest;
        let early = if is_early { Some(library.early_base(image).await.map_err(not_ready)?) } else { None };
        // The library may have the base image from another entry of the catalogue, which has no digest.
        let base = match early.filter(|base| base.digest().is_some()) {
            Some(early) => early,
            None => library.base(image).await.map_err(not_ready)?,
        };
        if base.is_unchanged() {
            return Ok(base);
        }
        library.look_again(image);
        let reason = "the file of the base image was changed; it is being hashed again";
        Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, reason).until(Utc::now() + CHANGED_FILE_RETRY))
    }

    /// Returns the plan of an image. Makes it if it is not cached.
    pub(super) async fn planned_image(
        &self,
        (infra_env, current): (InfraEnvId, &Current),
        (image, base): (&OsImage, &Arc<Base>),
        (artifact, machine): (Artifact, Option<MacAddr>),
    ) -> Result<Arc<Planned>, ApiError> {
        let what = What::Image(artifact, machine);
        let revision = Some((infra_env, Arc::clone(&current.revision)));
        let key = PlanKey { what, revision, base: digest(base)? };
        self.0
            .plans
            .get((key, base.image()), async || {
                let rendered = {
                    let _slot = self.1.next().await;
                    self.0.inputs.rendered(current, artifact, machine).await?
                };
                let architecture = image.cpu_architecture;
                let is_mainframe = architecture == CpuArchitecture::S390x;
                if is_mainframe && artifact.is_iso() && !rendered.kernel_arguments.changes().is_empty() {
                    return Err(ApiError::bad("kargs cannot be modified in s390x architecture ISOs"));
                }
                let nmstatectl = match artifact {
                    Artifact::FullIso | Artifact::DisconnectedIso => None,
                    _ if rendered.network.is_empty() => None,
                    _ => base.nmstatectl().await.map_err(|error| cannot_make(&error))?,
                };
                let url = self.rootfs_url(image);
                let (image, file) = (Arc::clone(base.image()), Arc::clone(base.file()));
                let changed_at = current.changed_at;
                self.made(base, move || {
                    let context = BaseContext { base: &image, nmstatectl: nmstatectl.as_ref() };
                    let packing = rendered.pack()?;
                    let plan = match artifact {
                        Artifact::FullIso | Artifact::DisconnectedIso => packing.full_iso(context)?,
                        Artifact::MinimalIso => packing.minimal_iso(context, &url)?,
                        Artifact::Initrd => packing.network_initrd(context)?,
                        Artifact::InitrdAddrsize => {
                            image.initrd_addrsize(packing.network_initrd(context)?.len())?
                        }
                    };
                    let shared = nmstatectl.as_ref().map_or(0, |program| shared_bytes(&plan, program));
                    let name = artifact.file_name(infra_env, architecture);
                    let made =
                        planned((what, &image, &file), (plan, changed_at), artifact.media_type(), name)?;
                    Ok(Planned { own_bytes: made.own_bytes - shared, ..made })
                })
                .await
            })
            .await
    }

    /// Returns the plan of a file of a base image. Makes it if it is not cached.
    pub(super) async fn planned_file(
        &self,
        base: &Arc<Base>,
        file: BootFile,
    ) -> Result<Arc<Planned>, ApiError> {
        let what = What::File(file);
        let key = PlanKey { what, revision: None, base: digest(base)? };
        self.0
            .plans
            .get((key, base.image()), async || {
                let (image, base_file) = (Arc::clone(base.image()), Arc::clone(base.file()));
                let changed_at = base.changed_at().unwrap_or_default();
                self.made(base, move || {
                    let plan = match file {
                        BootFile::Kernel => image.kernel()?,
                        BootFile::Rootfs => image.rootfs()?,
                        BootFile::LoadList => image.load_list()?,
                    };
                    let name = file.file_name().to_owned();
                    let planned = planned(
                        (what, &image, &base_file),
                        (plan, changed_at),
                        "application/octet-stream",
                        name,
                    )?;
                    // An unmodified part of the base image has no secrets.
                    Ok(Planned { content: planned.content.public(), ..planned })
                })
                .await
            })
            .await
    }

    /// Returns the boot trace of an infra-env if the caller has access to its images, with all ranges of each reader or
    /// only the last one.
    pub(super) async fn boot_trace(
        &self,
        id: InfraEnvId,
        access: &Access,
        with_ranges: bool,
    ) -> Result<BootTrace, ApiError> {
        self.current(id, Artifact::FullIso, access).await?;
        Ok(self.0.traces.boot_trace(id, with_ranges))
    }

    /// Runs `make` in a request slot, on a thread that serves no requests. If `make` needs bytes that are not
    /// downloaded yet, releases both, waits for the bytes, and runs `make` again.
    async fn made<T: Send + 'static>(
        &self,
        base: &Base,
        make: impl Fn() -> Result<T, DiscoveryError> + Send + Sync + 'static,
    ) -> Result<T, ApiError> {
        let make = Arc::new(make);
        loop {
            let slot = self.1.next().await;
            let begun = Instant::now();
            let made = {
                let make = Arc::clone(&make);
                in_background(move |_| Ok(make())).await?
            };
            drop(slot);
            if let Err(DiscoveryError::Image(error)) = &made
                && let Some(missing) = error.would_block_at().and_then(|offset| Extent::new(offset, 1))
            {
                if let Some(available) = base.available(missing) {
                    available.await;
                }
                continue;
            }
            self.0.metrics.planned(begun.elapsed(), made.is_ok());
            return made.map_err(|error| cannot_make(&error));
        }
    }

    /// Returns the answer to a request for a plan, or for its digest. Records what is sent of an infra-env's images in
    /// the boot trace.
    async fn send(
        &self,
        planned: Arc<Planned>,
        is_digest: bool,
        of: Option<(InfraEnvId, Current)>,
        asked: &ImageRequest,
    ) -> Result<Response, ApiError> {
        if is_digest {
            return self.digest_line(&planned).await;
        }
        let response = planned.content.answer(asked.mode, (&asked.method, &asked.headers, asked.version));
        let meter = self.0.metrics.meter(planned.what.name());
        let (infra_env, current) = of.unzip();
        if response.body().span().is_none() {
            return Ok(count(response, None, meter));
        }
        let trace = infra_env.map(|infra_env| {
            let reader = Reader { infra_env, client: asked.client, what: planned.what };
            self.0.traces.of(reader, &planned)
        });
        self.remember(asked, current, &planned, (trace.as_ref(), &meter));
        let transfer = trace.as_ref().and_then(|trace| Trace::begin(trace, response.body(), Instant::now()));
        Ok(count(response, transfer, meter))
    }
}

/// Wraps a plan for serving.
fn planned(
    (what, base, file): (What, &Arc<BaseImage>, &Arc<BaseFile>),
    (plan, changed_at): (Plan, DateTime<Utc>),
    media_type: &'static str,
    file_name: String,
) -> Result<Planned, DiscoveryError> {
    let etag = format!("\"{}\"", plan.identity()?);
    let (base, own_bytes) = (Arc::clone(base), plan.own_bytes());
    let content = Content::new(Arc::new(plan), etag, changed_at, media_type, Some(file_name));
    let content = content.over(Arc::clone(file));
    Ok(Planned { what, base, content, own_bytes, sha256: OnceCell::new() })
}

/// Returns how many bytes of a plan are shared: bytes of `nmstatectl` that the base image keeps in memory for all
/// plans.
fn shared_bytes(plan: &Plan, program: &Packed) -> usize {
    let kept = program.as_bytes().as_ptr_range();
    let shared = |segment: &Segment| match segment {
        Segment::Bytes(bytes) if kept.contains(&bytes.as_ptr()) => bytes.len(),
        _ => 0,
    };
    plan.layout().iter().map(|placed| shared(&placed.segment)).sum()
}

fn unavailable_for(name: &str, architecture: CpuArchitecture) -> ApiError {
    ApiError::not_found(format!("live images for {architecture} give no {name:?}"))
}

/// Logs and returns the error for an image that cannot be made.
pub(super) fn cannot_make(error: &(dyn std::error::Error + 'static)) -> ApiError {
    tracing::error!(error, "an image cannot be made");
    ApiError::internal(format!("the image cannot be made: {error}"))
}

/// Returns the digest of a base image. A complete base image always has one.
fn digest(base: &Base) -> Result<Digest, ApiError> {
    base.digest()
        .ok_or_else(|| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "the live image is not there yet"))
}

/// Returns the error for a base image that is not ready. It does not reveal the URL of the base image or why the
/// download failed: the library logs both.
fn not_ready(error: NotReady) -> ApiError {
    match error {
        NotReady::Failed { retry_at, .. } => {
            let time = retry_at.to_rfc3339_opts(SecondsFormat::Secs, true);
            let reason = format!("the live image could not be had; it is tried again at {time}");
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, reason).until(retry_at)
        }
        error => ApiError::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
    }
}
