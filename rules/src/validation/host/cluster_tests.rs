//! Outcomes of hosts in a cluster. The cases and texts come from recordings of the Assisted Installer.

use std::sync::Arc;

use assisted::HostId;
use assisted::cluster::{ClusterKind, LoadBalancerType};
use assisted::host::{HostKind, HostRole};
use ignition::Cidr;

use super::tests::{default_route, described, host, inventory};
use super::*;
use crate::cluster::connectivity_groups::ConnectivityGroups;
use crate::cluster::peer_facts::PeerFacts;
use crate::summary::{InventorySummary, NicSummary, RouteSummary};
use crate::validation::outcome::OutcomeStatus::{self, Failure, Pending, Success};
use crate::validation::settings::ValidationSettings;
use crate::view::{ClusterSettings, ClusterView, HostView, PodNetwork};

const V4: &str = "192.168.1.0/24";
const V6: &str = "fd2e:6f44:5dd8::/64";

fn id(number: u128) -> HostId {
    HostId(uuid::Uuid::from_u128(number))
}

fn networks(texts: &[&str]) -> Vec<Cidr> {
    texts.iter().map(|text| Cidr::parse(text).unwrap()).collect()
}

/// Returns the settings of a compact cluster without virtual IP addresses.
fn settings() -> ClusterSettings {
    let cidr = Cidr::parse("10.128.0.0/14").unwrap();
    ClusterSettings {
        control_plane_count: 3,
        cluster_networks: vec![PodNetwork { cidr, host_prefix: 23 }],
        service_networks: networks(&["172.30.0.0/16"]),
        ..ClusterSettings::new("5ac2fc82-9fa9-4ea2-83ad-b3d3d0f1c6a2".parse().unwrap())
    }
}

/// Returns a host with one interface that has these addresses.
fn host_with(number: u128, addresses: &[&str]) -> HostView {
    let nics = vec![NicSummary { addresses: networks(addresses), ..NicSummary::default() }];
    let hostname = format!("node-{number}").into();
    HostView { id: id(number), ..host(Some(InventorySummary { hostname, nics, ..inventory() })) }
}

fn evaluate(view: &ClusterView, peers: &PeerFacts, host: &HostView) -> HostResults {
    let minimum = MinimumHardware { cpu_cores: 2, ram_mib: 8192 };
    let settings = ValidationSettings::default();
    let cluster = Some(HostCluster { view, peers });
    HostResults::evaluate(&HostInput { host, cluster, eligible_disks: 1, minimum, settings: &settings })
}

/// Returns the outcome of each host of a cluster.
fn outcomes(
    cluster: ClusterSettings,
    hosts: Vec<HostView>,
    groups: ConnectivityGroups,
    id: HostValidationId,
) -> Vec<(OutcomeStatus, String)> {
    let view = ClusterView { cluster: Arc::new(cluster), hosts: hosts.into_iter().map(Arc::new).collect() };
    let mut peers = PeerFacts::new(&view);
    peers.groups = groups;
    view.hosts.iter().map(|host| described(&evaluate(&view, &peers, host), id)).collect()
}

/// Returns the outcome of the only host of a cluster.
fn outcome(cluster: ClusterSettings, host: HostView, id: HostValidationId) -> (OutcomeStatus, String) {
    outcomes(cluster, vec![host], ConnectivityGroups::default(), id).remove(0)
}

#[test]
fn cluster_managed_networking_needs_machine_networks() {
    use HostValidationId::MachineCidrDefined;
    let undefined = "Machine Network CIDR is undefined; the Machine Network CIDR can be defined by setting either the \
        API or Ingress virtual IPs";
    let user_managed = ClusterSettings { user_managed_networking: true, ..settings() };
    let single = ClusterSettings { control_plane_count: 1, ..user_managed.clone() };
    let installed = ClusterSettings { kind: ClusterKind::AddHostsCluster, ..settings() };
    let set = ClusterSettings { machine_networks: networks(&[V4]), ..settings() };
    let dhcp = ClusterSettings { vip_dhcp_allocation: true, ..settings() };
    let managed = (Success, "No Machine Network CIDR needed: User Managed Networking");
    for (cluster, (status, message)) in [
        (settings(), (Failure, undefined)),
        (dhcp, (Failure, "Machine Network CIDR is undefined")),
        (set, (Success, "Machine Network CIDR is defined")),
        (installed, (Success, "No Machine Network CIDR needed: Day2 cluster")),
        (ClusterSettings { kind: ClusterKind::AddHostsCluster, ..single.clone() }, managed),
        (single, managed),
        (user_managed, managed),
    ] {
        for inventory in [None, Some(inventory())] {
            let outcome = outcome(cluster.clone(), host(inventory), MachineCidrDefined);
            assert_eq!(outcome, (status, message.to_owned()), "{cluster:?}");
        }
    }
}

#[test]
fn name_must_be_unique_among_hosts_with_an_inventory_report() {
    let host_named =
        |number, name: &str| HostView { requested_hostname: name.into(), ..host_with(number, &[]) };
    let unknown = HostView { id: id(5), requested_hostname: "node-1".into(), ..host(None) };
    let hosts = vec![
        host_with(1, &[]),
        host_with(2, &[]),
        host_named(3, "node-2"),
        host_named(4, "Node-1"),
        unknown,
        HostView { requested_hostname: "".into(), ..host(Some(InventorySummary::default())) },
    ];
    let messages =
        outcomes(settings(), hosts, ConnectivityGroups::default(), HostValidationId::HostnameUnique);
    let expected = [
        (Success, "Hostname node-1 is unique in cluster"),
        (Failure, "Hostname node-2 is not unique in cluster"),
        (Failure, "Hostname node-2 is not unique in cluster"),
        (Success, "Hostname Node-1 is unique in cluster"),
        (Pending, "Missing inventory"),
        (Success, "Hostname  is unique in cluster"),
    ];
    assert_eq!(messages, expected.map(|(status, message)| (status, message.to_owned())));
}

#[test]
fn default_route_needs_a_gateway() {
    let route = |destination: &str, gateway: &str| RouteSummary {
        destination: destination.parse().ok(),
        gateway: gateway.parse().ok(),
        ..default_route()
    };
    let missing = "Host has not yet been configured with a default route.";
    let configured = "Host has been configured with at least one default route.";
    for (routes, status, message) in [
        (vec![], Failure, missing),
        (vec![route("192.168.1.0", "192.168.1.1")], Failure, missing),
        (vec![route("0.0.0.0", "0.0.0.0"), route("::", "::"), route("::", "")], Failure, missing),
        (vec![route("192.168.1.0", ""), route("0.0.0.0", "192.168.1.1")], Success, configured),
        (vec![route("::", "fe80::1")], Success, configured),
    ] {
        let host = host(Some(InventorySummary { routes, ..inventory() }));
        let outcome = outcome(settings(), host, HostValidationId::HasDefaultRoute);
        assert_eq!(outcome, (status, message.to_owned()));
    }
}

/// Checks the outcome of a host with two addresses for these machine networks.
fn assert_machine_networks(cluster: &ClusterSettings, set: &[&str], expected: (OutcomeStatus, &str)) {
    let host = host_with(1, &["192.168.1.11/24", "fd2e:6f44:5dd8::11/64"]);
    let cluster = ClusterSettings { machine_networks: networks(set), ..cluster.clone() };
    let outcome = outcome(cluster, host, HostValidationId::BelongsToMachineCidr);
    assert_eq!(outcome, (expected.0, expected.1.to_owned()), "{set:?}");
}

#[test]
fn host_needs_an_address_in_each_machine_network() {
    let missing = (Pending, "Missing inventory or machine network CIDR");
    let in_all = (Success, "Host belongs to all machine network CIDRs");
    let not_in_all = (
        Failure,
        "Host does not belong to machine network CIDRs. Verify that the host belongs to every CIDR listed under \
         machine networks",
    );
    let single = ClusterSettings { control_plane_count: 1, user_managed_networking: true, ..settings() };
    for cluster in [settings(), single] {
        assert_machine_networks(&cluster, &[], missing);
        assert_machine_networks(&cluster, &[V4], in_all);
        assert_machine_networks(&cluster, &[V4, V6], in_all);
        assert_machine_networks(&cluster, &["192.168.1.0/28", V6], in_all);
        assert_machine_networks(&cluster, &[V4, "192.168.2.0/24"], not_in_all);
    }
    let unknown = ClusterSettings { machine_networks: networks(&[V4]), ..settings() };
    let outcome = outcome(unknown, host(None), HostValidationId::BelongsToMachineCidr);
    assert_eq!(outcome, (missing.0, missing.1.to_owned()));
}

#[test]
fn one_machine_network_suffices_with_a_user_managed_load_balancer() {
    let cluster = ClusterSettings { load_balancer: Some(LoadBalancerType::UserManaged), ..settings() };
    let in_one = (Success, "Host belongs to at least one machine network CIDR");
    assert_machine_networks(&cluster, &["192.168.2.0/24", V4], in_one);
    let in_none = (
        Failure,
        "Host does not belong to any machine network CIDR. Verify that the host belongs to at least one CIDR listed \
         under machine networks",
    );
    assert_machine_networks(&cluster, &["192.168.2.0/24"], in_none);
}

#[test]
fn other_clusters_do_not_check_machine_networks() {
    let managed = (Success, "No machine network CIDR validation needed: User Managed Networking");
    let several = ClusterSettings { user_managed_networking: true, ..settings() };
    assert_machine_networks(&several, &[], managed);
    assert_machine_networks(&several, &["192.168.2.0/24"], managed);
    let installed = (Success, "No machine network CIDR validation needed: Day2 cluster");
    let single = ClusterSettings { control_plane_count: 1, ..several.clone() };
    for cluster in [settings(), single] {
        let cluster = ClusterSettings { kind: ClusterKind::AddHostsCluster, ..cluster };
        assert_machine_networks(&cluster, &["192.168.2.0/24"], installed);
    }

    let bootstrap = HostView { bootstrap: true, ..host_with(1, &["192.168.1.11/24"]) };
    for (set, message) in
        [(vec![], managed.1), (networks(&[V4]), "Host belongs to all machine network CIDRs")]
    {
        let cluster = ClusterSettings { machine_networks: set, ..several.clone() };
        let outcome = outcome(cluster, bootstrap.clone(), HostValidationId::BelongsToMachineCidr);
        assert_eq!(outcome, (Success, message.to_owned()));
    }
}

const MEMBER: (OutcomeStatus, &str) =
    (Success, "Host has connectivity to the majority of hosts in the cluster");
const OUTSIDE: (OutcomeStatus, &str) = (Failure, "No connectivity to the majority of hosts in the cluster");
const TOO_FEW: (OutcomeStatus, &str) =
    (Pending, "Not enough hosts in cluster to calculate connectivity groups");

/// Checks the outcome of each host of a cluster.
fn assert_majority(
    cluster: &ClusterSettings,
    hosts: Vec<HostView>,
    groups: &ConnectivityGroups,
    expected: &[(OutcomeStatus, &str)],
) {
    let id = HostValidationId::BelongsToMajorityGroup;
    let outcomes = outcomes(cluster.clone(), hosts, groups.clone(), id);
    let expected: Vec<_> = expected.iter().map(|(status, text)| (*status, (*text).to_owned())).collect();
    assert_eq!(outcomes, expected, "{cluster:?}");
}

fn hosts(count: u128) -> Vec<HostView> {
    (1..=count).map(|number| host_with(number, &[])).collect()
}

#[test]
fn host_must_belong_to_the_group_of_each_machine_network() {
    let group = |numbers: &[u128]| numbers.iter().map(|number| id(*number)).collect::<Vec<_>>();
    let on_link = networks(&[V4, V6]).into_iter().zip([group(&[1, 2, 3]), group(&[2, 3, 4])]);
    let groups = ConnectivityGroups { on_link: on_link.collect(), ..ConnectivityGroups::default() };
    let unknown = (Pending, "Not enough information to calculate host majority groups");
    assert_majority(&settings(), hosts(3), &groups, &[unknown; 3]);
    let with = |set: &[&str]| ClusterSettings { machine_networks: networks(set), ..settings() };
    assert_majority(&with(&[V4]), hosts(4), &groups, &[MEMBER, MEMBER, MEMBER, OUTSIDE]);
    assert_majority(&with(&["192.168.1.7/24"]), hosts(3), &groups, &[MEMBER; 3]);
    assert_majority(&with(&[V4, V6]), hosts(4), &groups, &[OUTSIDE, MEMBER, MEMBER, OUTSIDE]);
    assert_majority(&with(&["192.168.0.0/16"]), hosts(3), &groups, &[OUTSIDE; 3]);
    assert_majority(&with(&[V4]), hosts(3), &ConnectivityGroups::default(), &[OUTSIDE; 3]);
    assert_majority(&with(&[V4]), hosts(2), &ConnectivityGroups::default(), &[TOO_FEW; 2]);
}

#[test]
fn user_managed_networking_needs_reached_address_per_family() {
    let addresses = [(1, vec!["192.168.1.11", "fd2e::11"]), (2, vec!["192.168.1.12"]), (3, vec!["fd2e::13"])];
    let reached_addresses = addresses
        .into_iter()
        .map(|(number, texts)| (id(number), texts.into_iter().map(|text| text.parse().unwrap()).collect()));
    let groups = ConnectivityGroups {
        reached_addresses: reached_addresses.collect(),
        ..ConnectivityGroups::default()
    };
    let networking = ClusterSettings { user_managed_networking: true, ..settings() };
    let load_balancer = ClusterSettings { load_balancer: Some(LoadBalancerType::UserManaged), ..settings() };
    for cluster in [networking, load_balancer] {
        assert_majority(&cluster, hosts(4), &groups, &[MEMBER, MEMBER, OUTSIDE, OUTSIDE]);
        let dual = ClusterSettings { machine_networks: networks(&[V6]), ..cluster };
        assert_majority(&dual, hosts(4), &groups, &[MEMBER, OUTSIDE, OUTSIDE, OUTSIDE]);
        assert_majority(&dual, hosts(2), &groups, &[MEMBER, TOO_FEW]);
    }
}

#[test]
fn two_fenced_nodes_are_enough_for_a_group() {
    let master =
        |number| HostView { role: HostRole::Master, has_fencing_credentials: true, ..host_with(number, &[]) };
    let cluster = ClusterSettings { control_plane_count: 2, machine_networks: networks(&[V4]), ..settings() };
    let none = ConnectivityGroups::default();
    assert_majority(&cluster, vec![master(1), master(2)], &none, &[OUTSIDE; 2]);
    assert_majority(&cluster, vec![master(1)], &none, &[TOO_FEW]);
    assert_majority(&cluster, vec![master(1), host_with(2, &[])], &none, &[TOO_FEW; 2]);
}

#[test]
fn hosts_of_single_node_clusters_and_joining_hosts_need_no_group() {
    let joining = HostView { kind: HostKind::Joining, ..host_with(2, &[]) };
    let cluster = ClusterSettings { control_plane_count: 1, user_managed_networking: true, ..settings() };
    let day_2 = (Success, "Day2 host is not required to be connected to other hosts in the cluster");
    let groups = ConnectivityGroups::default();
    assert_majority(&cluster, vec![host_with(1, &[]), joining], &groups, &[MEMBER, day_2]);
}
