//! Returns infra-envs.

use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};

use crate::Inventory;
use crate::error::Error;
use crate::id::{ClusterId, InfraEnvId};
use crate::infra_env::InfraEnvRecord;
use crate::store::{Filter, Kind, ListRange, PageQuery, Reader, Stored, part_of_list};

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
    pub async fn stored_infra_env(&self, id: InfraEnvId) -> Result<Stored<InfraEnvRecord>, Error> {
        stored_infra_env(self.records(), id).await
    }

    /// Returns an infra-env.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist.
    pub async fn infra_env(&self, id: InfraEnvId) -> Result<InfraEnvRecord, Error> {
        Ok(self.stored_infra_env(id).await?.record)
    }

    /// Returns a stream of infra-envs: a part of all, or of those of a cluster or an owner.
    pub fn infra_envs(
        &self,
        cluster: Option<ClusterId>,
        owner: Option<String>,
        range: ListRange,
    ) -> BoxStream<'static, Result<InfraEnvRecord, Error>> {
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
