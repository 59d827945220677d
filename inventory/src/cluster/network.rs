//! Rules for the networks of a cluster: each must be valid, and no two may overlap.

use super::parts::ClusterNetwork;
use super::subnet::{AddressRange, Subnet};
use crate::error::Error;

/// Maximum number of networks of a cluster. The check compares each network with all others.
const MAX_NETWORKS: usize = 256;

/// Checks that each cluster, service and machine network is valid, and that no two of them overlap.
pub(super) fn check_networks(
    pods: &[ClusterNetwork],
    services: &[Subnet],
    machines: &[Subnet],
) -> Result<(), Error> {
    if pods.len().saturating_add(services.len()).saturating_add(machines.len()) > MAX_NETWORKS {
        return Err(Error::invalid(format!("a cluster may have at most {MAX_NETWORKS} networks")));
    }
    for pod in pods {
        let range = parse(&pod.cidr)?;
        let least = i64::from(range.prefix).max(1);
        if !(least..range.width()).contains(&pod.host_prefix) {
            return Err(Error::invalid(format!(
                "Host prefix, now {}, must be between {least} and {} for the cluster network {}",
                pod.host_prefix,
                range.width() - 1,
                pod.cidr
            )));
        }
    }
    let all = pods.iter().map(|pod| &pod.cidr).chain(services).chain(machines);
    let mut checked = Vec::<(&Subnet, AddressRange)>::new();
    for subnet in all {
        let range = parse(subnet)?;
        if let Some((other, _)) = checked.iter().find(|(_, other)| other.overlaps(&range)) {
            return Err(Error::invalid(format!("CIDRS {other} and {subnet} overlap")));
        }
        checked.push((subnet, range));
    }
    Ok(())
}

fn parse(subnet: &Subnet) -> Result<AddressRange, Error> {
    AddressRange::parse(&subnet.0)
        .ok_or_else(|| Error::invalid(format!("{subnet} is not a valid network CIDR")))
}
