//! Tests the machine networks of clusters whose hosts are in one or several networks.

use assisted::cluster::LoadBalancerType;
use proptest::prelude::*;

use super::*;
use crate::summary::{HostSummary, InventorySummary, NicSummary, RouteSummary};
use crate::view::PodNetwork;

const CLUSTER_ID: &str = "5ac2fc82-9fa9-4ea2-83ad-b3d3d0f1c6a1";
const INFRA_ENV_ID: &str = "0c7d9d4f-96e8-4d2c-8a5d-0b0a7a3b7f01";

fn cidrs(networks: &[&str]) -> Vec<Cidr> {
    networks.iter().map(|network| Cidr::parse(network).unwrap()).collect()
}

fn ips(addresses: &[&str]) -> Vec<IpAddr> {
    addresses.iter().map(|address| address.parse().unwrap()).collect()
}

/// Returns a host with a list of addresses for each interface, and with default routes as pairs of gateway and metric.
fn host(nics: &[&[&str]], routes: &[(&str, i64)]) -> Arc<HostView> {
    let nic = |addresses: &&[&str]| NicSummary { addresses: cidrs(addresses), ..NicSummary::default() };
    let route = |(gateway, metric): &(&str, i64)| {
        let gateway: IpAddr = gateway.parse().unwrap();
        let destination = if gateway.is_ipv4() { "0.0.0.0" } else { "::" };
        let destination = destination.parse().ok();
        RouteSummary { destination, gateway: Some(gateway), nic: "eth0".into(), metric: *metric }
    };
    let inventory = InventorySummary {
        nics: nics.iter().map(nic).collect(),
        routes: routes.iter().map(route).collect(),
        ..InventorySummary::default()
    };
    let summary = HostSummary { inventory: Some(Box::new(inventory)), ..HostSummary::default() };
    let view = HostView::new(CLUSTER_ID.parse().unwrap(), INFRA_ENV_ID.parse().unwrap());
    Arc::new(HostView { summary: Arc::new(summary), ..view })
}

/// Returns a multi-node cluster with status `pending-for-input`, and with IPv4 networks for pods and services.
fn cluster() -> ClusterSettings {
    ClusterSettings {
        status: ClusterStatus::PendingForInput,
        control_plane_count: 3,
        cluster_networks: pods(&["10.128.0.0/14"]),
        service_networks: cidrs(&["172.30.0.0/16"]),
        ..ClusterSettings::new(CLUSTER_ID.parse().unwrap())
    }
}

fn dual_stack() -> ClusterSettings {
    ClusterSettings {
        cluster_networks: pods(&["10.128.0.0/14", "fd01::/48"]),
        service_networks: cidrs(&["172.30.0.0/16", "fd02::/112"]),
        ..cluster()
    }
}

fn single_node(settings: ClusterSettings) -> ClusterSettings {
    ClusterSettings { control_plane_count: 1, user_managed_networking: true, ..settings }
}

fn pods(networks: &[&str]) -> Vec<PodNetwork> {
    cidrs(networks).into_iter().map(|cidr| PodNetwork { cidr, host_prefix: 23 }).collect()
}

fn changed(cluster: ClusterSettings, hosts: &[Arc<HostView>]) -> Option<Vec<Cidr>> {
    new_machine_networks(&ClusterView { cluster: Arc::new(cluster), hosts: hosts.to_vec() })
}

/// Returns a cluster with stored machine networks and API virtual IP addresses.
fn with_vips(settings: ClusterSettings, stored: &[&str], api_vips: &[&str]) -> ClusterSettings {
    ClusterSettings { machine_networks: cidrs(stored), api_vips: ips(api_vips), ..settings }
}

const NET: &str = "192.168.1.0/24";
const NET_V6: &str = "fd2e:6f44:5dd8::/64";

#[test]
fn machine_network_contains_the_virtual_ip_addresses() {
    let hosts = [host(&[&["192.168.1.11/24"]], &[])];
    let vips = |stored: &[&str], api: &[&str], ingress: &[&str]| {
        changed(ClusterSettings { ingress_vips: ips(ingress), ..with_vips(cluster(), stored, api) }, &hosts)
    };
    assert_eq!(vips(&[], &["192.168.1.5"], &["192.168.1.6"]), Some(cidrs(&[NET])));
    assert_eq!(vips(&[], &[], &["192.168.1.6"]), Some(cidrs(&[NET])));
    assert_eq!(vips(&["10.0.0.0/24"], &["192.168.1.5"], &[]), Some(cidrs(&[NET])));
    assert_eq!(vips(&[NET], &["192.168.1.5"], &["192.168.1.6"]), None);
    assert_eq!(vips(&[], &["10.0.0.5"], &["192.168.1.6"]), None);
    assert_eq!(vips(&[], &[], &[]), None);
}

#[test]
fn network_without_virtual_ip_address_is_deleted_only_in_single_stack() {
    let hosts = [host(&[&["192.168.1.11/24"]], &[])];
    for api_vips in [&[][..], &["10.0.0.5"]] {
        assert_eq!(changed(with_vips(cluster(), &[NET], api_vips), &hosts), Some(Vec::new()));
        assert_eq!(changed(with_vips(cluster(), &[], api_vips), &hosts), None);
        assert_eq!(changed(with_vips(dual_stack(), &[NET, NET_V6], api_vips), &hosts), None);
        assert_eq!(changed(with_vips(cluster(), &[NET, NET_V6], api_vips), &hosts), None);
    }
}

#[test]
fn second_network_without_virtual_ip_address_stays() {
    let hosts = [host(&[&["192.168.1.11/24", "fd2e:6f44:5dd8::11/64"]], &[])];
    let of = |stored: &[&str], vips: &[&str]| changed(with_vips(dual_stack(), stored, vips), &hosts);
    let both = cidrs(&[NET, NET_V6]);
    assert_eq!(of(&[NET, NET_V6], &["192.168.1.5"]), None);
    assert_eq!(of(&[NET, NET_V6], &["192.168.1.5", "fd2e:6f44:5dd8::5"]), None);
    assert_eq!(of(&[NET], &["192.168.1.5", "fd2e:6f44:5dd8::5"]), Some(both.clone()));
    assert_eq!(of(&[], &["192.168.1.5", "fd2e:6f44:5dd8::5"]), Some(both));
    assert_eq!(of(&["10.0.0.0/24", NET_V6], &["192.168.1.5"]), Some(cidrs(&[NET])));
}

#[test]
fn first_matching_network_wins_over_a_smaller_one() {
    let hosts = [
        host(&[&["10.0.0.1/24"], &["192.168.1.11/16", "192.168.1.11/24"]], &[]),
        host(&[&["192.168.1.12/24"]], &[]),
    ];
    let vip = "192.168.1.5".parse().unwrap();
    assert_eq!(network_of_vip(&hosts, vip), Cidr::parse("192.168.0.0/16"));
    assert_eq!(network_of_vip(&hosts[1..], vip), Cidr::parse(NET));
    assert_eq!(network_of_vip(&hosts, "2001:db8::1".parse().unwrap()), None);
}

#[test]
fn cluster_with_vip_dhcp_allocation_gets_the_only_network() {
    let dhcp = || ClusterSettings { vip_dhcp_allocation: true, ..cluster() };
    let (one, other) = (host(&[&["192.168.1.11/24"]], &[]), host(&[&["192.168.1.12/24"]], &[]));
    let v6 = host(&[&["192.168.1.13/24", "fd2e:6f44:5dd8::13/64"]], &[]);
    assert_eq!(changed(dhcp(), &[]), None);
    assert_eq!(changed(dhcp(), &[one.clone(), other.clone()]), Some(cidrs(&[NET])));
    assert_eq!(changed(with_vips(dhcp(), &[NET], &[]), &[one.clone(), other]), None);
    assert_eq!(
        changed(with_vips(dhcp(), &["10.0.0.0/24"], &[]), std::slice::from_ref(&one)),
        Some(cidrs(&[NET]))
    );
    assert_eq!(changed(dhcp(), &[one, v6]), None);
}

#[test]
fn single_node_gets_one_network_per_family() {
    let hosts = [host(&[&["fd2e:6f44:5dd8::11/64", "192.168.1.11/24"]], &[])];
    assert_eq!(changed(single_node(cluster()), &hosts), Some(cidrs(&[NET])));
    assert_eq!(changed(single_node(dual_stack()), &hosts), Some(cidrs(&[NET, NET_V6])));
    let other_order =
        ClusterSettings { service_networks: cidrs(&["fd02::/112", "172.30.0.0/16"]), ..dual_stack() };
    assert_eq!(changed(single_node(other_order), &hosts), None);
    assert_eq!(changed(with_vips(single_node(cluster()), &["10.0.0.0/24"], &[]), &hosts), None);
    let v4_only = [host(&[&["192.168.1.11/24"]], &[])];
    assert_eq!(changed(single_node(dual_stack()), &v4_only), None);
    let unknown = ClusterSettings { cluster_networks: Vec::new(), service_networks: Vec::new(), ..cluster() };
    assert_eq!(changed(single_node(unknown), &hosts), None);
}

#[test]
fn single_node_in_several_networks_gets_the_network_of_the_default_route() {
    let of = |routes: &[(&str, i64)]| {
        changed(single_node(cluster()), &[host(&[&["10.0.0.11/24"], &["192.168.1.11/24"]], routes)])
    };
    assert_eq!(of(&[("10.0.0.1", 101), ("192.168.1.1", 100), ("fe80::1", 1)]), Some(cidrs(&[NET])));
    assert_eq!(of(&[("10.0.0.1", 100), ("192.168.1.1", 100)]), Some(cidrs(&["10.0.0.0/24"])));
    assert_eq!(of(&[("172.16.0.1", 100), ("192.168.1.1", 101)]), None);
    assert_eq!(of(&[]), None);
}

#[test]
fn networks_of_other_clusters_stay() {
    let hosts = [host(&[&["192.168.1.11/24"]], &[])];
    let with_vip = || with_vips(cluster(), &["10.0.0.0/24"], &["192.168.1.5"]);
    assert!(changed(with_vip(), &hosts).is_some());
    for cluster in [
        ClusterSettings { kind: ClusterKind::AddHostsCluster, ..with_vip() },
        ClusterSettings { imported: true, ..with_vip() },
        ClusterSettings { user_managed_networking: true, ..with_vip() },
        ClusterSettings { load_balancer: Some(LoadBalancerType::UserManaged), ..with_vip() },
        ClusterSettings { status: ClusterStatus::PreparingForInstallation, ..with_vip() },
        ClusterSettings { status: ClusterStatus::AddingHosts, ..with_vip() },
    ] {
        assert_eq!(changed(cluster.clone(), &hosts), None, "{cluster:?}");
    }
}

const NETWORKS: [&str; 5] =
    ["192.168.1.0/24", "192.168.0.0/16", "10.0.0.0/24", "fd2e:6f44:5dd8::/64", "fd2e::/32"];
const ADDRESSES: [&str; 5] =
    ["192.168.1.11/24", "192.168.1.12/16", "10.0.0.11/24", "fd2e:6f44:5dd8::11/64", "fd2e:6f44:5dd8::12/32"];
const VIPS: [&str; 4] = ["192.168.1.5", "10.0.0.5", "fd2e:6f44:5dd8::5", "198.51.100.1"];

fn some_of(list: &'static [&'static str], most: usize) -> impl Strategy<Value = Vec<&'static str>> {
    proptest::collection::vec(proptest::sample::select(list), 0..=most)
}

prop_compose! {
    fn any_cluster()(
        (has_dhcp, has_two_families) in any::<(bool, bool)>(),
        nodes in 0..3_i64,
        stored in some_of(&NETWORKS, 2),
        (api, ingress) in (some_of(&VIPS, 2), some_of(&VIPS, 2)),
    ) -> ClusterSettings {
        let settings = if has_two_families { dual_stack() } else { cluster() };
        ClusterSettings {
            vip_dhcp_allocation: has_dhcp,
            control_plane_count: nodes,
            ingress_vips: ips(&ingress),
            ..with_vips(settings, &stored, &api)
        }
    }
}

proptest! {
    #[test]
    fn new_networks_do_not_change_again(
        settings in any_cluster(),
        addresses in proptest::collection::vec(some_of(&ADDRESSES, 3), 0..4),
        metric in 0..3_i64,
    ) {
        let routes = [("192.168.1.1", 1), ("10.0.0.1", metric), ("fd2e:6f44:5dd8::1", 1)];
        let hosts: Vec<_> = addresses.iter().map(|addresses| host(&[addresses], &routes)).collect();
        if let Some(machine_networks) = changed(settings.clone(), &hosts) {
            for network in &machine_networks {
                prop_assert_eq!(*network, network.without_host_bits());
            }
            prop_assert_ne!(&machine_networks, &settings.machine_networks);
            prop_assert_eq!(changed(ClusterSettings { machine_networks, ..settings }, &hosts), None);
        }
    }
}
