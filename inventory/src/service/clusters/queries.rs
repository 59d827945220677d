//! Reads clusters: one by its id, or those that a query selects.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use uuid::Uuid;

use crate::Inventory;
use crate::cluster::ClusterRecord;
use crate::error::Error;
use crate::id::ClusterId;
use crate::store::{Filter, Kind, ListRange, PageQuery, Reader, Stored, part_of_list};

/// Selects clusters. The default selects all that are not deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterQuery {
    /// Only the installed cluster that itself uses this id.
    pub openshift_cluster_id: Option<Uuid>,
    /// Only clusters of this user.
    pub owner: Option<String>,
    /// Also deleted clusters.
    pub deleted: bool,
    /// The part of the list.
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

/// Returns a cluster with its generation; `None` if it does not exist or is deleted.
pub(crate) async fn find_cluster(
    reader: &impl Reader,
    id: ClusterId,
) -> Result<Option<Stored<ClusterRecord>>, Error> {
    let found: Option<Stored<ClusterRecord>> = reader.find(None, id.0).await?;
    Ok(found.filter(|stored| !stored.record.is_deleted()))
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
    /// Returns an error if no such cluster is stored.
    pub fn cluster_or_deleted(&self, id: ClusterId) -> BoxFuture<'_, Result<ClusterRecord, Error>> {
        Box::pin(async move {
            let found: Option<Stored<ClusterRecord>> = self.records().find(None, id.0).await?;
            Ok(found.ok_or_else(Error::record_not_found)?.record)
        })
    }

    /// Returns the clusters that a query selects, in the order of their creation. They are read page by page while the
    /// caller reads the stream.
    pub fn clusters(&self, query: ClusterQuery) -> BoxStream<'static, Result<ClusterRecord, Error>> {
        let filter = Filter::all(Kind::Cluster);
        let filter = if query.deleted { filter.with_deleted() } else { filter };
        let records = |pages| {
            let records = self.records().stream_with_reports::<ClusterRecord>(pages);
            records.map_ok(|(stored, _)| stored.record).map_err(Error::from)
        };
        // Only a part of all clusters can be selected in the database.
        if query.selects_all() {
            return records(PageQuery::first(filter).in_range(query.range)).boxed();
        }
        let range = query.range;
        let selected = records(PageQuery::first(filter))
            .try_filter(move |record| std::future::ready(query.selects(record)));
        part_of_list(selected, range)
    }
}
