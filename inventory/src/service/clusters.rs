//! Operations on clusters.

use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use ignition::discovery::masked_url;
use uuid::Uuid;

use super::Inventory;
use super::hosts::counts::DeletedHosts;
use super::hosts::release::release_hosts;
use super::infra_envs::NOT_FOUND;
use crate::api::clusters::model::{Cluster, Hosts};
use crate::api::clusters::text::{self as hosts, ShownHosts};
use crate::api::{JsonPieces, json_array, json_piece};
use crate::cluster::params::{
    ClusterCreateParams, ClusterImportParams, ClusterUpdateParams, DisconnectedClusterParams,
};
use crate::cluster::state::ClusterOperation;
use crate::cluster::{ClusterRecord, ClusterSpec, event, update};
use crate::error::{Error, ErrorKind};
use crate::id::ClusterId;
use crate::job::JobWork;
use crate::request_id::RequestId;
use crate::store::part_of_list;
use crate::store::{Change, Filter, Kind, ListRange, PageQuery, ReadSet, Reader, Stored};
use crate::time::Micros;
use assisted::Secret;

/// Selects clusters.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterQuery {
    /// Only the installed cluster that itself uses this id.
    pub openshift_cluster_id: Option<Uuid>,
    /// Only clusters of this user.
    pub owner: Option<String>,
    /// Only clusters with a subscription. Clusters of this service have none.
    pub subscribed: bool,
    /// Also deleted clusters.
    pub deleted: bool,
    /// The part of the list.
    pub range: ListRange,
}

impl ClusterQuery {
    fn selects_all(&self) -> bool {
        self.openshift_cluster_id.is_none() && self.owner.is_none() && !self.subscribed
    }

    fn selects(&self, record: &ClusterRecord) -> bool {
        let is_owners = self.owner.as_ref().is_none_or(|owner| *owner == record.user_name);
        let id = self.openshift_cluster_id;
        is_owners && (id.is_none() || id == record.openshift_cluster_id) && !self.subscribed
    }
}

/// Returns a cluster that is not deleted, with its generation.
pub(crate) async fn stored_cluster(
    reader: &impl Reader,
    id: ClusterId,
) -> Result<Stored<ClusterRecord>, Error> {
    let found: Option<Stored<ClusterRecord>> = reader.find(None, id.0).await?;
    let found = found.filter(|stored| !stored.record.is_deleted());
    found.ok_or_else(|| Error::not_found(NOT_FOUND))
}

impl Inventory {
    /// Returns a cluster that is not deleted, with its generation.
    ///
    /// # Errors
    ///
    /// Returns an error if the cluster does not exist.
    pub async fn stored_cluster(&self, id: ClusterId) -> Result<Stored<ClusterRecord>, Error> {
        stored_cluster(self.records(), id).await
    }

    /// Returns the JSON text of a cluster.
    ///
    /// # Errors
    ///
    /// Returns an error if the cluster does not exist.
    pub(crate) async fn cluster(&self, id: ClusterId, hosts: ShownHosts) -> Result<JsonPieces, Error> {
        let record = self.stored_cluster(id).await?.record;
        hosts::text(self, record, hosts, DeletedHosts::Omitted).await
    }

    /// Returns the JSON text of a cluster, even if it is deleted, with its deleted hosts.
    ///
    /// # Errors
    ///
    /// Returns an error if no such cluster is stored.
    pub(crate) async fn cluster_or_deleted(
        &self,
        id: ClusterId,
        hosts: ShownHosts,
    ) -> Result<JsonPieces, Error> {
        let found: Option<Stored<ClusterRecord>> = self.records().find(None, id.0).await?;
        let record = found.ok_or_else(|| Error::not_found(NOT_FOUND))?.record;
        hosts::text(self, record, hosts, DeletedHosts::Included).await
    }

    /// Returns the clusters that a query selects, as a JSON array. If it selects deleted clusters, all clusters have
    /// their deleted hosts, as upstream.
    pub(crate) fn clusters(&self, query: ClusterQuery, hosts: ShownHosts) -> JsonPieces {
        /// As many as the store reads at once.
        const COUNTED_TOGETHER: usize = 64;
        let inventory = self.clone();
        let deleted = if query.deleted { DeletedHosts::Included } else { DeletedHosts::Omitted };
        let records = self.cluster_records(query);
        if hosts != ShownHosts::Counted {
            return json_array(records.and_then(move |record| {
                let inventory = inventory.clone();
                async move { hosts::text(&inventory, record, hosts, deleted).await }
            }));
        }
        let texts = records.try_chunks(COUNTED_TOGETHER).map_err(|error| error.1).and_then(move |records| {
            let inventory = inventory.clone();
            async move { hosts::counted_texts(&inventory, records, deleted).await }
        });
        json_array(
            texts
                .map_ok(|texts| stream::iter(texts.into_iter().map(|text| Ok(json_piece(text)))))
                .try_flatten(),
        )
    }

    fn cluster_records(&self, query: ClusterQuery) -> BoxStream<'static, Result<ClusterRecord, Error>> {
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

    /// Registers a cluster that will be installed.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is refused, or if no release has the version.
    pub(crate) async fn register_cluster(
        &self,
        params: ClusterCreateParams,
        request: Option<RequestId>,
    ) -> Result<Cluster, Error> {
        let catalogue = self.present_catalogue().await?;
        self.add_cluster(
            crate::cluster::create::create(params, &catalogue, self.settings(), self.now())?,
            request,
        )
        .await
    }

    /// Adds an existing cluster.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is refused.
    pub(crate) async fn import_cluster(
        &self,
        params: ClusterImportParams,
        request: Option<RequestId>,
    ) -> Result<Cluster, Error> {
        self.add_cluster(crate::cluster::create::import(params, self.now())?, request).await
    }

    /// Registers a cluster that is installed without a connection to this service.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is refused.
    pub(crate) async fn register_disconnected_cluster(
        &self,
        params: DisconnectedClusterParams,
        request: Option<RequestId>,
    ) -> Result<Cluster, Error> {
        self.add_cluster(crate::cluster::create::create_disconnected(params, self.now())?, request).await
    }

    async fn add_cluster(&self, record: ClusterRecord, request: Option<RequestId>) -> Result<Cluster, Error> {
        self.records()
            .change(|_| async {
                let mut change = Change::new();
                change.insert(&record)?;
                change.add_event(event::registered(&record, &self.journal(request)));
                Ok((change, ()))
            })
            .await?;
        // No client knows its id yet, so it has no hosts.
        Ok(Cluster::from_record(record, Hosts::default(), self.settings()))
    }

    /// Changes a cluster, and returns its JSON text. A request without changes writes nothing.
    ///
    /// # Errors
    ///
    /// Returns an error if the cluster does not exist or cannot be changed in its status, or if a value is refused.
    pub(crate) async fn update_cluster(
        &self,
        id: ClusterId,
        params: ClusterUpdateParams,
        request: Option<RequestId>,
    ) -> Result<JsonPieces, Error> {
        let params = &params;
        let record = self
            .records()
            .change(|reads: ReadSet| async move {
                let (mut change, journal) = (Change::new(), self.journal(request));
                let stored = stored_cluster(&reads, id).await?;
                let before = &stored.record;
                let record = update::update(before, params.clone(), self.settings(), journal.micros())?;
                if record != *before {
                    change.replace(&record, stored.generation)?;
                }
                if record.spec.proxies() != before.spec.proxies() {
                    change.add_event(event::proxy_changed(id, &journal));
                }
                Ok((change, record))
            })
            .await?;
        hosts::text(self, record, ShownHosts::InFull, DeletedHosts::Omitted).await
    }

    /// Deletes a cluster. Its hosts leave it, or are deleted with it. The record is kept for a while.
    ///
    /// # Errors
    ///
    /// Returns an error if the cluster does not exist or is being installed.
    pub async fn deregister_cluster(&self, id: ClusterId, request: Option<RequestId>) -> Result<(), Error> {
        let done = self
            .records()
            .change(|reads: ReadSet| async move {
                let (mut change, mut journal) = (Change::new(), self.journal(request));
                let Stored { record, generation, .. } = stored_cluster(&reads, id).await?;
                if !ClusterOperation::Delete.is_allowed(record.status()) {
                    let reason = format!("cluster {id} can not be removed while being installed");
                    return Err(Error::conflict(reason));
                }
                release_hosts(&reads, &mut change, id, &mut journal).await?;
                change.replace(&deleted_cluster_record(record, journal.micros()), generation)?;
                journal.add(event::deregistered(id, &journal));
                journal.add_job(JobWork::DeleteClusterFiles { cluster: id });
                journal.write(&mut change)?;
                Ok((change, ()))
            })
            .await;
        if let Err(refusal) = &done
            && refusal.kind() == ErrorKind::Conflict
        {
            let journal = self.journal(request);
            self.records().add_event(event::deregister_failed(id, refusal, &journal)).await?;
        }
        done
    }
}

/// Returns the record of a deleted cluster: without networks, VIPs and operators, as upstream, and without secrets.
fn deleted_cluster_record(mut record: ClusterRecord, now: Micros) -> ClusterRecord {
    record.spec = ClusterSpec {
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
    (record.updated_at, record.deleted_at) = (now, Some(now));
    record
}
