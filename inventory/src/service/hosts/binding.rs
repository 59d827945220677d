//! Binds hosts to clusters, and unbinds them.

use futures_util::future::BoxFuture;
use rules::host::state::{HostEvent, decide};

use crate::Inventory;
use crate::catalogue::ReleaseArchitecture;
use crate::cluster::ClusterRecord;
use crate::error::{Error, ErrorKind};
use crate::event::Severity;
use crate::host::cluster::{accepts_hosts, cannot_accept_hosts};
use crate::host::draft::HostDraft;
use crate::host::membership::{clear_cluster, set_cluster};
use crate::host::{HostRecord, HostStatus};
use crate::id::{ClusterId, HostKey};
use crate::journal::Journal;
use crate::request_id::RequestId;
use crate::service::clusters::find_cluster;
use crate::service::infra_envs::stored_infra_env;
use crate::store::{Change, ReadSet};

/// A request to bind a host to a cluster.
#[derive(Clone, Copy, Debug)]
struct Binding {
    key: HostKey,
    cluster: ClusterId,
    request: Option<RequestId>,
}

impl Binding {
    /// Binds the host to the cluster. The binding is complete after the host's agent has registered again. A refusal
    /// adds an event.
    async fn bind(self, inventory: &Inventory) -> Result<HostRecord, Error> {
        let records = inventory.records();
        let bound =
            records.change(|reads: ReadSet| async move { self.attempt(&reads, inventory).await }).await;
        if let Err(refusal) = &bound
            && refusal.kind() != ErrorKind::NotFound
        {
            let HostKey { infra_env_id, host_id } = self.key;
            let reason = refusal.reason();
            let message = format!("Failed to bind host {host_id} to cluster {}: {reason}", self.cluster);
            let event = inventory.journal(self.request).event("host_bind_failed", Severity::Error, message);
            records.add_event(event.of_host(host_id).of_infra_env(infra_env_id)).await?;
        }
        bound
    }

    async fn attempt(self, records: &ReadSet, inventory: &Inventory) -> Result<(Change, HostRecord), Error> {
        let mut change = Change::new();
        let mut draft = HostDraft::new(self.key.find(records).await?);
        let host = &mut draft.record;
        if let Some(cluster) = host.cluster_id {
            return Err(Error::conflict(format!("Host {} is already bound to cluster {cluster}", host.id)));
        }
        let stored = find_cluster(records, self.cluster).await?;
        let cluster = stored
            .map(|stored| stored.record)
            .ok_or_else(|| Error::invalid(format!("Cluster ID {} does not exist", self.cluster)))?;
        self.check_architecture(records, &cluster).await?;
        if !accepts_hosts(&cluster) {
            return Err(cannot_accept_hosts(&cluster));
        }
        let mut journal = inventory.journal(self.request);
        let Ok(transition) = decide(host.status(), &HostEvent::Bind, journal.now()) else {
            let reason =
                format!("Host {} is in state {}, not {}", host.id, host.status(), HostStatus::KnownUnbound);
            return Err(Error::conflict(reason));
        };
        change.require(&cluster);
        set_cluster(host, &cluster, journal.micros());
        journal.apply(host, &transition);
        let message = format!("Successfully bound to cluster {}", cluster.id);
        journal.add_host_event(host, "host_bind_succeeded", Severity::Info, message);
        let host = draft.write(&mut change)?;
        journal.write(&mut change)?;
        Ok((change, host))
    }

    async fn check_architecture(self, records: &ReadSet, cluster: &ClusterRecord) -> Result<(), Error> {
        let architecture = stored_infra_env(records, self.key.infra_env_id).await?.record.cpu_architecture;
        match cluster.cpu_architecture {
            Some(ReleaseArchitecture::One(required)) if architecture != required => {
                let reason = format!(
                    "InfraEnv's CPU architecture ({architecture}) doesn't match Cluster's ({required})"
                );
                Err(Error::invalid(reason))
            }
            _ => Ok(()),
        }
    }
}

impl Inventory {
    /// Binds a host to a cluster. The binding is complete after the host's agent has registered again. A refusal adds
    /// an event.
    ///
    /// # Errors
    ///
    /// Returns an error if the host or the cluster does not exist, or if their statuses do not allow the binding.
    pub fn bind_host(
        &self,
        key: HostKey,
        cluster: ClusterId,
        request: Option<RequestId>,
    ) -> BoxFuture<'_, Result<HostRecord, Error>> {
        Box::pin(async move {
            let host = Binding { key, cluster, request }.bind(self).await?;
            Ok(self.assessed_host(host).await)
        })
    }

    /// Unbinds a host from its cluster. A background job deletes the host's logs. The unbinding is complete after the
    /// host's agent has registered again. A refusal adds an event.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not exist or is not bound, if its infra-env is bound to a cluster, or if its
    /// status does not allow it.
    pub fn unbind_host(
        &self,
        key: HostKey,
        request: Option<RequestId>,
    ) -> BoxFuture<'_, Result<HostRecord, Error>> {
        Box::pin(async move {
            let records = self.records();
            let attempt = |reads: ReadSet| async move { self.attempt_unbind(&reads, key, request).await };
            let unbound = records.change(attempt).await;
            if let Err(refusal) = &unbound
                && refusal.kind() != ErrorKind::NotFound
            {
                let message =
                    format!("Failed to unbind host {} to cluster: {}", key.host_id, refusal.reason());
                let event = self.journal(request).event("host_unbind_failed", Severity::Error, message);
                records.add_event(event.of_host(key.host_id).of_infra_env(key.infra_env_id)).await?;
            }
            let (host, cluster) = unbound?;
            if let Some(cluster) = cluster {
                self.assess_for_response(cluster).await;
            }
            Ok(host)
        })
    }

    /// Plans the unbinding of a host. Returns the change together with the host and the cluster that it leaves.
    async fn attempt_unbind(
        &self,
        reads: &ReadSet,
        key: HostKey,
        request: Option<RequestId>,
    ) -> Result<(Change, (HostRecord, Option<ClusterId>)), Error> {
        let mut change = Change::new();
        let mut draft = HostDraft::new(key.find(reads).await?);
        let mut journal = self.journal(request);
        check_unbind(reads, &draft.record, &journal).await?;
        journal.add_log_deletion(&draft.record);
        let cluster = draft.record.cluster_id;
        clear_cluster(&mut draft.record, &HostEvent::Unbind, &mut journal);
        draft.record.updated_at = journal.micros();
        let host = draft.write(&mut change)?;
        journal.write(&mut change)?;
        Ok((change, (host, cluster)))
    }
}

async fn check_unbind(records: &ReadSet, host: &HostRecord, journal: &Journal) -> Result<(), Error> {
    if host.cluster_id.is_none() {
        return Err(Error::conflict(format!("Host {} is already unbound", host.id)));
    }
    if let Some(cluster) = stored_infra_env(records, host.infra_env_id).await?.record.cluster_id {
        let reason = format!(
            "InfraEnv {} is bound to cluster {cluster}, so its hosts cannot be unbound",
            host.infra_env_id
        );
        return Err(Error::conflict(reason));
    }
    if decide(host.status(), &HostEvent::Unbind, journal.now()).is_err() {
        return Err(Error::conflict(format!(
            "Host {} cannot be unbound in state {}",
            host.id,
            host.status()
        )));
    }
    Ok(())
}
