//! Rules for the combination of a cluster's networks, VIPs and network plugin.

use super::parts::{LoadBalancerType, NetworkType, Vip};
use super::record::ClusterSpec;
use super::subnet::{Subnet, host_bits, is_v6};
use crate::catalogue::Version;
use crate::error::Error;

/// Minimum number of address bits after the prefix of cluster and service networks, which corresponds to 128 addresses.
const MIN_HOST_BITS: u32 = 7;
/// Minimum number of address bits after the prefix of machine networks, which corresponds to 16 addresses.
const MIN_MACHINE_BITS: u32 = 4;
/// Minimum number of address bits for machine networks without VIPs, where the user manages the load balancer.
const MIN_MACHINE_BITS_WITHOUT_VIPS: u32 = 2;
/// Minimum number of address bits for the machine network of a single-node cluster.
const MIN_SINGLE_NODE_BITS: u32 = 1;

/// The first version that allows IPv6 networks before IPv4 networks.
const ANY_ORDER_SINCE: (u64, u64) = (4, 12);
/// The first version that does not support OpenShiftSDN.
const NO_SDN_SINCE: (u64, u64) = (4, 15);

/// Facts about a cluster that its networking rules depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct NetworkingContext<'a> {
    /// Version of the cluster's release, if known.
    pub(super) version: Option<&'a Version>,
    /// Whether the cluster has a single node.
    pub(super) is_single_node: bool,
    /// Whether the request itself sets user-managed networking.
    pub(super) requests_user_managed: bool,
}

impl NetworkingContext<'_> {
    fn is_before(&self, minor: (u64, u64)) -> bool {
        self.version.is_some_and(|version| version.minor() < minor)
    }
}

/// Checks the networking of a spec. Unchanged networking is accepted, because it may be older than a rule.
pub(super) fn check_networking(
    spec: &ClusterSpec,
    before: Option<&ClusterSpec>,
    context: NetworkingContext<'_>,
) -> Result<(), Error> {
    if before.is_some_and(|before| checked_parts(before) == checked_parts(spec)) {
        return Ok(());
    }
    check_sizes(spec, context)?;
    check_families(spec, context)?;
    check_network_type(spec, before, context)?;
    check_dhcp(spec)?;
    let has_vips = !(spec.api_vips.is_empty() && spec.ingress_vips.is_empty());
    // Existing clients create single-node clusters with VIPs. By default, such a cluster has user-managed networking
    // and ignores the VIPs.
    let is_ignored = before.is_none() && spec.user_managed_networking;
    if context.is_single_node && has_vips && !is_ignored {
        return Err(Error::invalid("API VIP and Ingress VIP cannot be set with single node OpenShift"));
    }
    Ok(())
}

/// Returns the fields that the networking rules depend on.
fn checked_parts(spec: &ClusterSpec) -> impl PartialEq {
    (
        (&spec.cluster_networks, &spec.service_networks, &spec.machine_networks),
        (&spec.api_vips, &spec.ingress_vips),
        (spec.network_type, spec.vip_dhcp_allocation, spec.load_balancer),
    )
}

fn check_sizes(spec: &ClusterSpec, context: NetworkingContext<'_>) -> Result<(), Error> {
    let machine_bits = match spec.load_balancer {
        _ if context.is_single_node => MIN_SINGLE_NODE_BITS,
        Some(LoadBalancerType::UserManaged) => MIN_MACHINE_BITS_WITHOUT_VIPS,
        _ => MIN_MACHINE_BITS,
    };
    let pods = spec.cluster_networks.iter().map(|network| &network.cidr);
    let others = pods.chain(&spec.service_networks).map(|subnet| (subnet, MIN_HOST_BITS));
    for (subnet, least) in others.chain(spec.machine_networks.iter().map(|subnet| (subnet, machine_bits))) {
        if let Some(bits) = host_bits(subnet).filter(|bits| *bits < least) {
            let (found, least) = (1_u32 << bits, 1_u32 << least);
            return Err(Error::invalid(format!(
                "{subnet} has {found} addresses, at least {least} are required"
            )));
        }
    }
    Ok(())
}

/// Checks dual-stack lists. Each list must have one entry of each IP family, and all must begin with the same family.
fn check_families(spec: &ClusterSpec, context: NetworkingContext<'_>) -> Result<(), Error> {
    let families = |subnets: &[Subnet]| subnets.iter().map(is_v6).collect::<Vec<_>>();
    let vip_families = |vips: &[Vip]| vips.iter().map(|vip| vip.ip.contains(':')).collect();
    let lists = [
        ("cluster_networks", spec.cluster_networks.iter().map(|network| is_v6(&network.cidr)).collect()),
        ("service_networks", families(&spec.service_networks)),
        ("machine_networks", families(&spec.machine_networks)),
        ("api_vips", vip_families(&spec.api_vips)),
        ("ingress_vips", vip_families(&spec.ingress_vips)),
    ];
    let mut first: Option<(&str, bool)> = None;
    for (name, families) in lists {
        if !(families.contains(&true) && families.contains(&false)) {
            continue;
        }
        let [is_v6, _] = families[..] else {
            let len = families.len();
            return Err(Error::invalid(format!("dual-stack {name} needs exactly two entries, got {len}")));
        };
        if is_v6 && context.is_before(ANY_ORDER_SINCE) {
            let (major, minor) = ANY_ORDER_SINCE;
            return Err(Error::invalid(format!(
                "dual-stack {name} must list IPv4 first before OpenShift {major}.{minor}"
            )));
        }
        match first {
            Some((other, other_is_v6)) if other_is_v6 != is_v6 => {
                return Err(Error::invalid(format!(
                    "dual-stack {other} and {name} must list IP families in the same order"
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
    context: NetworkingContext<'_>,
) -> Result<(), Error> {
    let is_new = before.is_none_or(|before| before.network_type != spec.network_type);
    let is_late = context.version.is_some_and(|version| version.minor() >= NO_SDN_SINCE);
    if is_new && is_late && spec.network_type == Some(NetworkType::OpenShiftSDN) {
        let (major, minor) = NO_SDN_SINCE;
        return Err(Error::invalid(format!(
            "network_type OpenShiftSDN is not supported in OpenShift {major}.{minor} and later"
        )));
    }
    Ok(())
}

fn check_dhcp(spec: &ClusterSpec) -> Result<(), Error> {
    if !spec.vip_dhcp_allocation {
        return Ok(());
    }
    let pods = spec.cluster_networks.iter().map(|network| &network.cidr);
    if let Some(subnet) =
        pods.chain(&spec.service_networks).chain(&spec.machine_networks).find(|it| is_v6(it))
    {
        return Err(Error::invalid(format!("VIP DHCP Allocation requires IPv4, {subnet} is IPv6")));
    }
    if spec.load_balancer == Some(LoadBalancerType::UserManaged) {
        return Err(Error::invalid(
            "VIP DHCP Allocation cannot be enabled with a user-managed load balancer",
        ));
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
    fn rejects_ipv6_first_before_openshift_4_12() {
        let (old, new) = (Version::new(4, 11), Version::new(4, 12));
        let check = |version, services: &[&str]| {
            check_families(
                &spec(services),
                NetworkingContext { version, is_single_node: false, requests_user_managed: false },
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
            "dual-stack service_networks must list IPv4 first before OpenShift 4.12"
        );
    }

    #[test]
    fn unchanged_networking_is_not_checked() {
        let context =
            NetworkingContext { version: None, is_single_node: false, requests_user_managed: false };
        let small = spec(&["192.0.2.0/28"]);
        assert!(check_networking(&small, None, context).is_err());
        let renamed = ClusterSpec { name: "other".to_owned(), ..small.clone() };
        check_networking(&renamed, Some(&small), context).unwrap();
        let changed = ClusterSpec { vip_dhcp_allocation: true, ..small.clone() };
        assert!(check_networking(&changed, Some(&small), context).is_err());
    }
}
