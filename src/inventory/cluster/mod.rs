//! Clusters: what machines are installed as.
//!
//! This service keeps what a cluster shall be, and installs none.

mod change;
mod create;
mod defaults;
mod event;
mod hosts;
mod model;
mod network;
mod networking;
mod params;
mod parts;
mod record;
mod routes;
mod rules;
mod topology;

use axum::http::StatusCode;
use futures_util::TryStreamExt;
use ignition::discovery::masked_url;
use uuid::Uuid;

pub use defaults::ClusterDefaults;
pub use hosts::ShownHosts;
pub use model::{Cluster, ImageInfo, LastInstallationPreparation, Progress};
pub use network::Subnet;
pub use params::{ClusterCreateParams, ClusterImportParams, ClusterUpdateParams, DisconnectedClusterParams};
pub use parts::*;
pub use record::{ClusterRecord, ClusterSpec};
pub(crate) use routes::routes;

use super::id::ClusterId;
use super::infra_env::NOT_FOUND;
use super::list::{Pieces, array};
use super::store::{Change, Filter, Kind, Record, Stored};
use super::time::Micros;
use super::{Inventory, Secret, logs};
use crate::api_error::ApiError;

/// Which clusters.
#[derive(Clone, Debug, Default)]
pub struct ClusterQuery {
    /// The one that calls itself so.
    pub openshift_cluster_id: Option<Uuid>,
    /// Those of a user.
    pub owner: Option<String>,
    /// Those that somebody pays for: none is, here.
    pub subscribed: bool,
    /// Deleted ones as well.
    pub deleted: bool,
}

impl ClusterQuery {
    fn names(&self, record: &ClusterRecord) -> bool {
        let is_owners = self.owner.as_ref().is_none_or(|owner| *owner == record.user_name);
        let id = self.openshift_cluster_id;
        is_owners && (id.is_none() || id == record.openshift_cluster_id) && !self.subscribed
    }
}

impl Inventory {
    /// A cluster that is not deleted, with its generation.
    ///
    /// # Errors
    ///
    /// When there is no such cluster.
    pub async fn stored_cluster(&self, id: ClusterId) -> Result<Stored<ClusterRecord>, ApiError> {
        let found: Option<Stored<ClusterRecord>> = self.records().find(None, id.0).await?;
        let found = found.filter(|stored| !stored.record.is_deleted());
        found.ok_or_else(|| ApiError::not_found(NOT_FOUND))
    }

    /// A cluster, as clients see it.
    ///
    /// # Errors
    ///
    /// When there is no such cluster.
    pub(crate) async fn cluster(&self, id: ClusterId, hosts: ShownHosts) -> Result<Pieces, ApiError> {
        let record = self.stored_cluster(id).await?.record;
        hosts::text(self, record, hosts).await
    }

    /// A cluster, also if it is deleted.
    ///
    /// # Errors
    ///
    /// When there never was such a cluster.
    pub(crate) async fn cluster_or_deleted(
        &self,
        id: ClusterId,
        hosts: ShownHosts,
    ) -> Result<Pieces, ApiError> {
        let found: Option<Stored<ClusterRecord>> = self.records().find(None, id.0).await?;
        let record = found.ok_or_else(|| ApiError::not_found(NOT_FOUND))?.record;
        hosts::text(self, record, hosts).await
    }

    /// All clusters that a query names, as an array.
    pub(crate) fn clusters(&self, query: ClusterQuery, hosts: ShownHosts) -> Pieces {
        let filter = Filter::all(Kind::Cluster);
        let filter = if query.deleted { filter.with_deleted() } else { filter };
        let inventory = self.clone();
        let records = self.records().stream::<ClusterRecord>(filter).map_err(ApiError::from);
        let clusters = records.try_filter(move |stored| std::future::ready(query.names(&stored.record)));
        array(clusters.and_then(move |stored| {
            let inventory = inventory.clone();
            async move { hosts::text(&inventory, stored.record, hosts).await }
        }))
    }

    /// Makes a cluster that is to be installed.
    ///
    /// # Errors
    ///
    /// When a value is refused, or there is no release for the version.
    pub async fn register_cluster(&self, params: ClusterCreateParams) -> Result<Cluster, ApiError> {
        let catalogue = self.present_catalogue().await?;
        self.add_cluster(create::create(params, &catalogue, self.settings())?).await
    }

    /// Adds a cluster that was installed elsewhere.
    ///
    /// # Errors
    ///
    /// When a value is refused.
    pub async fn import_cluster(&self, params: ClusterImportParams) -> Result<Cluster, ApiError> {
        self.add_cluster(create::import(params)?).await
    }

    /// Makes a cluster that is installed where this service does not see it.
    ///
    /// # Errors
    ///
    /// When a value is refused.
    pub async fn register_disconnected_cluster(
        &self,
        params: DisconnectedClusterParams,
    ) -> Result<Cluster, ApiError> {
        self.add_cluster(create::create_disconnected(params)?).await
    }

    async fn add_cluster(&self, record: ClusterRecord) -> Result<Cluster, ApiError> {
        self.records()
            .change(|| async {
                let mut change = Change::new();
                change.insert(&record);
                change.tell(event::registered(&record));
                Ok((change, ()))
            })
            .await?;
        self.view_of_cluster(record).await
    }

    /// Changes a cluster. One that is as it was is left alone.
    ///
    /// # Errors
    ///
    /// When there is no such cluster, it is in no state to change, or a value is refused.
    pub async fn update_cluster(
        &self,
        id: ClusterId,
        params: ClusterUpdateParams,
    ) -> Result<Cluster, ApiError> {
        let record = self
            .records()
            .change(|| async {
                let mut change = Change::new();
                let stored = self.stored_cluster(id).await?;
                let before = &stored.record;
                let record = change::change(before, params.clone(), self.settings())?;
                if record != *before {
                    change.replace(&record, stored.generation);
                }
                if record.spec.proxies() != before.spec.proxies() {
                    change.tell(event::proxy_changed(id));
                }
                Ok((change, record))
            })
            .await?;
        self.view_of_cluster(record).await
    }

    /// Deletes a cluster; its hosts are free then, or gone with it. It is kept for a while.
    ///
    /// # Errors
    ///
    /// When there is no such cluster, or it is being installed.
    pub async fn deregister_cluster(&self, id: ClusterId) -> Result<(), ApiError> {
        let done = self
            .records()
            .change(|| async {
                let mut change = Change::new();
                let Stored { record, generation, .. } = self.stored_cluster(id).await?;
                if record.status == ClusterStatus::Installing {
                    let reason = format!("cluster {id} can not be removed while being installed");
                    return Err(ApiError::conflict(reason));
                }
                hosts::release(self, &mut change, id).await?;
                change.replace(&deleted(record), generation);
                change.tell(event::deregistered(id));
                Ok((change, ()))
            })
            .await;
        match &done {
            Ok(()) => {
                logs::delete_of_cluster(self, id).await;
            }
            Err(refusal) if refusal.status() == StatusCode::CONFLICT => {
                self.records().tell(event::deregister_failed(id, refusal)).await?;
            }
            Err(_) => {}
        }
        done
    }

    async fn view_of_cluster(&self, record: ClusterRecord) -> Result<Cluster, ApiError> {
        let hosts = hosts::of_cluster(self, record.id).await?;
        Ok(Cluster::of(record, hosts))
    }
}

/// A cluster as it is kept after its end: without what is a record of its own elsewhere, and without secrets.
fn deleted(record: ClusterRecord) -> ClusterRecord {
    let now = Micros::now();
    let spec = ClusterSpec {
        cluster_networks: Vec::new(),
        service_networks: Vec::new(),
        machine_networks: Vec::new(),
        api_vips: Vec::new(),
        ingress_vips: Vec::new(),
        olm_operators: Vec::new(),
        http_proxy: masked_url(&record.spec.http_proxy),
        https_proxy: masked_url(&record.spec.https_proxy),
        pull_secret: Secret::default(),
        ..record.spec
    };
    ClusterRecord { spec, updated_at: now, deleted_at: Some(now), ..record }
}
