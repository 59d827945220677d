//! Table-driven tests of the validations of virtual IP addresses.

use std::net::IpAddr;
use std::sync::Arc;

use assisted::cluster::{LoadBalancerType, VipVerification};
use assisted::step::VipType;
use ignition::Cidr;

use super::*;
use crate::requirements::HardwareRequirements;
use crate::summary::{FreeAddresses, HostSummary, InventorySummary, NicSummary};
use crate::validation::definition::ValidationId;
use crate::validation::ignored::IgnoredValidations;
use crate::validation::outcome::OutcomeStatus::{self, Failure, Pending, Success};
use crate::validation::outcome::ValidationOutcome as _;
use crate::validation::settings::ValidationSettings;
use crate::view::{ClusterSettings, ClusterView, HostView};

const CLUSTER_ID: &str = "5ac2fc82-9fa9-4ea2-83ad-b3d3d0f1c6a1";
const INFRA_ENV_ID: &str = "0c7d9d4f-96e8-4d2c-8a5d-0b0a7a3b7f01";

const NET: &str = "192.168.1.0/24";
const NET_V6: &str = "fd2e:6f44:5dd8::/64";

const IDS: [ClusterValidationId; 5] = {
    use ClusterValidationId::{
        ApiVipsDefined, ApiVipsValid, IngressVipsDefined, IngressVipsValid, MachineCidrEqualsToCalculatedCidr,
    };
    [ApiVipsDefined, ApiVipsValid, IngressVipsDefined, IngressVipsValid, MachineCidrEqualsToCalculatedCidr]
};

fn cidrs(networks: &[&str]) -> Vec<Cidr> {
    networks.iter().map(|network| Cidr::parse(network).unwrap()).collect()
}

fn ips(addresses: &[&str]) -> Vec<IpAddr> {
    addresses.iter().map(|address| address.parse().unwrap()).collect()
}

/// Returns a cluster with three control plane nodes.
fn cluster(machine_networks: &[&str], api_vips: &[&str], ingress_vips: &[&str]) -> ClusterSettings {
    ClusterSettings {
        control_plane_count: 3,
        machine_networks: cidrs(machine_networks),
        api_vips: ips(api_vips),
        ingress_vips: ips(ingress_vips),
        ..ClusterSettings::new(CLUSTER_ID.parse().unwrap())
    }
}

/// Returns a cluster with the virtual IP addresses of the recordings.
fn recorded(machine_networks: &[&str]) -> ClusterSettings {
    cluster(machine_networks, &["192.168.1.5"], &["192.168.1.6"])
}

fn dhcp(machine_networks: &[&str]) -> ClusterSettings {
    ClusterSettings { vip_dhcp_allocation: true, ..cluster(machine_networks, &[], &[]) }
}

fn load_balancer(machine_networks: &[&str], api_vips: &[&str]) -> ClusterSettings {
    ClusterSettings {
        load_balancer: Some(LoadBalancerType::UserManaged),
        ..cluster(machine_networks, api_vips, &["192.168.1.6"])
    }
}

/// Returns the summary of a host with these interface addresses.
fn summary(addresses: &[&str]) -> HostSummary {
    let nic = NicSummary { addresses: cidrs(addresses), ..NicSummary::default() };
    let inventory = InventorySummary { nics: vec![nic], ..InventorySummary::default() };
    HostSummary { inventory: Some(Box::new(inventory)), ..HostSummary::default() }
}

/// Returns the summary of a host in both networks that reports these unused addresses.
fn host(network: &str, free: &[&str]) -> HostSummary {
    let network = Cidr::parse(network).unwrap();
    let free_addresses = FreeAddresses::from_addresses(network, ips(free)).into_iter().collect();
    HostSummary { free_addresses, ..summary(&["192.168.1.11/24", "fd2e:6f44:5dd8::11/64"]) }
}

/// Returns the summary of a host with these verification results for API addresses.
fn verified(api_vips: &[(&str, VipVerification)]) -> HostSummary {
    let vips = api_vips.iter().map(|(address, verification)| VerifiedVip {
        address: address.parse().unwrap(),
        vip_type: VipType::Api,
        verification: *verification,
    });
    HostSummary { vips: vips.collect(), ..host(NET, &[]) }
}

fn results(cluster: ClusterSettings, hosts: Vec<HostSummary>) -> ValidationResults<ClusterOutcome> {
    let hosts = hosts.into_iter().map(|summary| {
        let host = HostView::new(CLUSTER_ID.parse().unwrap(), INFRA_ENV_ID.parse().unwrap());
        Arc::new(HostView { summary: Arc::new(summary), ..host })
    });
    let view = ClusterView { cluster: Arc::new(cluster), hosts: hosts.collect() };
    let role = r#"{"cpu_cores": 4, "ram_mib": 8192, "disk_size_gb": 100}"#;
    let table = format!(r#"[{{"version": "default", "master": {role}, "worker": {role}, "sno": {role}}}]"#);
    let hardware = HardwareRequirements::parse(&table).unwrap();
    let settings = ValidationSettings::default();
    ValidationResults::evaluate(&ClusterInput { view: &view, hardware: &hardware, settings: &settings })
}

fn described(
    cluster: ClusterSettings,
    hosts: Vec<HostSummary>,
    id: ClusterValidationId,
) -> (OutcomeStatus, String) {
    let description = results(cluster, hosts).outcome(id).unwrap().describe();
    (description.status, description.message.into_owned())
}

/// Checks the outcomes of all [`IDS`].
fn assert_outcomes(cluster: &ClusterSettings, hosts: &[HostSummary], expected: [(OutcomeStatus, &str); 5]) {
    for (id, (status, message)) in IDS.into_iter().zip(expected) {
        let outcome = described(cluster.clone(), hosts.to_vec(), id);
        assert_eq!(outcome, (status, message.to_owned()), "{id} {cluster:?}");
    }
}

const API_DEFINED: (OutcomeStatus, &str) = (Success, "API virtual IPs are defined.");
const INGRESS_DEFINED: (OutcomeStatus, &str) = (Success, "Ingress virtual IPs are defined.");
const NOT_DISCOVERED: (OutcomeStatus, &str) = (Pending, "Hosts have not been discovered yet");
const EQUAL: (OutcomeStatus, &str) =
    (Success, "The Cluster Machine CIDR is equivalent to the calculated CIDR.");

/// Compares the statuses and messages with recordings of the Assisted Installer.
#[test]
fn outcomes_match_the_recordings() {
    let waiting = |calculated| [API_DEFINED, NOT_DISCOVERED, INGRESS_DEFINED, NOT_DISCOVERED, calculated];
    let v4 = || host(NET, &["192.168.1.5", "192.168.1.6"]);
    let valid = [
        API_DEFINED,
        (Success, "api vips 192.168.1.5 belongs to the Machine CIDR and is not in use."),
        INGRESS_DEFINED,
        (Success, "ingress vips 192.168.1.6 belongs to the Machine CIDR and is not in use."),
        EQUAL,
    ];
    // A compact cluster without hosts, first without and then with its machine network.
    assert_outcomes(&recorded(&[]), &[HostSummary::default()], waiting(NOT_DISCOVERED));
    assert_outcomes(&recorded(&[]), &[v4()], waiting(EQUAL));
    assert_outcomes(&recorded(&[NET]), &[v4(), HostSummary::default()], valid);
    // A dual-stack cluster, before and after the hosts have verified the addresses.
    let unverified = [
        API_DEFINED,
        (Failure, "api vips <192.168.1.5> are not verified yet."),
        INGRESS_DEFINED,
        (Failure, "ingress vips <192.168.1.6> are not verified yet."),
        EQUAL,
    ];
    assert_outcomes(&recorded(&[NET, NET_V6]), &[host(NET, &[])], unverified);
    assert_outcomes(&recorded(&[NET, NET_V6]), &[v4()], valid);
    // Hosts with IPv6 in a cluster with IPv4 addresses.
    let no_network =
        (Failure, "1 error occurred:\n\t* No suitable matching CIDR found for VIP 192.168.1.5\n\n");
    assert_outcomes(&recorded(&[]), &[summary(&["fd2e:6f44:5dd8::11/64"])], waiting(no_network));
    let balanced = [
        API_DEFINED,
        (Success, "api vip 192.168.1.5 is valid"),
        INGRESS_DEFINED,
        (Success, "ingress vip 192.168.1.6 is valid"),
        (Success, "Calculating machine network CIDR is not enabled: User Managed Load Balancer"),
    ];
    assert_outcomes(&load_balancer(&[NET, "192.168.2.0/24"], &["192.168.1.5"]), &[host(NET, &[])], balanced);
    let api = (Success, "API virtual IPs are not required: User Managed Networking");
    let ingress = (Success, "Ingress virtual IPs are not required: User Managed Networking");
    let user_managed = [
        api,
        api,
        ingress,
        ingress,
        (Success, "The Cluster Machine CIDR is not required: User Managed Networking"),
    ];
    for control_plane_count in [1, 3] {
        let cluster = cluster(&[], &[], &[]);
        let cluster = ClusterSettings { user_managed_networking: true, control_plane_count, ..cluster };
        assert_outcomes(&cluster, &[], user_managed);
    }
}

#[test]
fn missing_virtual_ips_are_described() {
    let calculated =
        (Pending, "The Machine Network CIDR, API virtual IPs, or Ingress virtual IPs are undefined.");
    let undefined = [
        (Failure, "API virtual IPs are undefined and must be provided."),
        (Pending, "API virtual IPs are undefined."),
        (Failure, "Ingress virtual IPs are undefined and must be provided."),
        (Pending, "Ingress virtual IPs are undefined."),
        calculated,
    ];
    assert_outcomes(&cluster(&[NET], &[], &[]), &[host(NET, &[])], undefined);
    let network = (Pending, "The Machine Network CIDR is undefined");
    assert_outcomes(&dhcp(&[]), &[], [network, undefined[1], network, undefined[3], calculated]);
    let lease = |name: &str| {
        format!(
            "{name} virtual IPs are undefined; after the Machine Network CIDR has been defined, {name} virtual IPs are \
             received from a DHCP lease allocation task which may take up to 2 minutes."
        )
    };
    let (api, ingress) = (lease("API"), lease("Ingress"));
    let leases = [(Failure, &*api), undefined[1], (Failure, &*ingress), undefined[3], calculated];
    assert_outcomes(&dhcp(&[NET]), &[host(NET, &[])], leases);
    let (api, ingress) =
        ("API virtual IPs are not required: SNO", "Ingress virtual IPs are not required: SNO");
    let single_node = ClusterSettings { control_plane_count: 1, ..cluster(&[], &[], &[]) };
    let (api, ingress) = ((Success, api), (Success, ingress));
    assert_outcomes(&single_node, &[], [api, api, ingress, ingress, calculated]);
}

fn assert_api_vips(cluster: ClusterSettings, hosts: Vec<HostSummary>, expected: (OutcomeStatus, &str)) {
    let outcome = described(cluster, hosts, ClusterValidationId::ApiVipsValid);
    assert_eq!(outcome, (expected.0, expected.1.to_owned()));
}

#[test]
fn used_and_misplaced_virtual_ips_fail() {
    let api = |networks: &[&str], vips: &[&str]| cluster(networks, vips, &[]);
    let assert_failure = |networks: &[&str], vips: &[&str], hosts, message: &str| {
        assert_api_vips(api(networks, vips), hosts, (Failure, message));
    };
    let free = || host(NET, &["192.168.1.6"]);
    assert_failure(
        &[NET],
        &["10.0.0.5"],
        vec![free()],
        "api vips <10.0.0.5> does not belong to machine-network-cidr <192.168.1.0/24>",
    );
    assert_failure(
        &[NET],
        &["192.168.1.255"],
        vec![free()],
        "api vips <192.168.1.255> is the broadcast address of machine-network-cidr <192.168.1.0/24>",
    );
    assert_failure(
        &[NET],
        &["192.168.1.5"],
        vec![free(), host(NET, &["192.168.1.5", "192.168.1.6"])],
        "api vips <192.168.1.5> is already in use in cidr 192.168.1.0/24",
    );
    assert_failure(
        &["192.168.1.0/29"],
        &["192.168.1.5"],
        vec![host("192.168.1.0/29", &["192.168.1.6"]); 5],
        "api vips <192.168.1.5> is already in use in cidr 192.168.1.0/29. The machine network range is too small for \
         the cluster. Please redefine the network.",
    );
    assert_failure(
        &[NET],
        &["192.168.1.5", "fd2e:6f44:5dd8::5"],
        vec![host(NET, &[])],
        "api vips <192.168.1.5> are not verified yet.;api vips <fd2e:6f44:5dd8::5> cannot be set if Machine Network \
         CIDR is empty",
    );
}

#[test]
fn verified_virtual_ip_needs_no_list_of_unused_addresses() {
    use VipVerification::{Failed, Succeeded, Unverified};
    let cluster = || cluster(&[NET, NET_V6], &["192.168.1.5", "fd2e:6f44:5dd8::5"], &[]);
    let host = |v4, v6| vec![verified(&[("192.168.1.5", v4), ("fd2e:6f44:5dd8::5", v6)])];
    let valid = "api vips 192.168.1.5, fd2e:6f44:5dd8::5 belongs to the Machine CIDR and is not in use.";
    assert_api_vips(cluster(), host(Succeeded, Succeeded), (Success, valid));
    let in_use = "api vips <fd2e:6f44:5dd8::5> is already in use in cidr fd2e:6f44:5dd8::/64";
    assert_api_vips(cluster(), host(Succeeded, Failed), (Failure, in_use));
    let unverified = "api vips <fd2e:6f44:5dd8::5> are not verified yet.";
    assert_api_vips(cluster(), host(Succeeded, Unverified), (Failure, unverified));
}

#[test]
fn virtual_ip_on_a_load_balancer_is_in_one_of_the_machine_networks() {
    let networks = &["192.168.1.0/24", "192.168.2.0/24"];
    let of = |vips: &[&str]| load_balancer(networks, vips);
    let hosts = || vec![host(NET, &["192.168.1.6"])];
    assert_api_vips(of(&["192.168.2.5", "10.0.0.5"]), hosts(), (Success, "api vip 192.168.2.5 is valid"));
    let message = "api vip '192.168.2.255' failed verification: none of the machine networks is satisfying the \
        requirements, description: machine network CIDR <192.168.1.0/24> verification failed: api vip <192.168.2.255> \
        does not belong to machine-network-cidr <192.168.1.0/24>; machine network CIDR <192.168.2.0/24> verification \
        failed: api vip <192.168.2.255> is the broadcast address of machine-network-cidr <192.168.2.0/24>";
    assert_api_vips(of(&["192.168.2.255"]), hosts(), (Failure, message));
    assert_api_vips(of(&["192.168.1.5"]), Vec::new(), NOT_DISCOVERED);
    assert_api_vips(load_balancer(&[], &["192.168.1.5"]), hosts(), NOT_DISCOVERED);
}

#[test]
fn machine_networks_without_the_virtual_ips_fail() {
    let of = |networks: &[&str], api: &[&str]| {
        let id = ClusterValidationId::MachineCidrEqualsToCalculatedCidr;
        described(cluster(networks, api, &["192.168.1.6"]), vec![host(NET, &[])], id)
    };
    let failure = |message: &str| (Failure, message.to_owned());
    let both = &["192.168.1.5", "fd2e:6f44:5dd8::5"];
    let equal = (EQUAL.0, EQUAL.1.to_owned());
    assert_eq!(of(&[NET, NET_V6], both), equal);
    assert_eq!(of(&[], both), equal);
    assert_eq!(of(&["10.0.0.0/24"], &[]), equal);
    assert_eq!(
        of(&["10.0.0.0/24"], both),
        failure(
            "2 errors occurred:\n\
             \t* The Cluster Machine CIDR 10.0.0.0/24 is different than the calculated CIDR 192.168.1.0/24.\n\
             \t* The Cluster Machine CIDR  is different than the calculated CIDR fd2e:6f44:5dd8::/64.\n\n"
        )
    );
    assert_eq!(
        of(&[], &["10.0.0.5"]),
        failure("1 error occurred:\n\t* No suitable matching CIDR found for VIP 10.0.0.5\n\n")
    );
}

#[test]
fn samples_survive_storing_and_only_defined_vips_cannot_be_ignored() {
    let every = IgnoredValidations::parse(r#"["all"]"#).unwrap();
    let results = results(cluster(&[NET], &[], &[]), Vec::new());
    for id in IDS {
        let is_definition = id.as_str().ends_with("-defined");
        assert_eq!(results.is_satisfied(id, &every), !is_definition, "{id}");
        assert_eq!(id.definition().is_ignorable, !is_definition, "{id}");
        for sample in ClusterOutcome::samples(id) {
            let content = sample.to_content().unwrap().unwrap();
            assert_eq!(ClusterOutcome::from_content(id, content).unwrap(), sample);
        }
    }
}
