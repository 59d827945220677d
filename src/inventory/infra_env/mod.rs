//! Infra-envs: what a group of machines boots.

mod boot_order;
mod cluster;
mod download;
mod event;
mod inputs;
mod model;
mod network_files;
mod preflight;
mod record;
mod register;
mod renew;
mod routes;
mod rules;
mod served;
mod static_network;
mod update;
mod urls;
mod view;

use axum::http::StatusCode;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};

pub use download::{File, FileName, IpxeScript};
pub use model::{
    HostStaticNetwork, InfraEnv, InfraEnvCreateParams, InfraEnvUpdateParams, KernelArgument,
    KernelArgumentOperation, MacInterface, PresignedUrl, Proxy,
};
pub use network_files::{NetworkFile, NetworkFileHost, NetworkFileHosts, NetworkFiles};
pub use preflight::Preflight;
pub use record::{ImageSource, InfraEnvRecord};
pub(crate) use routes::routes;
pub(crate) use served::Served;

use super::Inventory;
use super::id::{ClusterId, InfraEnvId};
use super::store::{Change, Filter, Kind, Stored};
use crate::api_error::ApiError;
use crate::images::{CpuArchitecture, OsImage};

/// What clients are told of a record that is not there.
pub(super) const NOT_FOUND: &str = "record not found";

impl Inventory {
    /// An infra-env, with its generation.
    ///
    /// # Errors
    ///
    /// When there is no such infra-env.
    pub async fn stored_infra_env(&self, id: InfraEnvId) -> Result<Stored<InfraEnvRecord>, ApiError> {
        self.records().find(None, id.0).await?.ok_or_else(|| ApiError::not_found(NOT_FOUND))
    }

    /// An infra-env, as clients see it.
    ///
    /// # Errors
    ///
    /// When there is no such infra-env.
    pub async fn infra_env(&self, id: InfraEnvId) -> Result<InfraEnv, ApiError> {
        Ok(self.stored_infra_env(id).await?.record.view(self.settings()))
    }

    /// All infra-envs, those of a cluster, or those of an owner, one after the other.
    pub fn infra_envs(
        &self,
        cluster: Option<ClusterId>,
        owner: Option<String>,
    ) -> BoxStream<'static, Result<InfraEnv, ApiError>> {
        let mut filter = Filter::all(Kind::InfraEnv);
        if let Some(cluster) = cluster {
            filter = filter.of_cluster(cluster.0);
        }
        let inventory = self.clone();
        let records = self.records().stream::<InfraEnvRecord>(filter).map_err(ApiError::from);
        let views = records.try_filter_map(move |stored| {
            let is_owners = owner.as_ref().is_none_or(|owner| *owner == stored.record.user_name);
            let view = is_owners.then(|| stored.record.view(inventory.settings()));
            std::future::ready(Ok(view))
        });
        views.boxed()
    }

    /// Takes an infra-env away.
    ///
    /// # Errors
    ///
    /// When there is no such infra-env, or hosts still belong to it.
    pub async fn deregister_infra_env(&self, id: InfraEnvId) -> Result<(), ApiError> {
        let hosts = Filter::all(Kind::Host).within(id.0);
        let done = self
            .records()
            .change(|| async {
                let mut change = Change::new();
                let stored = self.stored_infra_env(id).await?;
                let count = self.records().store().count(hosts).await?;
                if count > 0 {
                    return Err(ApiError::bad(format!(
                        "failed to deregister infraEnv {id}, {count} hosts are still associated"
                    )));
                }
                change.remove(&stored);
                change.require_none(hosts);
                change.tell(event::deregistered(&stored.record));
                Ok((change, ()))
            })
            .await;
        if let Err(refusal) = &done
            && refusal.status() != StatusCode::SERVICE_UNAVAILABLE
        {
            self.records().tell(event::deregister_failed(id, refusal)).await?;
        }
        done
    }

    /// The live image for a version; the newest one if it is empty.
    pub(super) async fn os_image(
        &self,
        version: &str,
        architecture: CpuArchitecture,
    ) -> Result<OsImage, ApiError> {
        let version = Some(version).filter(|version| !version.is_empty());
        let catalogue = self.present_catalogue().await?;
        let found = catalogue.os_image(version, architecture);
        found.cloned().map_err(|error| ApiError::bad(error.to_string()))
    }
}
