//! `/v2/clusters/{cluster_id}/logs` and how far they are.

use axum::extract::State;
use axum::http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::inventory::auth::{Agent, Caller};
use crate::inventory::cluster::ClusterRecord;
use crate::inventory::error::Refusals;
use crate::inventory::host::{LogsProgressParams, LogsState};
use crate::inventory::id::ClusterId;
use crate::inventory::request::{At, Body};
use crate::inventory::store::{Change, Stored};
use crate::inventory::time::{Micros, Millis};
use crate::inventory::{Inventory, Refusal};

pub(crate) fn routes() -> OpenApiRouter<Inventory> {
    OpenApiRouter::new().routes(routes!(update_cluster_logs_progress))
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
