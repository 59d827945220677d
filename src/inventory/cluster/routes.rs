//! `/v2/clusters`.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::{
    Cluster, ClusterCreateParams, ClusterDefaults, ClusterImportParams, ClusterQuery, ClusterUpdateParams,
    DisconnectedClusterParams, ShownHosts,
};
use crate::api_error::ApiError;
use crate::api_error::{ApiErrors, Reply};
use crate::inventory::Inventory;
use crate::inventory::auth::{Caller, Lister, Operation, Reader, User, WholeService, operation};
use crate::inventory::id::ClusterId;
use crate::inventory::list::json_text;
use crate::inventory::request::{Body, Query};

pub(crate) fn routes() -> Vec<Operation> {
    vec![
        operation!(register),
        operation!(list),
        operation!(default_config),
        operation!(import),
        operation!(register_disconnected),
        operation!(get),
        operation!(update),
        operation!(deregister),
    ]
}

type Answer<T> = Result<Reply<T>, ApiError>;

/// Whether clusters that were deleted shall be there as well.
fn with_deleted(headers: &HeaderMap) -> bool {
    let value = headers.get("get_unregistered_clusters").and_then(|value| value.to_str().ok());
    value.is_some_and(Query::is_yes)
}

/// Makes a cluster
#[utoipa::path(
    post,
    path = "/v2/clusters",
    operation_id = "v2RegisterCluster",
    tag = "clusters",
    request_body = ClusterCreateParams,
    responses((status = CREATED, body = Cluster), ApiErrors)
)]
async fn register(
    _caller: Caller<User, WholeService>,
    State(inventory): State<Inventory>,
    Body(params): Body<ClusterCreateParams>,
) -> Answer<Cluster> {
    Ok(Reply(StatusCode::CREATED, inventory.register_cluster(params).await?))
}

/// All clusters
#[utoipa::path(
    get,
    path = "/v2/clusters",
    operation_id = "v2ListClusters",
    tag = "clusters",
    params(
        ("get_unregistered_clusters" = Option<bool>, Header, description = "Deleted ones as well"),
        ("openshift_cluster_id" = Option<uuid::Uuid>, Query, description = "The one that calls itself so"),
        ("ams_subscription_ids" = Option<String>, Query, description = "Those of subscriptions: none has one here"),
        ("with_hosts" = Option<bool>, Query, description = "With their hosts"),
        ("owner" = Option<String>, Query, description = "Only those of this user"),
    ),
    responses((status = OK, body = Vec<Cluster>), ApiErrors)
)]
async fn list(
    _caller: Caller<Lister, WholeService>,
    query: Query,
    headers: HeaderMap,
    State(inventory): State<Inventory>,
) -> Result<Response, ApiError> {
    let asked = ClusterQuery {
        openshift_cluster_id: query.id("openshift_cluster_id")?,
        owner: query.text("owner").map(str::to_owned),
        subscribed: query.text("ams_subscription_ids").is_some(),
        deleted: with_deleted(&headers),
    };
    let hosts = if query.flag("with_hosts") { ShownHosts::AsKept } else { ShownHosts::Counted };
    json_text(inventory.clusters(asked, hosts)).await
}

/// What clusters are made of where their owners say nothing
#[utoipa::path(
    get,
    path = "/v2/clusters/default-config",
    operation_id = "V2GetClusterDefaultConfig",
    tag = "clusters",
    responses((status = OK, body = ClusterDefaults), ApiErrors)
)]
async fn default_config(
    _caller: Caller<User, WholeService>,
    State(inventory): State<Inventory>,
) -> Reply<ClusterDefaults> {
    Reply(StatusCode::OK, ClusterDefaults::of(inventory.settings()))
}

/// Adds a cluster that was installed elsewhere
#[utoipa::path(
    post,
    path = "/v2/clusters/import",
    operation_id = "v2ImportCluster",
    tag = "clusters",
    request_body = ClusterImportParams,
    responses((status = CREATED, body = Cluster), ApiErrors)
)]
async fn import(
    _caller: Caller<User, WholeService>,
    State(inventory): State<Inventory>,
    Body(params): Body<ClusterImportParams>,
) -> Answer<Cluster> {
    Ok(Reply(StatusCode::CREATED, inventory.import_cluster(params).await?))
}

/// Makes a cluster that is installed where this service does not see it
#[utoipa::path(
    post,
    path = "/v2/clusters/disconnected",
    operation_id = "v2RegisterDisconnectedCluster",
    tag = "clusters",
    request_body = DisconnectedClusterParams,
    responses((status = CREATED, body = Cluster), ApiErrors)
)]
async fn register_disconnected(
    _caller: Caller<User, WholeService>,
    State(inventory): State<Inventory>,
    Body(params): Body<DisconnectedClusterParams>,
) -> Answer<Cluster> {
    Ok(Reply(StatusCode::CREATED, inventory.register_disconnected_cluster(params).await?))
}

/// A cluster
#[utoipa::path(
    get,
    path = "/v2/clusters/{cluster_id}",
    operation_id = "v2GetCluster",
    tag = "clusters",
    params(
        ("cluster_id" = uuid::Uuid, Path),
        ("get_unregistered_clusters" = Option<bool>, Header, description = "Also if it is deleted"),
        ("exclude-hosts" = Option<bool>, Query, description = "Without its hosts"),
    ),
    responses((status = OK, body = Cluster), ApiErrors)
)]
async fn get(
    Caller { target: id, .. }: Caller<Reader, ClusterId>,
    query: Query,
    headers: HeaderMap,
    State(inventory): State<Inventory>,
) -> Result<Response, ApiError> {
    let hosts = if query.flag("exclude-hosts") { ShownHosts::Counted } else { ShownHosts::InFull };
    let cluster = match with_deleted(&headers) {
        true => inventory.cluster_or_deleted(id, hosts).await?,
        false => inventory.cluster(id, hosts).await?,
    };
    json_text(cluster).await
}

/// Changes a cluster
#[utoipa::path(
    patch,
    path = "/v2/clusters/{cluster_id}",
    operation_id = "V2UpdateCluster",
    tag = "clusters",
    params(("cluster_id" = uuid::Uuid, Path)),
    request_body = ClusterUpdateParams,
    responses((status = CREATED, body = Cluster), ApiErrors)
)]
async fn update(
    Caller { target: id, .. }: Caller<User, ClusterId>,
    State(inventory): State<Inventory>,
    Body(params): Body<ClusterUpdateParams>,
) -> Answer<Cluster> {
    Ok(Reply(StatusCode::CREATED, inventory.update_cluster(id, params).await?))
}

/// Deletes a cluster
#[utoipa::path(
    delete,
    path = "/v2/clusters/{cluster_id}",
    operation_id = "v2DeregisterCluster",
    tag = "clusters",
    params(("cluster_id" = uuid::Uuid, Path)),
    responses((status = NO_CONTENT), ApiErrors)
)]
async fn deregister(
    Caller { target: id, .. }: Caller<User, ClusterId>,
    State(inventory): State<Inventory>,
) -> Result<StatusCode, ApiError> {
    inventory.deregister_cluster(id).await?;
    Ok(StatusCode::NO_CONTENT)
}
