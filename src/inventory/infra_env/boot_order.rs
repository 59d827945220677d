//! Whether a machine that boots over the network shall boot the discovery image, or what is on its disk.

use futures_util::TryStreamExt;

use crate::api_error::ApiError;
use crate::inventory::Inventory;
use crate::inventory::host::{HostRecord, HostStage, HostStatus};
use crate::inventory::id::InfraEnvId;
use crate::inventory::store::{Filter, Kind, Stored};

impl Inventory {
    /// Refuses to let a machine boot the discovery image that is installed, or whose system is on the disk already.
    ///
    /// A machine is known by one of its addresses. One that registered twice is let boot only if none of its hosts is
    /// beyond discovery.
    pub(super) async fn require_discovery(&self, infra_env: InfraEnvId, mac: &str) -> Result<(), ApiError> {
        let mac = mac.to_ascii_lowercase().replace('-', ":");
        let has_mac = |host: &HostRecord| host.findings.inventory.to_ascii_lowercase().contains(&mac);
        let mut hosts = self.records().stream::<HostRecord>(Filter::all(Kind::Host).within(infra_env.0));
        while let Some(Stored { record: host, .. }) = hosts.try_next().await? {
            if is_beyond_discovery(&host) && has_mac(&host) {
                return Err(ApiError::not_found(format!(
                    "IPXE booting skipped. Host {} is in status {} and boots from its disk",
                    host.id,
                    host.status.as_str()
                )));
            }
        }
        Ok(())
    }
}

fn is_beyond_discovery(host: &HostRecord) -> bool {
    let boots_from_disk = |stage: HostStage| {
        matches!(
            stage,
            HostStage::Done
                | HostStage::Configuring
                | HostStage::Joined
                | HostStage::Rebooting
                | HostStage::WaitingForIgnition
        )
    };
    match host.status {
        HostStatus::Installed => true,
        HostStatus::InstallingInProgress => host.progress.stage.is_some_and(boots_from_disk),
        _ => false,
    }
}
