//! Operations of users on single hosts.

use assisted::host::HostUpdateParams;
use futures_util::future::BoxFuture;

use crate::Inventory;
use crate::error::{Error, ErrorKind};
use crate::host::HostRecord;
use crate::host::cluster::require_bound_to;
use crate::host::draft::{ASSESSED, HostDraft};
use crate::host::membership::deregister;
use crate::host::update::{
    apply_update, check_ignition_override, check_installer_args, check_update, set_ignition_override,
    set_installer_args,
};
use crate::id::{ClusterId, HostId, HostKey, InfraEnvId};
use crate::journal::Journal;
use crate::request_id::RequestId;

impl Inventory {
    /// Returns a host that is not deleted.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not exist.
    pub fn host(&self, key: HostKey) -> BoxFuture<'_, Result<HostRecord, Error>> {
        Box::pin(async move { Ok(key.find(self.records()).await?.record) })
    }

    /// Returns a host of a cluster. Several infra-envs can contain a host with the same id. If `infra_env` is `None`,
    /// the first of these hosts in the cluster is returned.
    pub(crate) async fn host_in_cluster(
        &self,
        cluster: ClusterId,
        host_id: HostId,
        infra_env: Option<InfraEnvId>,
    ) -> Result<HostRecord, Error> {
        let infra_env = match infra_env {
            Some(id) => Some(id),
            None => {
                let keys = self.records().store().hosts_in_cluster(cluster, &[host_id]).await?;
                keys.first().and_then(|key| key.parent).map(InfraEnvId)
            }
        };
        let infra_env_id = infra_env.ok_or_else(|| {
            Error::not_found(format!("failed to get host {host_id} in cluster {cluster}: record not found"))
        })?;
        let host = self.host(HostKey { infra_env_id, host_id }).await?;
        require_bound_to(cluster, &host)?;
        Ok(host)
    }

    /// Updates a host with the values of an API request.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not exist, if a value is invalid, or if the status of the host does not allow
    /// the change. The error is a [`Conflict`](ErrorKind::Conflict) if the owner of the host determines a value.
    pub fn update_host(
        &self,
        key: HostKey,
        params: HostUpdateParams,
        request: Option<RequestId>,
    ) -> BoxFuture<'_, Result<HostRecord, Error>> {
        Box::pin(async move {
            check_update(&params)?;
            let context = self.host_context(key).await?;
            let apply = |draft: &mut HostDraft, journal: &mut Journal| {
                if let Some(owner) = &draft.record.choices.owner {
                    owner.allow_update(key.host_id, &params)?;
                }
                apply_update(draft, &params, &context, journal)
            };
            let (host, ()) = key.change_with_reports(self, request, ASSESSED, apply).await?;
            Ok(self.assessed_host(host).await)
        })
    }

    /// Deletes a host. A background job deletes its logs.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not exist.
    pub fn deregister_host(
        &self,
        key: HostKey,
        request: Option<RequestId>,
    ) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let edit = |host: &mut HostRecord, journal: &mut Journal| {
                deregister(host, journal);
                journal.add_log_deletion(host);
                Ok(())
            };
            let (host, ()) = key.change(self, request, edit).await?;
            if let Some(cluster) = host.cluster_id {
                self.assess_for_response(cluster).await;
            }
            Ok(())
        })
    }

    /// Deletes a host for an operator, which repeats the call until it succeeds. Returns `true` if the host existed.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub fn deregister_host_if_present(
        &self,
        key: HostKey,
        request: Option<RequestId>,
    ) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async move {
            match self.deregister_host(key, request).await {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
                Err(error) => Err(error),
            }
        })
    }

    /// Sets the arguments that a host passes to coreos-installer.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not exist, if an argument is invalid, or if the owner of the host determines
    /// the arguments.
    pub fn set_host_installer_args(
        &self,
        key: HostKey,
        args: Vec<String>,
        request: Option<RequestId>,
    ) -> BoxFuture<'_, Result<HostRecord, Error>> {
        Box::pin(async move {
            check_installer_args(&args)?;
            let edit = |host: &mut HostRecord, journal: &mut Journal| {
                require_no_owner(host, "installer_args")?;
                set_installer_args(host, &args, journal)
            };
            let (host, ()) = key.change(self, request, edit).await?;
            Ok(host)
        })
    }

    /// Sets the Ignition override of a host. An empty text removes it.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not exist, if the config is invalid, or if the owner of the host determines
    /// the override.
    pub fn set_host_ignition(
        &self,
        key: HostKey,
        config: String,
        request: Option<RequestId>,
    ) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            if !config.is_empty() {
                check_ignition_override(&config)?;
            }
            let edit = |host: &mut HostRecord, journal: &mut Journal| {
                require_no_owner(host, "ignition_config_overrides")?;
                set_ignition_override(host, &config, journal);
                Ok(())
            };
            key.change(self, request, edit).await?;
            Ok(())
        })
    }
}

fn require_no_owner(host: &HostRecord, field: &str) -> Result<(), Error> {
    match &host.choices.owner {
        Some(owner) => Err(owner.refusal(host.id, field)),
        None => Ok(()),
    }
}
