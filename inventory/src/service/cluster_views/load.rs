//! Reads the records of a view from the database.

use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt as _;
use rules::view::ClusterSettings;

use super::content::Outdated;
use super::current::{CurrentView, ViewedCluster, ViewedHost};
use crate::cluster::ClusterRecord;
use crate::cluster::facts::cluster_settings;
use crate::error::Error;
use crate::host::HostRecord;
use crate::host::connection::is_silent;
use crate::host::draft::ASSESSED;
use crate::host::facts::host_view;
use crate::host::refused_report;
use crate::host::stored_results::stored_results;
use crate::host::stored_summary::{StoredSummary, rebuild, stored_summary};
use crate::id::ClusterId;
use crate::infra_env::InfraEnvRecord;
use crate::store::{
    Filter, Key, Kind, PageQuery, Record as _, Records, ReportKind, ReportKinds, Reports, StoreError, Stored,
};

/// Reads the cluster of a host. Returns `None` if the host has no cluster, does not exist, or is deleted.
pub(super) async fn cluster_of(records: &Records, host: Key) -> Result<Option<ClusterId>, Error> {
    let stored = records.find::<HostRecord>(host.parent, host.id).await?;
    Ok(stored.filter(|host| host.record.deleted_at.is_none()).and_then(|host| host.record.cluster_id))
}

/// Reads the complete view of a cluster. Returns `None` if the cluster does not exist or is deleted.
pub(super) async fn full(records: &Records, cluster: ClusterId) -> Result<Option<CurrentView>, Error> {
    let (listening_since, read_at) = (records.store().feed().listening_since(), Instant::now());
    let membership = records.membership_changes(cluster.0).await?;
    let Some((settings, generation)) = settings(records, cluster).await? else { return Ok(None) };
    let query = PageQuery::first(Filter::all(Kind::Host).of_cluster(cluster.0)).with_reports(ASSESSED);
    let mut stored = records.stream_with_reports::<HostRecord>(query);
    let mut hosts = Vec::new();
    while let Some(read) = stored.next().await {
        let Some((host, reports)) = unless_damaged(read.map_err(HostFailure::from))? else { continue };
        hosts.extend(unless_damaged(viewed_host(records, host, &reports).await)?);
    }
    Ok(Some(CurrentView::new(
        ViewedCluster { settings, generation, membership },
        hosts,
        (read_at, listening_since),
    )))
}

/// Reads only the outdated records of a view again. Returns `None` if the cluster no longer exists.
pub(super) async fn refresh(
    records: &Records,
    before: &CurrentView,
    outdated: &Outdated,
) -> Result<Option<CurrentView>, Error> {
    let (listening_since, read_at) = (records.store().feed().listening_since(), Instant::now());
    let cluster = before.facts().cluster.id;
    let membership = records.membership_changes(cluster.0).await?;
    let (settings, generation) = if outdated.settings {
        let Some(read) = settings(records, cluster).await? else { return Ok(None) };
        read
    } else {
        (Arc::clone(&before.facts().cluster), before.cluster_generation())
    };
    let mut hosts: Vec<_> =
        before.hosts().iter().filter(|host| !outdated.hosts.contains(&host.key)).cloned().collect();
    for key in &outdated.hosts {
        hosts.extend(unless_damaged(read_host(records, *key, cluster).await)?.flatten());
    }
    let view = CurrentView::new(
        ViewedCluster { settings, generation, membership },
        hosts,
        (read_at, listening_since),
    );
    // If the membership counter does not match the hosts, another replica has added or removed a host that the feed has
    // not yet reported, so the complete view is read.
    if membership.checked_sub(before.membership_changes()) != changed_members(before, &view) {
        return full(records, cluster).await;
    }
    Ok(Some(view))
}

/// Returns the number of hosts that are in only one of two views.
fn changed_members(before: &CurrentView, after: &CurrentView) -> Option<i64> {
    let missing = |view: &CurrentView, other: &CurrentView| {
        view.hosts().iter().filter(|host| other.host(&host.key).is_none()).count()
    };
    i64::try_from(missing(before, after).checked_add(missing(after, before))?).ok()
}

/// Reads a host of a cluster. Returns `None` if the host does not exist or has left the cluster.
async fn read_host(
    records: &Records,
    key: Key,
    cluster: ClusterId,
) -> Result<Option<ViewedHost>, HostFailure> {
    let Some(host) = records.find::<HostRecord>(key.parent, key.id).await? else { return Ok(None) };
    if host.record.deleted_at.is_some() || host.record.cluster_id != Some(cluster) {
        return Ok(None);
    }
    // If the host changes between the two reads, the feed marks it as outdated again.
    let (record, reports) = records.with_reports(host.record, ASSESSED).await?;
    viewed_host(records, Stored { record, ..host }, &reports).await.map(Some)
}

/// The reason why a host could not be read.
#[derive(Debug)]
enum HostFailure {
    /// The record or one of its reports is damaged. The error has been logged.
    Damaged,
    Store(StoreError),
}

impl From<StoreError> for HostFailure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged { .. } | StoreError::MissingReport { .. } => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "a damaged host is left out of its cluster");
                Self::Damaged
            }
            error => Self::Store(error),
        }
    }
}

impl HostFailure {
    /// Returns the failure for a damaged report, whose error has already been logged.
    fn of_report(_: Error) -> Self {
        Self::Damaged
    }
}

/// Returns `None` for a damaged host, so that the other hosts of its cluster still get their steps.
fn unless_damaged<T>(read: Result<T, HostFailure>) -> Result<Option<T>, Error> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(HostFailure::Damaged) => Ok(None),
        Err(HostFailure::Store(error)) => Err(error.into()),
    }
}

/// Reads the settings of a cluster, including the settings of its infra-envs, and the generation of the cluster's
/// record.
async fn settings(
    records: &Records,
    cluster: ClusterId,
) -> Result<Option<(Arc<ClusterSettings>, i64)>, Error> {
    let Some(stored) = records.find::<ClusterRecord>(None, cluster.0).await? else { return Ok(None) };
    if stored.record.is_deleted() {
        return Ok(None);
    }
    let infra_envs =
        records.list::<InfraEnvRecord>(Filter::all(Kind::InfraEnv).of_cluster(cluster.0)).await?;
    let infra_envs: Vec<_> = infra_envs.into_iter().map(|stored| stored.record).collect();
    Ok(Some((Arc::new(cluster_settings(&stored.record, &infra_envs)?), stored.generation)))
}

/// Converts a stored host for a view. If its summary is missing or has another version, rebuilds the summary from the
/// stored reports.
async fn viewed_host(
    records: &Records,
    host: Stored<HostRecord>,
    reports: &Reports,
) -> Result<ViewedHost, HostFailure> {
    let Stored { record, generation, .. } = host;
    let key = record.key();
    let results = stored_results(&record, reports).map_err(HostFailure::of_report)?.map(Arc::new);
    let summary = match stored_summary(&record, reports).map_err(HostFailure::of_report)? {
        StoredSummary::Current(summary) => *summary,
        StoredSummary::Missing | StoredSummary::Newer => {
            // If the host has changed since it was read, the feed marks it as outdated again.
            let (record, reports) =
                records.with_reports(record.clone(), ReportKinds::new(ReportKind::ALL)).await?;
            rebuild(&record, &reports).map_err(HostFailure::of_report)?
        }
    };
    let status_info = record.status_info().into();
    let refusal = refused_report::shown_reason(&record.findings).map(Into::into);
    let view = Arc::new(host_view(&record, !is_silent(&record), Arc::new(summary)));
    Ok(ViewedHost { key, generation, status_info, refusal, view, results })
}
