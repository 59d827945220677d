//! Returns clusters in their API representation to programs that embed the inventory. The API writes its responses with
//! `text`.

use assisted::cluster::Cluster;
use futures_util::TryStreamExt;
use futures_util::future::BoxFuture;

use super::hosts::{CountedHosts, HostSummary, ShownHosts};
use super::model::cluster_from_record;
use crate::Inventory;
use crate::api::hosts::view::views_of_cluster;
use crate::cluster::ClusterRecord;
use crate::error::Error;
use crate::service::hosts::counts::DeletedHosts;

impl Inventory {
    /// Returns a cluster as the API represents it. All hosts are held in memory, unless they are only counted. A
    /// deleted cluster contains its deleted hosts.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails, or if a report of a host is missing or damaged.
    pub fn to_api_cluster(
        &self,
        record: &ClusterRecord,
        detail: ShownHosts,
    ) -> BoxFuture<'_, Result<Cluster, Error>> {
        let record = record.clone();
        Box::pin(async move {
            let (id, settings) = (record.id, self.settings());
            let results = &self.cluster_results(id).await?;
            let deleted = if record.is_deleted() { DeletedHosts::Included } else { DeletedHosts::Omitted };
            if detail == ShownHosts::Counted {
                let hosts = CountedHosts::read(self, &[id], deleted).await?.of_cluster(id);
                return cluster_from_record(record, hosts, results, settings);
            }
            let hosts = views_of_cluster(self, id, detail.host_detail(), deleted);
            let hosts: Vec<_> = hosts.try_collect().await?;
            let mut summary = HostSummary::default();
            for host in &hosts {
                summary.add(host)?;
            }
            let cluster = cluster_from_record(record, summary.into_hosts(), results, settings)?;
            Ok(Cluster { hosts, ..cluster })
        })
    }
}
