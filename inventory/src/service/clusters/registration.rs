//! Registers, imports and deletes clusters.

use assisted::cluster::{ClusterCreateParams, ClusterImportParams, DisconnectedClusterParams};
use futures_util::future::BoxFuture;

use super::queries::stored_cluster;
use crate::Inventory;
use crate::cluster::{ClusterRecord, create, delete, event};
use crate::error::{Error, ErrorKind};
use crate::id::ClusterId;
use crate::job::JobWork;
use crate::journal::Journal;
use crate::request_id::RequestId;
use crate::service::hosts::release::release_hosts;
use crate::store::{Change, ReadSet};

impl Inventory {
    /// Registers a new cluster to install.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is invalid, or if no release has the requested version.
    pub fn register_cluster(
        &self,
        params: ClusterCreateParams,
        request: Option<RequestId>,
    ) -> BoxFuture<'_, Result<ClusterRecord, Error>> {
        Box::pin(async move {
            let catalogue = self.present_catalogue().await?;
            let journal = self.journal(request);
            let record = create::create(params, &catalogue, self.settings(), journal.now())?;
            self.add_cluster(record, journal).await
        })
    }

    /// Imports an existing cluster, so that hosts can be added to it.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is invalid.
    pub fn import_cluster(
        &self,
        params: ClusterImportParams,
        request: Option<RequestId>,
    ) -> BoxFuture<'_, Result<ClusterRecord, Error>> {
        Box::pin(async move {
            let journal = self.journal(request);
            self.add_cluster(create::import(params, journal.now())?, journal).await
        })
    }

    /// Registers a cluster to install without a connection to this service.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is invalid.
    pub fn register_disconnected_cluster(
        &self,
        params: DisconnectedClusterParams,
        request: Option<RequestId>,
    ) -> BoxFuture<'_, Result<ClusterRecord, Error>> {
        Box::pin(async move {
            let journal = self.journal(request);
            self.add_cluster(create::create_disconnected(params, journal.now())?, journal).await
        })
    }

    async fn add_cluster(&self, record: ClusterRecord, mut journal: Journal) -> Result<ClusterRecord, Error> {
        journal.add(event::registered(record.id, &journal));
        self.records()
            .change(|_| async {
                let mut change = Change::new();
                change.insert(&record)?;
                journal.clone().write(&mut change)?;
                Ok((change, ()))
            })
            .await?;
        Ok(record)
    }

    /// Deletes a cluster. Hosts leave the cluster, or are deleted if their infra-env is bound to it. A background job
    /// deletes the cluster's files. The record stays stored for some time, marked as deleted.
    ///
    /// # Errors
    ///
    /// Returns an error if the cluster does not exist or is being installed.
    pub fn deregister_cluster(
        &self,
        id: ClusterId,
        request: Option<RequestId>,
    ) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let attempt =
                |reads: ReadSet| async move { self.attempt_cluster_deletion(&reads, id, request).await };
            let done = self.records().change(attempt).await;
            if let Err(refusal) = &done
                && refusal.kind() == ErrorKind::Conflict
            {
                let journal = self.journal(request);
                self.records().add_event(event::deregister_failed(id, refusal, &journal)).await?;
            }
            done
        })
    }

    async fn attempt_cluster_deletion(
        &self,
        reads: &ReadSet,
        id: ClusterId,
        request: Option<RequestId>,
    ) -> Result<(Change, ()), Error> {
        let (mut change, mut journal) = (Change::new(), self.journal(request));
        let stored = stored_cluster(reads, id).await?;
        let record = delete::delete(stored.record, journal.micros())?;
        release_hosts(reads, &mut change, id, &mut journal).await?;
        change.replace(&record, stored.generation)?;
        journal.add(event::deregistered(id, &journal));
        journal.add_job(JobWork::DeleteClusterFiles { cluster: id });
        journal.write(&mut change)?;
        Ok((change, ()))
    }
}
