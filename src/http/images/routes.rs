//! The routes of images: those of the assisted image service, and `.sha256` beside each of them.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method, StatusCode, Version, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, SecondsFormat, Utc};
use isogen::{Digest, Plan};
use tokio::sync::OnceCell;

use super::inputs::Access;
use super::plans::{PlanKey, Planned, What};
use super::{Artifact, BootFile, ImageServer, no_such_image};
use crate::discovery::{DiscoveryError, Ground};
use crate::http::content::Content;
use crate::images::CpuArchitecture;
use crate::images::library::{Base, NotReady};
use crate::inventory::id::InfraEnvId;
use crate::inventory::{Query, Refusal, Secret, in_background};

pub(super) fn routes() -> Router<ImageServer> {
    Router::new()
        .route("/byid/{id}/{version}/{architecture}/{file}", get(by_id))
        .route("/byapikey/{token}/{version}/{architecture}/{file}", get(by_api_key))
        .route("/bytoken/{token}/{version}/{architecture}/{file}", get(by_image_token))
        .route("/images/{id}", get(by_query))
        .route("/images/{id}/pxe-initrd", get(initrd))
        .route("/images/{id}/s390x-initrd-addrsize", get(initrd_addrsize))
        .route("/boot-artifacts/{file}", get(boot_file))
}

/// A request for an image, with all that its URL says.
#[derive(Debug)]
struct Wanted {
    infra_env: InfraEnvId,
    artifact: Artifact,
    version: String,
    architecture: CpuArchitecture,
    access: Access,
    /// The digest of the image rather than the image.
    is_digest: bool,
}

type Parts = (Method, Version, HeaderMap, Query);

async fn by_id(
    State(server): State<ImageServer>,
    Path((id, version, architecture, file)): Path<(String, String, String, String)>,
    (method, http, headers, query): Parts,
) -> Result<Response, Refusal> {
    let access = access(&headers, &query);
    let wanted = short(infra_env(&id)?, [version, architecture, file], access)?;
    server.answer(wanted, (&method, &headers, http)).await
}

async fn by_api_key(
    State(server): State<ImageServer>,
    Path((token, version, architecture, file)): Path<(String, String, String, String)>,
    (method, http, headers, _): Parts,
) -> Result<Response, Refusal> {
    let id = infra_env_of(&token)?;
    let wanted = short(id, [version, architecture, file], Access::ApiKey(Secret::new(token)))?;
    server.answer(wanted, (&method, &headers, http)).await
}

async fn by_image_token(
    State(server): State<ImageServer>,
    Path((token, version, architecture, file)): Path<(String, String, String, String)>,
    (method, http, headers, _): Parts,
) -> Result<Response, Refusal> {
    let id = infra_env_of(&token)?;
    let wanted = short(id, [version, architecture, file], Access::ImageToken(Secret::new(token)))?;
    server.answer(wanted, (&method, &headers, http)).await
}

async fn by_query(
    State(server): State<ImageServer>,
    Path(id): Path<String>,
    (method, http, headers, query): Parts,
) -> Result<Response, Refusal> {
    let kind = query.text("type").ok_or_else(|| Refusal::malformed("type in query is required"))?;
    let artifact = Artifact::of_type(kind);
    let artifact = artifact.ok_or_else(|| {
        Refusal::malformed(format!("type in query is {kind:?}, not full-iso or minimal-iso"))
    })?;
    let wanted = long(&id, artifact, &query, &headers)?;
    server.answer(wanted, (&method, &headers, http)).await
}

async fn initrd(
    State(server): State<ImageServer>,
    Path(id): Path<String>,
    (method, http, headers, query): Parts,
) -> Result<Response, Refusal> {
    let wanted = long(&id, Artifact::Initrd, &query, &headers)?;
    server.answer(wanted, (&method, &headers, http)).await
}

async fn initrd_addrsize(
    State(server): State<ImageServer>,
    Path(id): Path<String>,
    (method, http, headers, query): Parts,
) -> Result<Response, Refusal> {
    let wanted = long(&id, Artifact::InitrdAddrsize, &query, &headers)?;
    let wanted = Wanted { architecture: CpuArchitecture::S390x, ..wanted };
    server.answer(wanted, (&method, &headers, http)).await
}

async fn boot_file(
    State(server): State<ImageServer>,
    Path(name): Path<String>,
    (method, http, headers, query): Parts,
) -> Result<Response, Refusal> {
    let (name, is_digest) = without_digest(&name);
    let file = BootFile::of_name(name)
        .ok_or_else(|| Refusal::not_found(format!("there is no boot artifact {name:?}")))?;
    let (version, architecture) = version_and_architecture(&query)?;
    server.answer_boot_file((file, is_digest), (&version, architecture), (&method, &headers, http)).await
}

/// Only the form in lower case is an id here, as it always was.
fn infra_env(text: &str) -> Result<InfraEnvId, Refusal> {
    let id: Option<InfraEnvId> = text.parse().ok().filter(|id: &InfraEnvId| id.to_string() == text);
    id.ok_or_else(|| Refusal::not_found("this is no id of an infra-env"))
}

/// The infra-env that a token says it is for. The policy looks at whether that is so.
fn infra_env_of(token: &str) -> Result<InfraEnvId, Refusal> {
    let claims =
        token.split('.').nth(1).and_then(|part| URL_SAFE_NO_PAD.decode(part.trim_end_matches('=')).ok());
    let claims: Option<serde_json::Value> = claims.and_then(|json| serde_json::from_slice(&json).ok());
    let claim = |name: &str| claims.as_ref()?.get(name)?.as_str()?.parse().ok();
    claim("sub")
        .or_else(|| claim("infra_env_id"))
        .ok_or_else(|| Refusal::not_found("this is no token of an infra-env"))
}

fn access(headers: &HeaderMap, query: &Query) -> Access {
    if let Some(token) = query.text("api_key") {
        return Access::ApiKey(Secret::new(token));
    }
    if let Some(token) = query.text("image_token") {
        return Access::ImageToken(Secret::new(token));
    }
    let authorization = headers.get("authorization").and_then(|value| value.to_str().ok());
    authorization.map_or(Access::Nothing, |token| Access::Authorization(Secret::new(token)))
}

fn short(
    infra_env: InfraEnvId,
    [version, architecture, file]: [String; 3],
    access: Access,
) -> Result<Wanted, Refusal> {
    let (file, is_digest) = without_digest(&file);
    let artifact =
        Artifact::of_file(file).ok_or_else(|| Refusal::not_found(format!("there is no image {file:?}")))?;
    let Some(known) = CpuArchitecture::from_name(&architecture) else {
        return Err(Refusal::not_found(format!("there is no architecture {architecture:?}")));
    };
    Ok(Wanted { infra_env, artifact, version, architecture: known, access, is_digest })
}

fn long(id: &str, artifact: Artifact, query: &Query, headers: &HeaderMap) -> Result<Wanted, Refusal> {
    let infra_env = infra_env(id)?;
    let (version, architecture) = version_and_architecture(query)?;
    Ok(Wanted {
        infra_env,
        artifact,
        version,
        architecture,
        access: access(headers, query),
        is_digest: false,
    })
}

fn version_and_architecture(query: &Query) -> Result<(String, CpuArchitecture), Refusal> {
    let version = query.text("version").ok_or_else(|| Refusal::malformed("version in query is required"))?;
    let name = query.text("arch").unwrap_or("x86_64");
    match CpuArchitecture::from_name(name) {
        Some(architecture) => Ok((version.to_owned(), architecture)),
        None => Err(Refusal::malformed(format!("arch in query is {name:?}, which is no architecture"))),
    }
}

fn without_digest(file: &str) -> (&str, bool) {
    file.strip_suffix(".sha256").map_or((file, false), |file| (file, true))
}

impl ImageServer {
    async fn answer(
        &self,
        wanted: Wanted,
        request: (&Method, &HeaderMap, Version),
    ) -> Result<Response, Refusal> {
        let current = self.0.inputs.current(wanted.infra_env, wanted.artifact, &wanted.access).await?;
        let image = self.os_image(&wanted.version, wanted.architecture);
        let image = image.ok_or_else(|| no_such_image(&wanted.version, wanted.architecture))?;
        let base = self.0.live_images.base(image).await.map_err(not_ready)?;
        let what = What::Image(wanted.infra_env, wanted.artifact, Arc::clone(&current.revision));
        let key = PlanKey { what, base: digest(&base)? };
        let planned = self.0.plans.get(key, async || {
            let rendered = self.0.inputs.rendered(&current, wanted.artifact).await?;
            let nmstatectl = match wanted.artifact {
                Artifact::FullIso => None,
                _ if rendered.network.is_empty() => None,
                _ => base.nmstatectl().await.map_err(|error| made_nothing(&error))?,
            };
            let url = self.rootfs_url(image);
            let image = Arc::clone(base.image());
            let changed_at = current.changed_at;
            made(move || {
                let ground = Ground { base: &image, nmstatectl: nmstatectl.as_ref() };
                let plan = match wanted.artifact {
                    Artifact::FullIso => rendered.full_iso(ground)?,
                    Artifact::MinimalIso => rendered.minimal_iso(ground, &url)?,
                    Artifact::Initrd => rendered.network_initrd(ground)?,
                    Artifact::InitrdAddrsize => {
                        image.initrd_addrsize(rendered.network_initrd(ground)?.len())?
                    }
                };
                let name = format!("{}-{}", wanted.infra_env, wanted.artifact.file_name());
                planned(plan, changed_at, wanted.artifact.media_type(), name)
            })
            .await
        });
        finish(planned.await?, wanted.is_digest, request).await
    }

    async fn answer_boot_file(
        &self,
        (file, is_digest): (BootFile, bool),
        (version, architecture): (&str, CpuArchitecture),
        request: (&Method, &HeaderMap, Version),
    ) -> Result<Response, Refusal> {
        let image =
            self.os_image(version, architecture).ok_or_else(|| no_such_image(version, architecture))?;
        let base = self.0.live_images.base(image).await.map_err(not_ready)?;
        let key = PlanKey { what: What::File(file), base: digest(&base)? };
        let planned = self.0.plans.get(key, async || {
            let image = Arc::clone(base.image());
            let changed_at = base.changed_at().unwrap_or_default();
            made(move || {
                let plan = match file {
                    BootFile::Kernel => image.kernel()?,
                    BootFile::Rootfs => image.rootfs()?,
                    BootFile::LoadList => image.load_list()?,
                };
                planned(plan, changed_at, "application/octet-stream", file.file_name().to_owned())
            })
            .await
        });
        finish(planned.await?, is_digest, request).await
    }
}

/// A plan as it is served.
fn planned(
    plan: Plan,
    changed_at: DateTime<Utc>,
    media_type: &'static str,
    file_name: String,
) -> Result<Planned, DiscoveryError> {
    let etag = format!("\"{}\"", plan.identity()?);
    let content = Content { plan: Arc::new(plan), etag, changed_at, media_type, file_name: Some(file_name) };
    Ok(Planned { content, sha256: OnceCell::new() })
}

/// Makes something of an image away from the threads that serve requests.
async fn made<T: Send + 'static>(
    make: impl FnOnce() -> Result<T, DiscoveryError> + Send + 'static,
) -> Result<T, Refusal> {
    in_background(move || make().map_err(|error| made_nothing(&error))).await
}

/// What a client hears of an image that cannot be made.
fn made_nothing(error: &(dyn std::error::Error + 'static)) -> Refusal {
    tracing::error!(error, "an image cannot be made");
    Refusal::internal(format!("the image cannot be made: {error}"))
}

/// The digest of a base. One that is ready has it.
fn digest(base: &Base) -> Result<Digest, Refusal> {
    base.digest()
        .ok_or_else(|| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the live image is not there yet"))
}

/// What a client hears of a live image that cannot be used yet. Where it comes from, and why it does not come, is for the
/// log, where the library tells it.
fn not_ready(error: NotReady) -> Refusal {
    let reason = match error {
        NotReady::Failed { retry_at, .. } => {
            let retry_at = retry_at.to_rfc3339_opts(SecondsFormat::Secs, true);
            format!("the live image could not be had; it is tried again at {retry_at}")
        }
        error => error.to_string(),
    };
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason)
}

async fn finish(
    planned: Arc<Planned>,
    is_digest: bool,
    (method, headers, version): (&Method, &HeaderMap, Version),
) -> Result<Response, Refusal> {
    if !is_digest {
        return Ok(planned.content.respond(method, headers, version));
    }
    let digest = planned.sha256.get_or_try_init(async || {
        let plan = Arc::clone(&planned.content.plan);
        made(move || Ok(plan.sha256()?)).await
    });
    let name = planned.content.file_name.as_deref().unwrap_or_default();
    let line = format!("{}  {name}\n", digest.await?);
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], line).into_response())
}
