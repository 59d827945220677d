//! The operations of `/v2/infra-envs`.

use assisted::infra_env::{InfraEnv, InfraEnvCreateParams, InfraEnvUpdateParams, Preflight, PresignedUrl};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use futures_util::StreamExt;

use super::view::{infra_env_from_record, preflight_from_findings, presigned};
use crate::Inventory;
use crate::api::auth::{Caller, Files, Initrd, Lister, Operation, User, WholeService, operation};
use crate::api::{ApiError, ApiErrors, Body, Query, Reply, header_value, json_list};
use crate::catalogue::ImageType;
use crate::id::InfraEnvId;
use crate::request_id::RequestId;
use crate::service::infra_envs::{File, FileName, InfraEnvQuery, IpxeScript};

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
    ]
}

type Answer<T> = Result<Reply<T>, ApiError>;

/// Registers an infra-env
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
    request: RequestId,
    State(inventory): State<Inventory>,
    Body(params): Body<InfraEnvCreateParams>,
) -> Answer<InfraEnv> {
    let record = inventory.register_infra_env(params, Some(request)).await?;
    Ok(Reply(StatusCode::CREATED, infra_env_from_record(&inventory, record).await?))
}

/// Lists infra-envs
#[utoipa::path(
    get,
    path = "/v2/infra-envs",
    operation_id = "ListInfraEnvs",
    tag = "infra-envs",
    params(
        ("cluster_id" = Option<uuid::Uuid>, Query, description = "Only infra-envs of this cluster"),
        ("owner" = Option<String>, Query, description = "Only infra-envs of this user"),
        ("limit" = Option<i64>, Query, minimum = 1, description = "Maximum number of infra-envs. Default: no limit"),
        ("offset" = Option<i64>, Query, minimum = 0, description = "Number of infra-envs to skip"),
    ),
    responses((status = OK, body = Vec<InfraEnv>), ApiErrors)
)]
async fn list(
    _caller: Caller<Lister, WholeService>,
    query: Query,
    State(inventory): State<Inventory>,
) -> Result<Response, ApiError> {
    let infra_envs = InfraEnvQuery {
        cluster: query.id("cluster_id")?,
        owner: query.text("owner").map(str::to_owned),
        range: query.list_range()?,
    };
    let records = inventory.infra_envs(infra_envs);
    let infra_envs = records.then(move |record| {
        let inventory = inventory.clone();
        async move { infra_env_from_record(&inventory, record?).await }
    });
    json_list(infra_envs).await
}

/// Returns an infra-env
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
    let record = inventory.infra_env(id).await?;
    Ok(Reply(StatusCode::OK, infra_env_from_record(&inventory, record).await?))
}

/// Updates an infra-env
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
    request: RequestId,
    State(inventory): State<Inventory>,
    Body(params): Body<InfraEnvUpdateParams>,
) -> Answer<InfraEnv> {
    let record = inventory.update_infra_env(id, params, Some(request)).await?;
    Ok(Reply(StatusCode::CREATED, infra_env_from_record(&inventory, record).await?))
}

/// Deletes an infra-env
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
    request: RequestId,
    State(inventory): State<Inventory>,
) -> Result<StatusCode, ApiError> {
    inventory.deregister_infra_env(id, Some(request)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the URL of an infra-env's image
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
    Ok(Reply(StatusCode::OK, presigned(inventory.image_url(id).await?)))
}

/// Returns a file of an infra-env
#[utoipa::path(
    get,
    path = "/v2/infra-envs/{infra_env_id}/downloads/files",
    operation_id = "v2DownloadInfraEnvFiles",
    tag = "infra-envs",
    params(
        ("infra_env_id" = uuid::Uuid, Path),
        ("file_name" = String, Query, description = "discovery.ign, ipxe-script or static-network-config"),
        ("mac" = Option<String>, Query, description = "For an iPXE script: MAC address of the host that boots"),
        ("ipxe_script_type" = Option<String>, Query, description = "discovery-image-always or boot-order-control"),
        ("discovery_iso_type" = Option<String>, Query, description = "Type of the image that the file is for"),
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
    attachment(&file, &headers, inventory.now())
}

fn checked_mac(text: &str) -> Result<&str, ApiError> {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    let is_part = |part: &&str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    if parts.len() == 6 && parts.iter().all(is_part) {
        return Ok(text);
    }
    Err(ApiError::malformed(format!("mac in query must be of type mac: {text:?}")))
}

/// Returns the URL of a file of an infra-env
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
    Ok(Reply(StatusCode::OK, presigned(inventory.file_url(id, file, script).await?)))
}

/// Returns the initrd that a minimal ISO adds to the initrd of the base image
#[utoipa::path(
    get,
    path = "/v2/infra-envs/{infra_env_id}/downloads/minimal-initrd",
    operation_id = "DownloadMinimalInitrd",
    tag = "infra-envs",
    params(("infra_env_id" = uuid::Uuid, Path)),
    responses(
        (status = OK, content_type = "application/octet-stream"),
        (status = NO_CONTENT, description = "The minimal ISO needs no additional initrd."),
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
    let mut response = attachment(&file, &headers, inventory.now())?;
    response.headers_mut().remove(header::CONTENT_DISPOSITION);
    Ok(response)
}

/// Replaces the key that signs the image tokens of an infra-env
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
    request: RequestId,
    State(inventory): State<Inventory>,
) -> Result<StatusCode, ApiError> {
    inventory.regenerate_signing_key(id, Some(request)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Checks an infra-env's networks, config and addresses before a host boots its image
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
    Ok(Reply(StatusCode::OK, preflight_from_findings(&inventory.preflight(id).await?)?))
}

/// Returns a response with a file, or status 304 if the client already has the file.
fn attachment(file: &File, request: &HeaderMap, now: DateTime<Utc>) -> Result<Response, ApiError> {
    let etag = file.etag();
    let date = |time: DateTime<Utc>| time.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let changed_at = date(file.changed_at);
    // A header value that is not text contains no valid entity tag.
    let is_cached = match request.get(header::IF_NONE_MATCH).map(|value| value.to_str().unwrap_or_default()) {
        Some(tags) => tags == "*" || tags.split(',').any(|tag| tag.trim().trim_start_matches("W/") == etag),
        None => request
            .get(header::IF_MODIFIED_SINCE)
            .is_some_and(|since| since.as_bytes() == changed_at.as_bytes()),
    };
    let mut response = if is_cached {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        file.contents.clone().into_response()
    };
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_TYPE);
    headers.insert(header::ETAG, header_value(&etag)?);
    // `changed_at` may be ahead of the clock. `Last-Modified` must not be in the future (RFC 9110, 8.8.2.1). The
    // condition above compares the original time.
    headers.insert(header::LAST_MODIFIED, header_value(&date(file.changed_at.min(now)))?);
    // A file may contain secrets. Only the client may cache it, and must revalidate it each time.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if !is_cached {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        let disposition = header_value(&format!("attachment; filename=\"{}\"", file.name))?;
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}
