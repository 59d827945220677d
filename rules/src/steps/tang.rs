//! The arguments of the `tang-connectivity-check` step: the Tang servers for the encryption of the host's disks.

use assisted::cluster::DiskEncryptionMode;
use assisted::request::{StepRequest, TangRequest};

use super::input::StepError;
use crate::view::{ClusterSettings, HostView};

/// Returns the Tang servers, or `None` if the disks of the host are not encrypted with Tang.
///
/// A host that joins an existing cluster uses the Tang servers in the cluster's Ignition config, which its agent has
/// downloaded.
pub(super) fn request(host: &HostView, cluster: &ClusterSettings) -> Result<Option<StepRequest>, StepError> {
    let tang_servers = if host.joins() {
        let endpoint = host.summary.ignition_endpoint.as_ref();
        match endpoint.filter(|endpoint| !endpoint.tang_servers.is_empty()) {
            Some(endpoint) => endpoint.tang_servers.to_string(),
            None => return Ok(None),
        }
    } else {
        if !uses_tang(cluster) || !cluster.encrypts_disks_of(host.effective_role()) {
            return Ok(None);
        }
        cluster.disk_encryption.tang_servers.clone().ok_or(StepError::NoTangServers)?
    };
    Ok(Some(StepRequest::Tang(TangRequest { tang_servers })))
}

fn uses_tang(cluster: &ClusterSettings) -> bool {
    cluster.disk_encryption.mode.as_ref().is_some_and(|mode| *mode == DiskEncryptionMode::Tang)
}
