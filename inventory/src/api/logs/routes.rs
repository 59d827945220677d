//! The operations of `/v2/clusters/{cluster_id}/logs` and `logs-progress`.

use assisted::host::LogsProgressParams;
use axum::extract::{FromRequest, Multipart, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use utoipa::ToSchema;

use super::download::{attachment, requested_logs};
use super::upload::{logs_sender, store_upfile};
use crate::Inventory;
use crate::api::auth::{Agent, Caller, ClusterLogs, Downloader, LogsSource, Operation, operation};
use crate::api::{ApiError, ApiErrors, ApiState, Body, Query};
use crate::id::ClusterId;
use crate::request_id::RequestId;
use crate::service::logs::MAX_LOGS;

pub(crate) fn routes() -> Vec<Operation> {
    // A limit above the address space is replaced by `usize::MAX`, because no body can be longer.
    let form = usize::try_from(MAX_LOGS).unwrap_or(usize::MAX).saturating_add(MAX_FORM);
    vec![
        operation!(upload_logs).with_body_limit(form),
        operation!(download_logs),
        operation!(update_cluster_logs_progress),
    ]
}

/// Maximum number of bytes of a form in addition to its file.
const MAX_FORM: usize = 64 << 10;

/// Form with logs.
#[derive(Debug, ToSchema)]
#[schema(as = logs_form)]
#[expect(dead_code, reason = "the type only documents the form; it is never constructed")]
struct LogsForm {
    /// The log file to upload.
    #[schema(value_type = String, format = Binary)]
    upfile: Vec<u8>,
}

/// A multipart form. Its errors have the same format as the errors of other bodies.
#[derive(Debug)]
struct LogsMultipart(Multipart);

impl FromRequest<ApiState> for LogsMultipart {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &ApiState) -> Result<Self, ApiError> {
        let form = Multipart::from_request(request, api).await;
        form.map(Self).map_err(|error| ApiError::malformed(error.body_text()))
    }
}

/// Uploads logs
#[utoipa::path(
    post,
    path = "/v2/clusters/{cluster_id}/logs",
    operation_id = "V2UploadLogs",
    tag = "logs",
    params(
        ("cluster_id" = uuid::Uuid, Path),
        ("logs_type" = String, Query, description = "`host` or `controller`"),
        ("host_id" = Option<uuid::Uuid>, Query, description = "Host, for the logs of one host"),
        ("infra_env_id" = Option<uuid::Uuid>, Query, description = "Infra-env of the host")
    ),
    request_body(content = LogsForm, content_type = "multipart/form-data"),
    responses((status = NO_CONTENT), (status = PAYLOAD_TOO_LARGE, body = crate::api::OperationError), ApiErrors)
)]
async fn upload_logs(
    Caller { target: source, .. }: Caller<Agent, LogsSource>,
    query: Query,
    request: RequestId,
    State(api): State<ApiState>,
    LogsMultipart(form): LogsMultipart,
) -> Result<StatusCode, ApiError> {
    let sender = logs_sender(&query, &source)?;
    let upload = api.inventory().start_logs_upload(source.cluster, sender, request).await?;
    store_upfile(upload, api.uploads().empty_reservation(), form).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Downloads the logs of a host or of the controller, or an archive of all logs
#[utoipa::path(
    get,
    path = "/v2/clusters/{cluster_id}/logs",
    operation_id = "V2DownloadClusterLogs",
    tag = "logs",
    params(
        ("cluster_id" = uuid::Uuid, Path),
        ("logs_type" = Option<String>, Query, description = "`host`, `controller` or `all`"),
        ("host_id" = Option<uuid::Uuid>, Query, description = "Host, for the logs of one host")
    ),
    responses((status = OK, content_type = "application/octet-stream", body = Vec<u8>), ApiErrors)
)]
async fn download_logs(
    Caller { target, .. }: Caller<Downloader, ClusterLogs>,
    query: Query,
    State(inventory): State<Inventory>,
) -> Result<Response, ApiError> {
    let requested = requested_logs(&query, target.host)?;
    attachment(inventory.logs(target.cluster, requested).await?)
}

/// Updates the state of the controller's log upload
#[utoipa::path(
    put,
    path = "/v2/clusters/{cluster_id}/logs-progress",
    operation_id = "v2UpdateClusterLogsProgress",
    tag = "logs",
    params(("cluster_id" = uuid::Uuid, Path)),
    request_body = LogsProgressParams,
    responses((status = NO_CONTENT), ApiErrors)
)]
async fn update_cluster_logs_progress(
    Caller { target: id, .. }: Caller<Agent, ClusterId>,
    request: RequestId,
    State(inventory): State<Inventory>,
    Body(params): Body<LogsProgressParams>,
) -> Result<StatusCode, ApiError> {
    inventory.set_cluster_logs_state(id, params.logs_state, Some(request)).await?;
    Ok(StatusCode::NO_CONTENT)
}
