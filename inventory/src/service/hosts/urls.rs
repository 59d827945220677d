//! The URLs that the `Agent` resource of a host shows.

use futures_util::future::BoxFuture;

use crate::auth::PolicyKind;
use crate::error::Error;
use crate::host::HostRecord;
use crate::infra_env::urls;
use crate::{Inventory, Secret};

/// The URLs of a host's events and logs. A host without a cluster has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostUrls {
    /// URL of the host's events, with the token of its infra-env.
    pub events: Option<Secret>,
    /// URL of the host's uploaded logs. `None` if no logs have been uploaded, or if only users with a token may read
    /// them.
    pub logs: Option<Secret>,
}

impl Inventory {
    /// Returns the URLs of a host's events and logs.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env of the host does not exist, or if the database fails.
    pub fn host_urls<'a>(&'a self, host: &'a HostRecord) -> BoxFuture<'a, Result<HostUrls, Error>> {
        Box::pin(async move {
            let Some(cluster) = host.cluster_id else { return Ok(HostUrls::default()) };
            let infra_env = self.current_infra_env(host.infra_env_id).await?;
            let events = urls::host_events(infra_env.record(), host.id, self.settings());
            let has_logs = host.logs.collected_at.0.is_some();
            // The token of an infra-env does not authorize access to a cluster's logs, so their URL works only without
            // authentication.
            let is_open = self.policy().kind() == PolicyKind::None;
            let logs = (has_logs && is_open).then(|| urls::host_logs(cluster, host.id, self.settings()));
            Ok(HostUrls { events: Some(Secret::new(events)), logs: logs.map(Secret::new) })
        })
    }
}

#[cfg(test)]
mod tests {
    use assisted::host::{HostKind, HostRole, HostStatus};
    use chrono::Utc;
    use serde_json::json;

    use super::*;
    use crate::host::RestoredHost;
    use crate::id::{HostId, HostKey};
    use crate::service::test_inventory::{PULL_SECRET, TestInventory, infra_env_params, register_host};

    #[tokio::test]
    async fn host_of_a_cluster_has_urls_of_its_events_and_logs() {
        let test = TestInventory::open().await;
        let inventory = &test.inventory;
        let params = json!({"name": "one", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
        let params = serde_json::from_value(params).unwrap();
        let cluster = inventory.register_cluster(params, None).await.unwrap().id;
        let infra_env = inventory.register_infra_env(infra_env_params(), None).await.unwrap().id;
        let recorded = RestoredHost {
            cluster_id: Some(cluster),
            kind: HostKind::Host,
            status: Some(HostStatus::Known),
            role: HostRole::Worker,
            stage: None,
            inventory: None,
            approved: true,
            registered_at: Utc::now(),
        };
        let key = HostKey { infra_env_id: infra_env, host_id: HostId::fresh() };
        let mut host = inventory.restore_host(key, recorded, None).await.unwrap();
        let urls = inventory.host_urls(&host).await.unwrap();
        let api = "/api/assisted-install/v2";
        assert!(
            urls.events.unwrap().reveal().ends_with(&format!("{api}/events?host_id={}", host.id)),
            "{host:?}"
        );
        assert_eq!(urls.logs, None);
        host.logs.collected_at = host.registered_at;
        let logs = inventory.host_urls(&host).await.unwrap().logs.unwrap();
        let path = format!("{api}/clusters/{cluster}/logs?host_id={}&logs_type=host", host.id);
        assert!(logs.reveal().ends_with(&path), "{}", logs.reveal());
    }

    #[tokio::test]
    async fn host_without_a_cluster_has_no_urls() {
        let test = TestInventory::open().await;
        let key = register_host(&test.inventory).await;
        let host = test.inventory.host(key).await.unwrap();
        assert_eq!(test.inventory.host_urls(&host).await.unwrap(), HostUrls::default());
    }
}
