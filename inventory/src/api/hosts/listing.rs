//! The operations that list hosts.

use assisted::host::Host;
use axum::extract::State;
use axum::response::Response;

use crate::Inventory;
use crate::api::auth::{Caller, Operation, UserOrAgent, operation};
use crate::api::hosts::view::{HostDetail, views};
use crate::api::{ApiError, ApiErrors, Query, json_list};
use crate::host::{HostRole, HostStatus};
use crate::id::{ClusterId, InfraEnvId};
use crate::service::hosts::list::{HostQuery, SHOWN_REPORTS};
use crate::store::{ReportKind, ReportKinds};

pub(crate) fn routes() -> Vec<Operation> {
    vec![operation!(list_hosts), operation!(list_cluster_hosts)]
}

/// Lists the hosts of an infra-env
#[utoipa::path(
    get,
    path = "/v2/infra-envs/{infra_env_id}/hosts",
    operation_id = "v2ListHosts",
    tag = "hosts",
    params(
        ("infra_env_id" = uuid::Uuid, Path),
        ("with-inventory" = Option<bool>, Query, description = "Include the inventory reports. Default: true"),
        ("with-connectivity" = Option<bool>, Query, description = "Include the connectivity to other hosts. Default: true"),
        ("limit" = Option<i64>, Query, minimum = 1, description = "Maximum number of hosts. Default: no limit"),
        ("offset" = Option<i64>, Query, minimum = 0, description = "Number of hosts to skip")
    ),
    responses((status = OK, body = Vec<Host>), ApiErrors)
)]
async fn list_hosts(
    Caller { target: id, .. }: Caller<UserOrAgent, InfraEnvId>,
    query: Query,
    State(inventory): State<Inventory>,
) -> Result<Response, ApiError> {
    let range = query.list_range()?;
    // The reports are included by default, because the Assisted Installer always includes them.
    let is_included = |name: &str| query.text(name).is_none_or(Query::is_yes);
    let reports = reports_in_host_list(is_included("with-inventory"), is_included("with-connectivity"));
    let hosts = inventory.hosts_with_reports(HostQuery { range, ..HostQuery::of_infra_env(id) }, reports);
    json_list(views(hosts, HostDetail::InFull)).await
}

/// Lists the hosts of a cluster
#[utoipa::path(
    get,
    path = "/v2/clusters/{cluster_id}/hosts",
    operation_id = "ListClusterHosts",
    tag = "hosts",
    params(
        ("cluster_id" = uuid::Uuid, Path),
        ("role" = Option<String>, Query, description = "Only hosts with this role"),
        ("status" = Option<String>, Query, description = "Only hosts with this status"),
        ("with-inventory" = Option<bool>, Query, description = "Include the inventory reports"),
        ("with-connectivity" = Option<bool>, Query, description = "Include the connectivity to other hosts"),
        ("limit" = Option<i64>, Query, minimum = 1, description = "Maximum number of hosts. Default: no limit"),
        ("offset" = Option<i64>, Query, minimum = 0, description = "Number of hosts to skip")
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
    let range = query.list_range()?;
    let reports = reports_in_host_list(with_inventory, with_connectivity);
    let selected = HostQuery { status, role, range, ..HostQuery::of_cluster(id) };
    let hosts = inventory.hosts_with_reports(selected, reports);
    json_list(views(hosts, HostDetail::AsStored)).await
}

/// Returns the kinds of report in a list of hosts. The two longest kinds are optional.
fn reports_in_host_list(with_inventory: bool, with_connectivity: bool) -> ReportKinds {
    macro_rules! report_kinds {
        ($($optional:ident),*) => {
            ReportKinds::new(&[
                $(ReportKind::$optional,)*
                ReportKind::ApiVipConnectivity,
                ReportKind::TangConnectivity,
                ReportKind::DisksInfo,
                ReportKind::NtpSources,
                ReportKind::ImagesStatus,
                ReportKind::DomainNameResolutions,
                ReportKind::Results,
            ])
        };
    }
    match (with_inventory, with_connectivity) {
        (true, true) => SHOWN_REPORTS,
        (true, false) => report_kinds!(Inventory),
        (false, true) => report_kinds!(Connectivity),
        (false, false) => report_kinds!(),
    }
}
