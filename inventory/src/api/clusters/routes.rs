//! The operations of `/v2/clusters`.

use assisted::cluster::{
    Cluster, ClusterCreateParams, ClusterDefaults, ClusterImportParams, ClusterUpdateParams,
    DisconnectedClusterParams,
};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream;

use super::defaults::cluster_defaults;
use super::hosts::{Hosts, ShownHosts};
use super::list::list_text;
use super::model::cluster_from_record;
use super::text::text;
use crate::Inventory;
use crate::api::auth::{Caller, Lister, Operation, Reader, User, WholeService, operation};
use crate::api::{ApiError, ApiErrors, Body, Query, Reply, json_list, json_text};
use crate::cluster::ClusterRecord;
use crate::error::Error;
use crate::id::ClusterId;
use crate::request_id::RequestId;
use crate::service::clusters::ClusterQuery;
use crate::service::hosts::counts::DeletedHosts;

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

/// Returns `true` if the request includes deleted clusters.
fn with_deleted(headers: &HeaderMap) -> bool {
    let value = headers.get("get_unregistered_clusters").and_then(|value| value.to_str().ok());
    value.is_some_and(Query::is_yes)
}

/// Returns the response for a new cluster. The cluster has no hosts, because no client has received its id yet.
fn created(inventory: &Inventory, record: ClusterRecord) -> Answer<Cluster> {
    let results = rules::validation::ClusterResults::default();
    let cluster = cluster_from_record(record, Hosts::default(), &results, inventory.settings())?;
    Ok(Reply(StatusCode::CREATED, cluster))
}

/// Registers a cluster
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
    request: RequestId,
    State(inventory): State<Inventory>,
    Body(params): Body<ClusterCreateParams>,
) -> Answer<Cluster> {
    let record = inventory.register_cluster(params, Some(request)).await?;
    created(&inventory, record)
}

/// Lists clusters
#[utoipa::path(
    get,
    path = "/v2/clusters",
    operation_id = "v2ListClusters",
    tag = "clusters",
    params(
        ("get_unregistered_clusters" = Option<bool>, Header, description = "Include deleted clusters"),
        ("openshift_cluster_id" = Option<uuid::Uuid>, Query, description = "Only the cluster whose `openshift_cluster_id` this is"),
        ("ams_subscription_ids" = Option<String>, Query, description = "Subscription ids; clusters of this service have none"),
        ("with_hosts" = Option<bool>, Query, description = "Include the hosts"),
        ("owner" = Option<String>, Query, description = "Only clusters of this user"),
        ("limit" = Option<i64>, Query, minimum = 1, description = "Maximum number of clusters. Default: no limit"),
        ("offset" = Option<i64>, Query, minimum = 0, description = "Number of clusters to skip"),
    ),
    responses((status = OK, body = Vec<Cluster>), ApiErrors)
)]
async fn list(
    _caller: Caller<Lister, WholeService>,
    query: Query,
    headers: HeaderMap,
    State(inventory): State<Inventory>,
) -> Result<Response, ApiError> {
    let clusters = ClusterQuery {
        openshift_cluster_id: query.id("openshift_cluster_id")?,
        owner: query.text("owner").map(str::to_owned),
        deleted: with_deleted(&headers),
        range: query.list_range()?,
    };
    if query.text("ams_subscription_ids").is_some() {
        // Clusters of this service have no subscription, so no cluster can match.
        return json_list(stream::empty::<Result<Cluster, Error>>()).await;
    }
    let hosts = if query.flag("with_hosts") { ShownHosts::AsStored } else { ShownHosts::Counted };
    json_text(list_text(inventory, clusters, hosts)).await
}

/// Returns the defaults of new clusters
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
    Reply(StatusCode::OK, cluster_defaults(inventory.settings()))
}

/// Imports an installed cluster, to add hosts to it
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
    request: RequestId,
    State(inventory): State<Inventory>,
    Body(params): Body<ClusterImportParams>,
) -> Answer<Cluster> {
    let record = inventory.import_cluster(params, Some(request)).await?;
    created(&inventory, record)
}

/// Registers a cluster installed without a connection to this service
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
    request: RequestId,
    State(inventory): State<Inventory>,
    Body(params): Body<DisconnectedClusterParams>,
) -> Answer<Cluster> {
    let record = inventory.register_disconnected_cluster(params, Some(request)).await?;
    created(&inventory, record)
}

/// Returns a cluster
#[utoipa::path(
    get,
    path = "/v2/clusters/{cluster_id}",
    operation_id = "v2GetCluster",
    tag = "clusters",
    params(
        ("cluster_id" = uuid::Uuid, Path),
        ("get_unregistered_clusters" = Option<bool>, Header, description = "Return the cluster even if it is deleted"),
        ("exclude-hosts" = Option<bool>, Query, description = "Omit the hosts"),
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
    let (record, deleted) = match with_deleted(&headers) {
        true => (inventory.cluster_or_deleted(id).await?, DeletedHosts::Included),
        false => (inventory.cluster(id).await?, DeletedHosts::Omitted),
    };
    json_text(text(&inventory, record, hosts, deleted).await?).await
}

/// Updates a cluster
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
    request: RequestId,
    State(inventory): State<Inventory>,
    Body(params): Body<ClusterUpdateParams>,
) -> Result<Response, ApiError> {
    let record = inventory.update_cluster(id, params, Some(request)).await?;
    let cluster = text(&inventory, record, ShownHosts::InFull, DeletedHosts::Omitted).await?;
    Ok((StatusCode::CREATED, json_text(cluster).await?).into_response())
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
    request: RequestId,
    State(inventory): State<Inventory>,
) -> Result<StatusCode, ApiError> {
    inventory.deregister_cluster(id, Some(request)).await?;
    Ok(StatusCode::NO_CONTENT)
}
