//! Generates random facts about clusters and hosts, for property tests.

use std::net::IpAddr;
use std::sync::Arc;

use assisted::cluster::{LoadBalancerType, NetworkType, PlatformType, VipVerification};
use assisted::host::HostRole;
use assisted::step::VipType;
use assisted::{ClusterId, HostId, InfraEnvId};
use ignition::Cidr;
use ignition::version::Version;
use proptest::prelude::*;
use proptest::sample::select;
use rules::summary::{
    DiskSummary, InventorySummary, NicSummary, PeerAddress, PeerSummary, Peers, RouteSummary, VerifiedVip,
};
use rules::view::{ClusterSettings, HostView, PodNetwork};
use uuid::Uuid;

/// Maximum number of hosts in a cluster.
pub(crate) const HOSTS: u128 = 6;

const GIB: i64 = 1 << 30;
const API_VIPS: [&str; 2] = ["192.168.1.5", "fd2e:6f44:5dd8::5"];
const INGRESS_VIPS: [&str; 2] = ["192.168.1.6", "fd2e:6f44:5dd8::6"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClusterShape {
    SingleNode,
    Compact,
    WithWorkers,
    UserManagedNetworking,
    DualStack,
    UserManagedLoadBalancer,
    Dhcp,
    Arbiter,
}

impl ClusterShape {
    pub(crate) const ALL: [Self; 8] = [
        Self::SingleNode,
        Self::Compact,
        Self::WithWorkers,
        Self::UserManagedNetworking,
        Self::DualStack,
        Self::UserManagedLoadBalancer,
        Self::Dhcp,
        Self::Arbiter,
    ];

    /// Returns the virtual IP addresses of the API and of ingress.
    pub(crate) fn vips(self, has_api: bool, has_ingress: bool) -> (Vec<IpAddr>, Vec<IpAddr>) {
        let count = match self {
            Self::SingleNode | Self::UserManagedNetworking | Self::Dhcp => 0,
            Self::DualStack => 2,
            _ => 1,
        };
        let addresses = |texts: &[&str], has_addresses: bool| {
            let texts = texts.iter().take(count).filter(|_| has_addresses);
            texts.map(|text| text.parse().unwrap()).collect()
        };
        (addresses(&API_VIPS, has_api), addresses(&INGRESS_VIPS, has_ingress))
    }
}

pub(crate) fn any_shape() -> impl Strategy<Value = ClusterShape> {
    select(ClusterShape::ALL.to_vec())
}

fn networks(texts: &[&str]) -> Vec<Cidr> {
    texts.iter().map(|text| Cidr::parse(text).unwrap()).collect()
}

/// Returns a cluster with all settings that users can provide.
pub(crate) fn cluster(shape: ClusterShape) -> ClusterSettings {
    use ClusterShape::{
        Arbiter, Dhcp, DualStack, SingleNode, UserManagedLoadBalancer, UserManagedNetworking,
    };
    let is_user_managed = matches!(shape, SingleNode | UserManagedNetworking);
    let (api_vips, ingress_vips) = shape.vips(true, true);
    let pod_network = |text, host_prefix| PodNetwork { cidr: Cidr::parse(text).unwrap(), host_prefix };
    let families = if shape == DualStack { 2 } else { 1 };
    ClusterSettings {
        name: "site".into(),
        base_dns_domain: "example.com".into(),
        version: Version::parse("4.18.52"),
        platform: Some(if is_user_managed { PlatformType::None } else { PlatformType::Baremetal }),
        control_plane_count: match shape {
            SingleNode => 1,
            Arbiter => 2,
            _ => 3,
        },
        user_managed_networking: is_user_managed,
        load_balancer: Some(match shape {
            UserManagedLoadBalancer => LoadBalancerType::UserManaged,
            _ => LoadBalancerType::ClusterManaged,
        }),
        vip_dhcp_allocation: shape == Dhcp,
        network_type: Some(NetworkType::OVNKubernetes),
        machine_networks: match shape {
            DualStack => networks(&["192.168.1.0/24", "fd2e:6f44:5dd8::/64"]),
            UserManagedLoadBalancer => networks(&["192.168.1.0/24"]),
            _ => Vec::new(),
        },
        cluster_networks: [pod_network("10.128.0.0/14", 23), pod_network("fd01::/48", 64)][..families]
            .to_vec(),
        service_networks: networks(&["172.30.0.0/16", "fd02::/112"][..families]),
        api_vips,
        ingress_vips,
        has_pull_secret: true,
        ..ClusterSettings::new(ClusterId(Uuid::from_u128(0xc)))
    }
}

/// A new fact about a host, which replaces the host's previous fact of the same kind.
#[derive(Clone, Debug)]
pub(crate) enum HostFact {
    Inventory(Option<Machine>),
    /// The hosts that this host reaches, as a bit set of host numbers. `None` without a connectivity report.
    Peers(Option<u8>),
    Vips(VipVerification),
    Clock(Option<i64>),
    Connected(bool),
    Media(bool),
    /// The user chooses a role, which also replaces the suggestion.
    Role(HostRole),
    Name(&'static str),
}

/// The hardware of a host, as in its inventory report.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    cpus: i64,
    memory_gib: i64,
    disk_gib: i64,
    /// `true` if the host name in the report is unique.
    has_own_name: bool,
    /// Whether the host is in `192.168.1.0/24`, in an IPv6 network, and in a network without other machines.
    nics: [bool; 3],
    has_default_route: bool,
}

const HEALTHY: Machine = Machine {
    cpus: 8,
    memory_gib: 32,
    disk_gib: 120,
    has_own_name: true,
    nics: [true, true, false],
    has_default_route: true,
};

impl HostFact {
    /// Returns the facts of a host that can be installed.
    pub(crate) fn all_healthy() -> Vec<Self> {
        vec![
            Self::Inventory(Some(HEALTHY)),
            Self::Peers(Some(u8::MAX)),
            Self::Vips(VipVerification::Succeeded),
            Self::Clock(Some(0)),
        ]
    }
}

fn any_machine() -> impl Strategy<Value = Machine> {
    let sizes =
        (select(vec![1, 2, 4, 8, 16]), select(vec![4_i64, 8, 16, 32, 64]), select(vec![10, 120, 1000]));
    let often = || prop::bool::weighted(0.8);
    let nics = [often(), often(), prop::bool::weighted(0.3)];
    let random =
        (sizes, often(), nics, often()).prop_map(|(sizes, has_own_name, nics, has_default_route)| {
            let (cpus, memory_gib, disk_gib) = sizes;
            Machine { cpus, memory_gib, disk_gib, has_own_name, nics, has_default_route }
        });
    prop_oneof![Just(HEALTHY), random]
}

pub(crate) fn any_host_fact() -> impl Strategy<Value = HostFact> {
    use VipVerification::{Failed, Succeeded, Unverified};
    let often = || prop::bool::weighted(0.8);
    let peers = prop_oneof![Just(u8::MAX), any::<u8>()];
    let roles = vec![HostRole::AutoAssign, HostRole::Master, HostRole::Worker];
    prop_oneof![
        6 => prop::option::weighted(0.9, any_machine()).prop_map(HostFact::Inventory),
        4 => prop::option::weighted(0.9, peers).prop_map(HostFact::Peers),
        1 => select(vec![Succeeded, Succeeded, Failed, Unverified]).prop_map(HostFact::Vips),
        1 => select(vec![None, Some(0), Some(3), Some(1000)]).prop_map(HostFact::Clock),
        2 => often().prop_map(HostFact::Connected),
        1 => often().prop_map(HostFact::Media),
        2 => select(roles).prop_map(HostFact::Role),
        1 => select(vec!["", "node", "localhost", "node-1"]).prop_map(HostFact::Name),
    ]
}

/// Returns a newly registered host.
pub(crate) fn host(number: u128) -> HostView {
    HostView::new(HostId(Uuid::from_u128(number)), InfraEnvId(Uuid::from_u128(0xe)))
}

/// Returns the addresses of a host, one for each network.
fn addresses(number: u128) -> [Cidr; 3] {
    let texts = [
        format!("192.168.1.1{number}/24"),
        format!("fd2e:6f44:5dd8::1{number}/64"),
        format!("10.0.{number}.1/24"),
    ];
    texts.map(|text| Cidr::parse(&text).unwrap())
}

fn inventory(number: u128, machine: &Machine) -> InventorySummary {
    let nics = addresses(number).into_iter().zip(machine.nics).enumerate();
    let nics = nics.filter(|(_, (_, exists))| *exists).map(|(index, (address, _))| NicSummary {
        name: format!("eth{index}").into(),
        mac: format!("52:54:00:00:0{index}:0{number}").into(),
        addresses: vec![address],
        ..NicSummary::default()
    });
    let route = RouteSummary {
        destination: Some("0.0.0.0".parse().unwrap()),
        gateway: Some("192.168.1.1".parse().unwrap()),
        nic: "eth0".into(),
        metric: 100,
    };
    let disk = DiskSummary {
        id: "/dev/disk/by-id/wwn-1".into(),
        name: "sda".into(),
        drive_type: "SSD".into(),
        size_bytes: machine.disk_gib * GIB,
        ..DiskSummary::default()
    };
    InventorySummary {
        hostname: if machine.has_own_name { format!("node-{number}").into() } else { "node".into() },
        architecture: "x86_64".into(),
        cpus: Some(machine.cpus),
        physical_bytes: Some(machine.memory_gib * GIB),
        usable_bytes: machine.memory_gib * GIB,
        nics: nics.collect(),
        routes: machine.has_default_route.then_some(route).into_iter().collect(),
        disks: vec![disk],
        ..InventorySummary::default()
    }
}

fn peers(number: u128, reached: u8) -> Peers {
    let others = (1..=HOSTS).filter(|other| *other != number);
    let hosts = others.map(|other| {
        let is_reached = reached & (1 << other) != 0;
        let addresses = addresses(other);
        let mut addresses: Vec<_> = addresses
            .iter()
            .take(2)
            .map(|address| PeerAddress {
                address: address.address(),
                on_link: is_reached,
                routed: is_reached,
            })
            .collect();
        addresses.sort_by_key(|address| address.address);
        PeerSummary {
            host: HostId(Uuid::from_u128(other)),
            addresses,
            rtt_ms: is_reached.then_some(1.0),
            loss_percent: is_reached.then_some(0.0),
            broken_mtu: Vec::new(),
            has_mtu: false,
        }
    });
    Peers { hosts: hosts.collect(), ..Peers::default() }
}

fn verified_vips(verification: VipVerification) -> Vec<VerifiedVip> {
    let vips = |vip_type, addresses: [&str; 2]| {
        addresses.map(|address| VerifiedVip { address: address.parse().unwrap(), vip_type, verification })
    };
    [vips(VipType::Api, API_VIPS), vips(VipType::Ingress, INGRESS_VIPS)].concat()
}

/// Stores a new fact about a host. Replaces the host's previous fact of the same kind.
pub(crate) fn set(host: &mut HostView, fact: &HostFact) {
    let number = host.id.0.as_u128();
    let summary = Arc::make_mut(&mut host.summary);
    match fact {
        HostFact::Inventory(machine) => {
            summary.inventory = machine.as_ref().map(|machine| Box::new(inventory(number, machine)));
        }
        HostFact::Peers(reached) => summary.peers = reached.map(|reached| peers(number, reached)),
        HostFact::Vips(verification) => summary.vips = verified_vips(*verification),
        HostFact::Clock(skew) => host.clock_skew = *skew,
        HostFact::Connected(is_connected) => host.is_connected = *is_connected,
        HostFact::Media(has_media) => host.has_media = *has_media,
        HostFact::Role(role) => (host.role, host.suggested_role) = (*role, *role),
        HostFact::Name(name) => host.requested_hostname = (*name).into(),
    }
}
