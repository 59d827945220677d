//! Lists of hosts.

use axum::extract::State;
use axum::response::Response;
use futures_util::TryStreamExt;

use super::super::model::Host;
use super::super::stage::HostRole;
use super::super::status::HostStatus;
use super::super::view::{Shown, views, views_of_cluster};
use crate::api_error::ApiError;
use crate::api_error::ApiErrors;
use crate::inventory::Inventory;
use crate::inventory::auth::{Caller, Operation, UserOrAgent, operation};
use crate::inventory::id::{ClusterId, InfraEnvId};
use crate::inventory::infra_env::InfraEnvRecord;
use crate::inventory::list::json_list;
use crate::inventory::request::Query;
use crate::inventory::store::{Filter, Kind};

pub(super) fn routes() -> Vec<Operation> {
    vec![operation!(list_hosts), operation!(list_cluster_hosts)]
}

/// The hosts of an infra-env
#[utoipa::path(
    get,
    path = "/v2/infra-envs/{infra_env_id}/hosts",
    operation_id = "v2ListHosts",
    tag = "hosts",
    params(("infra_env_id" = uuid::Uuid, Path)),
    responses((status = OK, body = Vec<Host>), ApiErrors)
)]
async fn list_hosts(
    Caller { target: id, .. }: Caller<UserOrAgent, InfraEnvId>,
    State(inventory): State<Inventory>,
) -> Result<Response, ApiError> {
    let found = inventory.records().find::<InfraEnvRecord>(None, id.0).await?;
    found.ok_or_else(|| ApiError::not_found("record not found"))?;
    json_list(views(&inventory, Filter::all(Kind::Host).within(id.0), Shown::InFull)).await
}

/// The hosts of a cluster
#[utoipa::path(
    get,
    path = "/v2/clusters/{cluster_id}/hosts",
    operation_id = "ListClusterHosts",
    tag = "hosts",
    params(
        ("cluster_id" = uuid::Uuid, Path),
        ("role" = Option<String>, Query, description = "Only those of this role"),
        ("status" = Option<String>, Query, description = "Only those in this state"),
        ("with-inventory" = Option<bool>, Query, description = "Say what they are made of"),
        ("with-connectivity" = Option<bool>, Query, description = "Say which other hosts they reach")
    ),
    responses((status = OK, body = Vec<Host>), ApiErrors)
)]
async fn list_cluster_hosts(
    Caller { target: id, .. }: Caller<UserOrAgent, ClusterId>,
    query: Query,
    State(inventory): State<Inventory>,
) -> Result<Response, ApiError> {
    const ROLES: [(&str, HostRole); 4] = [
        ("master", HostRole::Master),
        ("arbiter", HostRole::Arbiter),
        ("worker", HostRole::Worker),
        ("auto-assign", HostRole::AutoAssign),
    ];
    let role = query.choice("role", &ROLES)?;
    let statuses: Vec<_> = HostStatus::ALL.iter().map(|status| (status.as_str(), *status)).collect();
    let status = query.choice("status", &statuses)?;
    let (with_inventory, with_connectivity) = (query.flag("with-inventory"), query.flag("with-connectivity"));
    let is_asked_for = move |host: &Host| {
        role.is_none_or(|role| host.role == role) && status.is_none_or(|status| host.status == status)
    };
    let hosts = views_of_cluster(&inventory, id, Shown::AsKept);
    let hosts = hosts.try_filter(move |host| std::future::ready(is_asked_for(host)));
    json_list(hosts.map_ok(move |mut host| {
        if !with_inventory {
            host.inventory.clear();
        }
        if !with_connectivity {
            host.connectivity.clear();
        }
        host
    }))
    .await
}
