//! Restores hosts after the loss of the database, from the resources of an operator.

use futures_util::future::BoxFuture;

use crate::Inventory;
use crate::error::Error;
use crate::event::Severity;
use crate::host::assessment::{HostContext, assess_unbound};
use crate::host::bounds::require_room_for_host;
use crate::host::draft::HostDraft;
use crate::host::{HostRecord, RestoredHost};
use crate::id::HostKey;
use crate::request_id::RequestId;
use crate::service::infra_envs::{require_cluster_of_infra_env, stored_infra_env};
use crate::store::{Change, ReadSet};

impl Inventory {
    /// Creates a host from the data in its `Agent` resource, after the loss of the database. The infra-env, and the
    /// cluster if the host had one, must have been created again with their old ids. The host's agent keeps running:
    /// its next check-in and reports are accepted without a reboot.
    ///
    /// Data outside of the resource is not restored. The agent sends its other reports again, and
    /// [`update_host_from_agent`](Self::update_host_from_agent) applies the users' settings. Events and logs are lost.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env or the cluster does not exist, or if the inventory report is invalid. The
    /// error is a [`Conflict`](crate::ErrorKind::Conflict) if the host already exists.
    pub fn restore_host(
        &self,
        key: HostKey,
        host: RestoredHost,
        request: Option<RequestId>,
    ) -> BoxFuture<'_, Result<HostRecord, Error>> {
        Box::pin(async move {
            let context = &self.context(key.infra_env_id, host.cluster_id).await?;
            let restoration = &Restoration { key, host, request };
            let attempt = |reads: ReadSet| async move { restoration.attempt(&reads, self, context).await };
            let host = self.records().change(attempt).await?;
            Ok(self.assessed_host(host).await)
        })
    }
}

struct Restoration {
    key: HostKey,
    host: RestoredHost,
    request: Option<RequestId>,
}

impl Restoration {
    async fn attempt(
        &self,
        reads: &ReadSet,
        inventory: &Inventory,
        context: &HostContext<'_>,
    ) -> Result<(Change, HostRecord), Error> {
        let (mut change, mut journal) = (Change::new(), inventory.journal(self.request));
        let HostKey { infra_env_id, host_id } = self.key;
        change.require(&stored_infra_env(reads, infra_env_id).await?.record);
        match self.key.find_any(reads).await? {
            Some(host) if host.record.deleted_at.is_none() => {
                return Err(Error::conflict(format!(
                    "Host with ID {host_id} already exists in infraEnv {infra_env_id}. Cannot restore."
                )));
            }
            Some(deleted) => change.remove(&deleted),
            None => {}
        }
        let cluster = require_cluster_of_infra_env(reads, self.host.cluster_id).await?;
        if let Some(cluster) = &cluster {
            change.require(cluster);
        }
        let record = self.host.to_record(self.key, cluster.as_ref(), journal.now());
        let mut draft = HostDraft::of_new_host(record);
        self.host.set_inventory(&mut draft, context)?;
        assess_unbound(&mut draft, context, &mut journal)?;
        let host = draft.insert(&mut change)?;
        require_room_for_host(&mut change, infra_env_id, &inventory.settings().host_limits);
        journal.add_host_event(&host, "host_restored", Severity::Info, "Restored from its Agent resource");
        journal.write(&mut change)?;
        Ok((change, host))
    }
}

#[cfg(test)]
mod tests {
    use assisted::host::{HostKind, HostRole, HostStage, HostStatus};
    use assisted::step::StepType;
    use chrono::{DateTime, Utc};
    use serde_json::json;

    use super::*;
    use crate::error::ErrorKind;
    use crate::id::{ClusterId, HostId, InfraEnvId};
    use crate::service::hosts::check_in::Poll;
    use crate::service::test_inventory::{
        INVENTORY_REPORT, PULL_SECRET, TestInventory, infra_env_params, register_host, reply,
    };
    use crate::time::Millis;

    fn registered_at() -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000, 0).unwrap()
    }

    fn recorded() -> RestoredHost {
        RestoredHost {
            cluster_id: None,
            kind: HostKind::Host,
            status: Some(HostStatus::KnownUnbound),
            role: HostRole::Worker,
            stage: None,
            inventory: Some(INVENTORY_REPORT.to_owned()),
            approved: true,
            registered_at: registered_at(),
        }
    }

    async fn new_key(inventory: &Inventory) -> HostKey {
        let infra_env_id = inventory.register_infra_env(infra_env_params(), None).await.unwrap().id;
        HostKey { infra_env_id, host_id: HostId::fresh() }
    }

    #[tokio::test]
    async fn restored_host_equals_its_recorded_state() {
        let test = TestInventory::open().await;
        let inventory = &test.inventory;
        let key = new_key(inventory).await;
        let host = inventory.restore_host(key, recorded(), None).await.unwrap();
        assert_eq!((host.status(), host.role), (HostStatus::KnownUnbound, HostRole::Worker));
        assert_eq!(host.suggested_role, HostRole::Worker);
        assert_eq!((host.name().as_str(), host.choices.approved), ("node-1", true));
        assert_eq!(host.registered_at, Millis::new(registered_at()));
        assert_eq!(host.choices.installation_disk.as_ref().unwrap().id, "disk-a");
        assert!(inventory.host_details(key).await.unwrap().unwrap().version.results.is_some());
        let error = inventory.restore_host(key, recorded(), None).await.unwrap_err();
        let HostKey { infra_env_id, host_id } = key;
        let reason =
            format!("Host with ID {host_id} already exists in infraEnv {infra_env_id}. Cannot restore.");
        assert_eq!((error.kind(), error.reason()), (ErrorKind::Conflict, reason.as_str()));
        // A deleted host can be restored.
        inventory.deregister_host(key, None).await.unwrap();
        assert!(inventory.restore_host(key, recorded(), None).await.is_ok());
        reply(inventory, key, StepType::Inventory, INVENTORY_REPORT).await;
        assert_eq!(inventory.host(key).await.unwrap().status(), HostStatus::KnownUnbound);
    }

    #[tokio::test]
    async fn invalid_status_and_unknown_stage_are_replaced() {
        let test = TestInventory::open().await;
        let inventory = &test.inventory;
        for status in [None, Some(HostStatus::Installing)] {
            let host = RestoredHost { status, stage: Some(HostStage::Configuring), ..recorded() };
            let host = inventory.restore_host(new_key(inventory).await, host, None).await.unwrap();
            assert_eq!((host.status(), host.progress.percentage > 0), (HostStatus::KnownUnbound, true));
        }
        let without_role = RestoredHost {
            role: HostRole::AutoAssign,
            stage: Some(HostStage::Configuring),
            inventory: None,
            ..recorded()
        };
        let host = inventory.restore_host(new_key(inventory).await, without_role, None).await.unwrap();
        assert_eq!((host.progress.stage, host.name()), (None, host.id.to_string()));
    }

    #[tokio::test]
    async fn host_of_a_cluster_keeps_its_kind_and_stage() {
        let test = TestInventory::open().await;
        let inventory = &test.inventory;
        let params = json!({"name": "one", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
        let params = serde_json::from_value(params).unwrap();
        let cluster = inventory.register_cluster(params, None).await.unwrap().id;
        let host = RestoredHost {
            cluster_id: Some(cluster),
            kind: HostKind::Joining,
            status: Some(HostStatus::InstallingInProgress),
            stage: Some(HostStage::WritingImage),
            ..recorded()
        };
        let host = inventory.restore_host(new_key(inventory).await, host, None).await.unwrap();
        assert_eq!((host.cluster_id, host.kind), (Some(cluster), HostKind::Joining));
        assert_eq!(host.status(), HostStatus::InstallingInProgress);
        assert_eq!(host.progress.stage, Some(HostStage::WritingImage));
        assert_eq!(host.choices.machine_config_pool_name, "worker");
    }

    #[tokio::test]
    async fn rejects_missing_parents_and_invalid_reports() {
        let test = TestInventory::open().await;
        let inventory = &test.inventory;
        let key = new_key(inventory).await;
        let of_unknown_cluster = RestoredHost { cluster_id: Some(ClusterId::fresh()), ..recorded() };
        let with_invalid_report = RestoredHost { inventory: Some("[]".to_owned()), ..recorded() };
        let unknown_infra_env = HostKey { infra_env_id: InfraEnvId::fresh(), ..key };
        for (key, host, kind) in [
            (key, of_unknown_cluster, ErrorKind::NotFound),
            (key, with_invalid_report, ErrorKind::Invalid),
            (unknown_infra_env, recorded(), ErrorKind::NotFound),
        ] {
            let error = inventory.restore_host(key, host, None).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
        }
        assert_eq!(inventory.host(key).await.unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn restored_host_has_time_to_check_in() {
        let test = TestInventory::open().await;
        let inventory = &test.inventory;
        let key = register_host(inventory).await;
        inventory.deregister_host(key, None).await.unwrap();
        let host = inventory.restore_host(key, recorded(), None).await.unwrap();
        assert!(host.checked_in_at.0 > host.registered_at.0);
        let poll = Poll { key, request: None, clock: None, agent_version: Some("agent:1".to_owned()) };
        inventory.check_in(&poll).await.unwrap();
        let after = inventory.host(key).await.unwrap();
        assert_eq!((after.status(), after.agent_version.as_str()), (HostStatus::KnownUnbound, "agent:1"));
    }
}
