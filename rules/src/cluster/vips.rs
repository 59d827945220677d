//! Combines the reports of a cluster's hosts into one result for each virtual IP address (VIP): free, in use or
//! unverified.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use assisted::cluster::VipVerification;
use assisted::host::HostStatus;
use assisted::step::VipType;
use ignition::Cidr;

use crate::summary::{FreeAddresses, VerifiedVip};
use crate::view::{ClusterView, HostView};

/// Returns the verification results of the VIPs that at least one connected host of the cluster has checked. API VIPs
/// come before ingress VIPs. Both follow the order of the cluster's lists.
///
/// If several hosts check the same VIP, the VIP counts as in use if any of them reports that it is in use.
#[must_use]
pub fn verified_vips(view: &ClusterView) -> Vec<VerifiedVip> {
    let mut verifications = BTreeMap::<(VipType, IpAddr), VipVerification>::new();
    for vip in view.hosts.iter().filter(|host| is_connected(host)).flat_map(|host| &host.summary.vips) {
        let verification = verifications.entry((vip.vip_type, vip.address)).or_default();
        *verification = combined(*verification, vip.verification);
    }
    let vips = |vip_type, addresses: &[IpAddr]| -> Vec<VerifiedVip> {
        let verified = addresses.iter().filter_map(|address| {
            let verification = *verifications.get(&(vip_type, *address))?;
            Some(VerifiedVip { address: *address, vip_type, verification })
        });
        verified.collect()
    };
    let cluster = &view.cluster;
    [vips(VipType::Api, &cluster.api_vips), vips(VipType::Ingress, &cluster.ingress_vips)].concat()
}

/// Returns the verification of one VIP in a network. If [`verified_vips`] has no result for the VIP, uses the hosts'
/// [lists of free addresses](listed_verification).
#[must_use]
pub fn verification_in(
    view: &ClusterView,
    vip_type: VipType,
    address: IpAddr,
    network: Cidr,
) -> VipVerification {
    let mut vips = verified_vips(view).into_iter();
    let verified = vips.find(|vip| vip.vip_type == vip_type && vip.address == address);
    match verified.map(|vip| vip.verification) {
        Some(decided @ (VipVerification::Succeeded | VipVerification::Failed)) => decided,
        Some(VipVerification::Unverified) | None => listed_verification(&view.hosts, address, network),
    }
}

/// Verifies an address with the lists of free addresses that hosts report for a network.
///
/// The address is free if all lists contain it. It is unverified if the lists have no address in common, because the
/// lists arrive late and are empty at first.
#[must_use]
pub fn listed_verification(hosts: &[Arc<HostView>], address: IpAddr, network: Cidr) -> VipVerification {
    let network = network.without_host_bits();
    let lists = hosts.iter().flat_map(|host| &host.summary.free_addresses);
    let common = lists.filter(|list| list.network == network).cloned().reduce(intersection);
    match common {
        Some(free) if free.contains(address) => VipVerification::Succeeded,
        Some(free) if free.bits.iter().any(|bits| *bits != 0) => VipVerification::Failed,
        _ => VipVerification::Unverified,
    }
}

/// Returns the addresses that both lists of a network contain.
fn intersection(mut one: FreeAddresses, other: FreeAddresses) -> FreeAddresses {
    for (bits, other_bits) in one.bits.iter_mut().zip(other.bits) {
        *bits &= other_bits;
    }
    one
}

/// Returns `true` if the agent of the host is connected, so that its reports are current.
fn is_connected(host: &HostView) -> bool {
    host.status != HostStatus::Disconnected
}

/// Combines the results of two hosts for the same VIP. "In use" takes precedence over "free", and both take precedence
/// over "unverified".
fn combined(one: VipVerification, other: VipVerification) -> VipVerification {
    use VipVerification::{Failed, Succeeded, Unverified};
    match (one, other) {
        (Failed, _) | (_, Failed) => Failed,
        (Succeeded, _) | (_, Succeeded) => Succeeded,
        (Unverified, Unverified) => Unverified,
    }
}

#[cfg(test)]
mod tests {
    use VipVerification::{Failed, Succeeded, Unverified};

    use super::*;
    use crate::summary::HostSummary;
    use crate::view::ClusterSettings;

    const API: &str = "192.0.2.5";
    const INGRESS: &str = "192.0.2.6";

    fn host(status: HostStatus, vips: &[(VipType, &str, VipVerification)]) -> Arc<HostView> {
        let vips = vips.iter().map(|(vip_type, address, verification)| VerifiedVip {
            address: address.parse().unwrap(),
            vip_type: *vip_type,
            verification: *verification,
        });
        let summary = Arc::new(HostSummary { vips: vips.collect(), ..HostSummary::default() });
        let id = "5ac2fc82-9fa9-4ea2-83ad-b3d3d0f1c6a1".parse().unwrap();
        let infra_env = "0c7d9d4f-96e8-4d2c-8a5d-0b0a7a3b7f01".parse().unwrap();
        Arc::new(HostView { status, summary, ..HostView::new(id, infra_env) })
    }

    /// Returns the verification of the API and ingress VIPs for a cluster with these hosts.
    fn verified(hosts: Vec<Arc<HostView>>) -> Vec<(VipType, VipVerification)> {
        let id = "5ac2fc82-9fa9-4ea2-83ad-b3d3d0f1c6a2".parse().unwrap();
        let cluster = ClusterSettings {
            api_vips: vec![API.parse().unwrap()],
            ingress_vips: vec![INGRESS.parse().unwrap()],
            ..ClusterSettings::new(id)
        };
        let vips = verified_vips(&ClusterView { cluster: Arc::new(cluster), hosts });
        vips.iter().map(|vip| (vip.vip_type, vip.verification)).collect()
    }

    #[test]
    fn vip_in_use_on_one_host_is_in_use() {
        use VipType::{Api, Ingress};
        let both = |api, ingress| host(HostStatus::Known, &[(Api, API, api), (Ingress, INGRESS, ingress)]);
        assert_eq!(verified(vec![]), []);
        assert_eq!(verified(vec![host(HostStatus::Known, &[])]), []);
        for (hosts, api, ingress) in [
            (vec![both(Succeeded, Unverified)], Succeeded, Unverified),
            (vec![both(Succeeded, Unverified), both(Unverified, Succeeded)], Succeeded, Succeeded),
            (vec![both(Succeeded, Failed), both(Failed, Succeeded)], Failed, Failed),
        ] {
            assert_eq!(verified(hosts), [(Api, api), (Ingress, ingress)]);
        }
    }

    #[test]
    fn reports_about_other_vips_or_from_disconnected_hosts_are_ignored() {
        use VipType::{Api, Ingress};
        let connected =
            host(HostStatus::Known, &[(Api, API, Succeeded), (Ingress, API, Failed), (Api, INGRESS, Failed)]);
        let disconnected = host(HostStatus::Disconnected, &[(Api, API, Failed), (Ingress, INGRESS, Failed)]);
        assert_eq!(verified(vec![connected, disconnected]), [(Api, Succeeded)]);
    }

    /// Verifies an address with one list of free addresses for each host.
    fn listed(address: &str, lists: &[(&str, &[&str])]) -> VipVerification {
        let hosts = lists.iter().map(|(network, addresses)| {
            let addresses = addresses.iter().map(|address| address.parse().unwrap());
            let free = FreeAddresses::from_addresses(Cidr::parse(network).unwrap(), addresses).unwrap();
            let summary = HostSummary { free_addresses: vec![free], ..HostSummary::default() };
            Arc::new(HostView { summary: Arc::new(summary), ..(*host(HostStatus::Known, &[])).clone() })
        });
        let network = Cidr::parse("192.0.2.1/24").unwrap();
        listed_verification(&hosts.collect::<Vec<_>>(), address.parse().unwrap(), network)
    }

    #[test]
    fn address_missing_from_one_list_is_in_use() {
        let (both, one) = (("192.0.2.0/24", &[API, INGRESS][..]), ("192.0.2.0/24", &[INGRESS][..]));
        let other = ("198.51.100.0/24", &["198.51.100.1"][..]);
        assert_eq!(listed(API, &[both, both, other]), Succeeded);
        assert_eq!(listed(API, &[both, one]), Failed);
        assert_eq!(listed(INGRESS, &[both, one]), Succeeded);
    }

    #[test]
    fn address_is_unverified_if_lists_have_nothing_in_common() {
        let (none, one) = (("192.0.2.0/24", &[][..]), ("192.0.2.0/24", &[API][..]));
        assert_eq!(listed(API, &[]), Unverified);
        assert_eq!(listed(API, &[("198.51.100.0/24", &["198.51.100.1"])]), Unverified);
        assert_eq!(listed(INGRESS, &[none, one]), Unverified);
    }

    #[test]
    fn reports_take_precedence_over_lists() {
        let free =
            FreeAddresses::from_addresses(Cidr::parse("192.0.2.0/24").unwrap(), [API.parse().unwrap()]);
        let free_addresses = vec![free.unwrap()];
        for (reported, expected) in [(Failed, Failed), (Succeeded, Succeeded), (Unverified, Succeeded)] {
            let vips = host(HostStatus::Known, &[(VipType::Api, API, reported)]).summary.vips.clone();
            let summary =
                HostSummary { vips, free_addresses: free_addresses.clone(), ..HostSummary::default() };
            let host = HostView { summary: Arc::new(summary), ..(*host(HostStatus::Known, &[])).clone() };
            let id = "5ac2fc82-9fa9-4ea2-83ad-b3d3d0f1c6a2".parse().unwrap();
            let api_vips = vec![API.parse().unwrap()];
            let cluster = Arc::new(ClusterSettings { api_vips, ..ClusterSettings::new(id) });
            let view = ClusterView { cluster, hosts: vec![Arc::new(host)] };
            let network = Cidr::parse("192.0.2.0/24").unwrap();
            assert_eq!(verification_in(&view, VipType::Api, API.parse().unwrap(), network), expected);
        }
    }
}
