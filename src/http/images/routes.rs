//! The routes of the Assisted Image Service, with a `.sha256` file for each file, and additional ones under `/i`.

use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};

use super::artifact::{Artifact, BootFile, SCRIPT};
use super::inputs::Access;
use super::listing::Listing;
use super::requested::{
    ImageRequest, RequestedImage, infra_env, infra_env_of, machine, named, no_such_file, without_digest,
};
use super::server::ImageServer;
use super::trace::BootTrace;
use crate::api_error::{ApiError, only_reads};
use crate::http::metrics::MEDIA_TYPE;
use crate::images::CpuArchitecture;
use crate::inventory::Secret;
use crate::inventory::auth::{AuthKind, GuardedRouter, IdSource, RouteAccess};
use crate::inventory::id::InfraEnvId;

impl ImageServer {
    /// Returns the routes.
    pub fn router(&self) -> Router {
        self.guarded_router().into_parts().0
    }

    /// Returns the routes with their access rules.
    pub(crate) fn guarded_router(&self) -> GuardedRouter {
        routes().map(|router| router.with_state(self.clone()))
    }
}

fn routes() -> GuardedRouter<ImageServer> {
    const NAMED: &[AuthKind] = &[AuthKind::Url, AuthKind::ImageUrl, AuthKind::User];
    const ID: &[IdSource] = &[IdSource::Path("id")];
    const API_KEY: &[IdSource] = &[IdSource::PathToken("token", AuthKind::Url)];
    const IMAGE_TOKEN: &[IdSource] = &[IdSource::PathToken("token", AuthKind::ImageUrl)];
    const WHO: &[IdSource] = &[IdSource::Path("who"), IdSource::PathToken("who", AuthKind::Url)];
    let image = |path, ids| RouteAccess::image(path, NAMED, ids);
    let by_api_key_path = "/byapikey/{token}/{version}/{architecture}/{file}";
    let by_token_path = "/bytoken/{token}/{version}/{architecture}/{file}";
    GuardedRouter::new()
        .route(image("/byid/{id}/{version}/{architecture}/{file}", ID), get(by_id))
        .route(RouteAccess::image(by_api_key_path, &[], API_KEY), get(by_api_key))
        .route(RouteAccess::image(by_token_path, &[AuthKind::Url], IMAGE_TOKEN), get(by_image_token))
        .route(image("/images/{id}", ID), get(by_query))
        .route(image("/images/{id}/pxe-initrd", ID), get(initrd))
        .route(image("/images/{id}/s390x-initrd-addrsize", ID), get(initrd_addrsize))
        .route(RouteAccess::open("/boot-artifacts/{file}"), get(boot_file))
        .route(RouteAccess::open("/metrics"), get(metrics))
        .route(image("/i/{who}", WHO), get(listing))
        .route(image("/i/{who}/boot-trace", WHO), get(boot_trace))
        .route(image("/i/{who}/{file}", WHO), get(file))
        .route(image("/i/{who}/{machine}/{file}", WHO), get(file_of_machine))
        .map(|router| router.method_not_allowed_fallback(only_reads))
}

async fn by_id(
    State(server): State<ImageServer>,
    Path((id, version, architecture, file)): Path<(String, String, String, String)>,
    asked: ImageRequest,
) -> Result<Response, ApiError> {
    let wanted = RequestedImage::short(infra_env(&id)?, [version, architecture, file], asked.access())?;
    server.answer(&wanted, &asked).await
}

async fn by_api_key(
    State(server): State<ImageServer>,
    Path((token, version, architecture, file)): Path<(String, String, String, String)>,
    asked: ImageRequest,
) -> Result<Response, ApiError> {
    let id = infra_env_of(&token)?;
    let wanted =
        RequestedImage::short(id, [version, architecture, file], Access::ApiKey(Secret::new(token)))?;
    server.answer(&wanted, &asked).await
}

async fn by_image_token(
    State(server): State<ImageServer>,
    Path((token, version, architecture, file)): Path<(String, String, String, String)>,
    asked: ImageRequest,
) -> Result<Response, ApiError> {
    let id = infra_env_of(&token)?;
    // An `api_key` in the query takes precedence.
    let access = match asked.access() {
        Access::ApiKey(key) => Access::ApiKey(key),
        _ => Access::ImageToken(Secret::new(token)),
    };
    let wanted = RequestedImage::short(id, [version, architecture, file], access)?;
    server.answer(&wanted, &asked).await
}

async fn by_query(
    State(server): State<ImageServer>,
    Path(id): Path<String>,
    asked: ImageRequest,
) -> Result<Response, ApiError> {
    let kind = asked.query.text("type").ok_or_else(|| ApiError::malformed("type in query is required"))?;
    let artifact = Artifact::of_type(kind);
    let artifact = artifact.ok_or_else(|| {
        ApiError::malformed(format!(
            "type in query is {kind:?}, not full-iso, minimal-iso or disconnected-iso"
        ))
    })?;
    server.answer(&RequestedImage::long(&id, artifact, &asked)?, &asked).await
}

async fn initrd(
    State(server): State<ImageServer>,
    Path(id): Path<String>,
    asked: ImageRequest,
) -> Result<Response, ApiError> {
    server.answer(&RequestedImage::long(&id, Artifact::Initrd, &asked)?, &asked).await
}

async fn initrd_addrsize(
    State(server): State<ImageServer>,
    Path(id): Path<String>,
    asked: ImageRequest,
) -> Result<Response, ApiError> {
    let mut wanted = RequestedImage::long(&id, Artifact::InitrdAddrsize, &asked)?;
    wanted.live_image = wanted.live_image.map(|(version, _)| (version, CpuArchitecture::S390x));
    server.answer(&wanted, &asked).await
}

async fn boot_file(
    State(server): State<ImageServer>,
    Path(name): Path<String>,
    asked: ImageRequest,
) -> Result<Response, ApiError> {
    let (name, is_digest) = without_digest(&name);
    let file = BootFile::of_name(name)
        .ok_or_else(|| ApiError::not_found(format!("boot artifact {name:?} does not exist")))?;
    let (version, architecture) = asked.live_image()?;
    server.answer_boot_file((file, is_digest), (&version, architecture), None, &asked).await
}

async fn metrics(State(server): State<ImageServer>) -> impl IntoResponse {
    let text = server.metrics().text(&server.live_images().states());
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], text)
}

async fn listing(
    State(server): State<ImageServer>,
    Path(who): Path<String>,
    asked: ImageRequest,
) -> Result<Json<Listing>, ApiError> {
    let (id, access) = named(&who, &asked)?;
    Ok(Json(server.listing(id, &access, &who).await?))
}

async fn boot_trace(
    State(server): State<ImageServer>,
    Path(who): Path<String>,
    asked: ImageRequest,
) -> Result<Json<BootTrace>, ApiError> {
    let (id, access) = named(&who, &asked)?;
    Ok(Json(server.boot_trace(id, &access, asked.query.flag("ranges")).await?))
}

async fn file(
    State(server): State<ImageServer>,
    Path((who, file)): Path<(String, String)>,
    asked: ImageRequest,
) -> Result<Response, ApiError> {
    let (id, access) = named(&who, &asked)?;
    let (name, is_digest) = without_digest(&file);
    if name == SCRIPT && !is_digest {
        return server.script(id, &access).await;
    }
    if let Some(file) = BootFile::of_name(name) {
        let current = server.current(id, Artifact::Initrd, &access).await?;
        let (version, architecture) = server.live_image_of(&current, (id, &access)).await?;
        let of = Some((id, current));
        return server.answer_boot_file((file, is_digest), (&version, architecture), of, &asked).await;
    }
    let artifact = Artifact::of_name(name).ok_or_else(|| no_such_file(name))?;
    server.answer(&of_infra_env(id, artifact, access, is_digest), &asked).await
}

async fn file_of_machine(
    State(server): State<ImageServer>,
    Path((who, mac, file)): Path<(String, String, String)>,
    asked: ImageRequest,
) -> Result<Response, ApiError> {
    let (id, access) = named(&who, &asked)?;
    let (name, is_digest) = without_digest(&file);
    let artifact = Artifact::of_name(name).ok_or_else(|| no_such_file(name))?;
    let wanted = of_infra_env(id, artifact, access, is_digest);
    server.answer(&RequestedImage { machine: Some(machine(&mac)?), ..wanted }, &asked).await
}

fn of_infra_env(
    infra_env: InfraEnvId,
    artifact: Artifact,
    access: Access,
    is_digest: bool,
) -> RequestedImage {
    RequestedImage { infra_env, artifact, machine: None, live_image: None, access, is_digest }
}
