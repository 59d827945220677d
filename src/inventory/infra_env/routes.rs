//! `/v2/infra-envs`.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};

use super::download::{File, FileName, IpxeScript};
use super::{
    InfraEnv, InfraEnvCreateParams, InfraEnvUpdateParams, NetworkFileHosts, NetworkFiles, Preflight,
    PresignedUrl,
};
use crate::api_error::ApiError;
use crate::api_error::{ApiErrors, Reply};
use crate::images::ImageType;
use crate::inventory::Inventory;
use crate::inventory::auth::{Caller, Files, Initrd, Lister, Operation, User, WholeService, operation};
use crate::inventory::id::InfraEnvId;
use crate::inventory::list::json_list;
use crate::inventory::request::{Body, Query};

pub(crate) fn routes() -> Vec<Operation> {
    vec![
        operation!(register),
        operation!(list),
        operation!(get),
        operation!(update),
        operation!(deregister),
        operation!(image_url),
        operation!(download_file),
        operation!(presigned_url),
        operation!(minimal_initrd),
        operation!(regenerate_signing_key),
        operation!(preflight),
        operation!(read_network_files),
    ]
}

type Answer<T> = Result<Reply<T>, ApiError>;

/// Makes an infra-env
#[utoipa::path(
    post,
    path = "/v2/infra-envs",
    operation_id = "RegisterInfraEnv",
    tag = "infra-envs",
    request_body = InfraEnvCreateParams,
    responses((status = CREATED, body = InfraEnv), ApiErrors)
)]
async fn register(
    _caller: Caller<User, WholeService>,
    State(inventory): State<Inventory>,
    Body(params): Body<InfraEnvCreateParams>,
) -> Answer<InfraEnv> {
    Ok(Reply(StatusCode::CREATED, inventory.register_infra_env(params).await?))
}

/// All infra-envs, those of a cluster, or those of an owner
#[utoipa::path(
    get,
    path = "/v2/infra-envs",
    operation_id = "ListInfraEnvs",
    tag = "infra-envs",
    params(
        ("cluster_id" = Option<uuid::Uuid>, Query, description = "Only those of this cluster"),
        ("owner" = Option<String>, Query, description = "Only those of this user"),
    ),
    responses((status = OK, body = Vec<InfraEnv>), ApiErrors)
)]
async fn list(
    _caller: Caller<Lister, WholeService>,
    query: Query,
    State(inventory): State<Inventory>,
) -> Result<Response, ApiError> {
    let owner = query.text("owner").map(str::to_owned);
    json_list(inventory.infra_envs(query.id("cluster_id")?, owner)).await
}

/// An infra-env
#[utoipa::path(
    get,
    path = "/v2/infra-envs/{infra_env_id}",
    operation_id = "GetInfraEnv",
    tag = "infra-envs",
    params(("infra_env_id" = uuid::Uuid, Path)),
    responses((status = OK, body = InfraEnv), ApiErrors)
)]
async fn get(
    Caller { target: id, .. }: Caller<Files, InfraEnvId>,
    State(inventory): State<Inventory>,
) -> Answer<InfraEnv> {
    Ok(Reply(StatusCode::OK, inventory.infra_env(id).await?))
}

/// Changes an infra-env
#[utoipa::path(
    patch,
    path = "/v2/infra-envs/{infra_env_id}",
    operation_id = "UpdateInfraEnv",
    tag = "infra-envs",
    params(("infra_env_id" = uuid::Uuid, Path)),
    request_body = InfraEnvUpdateParams,
    responses((status = CREATED, body = InfraEnv), ApiErrors)
)]
async fn update(
    Caller { target: id, .. }: Caller<User, InfraEnvId>,
    State(inventory): State<Inventory>,
    Body(params): Body<InfraEnvUpdateParams>,
) -> Answer<InfraEnv> {
    Ok(Reply(StatusCode::CREATED, inventory.update_infra_env(id, params).await?))
}

/// Takes an infra-env away
#[utoipa::path(
    delete,
    path = "/v2/infra-envs/{infra_env_id}",
    operation_id = "DeregisterInfraEnv",
    tag = "infra-envs",
    params(("infra_env_id" = uuid::Uuid, Path)),
    responses((status = NO_CONTENT), ApiErrors)
)]
async fn deregister(
    Caller { target: id, .. }: Caller<User, InfraEnvId>,
    State(inventory): State<Inventory>,
) -> Result<StatusCode, ApiError> {
    inventory.deregister_infra_env(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Where the image of an infra-env is
#[utoipa::path(
    get,
    path = "/v2/infra-envs/{infra_env_id}/downloads/image-url",
    operation_id = "GetInfraEnvDownloadURL",
    tag = "infra-envs",
    params(("infra_env_id" = uuid::Uuid, Path)),
    responses((status = OK, body = PresignedUrl), ApiErrors)
)]
async fn image_url(
    Caller { target: id, .. }: Caller<User, InfraEnvId>,
    State(inventory): State<Inventory>,
) -> Answer<PresignedUrl> {
    Ok(Reply(StatusCode::OK, inventory.image_url(id).await?))
}

/// A file of an infra-env
#[utoipa::path(
    get,
    path = "/v2/infra-envs/{infra_env_id}/downloads/files",
    operation_id = "v2DownloadInfraEnvFiles",
    tag = "infra-envs",
    params(
        ("infra_env_id" = uuid::Uuid, Path),
        ("file_name" = String, Query, description = "discovery.ign, ipxe-script or static-network-config"),
        ("mac" = Option<String>, Query, description = "Of an iPXE script: the machine that boots"),
        ("ipxe_script_type" = Option<String>, Query, description = "discovery-image-always or boot-order-control"),
        ("discovery_iso_type" = Option<String>, Query, description = "The kind of image that the file is for"),
    ),
    responses((status = OK, content_type = "application/octet-stream"), (status = NOT_MODIFIED), ApiErrors)
)]
async fn download_file(
    Caller { target: id, .. }: Caller<Files, InfraEnvId>,
    query: Query,
    headers: HeaderMap,
    State(inventory): State<Inventory>,
) -> Result<Response, ApiError> {
    let file = query.choice("file_name", &FileName::NAMES)?.ok_or_else(|| Query::missing("file_name"))?;
    let kind = query.choice("discovery_iso_type", &ImageType::ALL.map(|kind| (kind.as_str(), kind)))?;
    let script = query.choice("ipxe_script_type", &IpxeScript::NAMES)?;
    if script.is_some() && file != FileName::IpxeScript {
        return Err(ApiError::bad(format!(
            "\"ipxe_script_type\" can be set only for \"ipxe-script\", not for {:?}",
            file.as_str()
        )));
    }
    let file = match file {
        FileName::DiscoveryIgnition => inventory.discovery_ignition(id, kind).await?,
        FileName::StaticNetworkConfig => inventory.static_network_tar(id).await?,
        FileName::IpxeScript => {
            let mac = query.text("mac").map(checked_mac).transpose()?;
            inventory.ipxe_script(id, script.unwrap_or_default(), mac).await?
        }
    };
    Ok(attachment(&file, &headers))
}

fn checked_mac(text: &str) -> Result<&str, ApiError> {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    let is_part = |part: &&str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    if parts.len() == 6 && parts.iter().all(is_part) {
        return Ok(text);
    }
    Err(ApiError::malformed(format!("mac in query must be of type mac: {text:?}")))
}

/// Where a file of an infra-env is
#[utoipa::path(
    get,
    path = "/v2/infra-envs/{infra_env_id}/downloads/files-presigned",
    operation_id = "GetInfraEnvPresignedFileURL",
    tag = "infra-envs",
    params(
        ("infra_env_id" = uuid::Uuid, Path),
        ("file_name" = String, Query, description = "discovery.ign or ipxe-script"),
        ("ipxe_script_type" = Option<String>, Query, description = "discovery-image-always or boot-order-control"),
    ),
    responses((status = OK, body = PresignedUrl), ApiErrors)
)]
async fn presigned_url(
    Caller { target: id, .. }: Caller<User, InfraEnvId>,
    query: Query,
    State(inventory): State<Inventory>,
) -> Answer<PresignedUrl> {
    let [ignition, ipxe, _] = FileName::NAMES;
    let file = query.choice("file_name", &[ignition, ipxe])?.ok_or_else(|| Query::missing("file_name"))?;
    let script = query.choice("ipxe_script_type", &IpxeScript::NAMES)?;
    Ok(Reply(StatusCode::OK, inventory.file_url(id, file, script).await?))
}

/// What the initrd of a minimal image has beside that of the live image
#[utoipa::path(
    get,
    path = "/v2/infra-envs/{infra_env_id}/downloads/minimal-initrd",
    operation_id = "DownloadMinimalInitrd",
    tag = "infra-envs",
    params(("infra_env_id" = uuid::Uuid, Path)),
    responses(
        (status = OK, content_type = "application/octet-stream"),
        (status = NO_CONTENT, description = "It has nothing more."),
        (status = NOT_MODIFIED),
        ApiErrors
    )
)]
async fn minimal_initrd(
    Caller { target: id, .. }: Caller<Initrd, InfraEnvId>,
    headers: HeaderMap,
    State(inventory): State<Inventory>,
) -> Result<Response, ApiError> {
    let file = inventory.minimal_initrd(id).await?;
    if file.contents.is_empty() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let mut response = attachment(&file, &headers);
    response.headers_mut().remove(header::CONTENT_DISPOSITION);
    Ok(response)
}

/// Gives an infra-env another key for the tokens of its images
#[utoipa::path(
    post,
    path = "/v2/infra-envs/{infra_env_id}/regenerate-signing-key",
    operation_id = "RegenerateInfraEnvSigningKey",
    tag = "infra-envs",
    params(("infra_env_id" = uuid::Uuid, Path)),
    responses((status = NO_CONTENT), ApiErrors)
)]
async fn regenerate_signing_key(
    Caller { target: id, .. }: Caller<User, InfraEnvId>,
    State(inventory): State<Inventory>,
) -> Result<StatusCode, ApiError> {
    inventory.regenerate_signing_key(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What is known of an infra-env's images before any machine boots one
#[utoipa::path(
    get,
    path = "/v2/infra-envs/{infra_env_id}/preflight",
    operation_id = "GetInfraEnvPreflight",
    tag = "infra-envs",
    params(("infra_env_id" = uuid::Uuid, Path)),
    responses((status = OK, body = Preflight), ApiErrors)
)]
async fn preflight(
    Caller { target: id, .. }: Caller<User, InfraEnvId>,
    State(inventory): State<Inventory>,
) -> Answer<Preflight> {
    Ok(Reply(StatusCode::OK, inventory.preflight(id).await?))
}

/// Reads the networks of hosts from files
///
/// The page makes its form of them. Nothing is stored.
#[utoipa::path(
    post,
    path = "/v2/network-files",
    operation_id = "ReadNetworkFiles",
    tag = "infra-envs",
    request_body = NetworkFiles,
    responses((status = OK, body = NetworkFileHosts), ApiErrors)
)]
async fn read_network_files(
    _caller: Caller<User, WholeService>,
    State(inventory): State<Inventory>,
    Body(files): Body<NetworkFiles>,
) -> Answer<NetworkFileHosts> {
    Ok(Reply(StatusCode::OK, inventory.read_network_files(files).await?))
}

/// A file as an answer: whole, or only word that the client has it already.
fn attachment(file: &File, request: &HeaderMap) -> Response {
    let etag = file.etag();
    let date = |time: DateTime<Utc>| time.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let changed_at = date(file.changed_at);
    let known = match request.get(header::IF_NONE_MATCH).map(|value| value.to_str().unwrap_or_default()) {
        Some(tags) => tags == "*" || tags.split(',').any(|tag| tag.trim().trim_start_matches("W/") == etag),
        None => request
            .get(header::IF_MODIFIED_SINCE)
            .is_some_and(|since| since.as_bytes() == changed_at.as_bytes()),
    };
    let mut response =
        if known { StatusCode::NOT_MODIFIED.into_response() } else { file.contents.clone().into_response() };
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_TYPE);
    let mut set = |name, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    set(header::ETAG, &etag);
    // The time of a change may be ahead of the clock. No answer may tell of one that is still to come (RFC 9110, 8.8.2.1);
    // the condition goes by the true time.
    set(header::LAST_MODIFIED, &date(file.changed_at.min(Utc::now())));
    // A file may hold secrets: what caches it on the way must ask again each time.
    set(header::CACHE_CONTROL, "private, no-cache");
    if !known {
        set(header::CONTENT_TYPE, "application/octet-stream");
        set(header::CONTENT_DISPOSITION, &format!("attachment; filename=\"{}\"", file.name));
    }
    response
}
