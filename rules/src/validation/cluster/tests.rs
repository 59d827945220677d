//! Table-driven tests of the cluster validations, with the clusters and hosts that they use.

use std::sync::Arc;

use OutcomeStatus::{Error, Failure, Pending, Success};
use assisted::cluster::NetworkType;
use assisted::host::HostStatus;
use ignition::Cidr;
use proptest::prelude::*;

use super::*;
use crate::requirements::HardwareRequirements;
use crate::validation::definition::ValidationId as _;
use crate::validation::host::tests::{host, inventory};
use crate::validation::ignored::IgnoredValidations;
use crate::validation::outcome::{OutcomeStatus, ValidationOutcome as _};
use crate::validation::settings::{DisabledValidations, ValidationSettings};
use crate::view::{ClusterSettings, ClusterView, HostView, PodNetwork};

fn cidr(text: &str) -> Cidr {
    Cidr::parse(text).unwrap()
}

fn pods(text: &str, host_prefix: i64) -> PodNetwork {
    PodNetwork { cidr: cidr(text), host_prefix }
}

/// Returns a cluster with all settings that the network validations need.
fn cluster() -> ClusterSettings {
    ClusterSettings {
        base_dns_domain: "example.com".into(),
        control_plane_count: 3,
        network_type: Some(NetworkType::OVNKubernetes),
        machine_networks: vec![cidr("192.168.1.0/24")],
        cluster_networks: vec![pods("10.128.0.0/14", 23)],
        service_networks: vec![cidr("172.30.0.0/16")],
        has_pull_secret: true,
        ..ClusterSettings::new("5ac2fc82-9fa9-4ea2-83ad-b3d3d0f1c6a2".parse().unwrap())
    }
}

/// Returns a host with status `known`, an inventory report and a clock.
fn known_host() -> HostView {
    HostView { status: HostStatus::Known, clock_skew: Some(0), ..host(Some(inventory())) }
}

fn evaluate_with(
    cluster: ClusterSettings,
    hosts: Vec<HostView>,
    settings: &ValidationSettings,
) -> ValidationResults<ClusterOutcome> {
    let hosts = hosts.into_iter().map(Arc::new).collect();
    let view = ClusterView { cluster: Arc::new(cluster), hosts };
    let hardware = HardwareRequirements::default();
    ValidationResults::evaluate(&ClusterInput { view: &view, hardware: &hardware, settings })
}

fn described(
    cluster: ClusterSettings,
    hosts: Vec<HostView>,
    id: ClusterValidationId,
) -> (OutcomeStatus, String) {
    let results = evaluate_with(cluster, hosts, &ValidationSettings::default());
    let description = results.outcome(id).unwrap().describe();
    (description.status, description.message.into_owned())
}

/// Checks one outcome of a cluster with three hosts and modified settings.
fn assert_outcome(
    change: impl FnOnce(&mut ClusterSettings),
    id: ClusterValidationId,
    expected: (OutcomeStatus, &str),
) {
    let mut cluster = cluster();
    change(&mut cluster);
    let outcome = described(cluster, vec![known_host(); 3], id);
    assert_eq!(outcome, (expected.0, expected.1.to_owned()), "{id}");
}

/// Changes the cluster to user-managed networking.
fn user_managed(it: &mut ClusterSettings) {
    it.user_managed_networking = true;
}

fn single_node(it: &mut ClusterSettings) {
    (it.user_managed_networking, it.control_plane_count) = (true, 1);
}

const SOME_UNDEFINED: (OutcomeStatus, &str) =
    (Pending, "At least one of the CIDRs (Machine Network, Cluster Network, Service Network) is undefined.");

const CLUSTER_OR_SERVICE_UNDEFINED: (OutcomeStatus, &str) =
    (Pending, "At least one of the CIDRs (Cluster Network, Service Network) is undefined.");

/// Messages recorded from the Assisted Installer, for a cluster that can be installed.
const RECORDED: &[(ClusterValidationId, &str)] = {
    use ClusterValidationId::*;
    &[
        (MachineCidrDefined, "The Machine Network CIDR is defined."),
        (ClusterCidrDefined, "The Cluster Network CIDR is defined."),
        (ServiceCidrDefined, "The Service Network CIDR is defined."),
        (NoCidrsOverlapping, "No CIDRS are overlapping."),
        (NetworksSameAddressFamilies, "Same address families for all networks."),
        (NetworkPrefixValid, "The Cluster Network prefix is valid."),
        (NetworkTypeValid, "The cluster has a valid network type"),
        (NtpServerConfigured, "No ntp problems found"),
        (DnsDomainDefined, "The base domain is defined."),
        (PullSecretSet, "The pull secret is set."),
    ]
};

#[test]
fn outcomes_match_the_recordings() {
    for (id, message) in RECORDED {
        assert_outcome(|_| (), *id, (Success, message));
    }
}

#[test]
fn missing_machine_network_is_pending_until_a_host_is_discovered() {
    let id = ClusterValidationId::MachineCidrDefined;
    let without = || ClusterSettings { machine_networks: vec![], ..cluster() };
    let pending = (Pending, "Hosts have not been discovered yet".to_owned());
    assert_eq!(described(without(), vec![], id), pending);
    assert_eq!(described(without(), vec![host(None), host(None)], id), pending);
    assert_eq!(described(without(), vec![host(None), known_host()], id).0, Failure);
}

#[test]
fn message_about_missing_machine_network_depends_on_the_cluster() {
    let undefined = |change: fn(&mut ClusterSettings), expected| {
        let change = |it: &mut ClusterSettings| {
            it.machine_networks.clear();
            change(it);
        };
        assert_outcome(change, ClusterValidationId::MachineCidrDefined, expected);
    };
    undefined(
        |_| (),
        (
            Failure,
            "The Machine Network CIDR is undefined; the Machine Network CIDR can be defined by setting either the API \
             or Ingress virtual IPs.",
        ),
    );
    undefined(
        |it| it.vip_dhcp_allocation = true,
        (
            Failure,
            "The Machine Network CIDR is undefined; setting the Machine Network CIDR initiates the VIPs DHCP lease \
             allocation.",
        ),
    );
    undefined(
        single_node,
        (
            Failure,
            "The Machine Network CIDR is undefined; Setting Machine Network CIDR is required for single node cluster",
        ),
    );
    undefined(user_managed, (Success, "No Machine Network CIDR needed: User Managed Networking"));
}

#[test]
fn missing_settings_fail() {
    use ClusterValidationId::*;
    assert_outcome(
        |it| it.cluster_networks.clear(),
        ClusterCidrDefined,
        (Failure, "The Cluster Network CIDR is undefined."),
    );
    assert_outcome(
        |it| it.service_networks.clear(),
        ServiceCidrDefined,
        (Failure, "The Service Network CIDR is undefined."),
    );
    assert_outcome(
        |it| it.base_dns_domain = "".into(),
        DnsDomainDefined,
        (Failure, "The base domain is undefined and must be provided."),
    );
    assert_outcome(|it| it.has_pull_secret = false, PullSecretSet, (Failure, "The pull secret is not set."));
    assert_outcome(
        |it| it.cluster_networks.clear(),
        NetworkPrefixValid,
        (Pending, "The Cluster Network CIDR is undefined."),
    );
}

#[test]
fn undefined_networks_are_not_compared() {
    use ClusterValidationId::{NetworksSameAddressFamilies, NoCidrsOverlapping};
    for clear in [
        |it: &mut ClusterSettings| it.machine_networks.clear(),
        |it: &mut ClusterSettings| it.cluster_networks.clear(),
        |it: &mut ClusterSettings| it.service_networks.clear(),
    ] {
        assert_outcome(clear, NoCidrsOverlapping, SOME_UNDEFINED);
        assert_outcome(clear, NetworksSameAddressFamilies, SOME_UNDEFINED);
        let of_single_node = |it: &mut ClusterSettings| {
            single_node(it);
            clear(it);
        };
        assert_outcome(of_single_node, NoCidrsOverlapping, CLUSTER_OR_SERVICE_UNDEFINED);
        assert_outcome(of_single_node, NetworksSameAddressFamilies, SOME_UNDEFINED);
    }
    let of_user_managed = |it: &mut ClusterSettings| {
        user_managed(it);
        it.service_networks.clear();
    };
    assert_outcome(of_user_managed, NoCidrsOverlapping, CLUSTER_OR_SERVICE_UNDEFINED);
    assert_outcome(of_user_managed, NetworksSameAddressFamilies, CLUSTER_OR_SERVICE_UNDEFINED);
}

#[test]
fn overlapping_networks_fail() {
    use ClusterValidationId::NoCidrsOverlapping;
    let none = (Success, "No CIDRS are overlapping.");
    let with_services = "CIDRS Overlapping: MachineNetworkCIDR and ServiceNetworkCIDR: CIDRS 192.168.1.0/24 and \
        192.168.0.0/16 overlap.";
    let services = |it: &mut ClusterSettings| it.service_networks = vec![cidr("192.168.0.0/16")];
    assert_outcome(services, NoCidrsOverlapping, (Failure, with_services));
    let unused = |it: &mut ClusterSettings| {
        services(it);
        user_managed(it);
    };
    assert_outcome(unused, NoCidrsOverlapping, none);
    assert_outcome(
        |it| it.machine_networks = vec![cidr("10.130.1.0/24")],
        NoCidrsOverlapping,
        (
            Failure,
            "CIDRS Overlapping: MachineNetworkCIDR and ClusterNetworkCidr: CIDRS 10.130.1.0/24 and 10.128.0.0/14 \
             overlap.",
        ),
    );
    assert_outcome(
        |it| it.service_networks = vec![cidr("10.128.0.0/16")],
        NoCidrsOverlapping,
        (
            Failure,
            "CIDRS Overlapping: ServiceNetworkCidr and ClusterNetworkCidr: CIDRS 10.128.0.0/16 and 10.128.0.0/14 \
             overlap.",
        ),
    );
    assert_outcome(
        |it| it.service_networks.push(cidr("fd02::/112")),
        NoCidrsOverlapping,
        (Error, "A mismatch between the number of Cluster and Service networks"),
    );
}

#[test]
fn networks_of_two_families_overlap_by_position() {
    use ClusterValidationId::NoCidrsOverlapping;
    let dual = |it: &mut ClusterSettings| {
        it.machine_networks.push(cidr("fd00::/64"));
        it.cluster_networks.push(pods("fd01::/48", 64));
        it.service_networks.push(cidr("fd02::/112"));
    };
    assert_outcome(dual, NoCidrsOverlapping, (Success, "No CIDRS are overlapping."));
    let overlapping = |it: &mut ClusterSettings| {
        dual(it);
        it.service_networks[1] = cidr("fd01::/112");
    };
    let message = "CIDRS Overlapping: ServiceNetworkCidr and ClusterNetworkCidr: CIDRS fd01::/112 and fd01::/48 \
        overlap.";
    assert_outcome(overlapping, NoCidrsOverlapping, (Failure, message));
}

#[test]
fn last_machine_network_is_compared_at_later_positions() {
    let change = |it: &mut ClusterSettings| {
        it.cluster_networks.push(pods("10.0.0.0/14", 23));
        it.service_networks.push(cidr("192.168.0.0/16"));
    };
    let message = "CIDRS Overlapping: MachineNetworkCIDR and ServiceNetworkCIDR: CIDRS 192.168.1.0/24 and \
        192.168.0.0/16 overlap.";
    assert_outcome(change, ClusterValidationId::NoCidrsOverlapping, (Failure, message));
}

#[test]
fn address_families_are_compared_in_order() {
    let services = "Address families of networks (ServiceNetworks, ClusterNetworks) are not the same.";
    let machines =
        "Address families of networks (MachineNetworks, ServiceNetworks, ClusterNetworks) are not the same.";
    let (same, services, machines) =
        ((Success, "Same address families for all networks."), (Failure, services), (Failure, machines));
    let (v4, v6) = (["10.0.0.0/16", "10.1.0.0/16"], ["fd00::/64", "fd01::/64"]);
    for (machine_networks, cluster_networks, service_networks, expected) in [
        (vec![v4[0]], vec![v4[0]], vec![v4[0]], same),
        (vec![v6[0]], vec![v6[0]], vec![v6[0]], same),
        (vec![v4[0], v6[0]], vec![v4[0], v6[0]], vec![v4[0], v6[0]], same),
        (vec![v6[0], v4[0]], vec![v6[0], v4[0]], vec![v6[0], v4[0]], same),
        (vec![v4[0], v4[1], v6[0]], vec![v4[0], v6[0], v6[1]], vec![v4[0], v6[0]], same),
        (vec![v4[0]], vec![v4[0], v4[1]], vec![v4[0], v4[1]], services),
        (vec![v4[0], v6[0]], vec![v6[0], v4[0]], vec![v4[0], v6[0]], services),
        (vec![v4[0]], vec![v6[0]], vec![v4[0]], services),
        (vec![v6[0], v4[0]], vec![v4[0], v6[0]], vec![v4[0], v6[0]], machines),
        (vec![v6[0]], vec![v4[0]], vec![v4[0]], machines),
    ] {
        let id = ClusterValidationId::NetworksSameAddressFamilies;
        let cidrs = |texts: &[&str]| texts.iter().map(|text| cidr(text)).collect::<Vec<_>>();
        let change = |it: &mut ClusterSettings| {
            it.machine_networks = cidrs(&machine_networks);
            it.cluster_networks = cluster_networks.iter().map(|text| pods(text, 23)).collect();
            it.service_networks = cidrs(&service_networks);
        };
        assert_outcome(change, id, expected);
        let user_managed = |it: &mut ClusterSettings| {
            change(it);
            user_managed(it);
        };
        assert_outcome(user_managed, id, if expected == machines { same } else { expected });
    }
}

#[test]
fn rejects_cluster_networks_too_small_for_nodes_and_pods() {
    let valid = (Success, "The Cluster Network prefix is valid.");
    let not_positive = "Invalid Cluster Network prefix: Host prefix, now 0, must be a positive integer.";
    let too_long = "Host prefix, now 26, must be less than or equal to 25 to allow at least 128 addresses";
    let too_long_v6 =
        "Host prefix, now 122, must be less than or equal to 121 to allow at least 128 addresses";
    let too_few = "Cluster network CIDR prefix 22 does not contain enough addresses for 3 hosts each one with 23 \
        prefix (512 addresses)";
    let too_few_v6 = "Cluster network CIDR prefix 63 does not contain enough addresses for 3 hosts each one with 64 \
        prefix (9223372036854775808 addresses)";
    for (network, host_prefix, expected) in [
        ("10.128.0.0/14", 23, valid),
        ("10.128.0.0/14", 16, valid),
        ("10.128.0.0/23", 25, valid),
        ("10.128.0.0/14", 0, (Failure, not_positive)),
        ("10.128.0.0/14", 26, (Failure, too_long)),
        ("10.128.0.0/22", 23, (Failure, too_few)),
        ("fd01::/48", 64, valid),
        ("fd01::/48", 121, valid),
        ("fd01::/48", 122, (Failure, too_long_v6)),
        ("fd01::/63", 64, (Failure, too_few_v6)),
        ("::/0", 121, valid),
    ] {
        let change = |it: &mut ClusterSettings| it.cluster_networks.push(pods(network, host_prefix));
        assert_outcome(change, ClusterValidationId::NetworkPrefixValid, expected);
    }
}

#[test]
fn required_subnets_depend_on_the_number_of_hosts() {
    let status = |network, hosts: usize| {
        let cluster = ClusterSettings { cluster_networks: vec![pods(network, 23)], ..cluster() };
        described(cluster, vec![known_host(); hosts], ClusterValidationId::NetworkPrefixValid).0
    };
    assert_eq!(status("10.128.0.0/23", 1), Success);
    assert_eq!(status("10.128.0.0/23", 0), Failure);
    assert_eq!(status("10.128.0.0/22", 2), Failure);
    assert_eq!(status("10.128.0.0/21", 4), Success);
    assert_eq!(status("10.128.0.0/21", 5), Failure);
}

#[test]
fn host_prefix_counts_only_for_plugins_that_use_it() {
    for (network_type, network, status) in [
        (Some(NetworkType::OVNKubernetes), "10.128.0.0/14", Failure),
        (Some(NetworkType::OpenShiftSDN), "10.128.0.0/14", Failure),
        (Some(NetworkType::Calico), "10.128.0.0/14", Success),
        (Some(NetworkType::Calico), "10.128.0.0/24", Failure),
        (Some(NetworkType::None), "fd01::/62", Success),
        (None, "fd01::/63", Failure),
    ] {
        let cluster_networks = vec![pods(network, 0)];
        let cluster = ClusterSettings { network_type, cluster_networks, ..cluster() };
        let outcome = described(cluster, vec![known_host(); 3], ClusterValidationId::NetworkPrefixValid);
        assert_eq!(outcome.0, status, "{network_type:?} {network}: {}", outcome.1);
    }
}

#[test]
fn network_type_must_support_the_other_settings() {
    use ClusterValidationId::NetworkTypeValid;
    let valid = (Success, "The cluster has a valid network type");
    let ipv6 = "The cluster is configured with IPv6 which is not supported by OpenShiftSDN; use OVNKubernetes instead";
    let single =
        "Control Plane Count '1' (SNO) is not supported by OpenShiftSDN; use another network type instead";
    let dhcp = "VIP DHCP allocation is not supported when the cluster is configured to use OVNKubernetes.";
    let with_ipv6: fn(&mut ClusterSettings) = |it| it.machine_networks.push(cidr("fd00::/64"));
    let with_dhcp: fn(&mut ClusterSettings) = |it| it.vip_dhcp_allocation = true;
    for (network_type, change, expected) in [
        (Some(NetworkType::OpenShiftSDN), with_dhcp, valid),
        (Some(NetworkType::OpenShiftSDN), with_ipv6, (Failure, ipv6)),
        (Some(NetworkType::OpenShiftSDN), single_node, (Failure, single)),
        (Some(NetworkType::OVNKubernetes), with_dhcp, (Failure, dhcp)),
        (Some(NetworkType::OVNKubernetes), with_ipv6, valid),
        (Some(NetworkType::OVNKubernetes), single_node, valid),
        (Some(NetworkType::Cilium), with_dhcp, valid),
        (None, with_ipv6, valid),
    ] {
        let change = |it: &mut ClusterSettings| {
            it.network_type = network_type;
            change(it);
        };
        assert_outcome(change, NetworkTypeValid, expected);
    }
}

#[test]
fn clocks_of_hosts_may_differ_by_four_minutes() {
    let differing = "Hosts' clocks are not synchronized (there's more than a 4 minutes gap between clocks), please \
        configure an NTP server via DHCP or set clocks manually.";
    let outcome = |skews: &[Option<i64>], status| {
        let host = |skew: &Option<i64>| HostView { clock_skew: *skew, status, ..known_host() };
        described(cluster(), skews.iter().map(host).collect(), ClusterValidationId::NtpServerConfigured)
    };
    let synchronized = (Success, "No ntp problems found".to_owned());
    let differing = (Failure, differing.to_owned());
    for (skews, expected) in [
        (&[][..], &synchronized),
        (&[None, Some(900)], &synchronized),
        (&[Some(-100), Some(199)], &synchronized),
        (&[Some(-100), Some(0), Some(200)], &differing),
        (&[Some(i64::MIN), Some(i64::MAX)], &differing),
    ] {
        assert_eq!(outcome(skews, HostStatus::Known), *expected, "{skews:?}");
        for status in
            [HostStatus::Disconnected, HostStatus::Discovering, HostStatus::ResettingPendingUserAction]
        {
            assert_eq!(outcome(skews, status), synchronized, "{status}");
        }
    }
}

#[test]
fn every_unsuccessful_outcome_has_a_remedy() {
    for id in ClusterValidationId::ALL {
        let samples = ClusterOutcome::samples(*id);
        assert!(samples.iter().any(|it| it.describe().status == Success), "{id}");
        assert!(samples.iter().any(|it| it.describe().remedy.is_some()), "{id}");
        for sample in samples {
            assert_eq!(sample.id(), *id);
            assert_eq!(sample.describe().remedy.is_some(), sample.describe().status != Success, "{sample:?}");
        }
    }
}

#[test]
fn groups_require_their_validations() {
    use ClusterGroup::{PendingConditions, RequiredForInstall};
    for id in RECORDED.iter().map(|(id, _)| *id) {
        let group = id.definition().groups;
        let is_setting = id.as_str().ends_with("-defined") || id == ClusterValidationId::PullSecretSet;
        assert_eq!(group, [if is_setting { PendingConditions } else { RequiredForInstall }], "{id}");
        assert_eq!(id.definition().is_ignorable, id != ClusterValidationId::PullSecretSet, "{id}");
    }
    let none = IgnoredValidations::none();
    let satisfied = |cluster| {
        let results = evaluate_with(cluster, vec![known_host()], &ValidationSettings::default());
        results.satisfies(PendingConditions, &none)
    };
    assert!(satisfied(cluster()));
    assert!(!satisfied(ClusterSettings { base_dns_domain: "".into(), ..cluster() }));
}

#[test]
fn ignored_list_of_a_cluster_overrides_disabled_validations() {
    let disabled_cluster = DisabledValidations::parse::<ClusterValidationId>("pull-secret-set").unwrap();
    let settings = ValidationSettings { disabled_cluster, ..ValidationSettings::default() };
    for (list, status) in [("", OutcomeStatus::Disabled), ("[]", Success)] {
        let cluster = ClusterSettings { ignored_cluster_validations: list.into(), ..cluster() };
        let results = evaluate_with(cluster, vec![], &settings);
        let outcome = results.outcome(ClusterValidationId::PullSecretSet).unwrap();
        assert_eq!(outcome.describe().status, status, "{list:?}");
    }
}

#[test]
fn outcomes_survive_storing() {
    for id in ClusterValidationId::ALL {
        let outcomes =
            ClusterOutcome::samples(*id).into_iter().map(|it| ValidationResults::from_parts([it], vec![]));
        for outcomes in outcomes {
            let results = ClusterResults { outcomes, ..ClusterResults::default() };
            assert_eq!(ClusterResults::from_stored(&results.to_stored().unwrap()).unwrap(), results);
        }
    }
}

/// Returns arbitrary networks, also with host bits set.
fn any_cidr() -> impl Strategy<Value = Cidr> {
    let v4 = (any::<[u8; 4]>(), 0..=32_u32).prop_map(|(bytes, len)| (bytes.into(), len));
    let v6 = (any::<[u8; 16]>(), 0..=128_u32).prop_map(|(bytes, len)| (bytes.into(), len));
    prop_oneof![v4, v6].prop_map(|(address, len): (std::net::IpAddr, _)| cidr(&format!("{address}/{len}")))
}

/// Returns arbitrary host prefixes, often near a limit.
fn any_host_prefix() -> impl Strategy<Value = i64> {
    prop_oneof![-1..=130_i64, Just(i64::MIN), Just(i64::MAX), any::<i64>()]
}

proptest! {
    #[test]
    fn any_networks_have_a_message(
        machine_networks in prop::collection::vec(any_cidr(), 0..4),
        cluster_networks in prop::collection::vec((any_cidr(), any_host_prefix()), 0..4),
        service_networks in prop::collection::vec(any_cidr(), 0..4),
        is_single_node in any::<bool>(),
        hosts in 0..6_usize,
    ) {
        let pods = |(cidr, host_prefix)| PodNetwork { cidr, host_prefix };
        let mut cluster = ClusterSettings {
            machine_networks,
            cluster_networks: cluster_networks.into_iter().map(pods).collect(),
            service_networks,
            ..cluster()
        };
        if is_single_node {
            single_node(&mut cluster);
        }
        let results = evaluate_with(cluster, vec![known_host(); hosts], &ValidationSettings::default());
        for outcome in results.outcomes() {
            prop_assert!(!outcome.describe().message.is_empty());
        }
    }

    #[test]
    fn single_cluster_network_is_valid_if_its_subnets_suffice(
        network in any_cidr(),
        host_prefix in any_host_prefix(),
        hosts in 0..10_usize,
    ) {
        let cluster = ClusterSettings { cluster_networks: vec![PodNetwork { cidr: network, host_prefix }], ..cluster() };
        let status = described(cluster, vec![known_host(); hosts], ClusterValidationId::NetworkPrefixValid).0;
        let bits = if network.address().is_ipv4() { 32 } else { 128 };
        // Four bits are enough for 16 nodes, which is more than the maximum number of hosts in this test.
        let node_bits = host_prefix.saturating_sub(network.prefix().into()).clamp(0, 4);
        let nodes = if hosts == 1 { 1 } else { hosts.max(4) };
        let is_valid = (1..=bits - 7).contains(&host_prefix) && 1_usize << node_bits >= nodes;
        prop_assert_eq!(status, if is_valid { Success } else { Failure });
    }
}
