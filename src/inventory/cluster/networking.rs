//! What the networks of a cluster, its addresses and what connects its pods allow each other.

use super::network::Subnet;
use super::parts::{LoadBalancerType, NetworkType, Vip};
use super::record::ClusterSpec;
use crate::api_error::ApiError;
use crate::images::Version;

/// The least networks of pods and of services have 128 addresses, and those of machines 16: bits that tell them apart.
const LEAST_BITS: u32 = 7;
const LEAST_BITS_OF_MACHINES: u32 = 4;
/// Where others balance the load, addresses of the cluster's own take none of these.
const LEAST_BITS_WITHOUT_VIPS: u32 = 2;
const LEAST_BITS_OF_ONE_MACHINE: u32 = 1;

/// The first version whose clusters may have IPv6 before IPv4.
const ANY_ORDER_SINCE: (u64, u64) = (4, 12);
/// The first version without OpenShiftSDN.
const NO_SDN_SINCE: (u64, u64) = (4, 15);

/// What a cluster is, whatever it shall be beside that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    /// The version of its release, where it is known.
    pub(super) version: Option<&'a Version>,
    /// Whether it has a single node.
    pub(super) is_single_node: bool,
    /// Whether the request itself asks for user-managed networking.
    pub(super) asks_for_user_managed: bool,
}

impl Frame<'_> {
    fn is_before(&self, minor: (u64, u64)) -> bool {
        self.version.is_some_and(|version| version.minor() < minor)
    }
}

/// Checks all that an owner says of networking. What was so before the change, by whatever rules, may stay.
pub(super) fn check_networking(
    spec: &ClusterSpec,
    before: Option<&ClusterSpec>,
    frame: Frame<'_>,
) -> Result<(), ApiError> {
    if before.is_some_and(|before| said(before) == said(spec)) {
        return Ok(());
    }
    check_sizes(spec, frame)?;
    check_families(spec, frame)?;
    check_network_type(spec, before, frame)?;
    check_dhcp(spec)?;
    let has_vips = !(spec.api_vips.is_empty() && spec.ingress_vips.is_empty());
    // Existing clients create single nodes with VIPs, which then have user-managed networking and ignore them.
    let is_ignored = before.is_none() && spec.user_managed_networking;
    if frame.is_single_node && has_vips && !is_ignored {
        return Err(ApiError::bad("API VIP and Ingress VIP cannot be set with single node OpenShift"));
    }
    Ok(())
}

/// All that is looked at here.
fn said(spec: &ClusterSpec) -> impl PartialEq {
    (
        (&spec.cluster_networks, &spec.service_networks, &spec.machine_networks),
        (&spec.api_vips, &spec.ingress_vips),
        (spec.network_type, spec.vip_dhcp_allocation, spec.load_balancer),
    )
}

fn check_sizes(spec: &ClusterSpec, frame: Frame<'_>) -> Result<(), ApiError> {
    let of_machines = match spec.load_balancer {
        _ if frame.is_single_node => LEAST_BITS_OF_ONE_MACHINE,
        Some(LoadBalancerType::UserManaged) => LEAST_BITS_WITHOUT_VIPS,
        _ => LEAST_BITS_OF_MACHINES,
    };
    let pods = spec.cluster_networks.iter().map(|network| &network.cidr);
    let others = pods.chain(&spec.service_networks).map(|subnet| (subnet, LEAST_BITS));
    for (subnet, least) in others.chain(spec.machine_networks.iter().map(|subnet| (subnet, of_machines))) {
        if let Some(bits) = subnet.host_bits().filter(|bits| *bits < least) {
            let (found, least) = (1_u32 << bits, 1_u32 << least);
            return Err(ApiError::bad(format!("{subnet} has {found} addresses, and {least} are needed")));
        }
    }
    Ok(())
}

/// Of each family there is one network and one address where there are both, and the same one comes first everywhere.
fn check_families(spec: &ClusterSpec, frame: Frame<'_>) -> Result<(), ApiError> {
    let of = |subnets: &[Subnet]| subnets.iter().map(Subnet::is_v6).collect::<Vec<_>>();
    let of_vips = |vips: &[Vip]| vips.iter().map(|vip| vip.ip.contains(':')).collect();
    let lists = [
        ("cluster_networks", spec.cluster_networks.iter().map(|network| network.cidr.is_v6()).collect()),
        ("service_networks", of(&spec.service_networks)),
        ("machine_networks", of(&spec.machine_networks)),
        ("api_vips", of_vips(&spec.api_vips)),
        ("ingress_vips", of_vips(&spec.ingress_vips)),
    ];
    let mut first: Option<(&str, bool)> = None;
    for (name, families) in lists {
        if !(families.contains(&true) && families.contains(&false)) {
            continue;
        }
        let [is_v6, _] = families[..] else {
            let found = families.len();
            return Err(ApiError::bad(format!(
                "{name} of both IPv4 and IPv6 are two, and there are {found}"
            )));
        };
        if is_v6 && frame.is_before(ANY_ORDER_SINCE) {
            let (major, minor) = ANY_ORDER_SINCE;
            return Err(ApiError::bad(format!(
                "{name} of both IPv4 and IPv6 begin with IPv4 before OpenShift {major}.{minor}"
            )));
        }
        match first {
            Some((other, other_is_v6)) if other_is_v6 != is_v6 => {
                return Err(ApiError::bad(format!(
                    "{other} and {name} of both IPv4 and IPv6 have to begin with the same one"
                )));
            }
            _ => first = Some((name, is_v6)),
        }
    }
    Ok(())
}

fn check_network_type(
    spec: &ClusterSpec,
    before: Option<&ClusterSpec>,
    frame: Frame<'_>,
) -> Result<(), ApiError> {
    let is_new = before.is_none_or(|before| before.network_type != spec.network_type);
    let is_late = frame.version.is_some_and(|version| version.minor() >= NO_SDN_SINCE);
    if is_new && is_late && spec.network_type == Some(NetworkType::OpenShiftSDN) {
        let (major, minor) = NO_SDN_SINCE;
        return Err(ApiError::bad(format!(
            "network_type OpenShiftSDN is not supported from OpenShift {major}.{minor} on"
        )));
    }
    Ok(())
}

fn check_dhcp(spec: &ClusterSpec) -> Result<(), ApiError> {
    if !spec.vip_dhcp_allocation {
        return Ok(());
    }
    let pods = spec.cluster_networks.iter().map(|network| &network.cidr);
    if let Some(subnet) =
        pods.chain(&spec.service_networks).chain(&spec.machine_networks).find(|it| it.is_v6())
    {
        return Err(ApiError::bad(format!("VIP DHCP Allocation is of IPv4 alone, and {subnet} is not")));
    }
    if spec.load_balancer == Some(LoadBalancerType::UserManaged) {
        return Err(ApiError::bad("VIP DHCP Allocation cannot be enabled with a user-managed load balancer"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(services: &[&str]) -> ClusterSpec {
        let service_networks = services.iter().map(|text| Subnet((*text).to_owned())).collect();
        ClusterSpec { service_networks, ..ClusterSpec::default() }
    }

    #[test]
    fn old_clusters_begin_with_version_4() {
        let (old, new) = (Version::of(4, 11), Version::of(4, 12));
        let check = |version, services: &[&str]| {
            check_families(
                &spec(services),
                Frame { version, is_single_node: false, asks_for_user_managed: false },
            )
        };
        let (v4, v6) = ("172.30.0.0/16", "fd02::/112");
        check(Some(&old), &[v4, v6]).unwrap();
        check(Some(&old), &[v6]).unwrap();
        check(Some(&new), &[v6, v4]).unwrap();
        check(None, &[v6, v4]).unwrap();
        let refusal = check(Some(&old), &[v6, v4]).unwrap_err();
        assert_eq!(
            refusal.reason(),
            "service_networks of both IPv4 and IPv6 begin with IPv4 before OpenShift 4.12"
        );
    }

    #[test]
    fn what_was_so_before_may_stay() {
        let frame = Frame { version: None, is_single_node: false, asks_for_user_managed: false };
        let small = spec(&["192.0.2.0/28"]);
        assert!(check_networking(&small, None, frame).is_err());
        let renamed = ClusterSpec { name: "other".to_owned(), ..small.clone() };
        check_networking(&renamed, Some(&small), frame).unwrap();
        let changed = ClusterSpec { vip_dhcp_allocation: true, ..small.clone() };
        assert!(check_networking(&changed, Some(&small), frame).is_err());
    }
}
