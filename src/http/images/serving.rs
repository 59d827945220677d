//! From what is wanted to the plan of it, and from there to the answer.

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

/// When to come back to a live image whose file was changed.
const LOOK: TimeDelta = TimeDelta::seconds(1);

impl ImageServer {
    /// An infra-env as it is now, for a caller who may have its images.
    pub(super) async fn current(
        &self,
        id: InfraEnvId,
        artifact: Artifact,
        access: &Access,
    ) -> Result<Current, ApiError> {
        // A turn is not kept while a live image is waited for, which may take minutes.
        let _turn = self.1.next().await;
        self.0.inputs.current(id, artifact, access).await
    }

    /// The version of an infra-env's live image, and the processor.
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
            return Err(not_of(wanted.artifact.name(), *architecture));
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

    /// Answers a request for a file of a live image: one for its own sake, or as one of an infra-env.
    pub(super) async fn answer_boot_file(
        &self,
        (file, is_digest): (BootFile, bool),
        (version, architecture): (&str, CpuArchitecture),
        of: Option<(InfraEnvId, Current)>,
        asked: &ImageRequest,
    ) -> Result<Response, ApiError> {
        if !BootFile::all(architecture).any(|known| known == file) {
            return Err(not_of(file.name(), architecture));
        }
        let none = if of.is_none() { bad_version } else { no_such_image };
        let image = self.os_image((version, architecture), ImageType::Full);
        let image = image.ok_or_else(|| none((version, architecture)))?;
        let base = self.base(image, is_digest).await?;
        let planned = self.planned_file(&base, file).await?;
        self.send(planned, is_digest, of, asked).await
    }

    /// The script with which iPXE boots the machines of an infra-env.
    pub(super) async fn script(&self, id: InfraEnvId, access: &Access) -> Result<Response, ApiError> {
        self.current(id, Artifact::Initrd, access).await?;
        let script = self.0.inputs.ipxe_script(id, access).await?;
        let headers = [
            (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
            (header::CACHE_CONTROL, "private, no-cache"),
        ];
        Ok((headers, script).into_response())
    }

    /// A live image to make images on. Where the catalogue tells its digest, it can be used while it comes: a range that is
    /// there is answered, and one that is not waits. Otherwise nobody knows what it will be, and all of it is waited for, as
    /// it is by whoever wants a digest of an image.
    async fn base(&self, image: &OsImage, is_for_digest: bool) -> Result<Arc<Base>, ApiError> {
        let library = &self.0.live_images;
        let is_early = image.sha256.is_some() && !is_for_digest;
        let early = if is_early { Some(library.early_base(image).await.map_err(not_ready)?) } else { None };
        // The library may have the image for an entry of the catalogue that does not tell its digest.
        let base = match early.filter(|base| base.digest().is_some()) {
            Some(early) => early,
            None => library.base(image).await.map_err(not_ready)?,
        };
        if base.is_unchanged() {
            return Ok(base);
        }
        library.look_again(image);
        let reason = "the file of the base image was changed; it is being hashed again";
        Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, reason).until(Utc::now() + LOOK))
    }

    /// The plan of an image, made if it is not known.
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
                    let _turn = self.1.next().await;
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
                    _ => base.nmstatectl().await.map_err(|error| made_nothing(&error))?,
                };
                let url = self.rootfs_url(image);
                let (image, file) = (Arc::clone(base.image()), Arc::clone(base.file()));
                let changed_at = current.changed_at;
                self.made(base, move || {
                    let ground = BaseContext { base: &image, nmstatectl: nmstatectl.as_ref() };
                    let packing = rendered.pack()?;
                    let plan = match artifact {
                        Artifact::FullIso | Artifact::DisconnectedIso => packing.full_iso(ground)?,
                        Artifact::MinimalIso => packing.minimal_iso(ground, &url)?,
                        Artifact::Initrd => packing.network_initrd(ground)?,
                        Artifact::InitrdAddrsize => {
                            image.initrd_addrsize(packing.network_initrd(ground)?.len())?
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

    /// The plan of a file of a live image, made if it is not known.
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
                    // It is a part of the live image, which anybody may have.
                    Ok(Planned { content: planned.content.public(), ..planned })
                })
                .await
            })
            .await
    }

    /// Returns the progress of the readers of an infra-env's images, for a caller who may have these, with all ranges of each or only the
    /// last one.
    pub(super) async fn boot_trace(
        &self,
        id: InfraEnvId,
        access: &Access,
        with_ranges: bool,
    ) -> Result<BootTrace, ApiError> {
        self.current(id, Artifact::FullIso, access).await?;
        Ok(self.0.traces.boot_trace(id, with_ranges))
    }

    /// Makes something of a live image, in a turn, away from the threads that serve requests. For bytes of the image that
    /// are still coming neither is kept: when they are there, it begins once more.
    async fn made<T: Send + 'static>(
        &self,
        base: &Base,
        make: impl Fn() -> Result<T, DiscoveryError> + Send + Sync + 'static,
    ) -> Result<T, ApiError> {
        let make = Arc::new(make);
        loop {
            let turn = self.1.next().await;
            let begun = Instant::now();
            let made = {
                let make = Arc::clone(&make);
                in_background(move |_| Ok(make())).await?
            };
            drop(turn);
            if let Err(DiscoveryError::Image(error)) = &made
                && let Some(missing) = error.would_block_at().and_then(|offset| Extent::new(offset, 1))
            {
                if let Some(available) = base.available(missing) {
                    available.await;
                }
                continue;
            }
            self.0.metrics.planned(begun.elapsed(), made.is_ok());
            return made.map_err(|error| made_nothing(&error));
        }
    }

    /// The answer to a request for a plan, or for its digest. What is sent of an infra-env's images is noted.
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

/// A plan as it is served.
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

/// How much of a program a plan has in it: the very bytes that the live image keeps, for all plans.
fn shared_bytes(plan: &Plan, program: &Packed) -> usize {
    let kept = program.as_bytes().as_ptr_range();
    let shared = |segment: &Segment| match segment {
        Segment::Bytes(bytes) if kept.contains(&bytes.as_ptr()) => bytes.len(),
        _ => 0,
    };
    plan.layout().iter().map(|placed| shared(&placed.segment)).sum()
}

fn not_of(name: &str, architecture: CpuArchitecture) -> ApiError {
    ApiError::not_found(format!("live images for {architecture} give no {name:?}"))
}

/// What a client hears of an image that cannot be made.
pub(super) fn made_nothing(error: &(dyn std::error::Error + 'static)) -> ApiError {
    tracing::error!(error, "an image cannot be made");
    ApiError::internal(format!("the image cannot be made: {error}"))
}

/// The digest of a base. One that is ready has it.
fn digest(base: &Base) -> Result<Digest, ApiError> {
    base.digest()
        .ok_or_else(|| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "the live image is not there yet"))
}

/// What a client hears of a live image that cannot be used yet. Where it comes from, and why it does not come, is for the
/// log, where the library tells it.
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
