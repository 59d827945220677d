//! Lists of hosts, with the reports that clients see.

use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};

use super::counts::DeletedHosts;
use crate::Inventory;
use crate::error::Error;
use crate::host::{HostRecord, HostRole, HostStatus};
use crate::id::{ClusterId, InfraEnvId};
use crate::store::{Filter, Kind, ListRange, PageQuery, ReportKind, ReportKinds, Reports};

/// Hosts with reports, in the order of their creation.
pub(crate) type HostStream = BoxStream<'static, Result<(HostRecord, Reports), Error>>;

/// The reports that clients see.
pub(crate) const SHOWN_REPORTS: ReportKinds = ReportKinds::new(&[
    ReportKind::Inventory,
    ReportKind::Connectivity,
    ReportKind::ApiVipConnectivity,
    ReportKind::TangConnectivity,
    ReportKind::DisksInfo,
    ReportKind::NtpSources,
    ReportKind::ImagesStatus,
    ReportKind::DomainNameResolutions,
]);

/// Which hosts of a cluster a list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostSelection {
    pub(crate) deleted: DeletedHosts,
    /// Only hosts with this status. `None`: all.
    pub(crate) status: Option<HostStatus>,
    /// Only hosts with this role. `None`: all.
    pub(crate) role: Option<HostRole>,
}

impl HostSelection {
    /// Returns the selection of all hosts.
    pub(crate) fn all(deleted: DeletedHosts) -> Self {
        Self { deleted, status: None, role: None }
    }
}

impl Inventory {
    /// Returns the reports of a host that clients see. If the host has changed since it was read, also returns its
    /// current state.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails, or if a report is missing that the host names.
    pub(crate) async fn with_shown_reports(&self, host: HostRecord) -> Result<(HostRecord, Reports), Error> {
        Ok(self.records().with_reports(host, SHOWN_REPORTS).await?)
    }

    /// Returns the hosts of an infra-env with reports of some kinds.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist.
    pub(crate) async fn hosts_of_infra_env(
        &self,
        id: InfraEnvId,
        reports: ReportKinds,
        range: ListRange,
    ) -> Result<HostStream, Error> {
        self.infra_env(id).await?;
        let hosts = PageQuery::first(Filter::all(Kind::Host).within(id.0)).with_reports(reports);
        Ok(self.stream_hosts(hosts.in_range(range)))
    }

    /// Returns the hosts of a cluster with reports of some kinds.
    pub(crate) fn hosts_of_cluster(
        &self,
        id: ClusterId,
        reports: ReportKinds,
        selection: HostSelection,
        range: ListRange,
    ) -> HostStream {
        let HostSelection { deleted, status, role } = selection;
        let hosts = Filter {
            deleted: deleted == DeletedHosts::Included,
            status: status.map(HostStatus::as_str),
            role: role.map(HostRole::as_str),
            ..Filter::all(Kind::Host).of_cluster(id.0)
        };
        self.stream_hosts(PageQuery::first(hosts).with_reports(reports).in_range(range))
    }

    fn stream_hosts(&self, query: PageQuery) -> HostStream {
        let hosts = self.records().stream_with_reports::<HostRecord>(query).map_err(Error::from);
        hosts.map_ok(|(host, reports)| (host.record, reports)).boxed()
    }
}
