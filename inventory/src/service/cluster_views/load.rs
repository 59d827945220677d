//! Reads the records of a view.

use std::sync::Arc;
use std::time::Instant;

use futures_util::TryStreamExt as _;
use rules::view::ClusterSettings;

use super::content::Outdated;
use super::current::{CurrentView, ViewedHost};
use crate::cluster::ClusterRecord;
use crate::cluster::facts::cluster_settings;
use crate::error::Error;
use crate::host::HostRecord;
use crate::host::draft::ASSESSED;
use crate::host::facts::{has_connected_status, host_view};
use crate::host::stored_results::stored_results;
use crate::host::stored_summary::{StoredSummary, rebuild, stored_summary};
use crate::id::ClusterId;
use crate::infra_env::InfraEnvRecord;
use crate::store::{
    Filter, Key, Kind, PageQuery, Record as _, Records, ReportKind, ReportKinds, Reports, Stored,
};

/// Reads the cluster of a host; `None` if it has none, or if the host does not exist or is deleted.
pub(super) async fn cluster_of(records: &Records, host: Key) -> Result<Option<ClusterId>, Error> {
    let found = records.find::<HostRecord>(host.parent, host.id).await?;
    Ok(found.filter(|host| host.record.deleted_at.is_none()).and_then(|host| host.record.cluster_id))
}

/// Reads the whole view of a cluster; `None` if the cluster does not exist or is deleted.
pub(super) async fn full(records: &Records, cluster: ClusterId) -> Result<Option<CurrentView>, Error> {
    let (listening_since, read_at) = (records.store().feed().listening_since(), Instant::now());
    let Some((settings, generation)) = settings(records, cluster).await? else { return Ok(None) };
    let query = PageQuery::first(Filter::all(Kind::Host).of_cluster(cluster.0)).with_reports(ASSESSED);
    let mut stored = records.stream_with_reports::<HostRecord>(query);
    let mut hosts = Vec::new();
    while let Some((host, reports)) = stored.try_next().await? {
        hosts.push(viewed(records, host, &reports).await?);
    }
    Ok(Some(CurrentView::new((settings, generation), hosts, (read_at, listening_since))))
}

/// Reads the outdated records of a view again; `None` if the cluster does not exist any more.
pub(super) async fn refresh(
    records: &Records,
    before: &CurrentView,
    outdated: &Outdated,
) -> Result<Option<CurrentView>, Error> {
    let (listening_since, read_at) = (records.store().feed().listening_since(), Instant::now());
    let cluster = before.facts().cluster.id;
    let (settings, generation) = if outdated.settings {
        let Some(read) = settings(records, cluster).await? else { return Ok(None) };
        read
    } else {
        (Arc::clone(&before.facts().cluster), before.cluster_generation())
    };
    let mut hosts: Vec<_> =
        before.hosts().iter().filter(|host| !outdated.hosts.contains(&host.key)).cloned().collect();
    for key in &outdated.hosts {
        let Some(host) = records.find::<HostRecord>(key.parent, key.id).await? else { continue };
        let record = &host.record;
        if record.deleted_at.is_some() || record.cluster_id != Some(cluster) {
            continue;
        }
        // If the host changes between the two reads, it is marked again.
        let (record, reports) = records.with_reports(host.record, ASSESSED).await?;
        hosts.push(viewed(records, Stored { record, ..host }, &reports).await?);
    }
    Ok(Some(CurrentView::new((settings, generation), hosts, (read_at, listening_since))))
}

/// Reads the settings of a cluster, with those of its infra-envs, and the generation of its record.
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

/// Returns a host of a view. If its summary is missing or of another version, it is made from the stored reports.
async fn viewed(records: &Records, host: Stored<HostRecord>, reports: &Reports) -> Result<ViewedHost, Error> {
    let Stored { record, generation, .. } = host;
    let key = record.key();
    let results = stored_results(&record, reports)?.map(Arc::new);
    let summary = match stored_summary(&record, reports)? {
        StoredSummary::Current(summary) => *summary,
        StoredSummary::Missing => {
            // If the host has changed since it was read, it is marked again.
            let (record, reports) =
                records.with_reports(record.clone(), ReportKinds::new(ReportKind::ALL)).await?;
            rebuild(&record, &reports)?
        }
    };
    let view = Arc::new(host_view(&record, has_connected_status(&record), Arc::new(summary)));
    Ok(ViewedHost { key, generation, view, results })
}
