//! Operations on infra-envs.

pub(crate) mod boot_order;
pub(crate) mod check;
pub(crate) mod cluster;
mod download;
pub(crate) mod preflight;
pub(crate) mod registration;
pub(crate) mod renew;
mod served;
pub(crate) mod update;

pub(crate) use download::FileName;
pub use download::{File, IpxeScript};
pub use served::{DatabaseStatus, ServedInfraEnv};

use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};

use super::Inventory;
use crate::catalogue::{CatalogueError, CpuArchitecture, OsImage};
use crate::error::{Error, ErrorKind};
use crate::id::{ClusterId, InfraEnvId};
use crate::infra_env::event;
use crate::infra_env::{InfraEnv, InfraEnvRecord};
use crate::request_id::RequestId;
use crate::store::part_of_list;
use crate::store::{Change, Filter, Kind, ListRange, PageQuery, ReadSet, Reader, Stored};

/// Error text for a record that does not exist.
pub(crate) const NOT_FOUND: &str = "record not found";

/// Returns an infra-env with its generation.
async fn stored_infra_env(reader: &impl Reader, id: InfraEnvId) -> Result<Stored<InfraEnvRecord>, Error> {
    reader.find(None, id.0).await?.ok_or_else(|| Error::not_found(NOT_FOUND))
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

    /// Returns an infra-env as the API shows it.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist.
    pub async fn infra_env(&self, id: InfraEnvId) -> Result<InfraEnv, Error> {
        self.stored_infra_env(id).await?.record.view(self.settings())
    }

    /// Returns a stream of infra-envs: a part of all, or of those of a cluster or an owner.
    pub fn infra_envs(
        &self,
        cluster: Option<ClusterId>,
        owner: Option<String>,
        range: ListRange,
    ) -> BoxStream<'static, Result<InfraEnv, Error>> {
        let mut filter = Filter::all(Kind::InfraEnv);
        if let Some(cluster) = cluster {
            filter = filter.of_cluster(cluster.0);
        }
        let inventory = self.clone();
        let view = move |record: InfraEnvRecord| std::future::ready(record.view(inventory.settings()));
        let Some(owner) = owner else {
            let query = PageQuery::first(filter).in_range(range);
            let records = self.records().stream_with_reports::<InfraEnvRecord>(query).map_err(Error::from);
            return records.and_then(move |(stored, _)| view(stored.record)).boxed();
        };
        let records = self.records().stream::<InfraEnvRecord>(filter).map_err(Error::from);
        let records = records.try_filter(move |stored| std::future::ready(stored.record.user_name == owner));
        part_of_list(records, range).and_then(move |stored| view(stored.record)).boxed()
    }

    /// Deletes an infra-env.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist or still has hosts.
    pub(crate) async fn deregister_infra_env(
        &self,
        id: InfraEnvId,
        request: Option<RequestId>,
    ) -> Result<(), Error> {
        let hosts = Filter::all(Kind::Host).within(id.0);
        let done = self
            .records()
            .change(|reads: ReadSet| async move {
                let mut change = Change::new();
                let stored = stored_infra_env(&reads, id).await?;
                let count = self.records().store().count(hosts).await?;
                if count > 0 {
                    return Err(Error::invalid(format!(
                        "failed to deregister infraEnv {id}, {count} hosts are still associated"
                    )));
                }
                change.remove(&stored);
                change.require_none(hosts);
                change.add_event(event::deregistered(&stored.record, &self.journal(request)));
                Ok((change, ()))
            })
            .await;
        if let Err(refusal) = &done
            && refusal.kind() != ErrorKind::Unavailable
        {
            self.records().add_event(event::deregister_failed(id, refusal, &self.journal(request))).await?;
        }
        done
    }

    /// Returns the base image for a version. An empty version means the newest one.
    pub(crate) async fn os_image(
        &self,
        version: &str,
        architecture: CpuArchitecture,
    ) -> Result<OsImage, Error> {
        let version = Some(version).filter(|version| !version.is_empty());
        let catalogue = self.present_catalogue().await?;
        catalogue.os_image(version, architecture).cloned().map_err(|error| match error {
            // A catalogue that is read from a list or the database has only valid versions.
            CatalogueError::InvalidVersion { .. } => Error::broken(error),
            error => Error::invalid(error.to_string()),
        })
    }
}
