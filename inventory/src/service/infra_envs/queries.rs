//! Reads single infra-envs by id, and lists of infra-envs.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};

use crate::Inventory;
use crate::error::Error;
use crate::id::{ClusterId, InfraEnvId};
use crate::infra_env::InfraEnvRecord;
use crate::store::{Filter, Kind, ListRange, PageQuery, Reader, Stored, part_of_list};

/// A query for a list of infra-envs. By default, it selects all infra-envs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InfraEnvQuery {
    /// The cluster to which the selected infra-envs are bound. `None` for no restriction.
    pub cluster: Option<ClusterId>,
    /// The user name of the owner. `None` for no restriction.
    pub owner: Option<String>,
    /// The range of the list to return.
    pub range: ListRange,
}

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

    /// Returns the infra-env with the given id.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist.
    pub fn infra_env(&self, id: InfraEnvId) -> BoxFuture<'_, Result<InfraEnvRecord, Error>> {
        Box::pin(async move { Ok(stored_infra_env(self.records(), id).await?.record) })
    }

    /// Returns the selected infra-envs in the order of their creation. The stream reads page by page, as the caller
    /// consumes it.
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
