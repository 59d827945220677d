//! The arguments of the `logs-gather` step.

use assisted::List;
use assisted::host::HostRole;
use assisted::request::{LogsRequest, StepRequest};

use super::input::StepError;
use crate::view::{ClusterSettings, ClusterView, HostView};

/// Returns the arguments of the step, or `None` if the logs of the host are already complete.
pub(super) fn request(host: &HostView, view: &ClusterView) -> Result<Option<StepRequest>, StepError> {
    if host.has_logs {
        return Ok(None);
    }
    Ok(Some(StepRequest::LogsGather(LogsRequest {
        bootstrap: host.bootstrap,
        cluster_id: view.cluster.id,
        host_id: host.id,
        infra_env_id: host.infra_env_id,
        installer_gather: true,
        master_ips: if host.bootstrap { control_plane_addresses(view)? } else { List(None) },
    })))
}

/// Returns the addresses of all control plane nodes except the bootstrap host. The list contains each node's address in
/// the first machine network, or all addresses if the user manages the networking. Without such nodes, the list is
/// `null` in JSON.
fn control_plane_addresses(view: &ClusterView) -> Result<List<String>, StepError> {
    let others =
        || view.hosts.iter().filter(|host| !host.bootstrap && host.effective_role() != HostRole::Worker);
    let addresses: Vec<_> = if view.cluster.user_managed_networking {
        let all = others().flat_map(|host| host.nics()).flat_map(|nic| &nic.addresses);
        all.map(|address| address.address().to_string()).collect()
    } else {
        others().map(|host| machine_network_address(host, &view.cluster)).collect::<Result<_, _>>()?
    };
    Ok(List(Some(addresses).filter(|addresses| !addresses.is_empty())))
}

fn machine_network_address(host: &HostView, cluster: &ClusterSettings) -> Result<String, StepError> {
    let network = *cluster.machine_networks.first().ok_or(StepError::NoMachineNetwork)?;
    match host.nic_in(network) {
        Some((_, address)) => Ok(address.to_string()),
        None => Err(StepError::PeerNotInMachineNetwork {
            role: host.effective_role(),
            hostname: host.hostname().to_owned(),
            network: network.to_string(),
        }),
    }
}
