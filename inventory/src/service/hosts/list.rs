//! Lists hosts with or without their reports.

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};

use crate::Inventory;
use crate::error::Error;
use crate::host::{HostRecord, HostRole, HostStatus};
use crate::id::{ClusterId, InfraEnvId};
use crate::service::infra_envs::stored_infra_env;
use crate::store::{Filter, Kind, ListRange, PageQuery, ReportKind, ReportKinds, Reports, Stored};

/// A query for a list of hosts. By default, it selects all hosts that are not deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostQuery {
    /// The infra-env of the selected hosts, which must exist. `None` for no restriction.
    pub infra_env: Option<InfraEnvId>,
    /// The cluster of the selected hosts. `None` for no restriction.
    pub cluster: Option<ClusterId>,
    /// The status of the selected hosts. `None` for no restriction.
    pub status: Option<HostStatus>,
    /// The role of the selected hosts. `None` for no restriction.
    pub role: Option<HostRole>,
    /// Whether deleted hosts are also listed.
    pub deleted: bool,
    /// The range of the list to return.
    pub range: ListRange,
}

impl HostQuery {
    /// Returns a query for the hosts of an infra-env.
    #[must_use]
    pub fn of_infra_env(infra_env: InfraEnvId) -> Self {
        Self { infra_env: Some(infra_env), ..Self::default() }
    }

    /// Returns a query for the hosts of a cluster.
    #[must_use]
    pub fn of_cluster(cluster: ClusterId) -> Self {
        Self { cluster: Some(cluster), ..Self::default() }
    }

    fn pages(&self, reports: ReportKinds) -> PageQuery {
        let filter = Filter {
            kind: Kind::Host,
            parent: self.infra_env.map(|id| id.0),
            cluster: self.cluster.map(|id| id.0),
            status: self.status.map(HostStatus::as_str),
            role: self.role.map(HostRole::as_str),
            deleted: self.deleted,
        };
        PageQuery::first(filter).with_reports(reports).in_range(self.range)
    }
}

/// A stream of hosts with their reports, in the order of their creation.
pub type HostStream = BoxStream<'static, Result<(HostRecord, Reports), Error>>;

/// The kinds of reports that API responses contain.
pub(crate) const SHOWN_REPORTS: ReportKinds = ReportKinds::new(&[
    ReportKind::Inventory,
    ReportKind::Connectivity,
    ReportKind::ApiVipConnectivity,
    ReportKind::TangConnectivity,
    ReportKind::DisksInfo,
    ReportKind::NtpSources,
    ReportKind::ImagesStatus,
    ReportKind::DomainNameResolutions,
    ReportKind::Results,
]);

impl Inventory {
    /// Returns the selected hosts in the order of their creation. The stream reads page by page, as the caller consumes
    /// it. If the infra-env in the query does not exist, the first item is an error.
    pub fn hosts(&self, query: HostQuery) -> BoxStream<'static, Result<HostRecord, Error>> {
        self.hosts_with_reports(query, ReportKinds::NONE).map_ok(|(host, _)| host).boxed()
    }

    /// Returns the selected hosts like [`hosts`](Self::hosts), with their reports of the given kinds. A host and its
    /// reports are from the same change.
    pub fn hosts_with_reports(&self, query: HostQuery, reports: ReportKinds) -> HostStream {
        stored_hosts(self, query, reports).map_ok(|(host, reports)| (host.record, reports)).boxed()
    }

    /// Returns the reports of a host that API responses contain. If the host has changed since it was read, returns its
    /// current state too.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails, or if a report that the host names is missing.
    pub fn with_shown_reports(
        &self,
        host: HostRecord,
    ) -> BoxFuture<'_, Result<(HostRecord, Reports), Error>> {
        Box::pin(async move { Ok(self.records().with_reports(host, SHOWN_REPORTS).await?) })
    }
}

/// Returns the selected hosts with their generations, and with their reports of the given kinds.
pub(super) fn stored_hosts(
    inventory: &Inventory,
    query: HostQuery,
    reports: ReportKinds,
) -> BoxStream<'static, Result<(Stored<HostRecord>, Reports), Error>> {
    let records = inventory.records().clone();
    let hosts = records.stream_with_reports::<HostRecord>(query.pages(reports)).map_err(Error::from);
    let Some(infra_env) = query.infra_env else { return hosts.boxed() };
    let after_check = async move { stored_infra_env(&records, infra_env).await.map(|_| hosts) };
    stream::once(after_check).try_flatten().boxed()
}
