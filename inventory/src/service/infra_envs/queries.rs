//! Returns infra-envs.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};

use crate::Inventory;
use crate::error::Error;
use crate::id::{ClusterId, InfraEnvId};
use crate::infra_env::InfraEnvRecord;
use crate::store::{Filter, Kind, ListRange, PageQuery, Reader, Stored, part_of_list};

/// Selects infra-envs. The default selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InfraEnvQuery {
    /// Only infra-envs of this cluster.
    pub cluster: Option<ClusterId>,
    /// Only infra-envs of this user.
    pub owner: Option<String>,
    /// The part of the list.
    pub range: ListRange,
}

/// Returns an infra-env with its generation.
pub(crate) async fn stored_infra_env(
    reader: &impl Reader,
    id: InfraEnvId,
) -> Result<Stored<InfraEnvRecord>, Error> {
    reader.find(None, id.0).await?.ok_or_else(Error::record_not_found)
}

impl Inventory {
    /// Returns an infra-env with its generation.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist.
    pub fn stored_infra_env(&self, id: InfraEnvId) -> BoxFuture<'_, Result<Stored<InfraEnvRecord>, Error>> {
        Box::pin(stored_infra_env(self.records(), id))
    }

    /// Returns an infra-env.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist.
    pub fn infra_env(&self, id: InfraEnvId) -> BoxFuture<'_, Result<InfraEnvRecord, Error>> {
        Box::pin(async move { Ok(stored_infra_env(self.records(), id).await?.record) })
    }

    /// Returns the infra-envs that a query selects, in the order of their creation. They are read page by page while
    /// the caller reads the stream.
    pub fn infra_envs(&self, query: InfraEnvQuery) -> BoxStream<'static, Result<InfraEnvRecord, Error>> {
        let InfraEnvQuery { cluster, owner, range } = query;
        let mut filter = Filter::all(Kind::InfraEnv);
        if let Some(cluster) = cluster {
            filter = filter.of_cluster(cluster.0);
        }
        let Some(owner) = owner else {
            let query = PageQuery::first(filter).in_range(range);
            let records = self.records().stream_with_reports::<InfraEnvRecord>(query);
            return records.map_ok(|(stored, _)| stored.record).map_err(Error::from).boxed();
        };
        let records = self.records().stream::<InfraEnvRecord>(filter);
        let records = records.map_ok(|stored| stored.record).map_err(Error::from);
        let records = records.try_filter(move |record| std::future::ready(record.user_name == owner));
        part_of_list(records, range)
    }
}
