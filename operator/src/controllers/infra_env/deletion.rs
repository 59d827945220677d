//! Handles the deletion of an InfraEnv.

use std::sync::Arc;

use futures_util::TryStreamExt as _;
use inventory::ErrorKind;
use inventory::host::HostRecord;
use inventory::id::{HostKey, InfraEnvId};
use inventory::service::HostQuery;
use serde_json::json;

use super::{InfraEnvController, has_finalizer, owner};
use crate::crds::InfraEnv;
use crate::crds::names::INFRA_ENV_FINALIZER;
use crate::errors::ReconcileError;
use crate::object::ObjectKey;
use crate::queue::Next;
use crate::record_id;
use crate::writer::Part;

impl InfraEnvController {
    /// Deletes the infra-env and its hosts, and then removes the finalizer. The garbage collector deletes the Agents,
    /// because the InfraEnv owns them.
    pub(super) async fn delete(
        &self,
        key: &ObjectKey,
        object: &Arc<InfraEnv>,
    ) -> Result<Next, ReconcileError> {
        if !has_finalizer(object) {
            return Ok(Next::Wait);
        }
        // No infra-env was created for an InfraEnv with an invalid id.
        if let Ok(id) = record_id::of_infra_env(&object.metadata)
            && self.is_owned(id, key).await?
        {
            self.deregister_hosts(id).await?;
            self.inventory.deregister_owned_infra_env(id, owner(key), None).await?;
        }
        let finalizers = object.metadata.finalizers.iter().flatten();
        let others: Vec<_> = finalizers.filter(|finalizer| *finalizer != INFRA_ENV_FINALIZER).collect();
        let patch = (Part::Object, json!({"metadata": {"finalizers": others}}));
        self.writer.patch(&self.caches.infra_envs, object.as_ref(), patch).await?;
        Ok(Next::Wait)
    }

    /// Returns `true` if the infra-env exists and belongs to this InfraEnv.
    async fn is_owned(&self, id: InfraEnvId, key: &ObjectKey) -> Result<bool, ReconcileError> {
        match self.inventory.infra_env(id).await {
            Ok(record) => Ok(record.owner == Some(owner(key))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn deregister_hosts(&self, infra_env_id: InfraEnvId) -> Result<(), ReconcileError> {
        let query = HostQuery { infra_env: Some(infra_env_id), ..HostQuery::default() };
        let hosts: Vec<HostRecord> = self.inventory.hosts(query).try_collect().await?;
        for host in hosts {
            let key = HostKey { infra_env_id, host_id: host.id };
            self.inventory.deregister_host_if_present(key, None).await?;
        }
        Ok(())
    }
}
