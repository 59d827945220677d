//! Whether the virtual IP addresses of a cluster are free.

use std::collections::BTreeMap;
use std::net::IpAddr;

use assisted::cluster::VipVerification;
use assisted::host::HostStatus;
use assisted::step::VipType;

use crate::summary::VerifiedVip;
use crate::view::{ClusterView, HostView};

/// Returns the verification of each virtual IP address of a cluster that a connected host has checked, in the order of
/// their use and of the cluster's lists.
///
/// Each host reports what it found. An address that one of them found in use is in use.
#[must_use]
pub fn verified_vips(view: &ClusterView) -> Vec<VerifiedVip> {
    let mut found = BTreeMap::<(VipType, IpAddr), VipVerification>::new();
    for vip in view.hosts.iter().filter(|host| is_heard(host)).flat_map(|host| &host.summary.vips) {
        let verification = found.entry((vip.vip_type, vip.address)).or_default();
        *verification = worse(*verification, vip.verification);
    }
    let vips = |vip_type, addresses: &[IpAddr]| -> Vec<VerifiedVip> {
        let verified = addresses.iter().filter_map(|address| {
            let verification = *found.get(&(vip_type, *address))?;
            Some(VerifiedVip { address: *address, vip_type, verification })
        });
        verified.collect()
    };
    let cluster = &view.cluster;
    [vips(VipType::Api, &cluster.api_vips), vips(VipType::Ingress, &cluster.ingress_vips)].concat()
}

/// Returns `true` if the reports of a host count.
fn is_heard(host: &HostView) -> bool {
    host.status != HostStatus::Disconnected
}

/// Returns what two hosts found together.
fn worse(one: VipVerification, other: VipVerification) -> VipVerification {
    use VipVerification::{Failed, Succeeded, Unverified};
    match (one, other) {
        (Failed, _) | (_, Failed) => Failed,
        (Succeeded, _) | (_, Succeeded) => Succeeded,
        (Unverified, Unverified) => Unverified,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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

    /// Returns the verifications of the API and of the ingress of a cluster with these hosts.
    fn verified(hosts: Vec<Arc<HostView>>) -> Vec<(VipType, VipVerification)> {
        let id = "5ac2fc82-9fa9-4ea2-83ad-b3d3d0f1c6a2".parse().unwrap();
        let cluster = ClusterSettings {
            api_vips: vec![API.parse().unwrap()],
            ingress_vips: vec![INGRESS.parse().unwrap()],
            ..ClusterSettings::new(id)
        };
        let found = verified_vips(&ClusterView { cluster: Arc::new(cluster), hosts });
        found.iter().map(|vip| (vip.vip_type, vip.verification)).collect()
    }

    #[test]
    fn address_that_one_host_finds_in_use_is_in_use() {
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
    fn other_addresses_uses_and_disconnected_hosts_do_not_count() {
        use VipType::{Api, Ingress};
        let known =
            host(HostStatus::Known, &[(Api, API, Succeeded), (Ingress, API, Failed), (Api, INGRESS, Failed)]);
        let silent = host(HostStatus::Disconnected, &[(Api, API, Failed), (Ingress, INGRESS, Failed)]);
        assert_eq!(verified(vec![known, silent]), [(Api, Succeeded)]);
    }
}
