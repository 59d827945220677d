//! Decides whether a host that boots over the network gets the discovery image or boots from its disk.

use crate::Inventory;
use crate::error::Error;
use crate::host::{HostRecord, HostStage, HostStatus};
use crate::id::InfraEnvId;
use crate::store::Stored;

impl Inventory {
    /// Returns an error if the host with this MAC address must boot from its disk. This is the case if the host is
    /// installed, or if its installer has written the system to the disk.
    ///
    /// If several hosts have the address, the error is returned if any of them must boot from its disk.
    pub(crate) async fn require_discovery(&self, infra_env: InfraEnvId, mac: &str) -> Result<(), Error> {
        let mac = mac.to_ascii_lowercase().replace('-', ":");
        let hosts = self.records().store().hosts_with_mac(&mac).await?;
        for key in hosts.into_iter().filter(|key| key.parent == Some(infra_env.0)) {
            let stored: Option<Stored<HostRecord>> = self.records().find(key.parent, key.id).await?;
            if let Some(Stored { record: host, .. }) = stored
                && is_beyond_discovery(&host)
            {
                return Err(Error::not_found(format!(
                    "IPXE booting skipped. Host {} is in status {} and boots from its disk",
                    host.id,
                    host.status().as_str()
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
    match host.status() {
        HostStatus::Installed => true,
        HostStatus::InstallingInProgress => host.progress.stage.is_some_and(boots_from_disk),
        _ => false,
    }
}
