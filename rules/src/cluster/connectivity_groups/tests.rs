//! Tests the connectivity groups of small clusters, and compares their JSON with recordings.

use std::sync::Arc;

use super::*;
use crate::summary::{HostSummary, InventorySummary, NicSummary, PeerAddress, PeerSummary, Peers};
use crate::view::{ClusterSettings, HostView};

/// The connection from one host to an address of another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    OnLink,
    Routed,
    Both,
}

fn id(number: u128) -> HostId {
    HostId(uuid::Uuid::from_u128(number))
}

fn ids(numbers: impl IntoIterator<Item = u128>) -> Vec<HostId> {
    numbers.into_iter().map(id).collect()
}

fn cidr(text: &str) -> Cidr {
    Cidr::parse(text).unwrap()
}

/// A test cluster, built from addresses and connectivity reports.
struct Cluster {
    settings: ClusterSettings,
    hosts: Vec<HostView>,
}

impl Cluster {
    /// Returns a cluster whose hosts have these addresses in CIDR notation.
    fn new(addresses: &[&[&str]]) -> Self {
        let host = |(number, addresses): (u128, &&[&str])| {
            let addresses = addresses.iter().map(|text| cidr(text)).collect();
            let nics = vec![NicSummary { addresses, ..NicSummary::default() }];
            let inventory = InventorySummary { nics, ..InventorySummary::default() };
            let summary = HostSummary { inventory: Some(Box::new(inventory)), ..HostSummary::default() };
            HostView { summary: Arc::new(summary), ..HostView::new(id(number), uuid::Uuid::nil().into()) }
        };
        let settings =
            ClusterSettings { control_plane_count: 3, ..ClusterSettings::new(uuid::Uuid::nil().into()) };
        Self { settings, hosts: (1..).zip(addresses).map(host).collect() }
    }

    /// Adds connectivity reports: `reach` receives the reporter, the target and an address, and returns how the
    /// reporter reaches the address. `None` omits the address from the report.
    fn with_reports(mut self, reach: impl Fn(u128, u128, IpAddr) -> Option<Reach>) -> Self {
        let addresses = |host: &HostView| -> Vec<IpAddr> {
            host.nics().iter().flat_map(|nic| &nic.addresses).map(|address| address.address()).collect()
        };
        let targets: Vec<_> = (1..).zip(self.hosts.iter().map(addresses)).collect();
        for (reporter, host) in (1..).zip(&mut self.hosts) {
            let peer = |(target, addresses): &(u128, Vec<IpAddr>)| {
                let reported = |address: &IpAddr| {
                    let reach = reach(reporter, *target, *address)?;
                    let (on_link, routed) = (reach != Reach::Routed, reach != Reach::OnLink);
                    Some(PeerAddress { address: *address, on_link, routed })
                };
                PeerSummary {
                    host: id(*target),
                    addresses: addresses.iter().filter_map(reported).collect(),
                    rtt_ms: None,
                    loss_percent: None,
                    broken_mtu: vec![],
                    has_mtu: false,
                }
            };
            let hosts = targets.iter().filter(|(target, _)| *target != reporter).map(peer).collect();
            Arc::make_mut(&mut host.summary).peers = Some(Peers { hosts, collisions: vec![] });
        }
        self
    }

    fn view(&self) -> ClusterView {
        let hosts = self.hosts.iter().cloned().map(Arc::new).collect();
        ClusterView { cluster: Arc::new(self.settings.clone()), hosts }
    }

    fn groups(&self) -> ConnectivityGroups {
        ConnectivityGroups::new(&self.view())
    }
}

const FIVE: [&[&str]; 5] = [
    &["192.168.1.11/24"],
    &["192.168.1.12/24"],
    &["192.168.1.13/24"],
    &["192.168.1.14/24"],
    &["192.168.1.15/24"],
];

/// Returns the JSON of the groups, with the host ids of the recordings.
fn recorded(groups: &ConnectivityGroups) -> String {
    let name = |json: String, number| json.replace(&id(number).to_string(), &format!("<host-{number}>"));
    (1..=5).fold(groups.to_json(), name)
}

#[test]
fn dual_stack_groups_match_the_recording() {
    let hosts: [&[&str]; 3] = [
        &["192.168.1.11/24", "fd2e:6f44:5dd8::11/64"],
        &["192.168.1.12/24", "fd2e:6f44:5dd8::12/64"],
        &["192.168.1.13/24", "fd2e:6f44:5dd8::13/64"],
    ];
    let groups = Cluster::new(&hosts).with_reports(|_, _, _| Some(Reach::Both)).groups();
    let expected = r#"{"majority_groups":{"192.168.1.0/24":["<host-1>","<host-2>","<host-3>"],"IPv4":["<host-1>","<host-2>","<host-3>"],"IPv6":["<host-1>","<host-2>","<host-3>"],"fd2e:6f44:5dd8::/64":["<host-1>","<host-2>","<host-3>"]},"l3_connected_addresses":{"<host-1>":["192.168.1.11","fd2e:6f44:5dd8::11"],"<host-2>":["192.168.1.12","fd2e:6f44:5dd8::12"],"<host-3>":["192.168.1.13","fd2e:6f44:5dd8::13"]}}"#;
    assert_eq!(recorded(&groups), expected);
}

#[test]
fn isolated_hosts_match_the_recording() {
    let groups =
        Cluster::new(&FIVE).with_reports(|reporter, _, _| (reporter < 4).then_some(Reach::Both)).groups();
    let expected = r#"{"majority_groups":{"192.168.1.0/24":["<host-1>","<host-2>","<host-3>"],"IPv4":["<host-1>","<host-2>","<host-3>"],"IPv6":[]},"l3_connected_addresses":{}}"#;
    assert_eq!(recorded(&groups), expected);
}

#[test]
fn hosts_in_two_segments_match_the_recording() {
    let mut hosts = FIVE;
    (hosts[3], hosts[4]) = (&["192.168.2.14/24"], &["192.168.2.15/24"]);
    let reach = |reporter, target, _: IpAddr| {
        Some(if (reporter < 4) == (target < 4) { Reach::Both } else { Reach::Routed })
    };
    let groups = Cluster::new(&hosts).with_reports(reach).groups();
    let expected = r#"{"majority_groups":{"192.168.1.0/24":["<host-1>","<host-2>","<host-3>"],"192.168.2.0/24":[],"IPv4":["<host-1>","<host-2>","<host-3>","<host-4>","<host-5>"],"IPv6":[]},"l3_connected_addresses":{"<host-1>":["192.168.1.11"],"<host-2>":["192.168.1.12"],"<host-3>":["192.168.1.13"],"<host-4>":["192.168.2.14"],"<host-5>":["192.168.2.15"]}}"#;
    assert_eq!(recorded(&groups), expected);
}

#[test]
fn two_recorded_hosts_form_no_group_but_have_reached_addresses() {
    let groups = Cluster::new(&FIVE[..2]).with_reports(|_, _, _| Some(Reach::Both)).groups();
    let expected = r#"{"majority_groups":{"192.168.1.0/24":[],"IPv4":[],"IPv6":[]},"l3_connected_addresses":{"<host-1>":["192.168.1.11"],"<host-2>":["192.168.1.12"]}}"#;
    assert_eq!(recorded(&groups), expected);
}

#[test]
fn hosts_without_reports_reach_no_host() {
    let expected =
        r#"{"majority_groups":{"192.168.1.0/24":[],"IPv4":[],"IPv6":[]},"l3_connected_addresses":{}}"#;
    for count in 1..=5 {
        assert_eq!(recorded(&Cluster::new(&FIVE[..count]).groups()), expected);
    }
    let empty = r#"{"majority_groups":{"IPv4":[],"IPv6":[]},"l3_connected_addresses":{}}"#;
    assert_eq!(recorded(&Cluster::new(&[]).groups()), empty);
    assert_eq!(recorded(&ConnectivityGroups::default()), empty);
}

#[test]
fn both_hosts_must_report_that_they_reach_each_other() {
    let one_way = |reporter, target, _: IpAddr| ((reporter, target) != (2, 4)).then_some(Reach::Both);
    let groups = Cluster::new(&FIVE).with_reports(one_way).groups();
    assert_eq!(groups.on_link[&cidr("192.168.1.0/24")], ids([1, 2, 3, 5]));
    assert_eq!(groups.ipv4, ids([1, 2, 3, 5]));
    let reached: Vec<_> = groups.reached_addresses.keys().copied().collect();
    assert_eq!(reached, ids([1, 2, 3, 5]));
}

#[test]
fn network_needs_one_reached_address_but_family_needs_all() {
    let mut hosts = FIVE;
    hosts[0] = &["192.168.1.11/24", "192.168.1.21/24"];
    let reach = |_, _, address: IpAddr| (address.to_string() != "192.168.1.21").then_some(Reach::Both);
    let groups = Cluster::new(&hosts).with_reports(reach).groups();
    assert_eq!(groups.on_link[&cidr("192.168.1.0/24")], ids(1..=5));
    assert_eq!(groups.ipv4, ids(2..=5));
    assert_eq!(groups.reached_addresses[&id(1)], ["192.168.1.11".parse::<IpAddr>().unwrap()]);
}

#[test]
fn routed_connections_count_only_in_ipv6_networks() {
    let hosts: [&[&str]; 3] = [
        &["192.168.1.11/24", "fd2e::11/64"],
        &["192.168.1.12/24", "fd2e::12/64"],
        &["192.168.1.13/24", "fd2e::13/64"],
    ];
    let groups = |reach| {
        let groups = Cluster::new(&hosts).with_reports(|_, _, _| Some(reach)).groups();
        let lens = groups.on_link.values().map(Vec::len).collect::<Vec<_>>();
        (lens, groups.ipv4.len(), groups.ipv6.len(), groups.reached_addresses.len())
    };
    assert_eq!(groups(Reach::Routed), (vec![0, 3], 3, 3, 3));
    assert_eq!(groups(Reach::OnLink), (vec![3, 3], 0, 0, 0));
}

#[test]
fn addresses_reported_only_by_peers_count_in_networks() {
    let mut cluster = Cluster::new(&FIVE[..3]).with_reports(|_, _, _| Some(Reach::Both));
    // When an agent registers again, the service deletes the inventory report of its host.
    Arc::make_mut(&mut cluster.hosts[1].summary).inventory = None;
    let groups = cluster.groups();
    assert_eq!(groups.on_link[&cidr("192.168.1.0/24")], ids(1..=3));
    assert_eq!(groups.ipv4, []);
    assert_eq!(groups.reached_addresses.len(), 3);
}

#[test]
fn reports_about_the_reporter_or_unknown_hosts_are_ignored() {
    let mut cluster = Cluster::new(&FIVE[..3]).with_reports(|_, _, _| Some(Reach::Both));
    let address = PeerAddress { address: "192.168.1.13".parse().unwrap(), on_link: true, routed: true };
    let peer = |number| PeerSummary {
        host: id(number),
        addresses: vec![address],
        rtt_ms: None,
        loss_percent: None,
        broken_mtu: vec![],
        has_mtu: false,
    };
    let peers = Peers { hosts: [0, 3, 9].map(peer).into(), collisions: vec![] };
    Arc::make_mut(&mut cluster.hosts[2].summary).peers = Some(peers);
    let groups = cluster.groups();
    assert_eq!(groups.on_link[&cidr("192.168.1.0/24")], []);
    assert_eq!(groups.reached_addresses.keys().copied().collect::<Vec<_>>(), ids([3]));
}

#[test]
fn two_fenced_control_plane_nodes_form_a_group() {
    let mut cluster = Cluster::new(&FIVE[..2]).with_reports(|_, _, _| Some(Reach::Both));
    cluster.settings.control_plane_count = 2;
    for host in &mut cluster.hosts {
        (host.suggested_role, host.has_fencing_credentials) = (HostRole::Master, true);
    }
    assert_eq!(cluster.groups().ipv4, ids([1, 2]));
    let mut arbiter = Cluster::new(&FIVE[..3]).hosts.remove(2);
    arbiter.role = HostRole::Arbiter;
    let with_arbiter =
        Cluster { settings: cluster.settings.clone(), hosts: [&cluster.hosts[..], &[arbiter]].concat() };
    assert_eq!(with_arbiter.groups().ipv4, []);
    cluster.hosts[1].has_fencing_credentials = false;
    assert_eq!(cluster.groups().ipv4, []);
}

#[test]
fn networks_are_limited_and_machine_networks_come_first() {
    let own: Vec<_> = (0..300).map(|number| format!("10.{}.{}.1/24", number / 250, number % 250)).collect();
    let own: Vec<_> = own.iter().map(String::as_str).collect();
    let all = [&["192.168.1.11/24"], &own[..]].concat();
    let mut cluster = Cluster::new(&[&all, FIVE[1], FIVE[2]]).with_reports(|_, _, _| Some(Reach::Both));
    cluster.settings.machine_networks = vec![cidr("10.1.49.0/24")];
    let groups = cluster.groups();
    assert_eq!(groups.on_link.len(), MAX_NETWORKS);
    assert!(groups.on_link.contains_key(&cidr("10.1.49.0/24")));
    assert!(groups.on_link.contains_key(&cidr("192.168.1.0/24")));
    // The host has more addresses than the limit, so not all of them can be reached.
    assert_eq!(groups.ipv4, []);
}

#[test]
fn groups_survive_serialization() {
    let hosts: [&[&str]; 3] = [&["192.168.1.11/24", "fd2e::11/64"], FIVE[1], FIVE[2]];
    let groups = Cluster::new(&hosts).with_reports(|_, _, _| Some(Reach::Both)).groups();
    let stored = serde_json::to_string(&groups).unwrap();
    assert_eq!(serde_json::from_str::<ConnectivityGroups>(&stored).unwrap(), groups);
}
