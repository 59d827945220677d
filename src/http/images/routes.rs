//! The routes of the Assisted Image Service, with an additional `.sha256` file for each file. More routes are under
//! `/i`.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use utoipa::OpenApi;

use super::artifact::{Artifact, BaseImageFile, SCRIPT};
use super::boot_trace::BootTrace;
use super::description::{
    FileHeaders, FileOfRevision, FileOfVersion, FileResponses, Refusals, RevisionResponses,
    RevisionWithVersionInQuery, VersionInQuery, add_responses,
};
use super::inputs::ImageCredentials;
use super::listing::InfraEnvFiles;
use super::requested_image::{
    ImageRequest, RequestedImage, RequestedRevision, RevisionUrl, infra_env_and_credentials,
    infra_env_in_token, no_such_file_error, parse_infra_env_id, parse_mac, strip_digest_suffix,
};
use super::server::ImageServer;
use crate::http::metrics::MEDIA_TYPE;
use crate::http::source_metrics::SourceMetrics;
use inventory::Secret;
use inventory::api::auth::{GuardedRouter, IdSource, RouteAccess};
use inventory::api::{ApiError, OperationError, add_access, only_reads};
use inventory::auth::AuthKind;
use inventory::catalogue::CpuArchitecture;
use inventory::id::InfraEnvId;

impl ImageServer {
    pub(crate) fn guarded_router(&self) -> GuardedRouter {
        routes().with_state(self.clone())
    }
}

/// The OpenAPI document of these routes.
#[derive(OpenApi)]
#[openapi(
    paths(
        image_by_id, image_by_id_and_revision, image_by_api_key, image_by_api_key_and_revision, image_by_token,
        image_by_token_and_revision, image_by_query, initrd, initrd_of_revision, initrd_addrsize, boot_file, metrics,
        infra_env_files, boot_trace, infra_env_file, host_file
    ),
    tags((name = "images", description = "Images and other files that hosts boot from"))
)]
struct Document;

pub(in crate::http) fn document() -> utoipa::openapi::OpenApi {
    let mut document = Document::openapi();
    add_access(&mut document, &routes().into_parts().1);
    add_responses(&mut document);
    document
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
    let api_key_revision_path = "/byapikey/{token}/{version}/{architecture}/{revision}/{file}";
    let token_revision_path = "/bytoken/{token}/{version}/{architecture}/{revision}/{file}";
    GuardedRouter::new()
        .route(image("/byid/{id}/{version}/{architecture}/{file}", ID), image_by_id)
        .route(image("/byid/{id}/{version}/{architecture}/{revision}/{file}", ID), image_by_id_and_revision)
        .route(RouteAccess::image(by_api_key_path, &[], API_KEY), image_by_api_key)
        .route(RouteAccess::image(api_key_revision_path, &[], API_KEY), image_by_api_key_and_revision)
        .route(RouteAccess::image(by_token_path, &[AuthKind::Url], IMAGE_TOKEN), image_by_token)
        .route(
            RouteAccess::image(token_revision_path, &[AuthKind::Url], IMAGE_TOKEN),
            image_by_token_and_revision,
        )
        .route(image("/images/{id}", ID), image_by_query)
        .route(image("/images/{id}/pxe-initrd", ID), initrd)
        .route(image("/images/{id}/{revision}/pxe-initrd", ID), initrd_of_revision)
        .route(image("/images/{id}/s390x-initrd-addrsize", ID), initrd_addrsize)
        .route(RouteAccess::open("/boot-artifacts/{file}"), boot_file)
        .route(RouteAccess::open("/metrics"), metrics)
        .route(image("/i/{who}", WHO), infra_env_files)
        .route(image("/i/{who}/boot-trace", WHO), boot_trace)
        .route(image("/i/{who}/{file}", WHO), infra_env_file)
        .route(image("/i/{who}/{machine}/{file}", WHO), host_file)
        .method_not_allowed_fallback(only_reads)
}

/// Downloads an image by the id of its infra-env
///
/// As in the Assisted Image Service.
#[utoipa::path(
    get,
    path = "/byid/{id}/{version}/{architecture}/{file}",
    operation_id = "DownloadImageById",
    tag = "images",
    params(
        ("id" = String, Path, description = "Id of the infra-env, in lower case"),
        FileOfVersion,
    ),
    responses(FileResponses)
)]
async fn image_by_id(
    State(server): State<ImageServer>,
    Path((id, version, architecture, file)): Path<(String, String, String, String)>,
    request: ImageRequest,
) -> Result<Response, ApiError> {
    let target = RequestedImage::from_short_url(
        parse_infra_env_id(&id)?,
        [version, architecture, file],
        request.credentials(),
    )?;
    server.answer_image(&target, &request).await
}

/// Downloads a revision of an image by the id of its infra-env
#[utoipa::path(
    get,
    path = "/byid/{id}/{version}/{architecture}/{revision}/{file}",
    operation_id = "DownloadImageRevisionById",
    tag = "images",
    params(
        ("id" = String, Path, description = "Id of the infra-env, in lower case"),
        FileOfRevision,
    ),
    responses(RevisionResponses)
)]
async fn image_by_id_and_revision(
    State(server): State<ImageServer>,
    Path((id, version, architecture, revision, file)): Path<(String, String, String, String, String)>,
    request: ImageRequest,
) -> Result<Response, ApiError> {
    let of = [version, architecture, file];
    let target = RequestedImage::from_short_url(parse_infra_env_id(&id)?, of, request.credentials())?;
    let revision = RequestedRevision::parse(&revision, RevisionUrl::ById)?;
    server.answer_image(&target.with_revision(revision), &request).await
}

/// Downloads an image with the token of its infra-env in the path
///
/// As in the Assisted Image Service.
#[utoipa::path(
    get,
    path = "/byapikey/{token}/{version}/{architecture}/{file}",
    operation_id = "DownloadImageByApiKey",
    tag = "images",
    params(
        ("token" = String, Path, description = "Token of the infra-env"),
        FileOfVersion,
    ),
    responses(FileResponses)
)]
async fn image_by_api_key(
    State(server): State<ImageServer>,
    Path((token, version, architecture, file)): Path<(String, String, String, String)>,
    request: ImageRequest,
) -> Result<Response, ApiError> {
    let target = requested_by_api_key(token, [version, architecture, file])?;
    server.answer_image(&target, &request).await
}

/// Downloads a revision of an image with the token of its infra-env in the path
#[utoipa::path(
    get,
    path = "/byapikey/{token}/{version}/{architecture}/{revision}/{file}",
    operation_id = "DownloadImageRevisionByApiKey",
    tag = "images",
    params(
        ("token" = String, Path, description = "Token of the infra-env"),
        FileOfRevision,
    ),
    responses(RevisionResponses)
)]
async fn image_by_api_key_and_revision(
    State(server): State<ImageServer>,
    Path((token, version, architecture, revision, file)): Path<(String, String, String, String, String)>,
    request: ImageRequest,
) -> Result<Response, ApiError> {
    let target = requested_by_api_key(token, [version, architecture, file])?;
    let revision = RequestedRevision::parse(&revision, RevisionUrl::ByApiKey)?;
    server.answer_image(&target.with_revision(revision), &request).await
}

fn requested_by_api_key(token: String, of: [String; 3]) -> Result<RequestedImage, ApiError> {
    let id = infra_env_in_token(&token)?;
    RequestedImage::from_short_url(id, of, ImageCredentials::ApiKey(Secret::new(token)))
}

/// Downloads an image with an image token in the path
///
/// As in the Assisted Image Service.
#[utoipa::path(
    get,
    path = "/bytoken/{token}/{version}/{architecture}/{file}",
    operation_id = "DownloadImageByToken",
    tag = "images",
    params(
        ("token" = String, Path, description = "Image token. The policy `local` does not accept it"),
        FileOfVersion,
    ),
    responses(FileResponses)
)]
async fn image_by_token(
    State(server): State<ImageServer>,
    Path((token, version, architecture, file)): Path<(String, String, String, String)>,
    request: ImageRequest,
) -> Result<Response, ApiError> {
    let target = requested_by_token(token, [version, architecture, file], &request)?;
    server.answer_image(&target, &request).await
}

/// Downloads a revision of an image with an image token in the path
#[utoipa::path(
    get,
    path = "/bytoken/{token}/{version}/{architecture}/{revision}/{file}",
    operation_id = "DownloadImageRevisionByToken",
    tag = "images",
    params(
        ("token" = String, Path, description = "Image token. The policy `local` does not accept it"),
        FileOfRevision,
    ),
    responses(RevisionResponses)
)]
async fn image_by_token_and_revision(
    State(server): State<ImageServer>,
    Path((token, version, architecture, revision, file)): Path<(String, String, String, String, String)>,
    request: ImageRequest,
) -> Result<Response, ApiError> {
    let target = requested_by_token(token, [version, architecture, file], &request)?;
    let revision = RequestedRevision::parse(&revision, RevisionUrl::ByToken)?;
    server.answer_image(&target.with_revision(revision), &request).await
}

fn requested_by_token(
    token: String,
    of: [String; 3],
    request: &ImageRequest,
) -> Result<RequestedImage, ApiError> {
    let id = infra_env_in_token(&token)?;
    // An `api_key` in the query takes precedence.
    let access = match request.credentials() {
        ImageCredentials::ApiKey(key) => ImageCredentials::ApiKey(key),
        _ => ImageCredentials::ImageToken(Secret::new(token)),
    };
    RequestedImage::from_short_url(id, of, access)
}

/// Downloads an image that the query selects
///
/// As in the Assisted Image Service.
#[utoipa::path(
    get,
    path = "/images/{id}",
    operation_id = "DownloadImage",
    tag = "images",
    params(
        ("id" = String, Path, description = "Id of the infra-env, in lower case"),
        ("type" = String, Query, description = "`full-iso`, `minimal-iso` or `disconnected-iso`"),
        VersionInQuery,
    ),
    responses(FileResponses)
)]
async fn image_by_query(
    State(server): State<ImageServer>,
    Path(id): Path<String>,
    request: ImageRequest,
) -> Result<Response, ApiError> {
    let kind = request.query.text("type").ok_or_else(|| ApiError::malformed("type in query is required"))?;
    let artifact = Artifact::from_iso_type(kind);
    let artifact = artifact.ok_or_else(|| {
        ApiError::malformed(format!(
            "type in query is {kind:?}, not full-iso, minimal-iso or disconnected-iso"
        ))
    })?;
    server.answer_image(&RequestedImage::from_long_url(&id, artifact, &request)?, &request).await
}

/// Downloads the initrd for hosts that boot over the network
///
/// As in the Assisted Image Service.
#[utoipa::path(
    get,
    path = "/images/{id}/pxe-initrd",
    operation_id = "DownloadPxeInitrd",
    tag = "images",
    params(
        ("id" = String, Path, description = "Id of the infra-env, in lower case"),
        VersionInQuery,
    ),
    responses(FileResponses)
)]
async fn initrd(
    State(server): State<ImageServer>,
    Path(id): Path<String>,
    request: ImageRequest,
) -> Result<Response, ApiError> {
    server.answer_image(&RequestedImage::from_long_url(&id, Artifact::Initrd, &request)?, &request).await
}

/// Downloads a revision of the initrd for hosts that boot over the network
#[utoipa::path(
    get,
    path = "/images/{id}/{revision}/pxe-initrd",
    operation_id = "DownloadPxeInitrdRevision",
    tag = "images",
    params(
        ("id" = String, Path, description = "Id of the infra-env, in lower case"),
        RevisionWithVersionInQuery,
    ),
    responses(RevisionResponses)
)]
async fn initrd_of_revision(
    State(server): State<ImageServer>,
    Path((id, revision)): Path<(String, String)>,
    request: ImageRequest,
) -> Result<Response, ApiError> {
    let target = RequestedImage::from_long_url(&id, Artifact::Initrd, &request)?;
    let revision = RequestedRevision::parse(&revision, RevisionUrl::Initrd)?;
    server.answer_image(&target.with_revision(revision), &request).await
}

/// Downloads the load address and the size of the initrd on s390x
///
/// As in the Assisted Image Service.
#[utoipa::path(
    get,
    path = "/images/{id}/s390x-initrd-addrsize",
    operation_id = "DownloadInitrdAddrsize",
    tag = "images",
    params(
        ("id" = String, Path, description = "Id of the infra-env, in lower case"),
        VersionInQuery,
    ),
    responses(FileResponses)
)]
async fn initrd_addrsize(
    State(server): State<ImageServer>,
    Path(id): Path<String>,
    request: ImageRequest,
) -> Result<Response, ApiError> {
    let mut target = RequestedImage::from_long_url(&id, Artifact::InitrdAddrsize, &request)?;
    target.live_image = target.live_image.map(|(version, _)| (version, CpuArchitecture::S390x));
    server.answer_image(&target, &request).await
}

/// Downloads a file of a base image
///
/// As in the Assisted Image Service.
#[utoipa::path(
    get,
    path = "/boot-artifacts/{file}",
    operation_id = "DownloadBootArtifact",
    tag = "images",
    params(
        ("file" = String, Path, description = "`kernel`, `rootfs` or, on s390x, `ins-file`, or one of these with `.sha256` for its digest"),
        VersionInQuery,
    ),
    responses(FileResponses)
)]
async fn boot_file(
    State(server): State<ImageServer>,
    Path(name): Path<String>,
    request: ImageRequest,
) -> Result<Response, ApiError> {
    let (name, is_digest) = strip_digest_suffix(&name);
    let file = BaseImageFile::from_name(name)
        .ok_or_else(|| ApiError::not_found(format!("boot artifact {name:?} does not exist")))?;
    let (version, architecture) = request.base_image_version()?;
    server.answer_boot_file((file, is_digest), (&version, architecture), None, &request).await
}

/// Returns the metrics of the service for Prometheus
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "GetMetrics",
    tag = "service",
    responses(
        (status = OK, description = "The metrics, in the OpenMetrics format.", body = String, content_type = "application/openmetrics-text"),
        (status = INTERNAL_SERVER_ERROR, description = "The service failed; its log has the cause.", body = OperationError)
    )
)]
async fn metrics(State(server): State<ImageServer>) -> Result<impl IntoResponse, ApiError> {
    let source = SourceMetrics { is_reachable: server.source_status().await.is_reachable };
    let library = server.library();
    let text = server.metrics().to_text((&library.states(), library.deleted_bytes()), source)?;
    Ok(([(header::CONTENT_TYPE, MEDIA_TYPE)], text))
}

/// Lists the files of an infra-env, with URLs, sizes and entity tags
#[utoipa::path(
    get,
    path = "/i/{who}",
    operation_id = "ListInfraEnvImageFiles",
    tag = "images",
    params(
        ("who" = String, Path, description = "Id of the infra-env, or its token"),
    ),
    responses((status = OK, description = "The list of files.", body = InfraEnvFiles), Refusals)
)]
async fn infra_env_files(
    State(server): State<ImageServer>,
    Path(who): Path<String>,
    request: ImageRequest,
) -> Result<Json<InfraEnvFiles>, ApiError> {
    let (id, access) = infra_env_and_credentials(&who, &request)?;
    Ok(Json(server.list_files(id, &access, &who).await?))
}

/// Returns how much of the infra-env's files each client has read
#[utoipa::path(
    get,
    path = "/i/{who}/boot-trace",
    operation_id = "GetBootTrace",
    tag = "images",
    params(
        ("who" = String, Path, description = "Id of the infra-env, or its token"),
        ("ranges" = Option<bool>, Query, description = "Include the ranges sent to each client"),
    ),
    responses((status = OK, description = "The progress of each client.", body = BootTrace), Refusals)
)]
async fn boot_trace(
    State(server): State<ImageServer>,
    Path(who): Path<String>,
    request: ImageRequest,
) -> Result<Json<BootTrace>, ApiError> {
    let (id, access) = infra_env_and_credentials(&who, &request)?;
    Ok(Json(server.boot_trace(id, &access, request.query.flag("ranges")).await?))
}

/// Downloads a file of an infra-env
///
/// The base image is the current one of the OpenShift version of the infra-env.
#[utoipa::path(
    get,
    path = "/i/{who}/{file}",
    operation_id = "DownloadInfraEnvImageFile",
    tag = "images",
    params(
        ("who" = String, Path, description = "Id of the infra-env, or its token"),
        ("file" = String, Path, description = "`full.iso`, `minimal.iso`, `kernel`, `initrd`, `rootfs` or `script.ipxe`. On s390x also `initrd.addrsize` and `ins-file`. With `.sha256`, the digest of the file, except for the script"),
        FileHeaders,
    ),
    responses(FileResponses)
)]
async fn infra_env_file(
    State(server): State<ImageServer>,
    Path((who, file)): Path<(String, String)>,
    request: ImageRequest,
) -> Result<Response, ApiError> {
    let (id, access) = infra_env_and_credentials(&who, &request)?;
    let (name, is_digest) = strip_digest_suffix(&file);
    if name == SCRIPT && !is_digest {
        return server.answer_ipxe_script(id, &access).await;
    }
    if let Some(file) = BaseImageFile::from_name(name) {
        let current = server.current_snapshot(id, Artifact::Initrd, &access).await?;
        let (version, architecture) = server.base_image_version(&current, (id, &access)).await?;
        let of = Some((id, current));
        return server.answer_boot_file((file, is_digest), (&version, architecture), of, &request).await;
    }
    let artifact = Artifact::from_name(name).ok_or_else(|| no_such_file_error(name))?;
    server.answer_image(&requested_image(id, artifact, access, is_digest), &request).await
}

/// Downloads a file for one host, with its static network only
#[utoipa::path(
    get,
    path = "/i/{who}/{machine}/{file}",
    operation_id = "DownloadHostImageFile",
    tag = "images",
    params(
        ("who" = String, Path, description = "Id of the infra-env, or its token"),
        ("machine" = String, Path, description = "MAC address of the host, with colons or dashes"),
        ("file" = String, Path, description = "`full.iso`, `minimal.iso` or `initrd`, on s390x also `initrd.addrsize`, or one of these with `.sha256` for its digest"),
        FileHeaders,
    ),
    responses(FileResponses)
)]
async fn host_file(
    State(server): State<ImageServer>,
    Path((who, mac, file)): Path<(String, String, String)>,
    request: ImageRequest,
) -> Result<Response, ApiError> {
    let (id, access) = infra_env_and_credentials(&who, &request)?;
    let (name, is_digest) = strip_digest_suffix(&file);
    let artifact = Artifact::from_name(name).ok_or_else(|| no_such_file_error(name))?;
    let target = requested_image(id, artifact, access, is_digest);
    server.answer_image(&RequestedImage { machine: Some(parse_mac(&mac)?), ..target }, &request).await
}

fn requested_image(
    infra_env: InfraEnvId,
    artifact: Artifact,
    access: ImageCredentials,
    is_digest: bool,
) -> RequestedImage {
    RequestedImage { infra_env, artifact, machine: None, live_image: None, access, is_digest, revision: None }
}
