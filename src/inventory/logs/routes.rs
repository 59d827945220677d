//! `/v2/clusters/{cluster_id}/logs` and how far they are.

use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Multipart, Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::MOST_LOGS;
use super::download::{Wanted, download};
use super::upload::{Sender, Upload};
use crate::inventory::auth::{Agent, Caller, Downloader};
use crate::inventory::cluster::ClusterRecord;
use crate::inventory::error::Refusals;
use crate::inventory::host::{LogsProgressParams, LogsState};
use crate::inventory::id::ClusterId;
use crate::inventory::request::{At, Body, Query, RequestId};
use crate::inventory::store::{Change, Stored};
use crate::inventory::time::{Micros, Millis};
use crate::inventory::{Inventory, Refusal};

pub(crate) fn routes() -> OpenApiRouter<Inventory> {
    let form = usize::try_from(MOST_LOGS).unwrap_or(usize::MAX).saturating_add(MOST_FORM);
    OpenApiRouter::new()
        .routes(routes!(upload_logs, download_logs))
        .layer(DefaultBodyLimit::max(form))
        .routes(routes!(update_cluster_logs_progress))
}

/// What a form has beside its file at most, in bytes.
const MOST_FORM: usize = 64 << 10;

/// A form with logs.
#[derive(Debug, ToSchema)]
#[schema(as = logs_form)]
#[expect(dead_code, reason = "the type describes a form; it is never made")]
struct LogsForm {
    /// The logs.
    #[schema(value_type = String, format = Binary)]
    upfile: Vec<u8>,
}

impl<S: Send + Sync> FromRequestParts<S> for Upload {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let At(cluster) = At::from_request_parts(parts, state).await?;
        let Ok(query) = Query::from_request_parts(parts, state).await;
        let Ok(request) = RequestId::from_request_parts(parts, state).await;
        Ok(Self { cluster, sender: Sender::read(&query)?, request })
    }
}

/// A form, refused as all bodies are.
#[derive(Debug)]
struct Form(Multipart);

impl FromRequest<Inventory> for Form {
    type Rejection = Refusal;

    async fn from_request(request: Request, inventory: &Inventory) -> Result<Self, Refusal> {
        let form = Multipart::from_request(request, inventory).await;
        form.map(Self).map_err(|error| Refusal::malformed(error.body_text()))
    }
}

/// Sends logs
#[utoipa::path(
    post,
    path = "/v2/clusters/{cluster_id}/logs",
    operation_id = "V2UploadLogs",
    tag = "logs",
    params(
        ("cluster_id" = uuid::Uuid, Path),
        ("logs_type" = String, Query, description = "`host` or `controller`"),
        ("host_id" = Option<uuid::Uuid>, Query, description = "The host, for logs of one"),
        ("infra_env_id" = Option<uuid::Uuid>, Query, description = "The infra-env of the host")
    ),
    request_body(content = LogsForm, content_type = "multipart/form-data"),
    responses((status = NO_CONTENT), (status = PAYLOAD_TOO_LARGE, body = crate::inventory::OperationError), Refusals)
)]
async fn upload_logs(
    _caller: Caller<Agent>,
    upload: Upload,
    State(inventory): State<Inventory>,
    Form(form): Form,
) -> Result<StatusCode, Refusal> {
    upload.keep(&inventory, form).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Logs of a host or of the controller, or an archive of all
#[utoipa::path(
    get,
    path = "/v2/clusters/{cluster_id}/logs",
    operation_id = "V2DownloadClusterLogs",
    tag = "logs",
    params(
        ("cluster_id" = uuid::Uuid, Path),
        ("logs_type" = Option<String>, Query, description = "`host`, `controller` or `all`"),
        ("host_id" = Option<uuid::Uuid>, Query, description = "The host, for logs of one")
    ),
    responses((status = OK, content_type = "application/octet-stream", body = Vec<u8>), Refusals)
)]
async fn download_logs(
    _caller: Caller<Downloader>,
    At(id): At<ClusterId>,
    query: Query,
    State(inventory): State<Inventory>,
) -> Result<Response, Refusal> {
    download(&inventory, id, Wanted::read(&query)?).await
}

/// How far the logs of a cluster's controller are
#[utoipa::path(
    put,
    path = "/v2/clusters/{cluster_id}/logs-progress",
    operation_id = "v2UpdateClusterLogsProgress",
    tag = "logs",
    params(("cluster_id" = uuid::Uuid, Path)),
    request_body = LogsProgressParams,
    responses((status = NO_CONTENT), Refusals)
)]
async fn update_cluster_logs_progress(
    _caller: Caller<Agent>,
    At(id): At<ClusterId>,
    State(inventory): State<Inventory>,
    Body(said): Body<LogsProgressParams>,
) -> Result<StatusCode, Refusal> {
    inventory
        .records()
        .change(|| async {
            let mut change = Change::new();
            let Stored { record: mut cluster, generation } = inventory.stored_cluster(id).await?;
            keep_state(&mut cluster, said.logs_state);
            change.replace(&cluster, generation);
            Ok((change, ()))
        })
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

fn keep_state(cluster: &mut ClusterRecord, state: LogsState) {
    if state == LogsState::Requested {
        cluster.controller_logs_started_at = Millis::now();
    }
    state.as_str().clone_into(&mut cluster.logs_info);
    cluster.updated_at = Micros::now();
}
