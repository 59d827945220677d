//! Reads single clusters by id, and lists of clusters.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use uuid::Uuid;

use crate::Inventory;
use crate::cluster::ClusterRecord;
use crate::error::Error;
use crate::id::ClusterId;
use crate::store::{Filter, Kind, ListRange, PageQuery, Reader, Stored, part_of_list};

/// A query for a list of clusters. By default, it selects all clusters that are not deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterQuery {
    /// The id that the selected cluster reports in its `ClusterVersion` resource. `None` for no restriction.
    pub openshift_cluster_id: Option<Uuid>,
    /// The user name of the owner. `None` for no restriction.
    pub owner: Option<String>,
    /// Whether deleted clusters are also listed.
    pub deleted: bool,
    /// The range of the list to return.
    pub range: ListRange,
}

impl ClusterQuery {
    fn selects_all(&self) -> bool {
        self.openshift_cluster_id.is_none() && self.owner.is_none()
    }

    fn selects(&self, record: &ClusterRecord) -> bool {
        let is_owners = self.owner.as_ref().is_none_or(|owner| *owner == record.user_name);
        let id = self.openshift_cluster_id;
        is_owners && (id.is_none() || id == record.openshift_cluster_id)
    }
}

/// Returns a cluster with its generation. Returns `None` if the cluster does not exist or is deleted.
pub(crate) async fn find_cluster(
    reader: &impl Reader,
    id: ClusterId,
) -> Result<Option<Stored<ClusterRecord>>, Error> {
    let cluster: Option<Stored<ClusterRecord>> = reader.find(None, id.0).await?;
    Ok(cluster.filter(|stored| !stored.record.is_deleted()))
}

/// Returns a cluster that is not deleted, with its generation.
pub(super) async fn stored_cluster(
    reader: &impl Reader,
    id: ClusterId,
) -> Result<Stored<ClusterRecord>, Error> {
    find_cluster(reader, id).await?.ok_or_else(Error::record_not_found)
}

impl Inventory {
    /// Returns a cluster that is not deleted, with its generation.
    ///
    /// # Errors
    ///
    /// Returns an error if the cluster does not exist.
    pub fn stored_cluster(&self, id: ClusterId) -> BoxFuture<'_, Result<Stored<ClusterRecord>, Error>> {
        Box::pin(stored_cluster(self.records(), id))
    }

    /// Returns a cluster that is not deleted.
    ///
    /// # Errors
    ///
    /// Returns an error if the cluster does not exist.
    pub fn cluster(&self, id: ClusterId) -> BoxFuture<'_, Result<ClusterRecord, Error>> {
        Box::pin(async move { Ok(stored_cluster(self.records(), id).await?.record) })
    }

    /// Returns a cluster, even if it is deleted.
    ///
    /// # Errors
    ///
    /// Returns an error if the cluster does not exist, or has been removed after its deletion.
    pub fn cluster_or_deleted(&self, id: ClusterId) -> BoxFuture<'_, Result<ClusterRecord, Error>> {
        Box::pin(async move {
            let cluster: Option<Stored<ClusterRecord>> = self.records().find(None, id.0).await?;
            Ok(cluster.ok_or_else(Error::record_not_found)?.record)
        })
    }

    /// Returns the selected clusters in the order of their creation. The stream reads page by page, as the caller
    /// consumes it.
    pub fn clusters(&self, query: ClusterQuery) -> BoxStream<'static, Result<ClusterRecord, Error>> {
        let filter = Filter::all(Kind::Cluster);
        let filter = if query.deleted { filter.with_deleted() } else { filter };
        let records = |pages| {
            let records = self.records().stream_with_reports::<ClusterRecord>(pages);
            records.map_ok(|(stored, _)| stored.record).map_err(Error::from)
        };
        // The database can apply the range only if it also applies every other restriction.
        if query.selects_all() {
            return records(PageQuery::first(filter).in_range(query.range)).boxed();
        }
        let range = query.range;
        let selected = records(PageQuery::first(filter))
            .try_filter(move |record| std::future::ready(query.selects(record)));
        part_of_list(selected, range)
    }
}
