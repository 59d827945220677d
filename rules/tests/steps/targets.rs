//! Tests the list of hosts whose connectivity an agent checks.

use std::sync::Arc;

use assisted::HostId;
use assisted::connectivity::ConnectivityCheckHost;
use assisted::host::HostStatus;
use proptest::prelude::*;
use rules::steps::ConnectivityTargets;
use rules::view::HostView;

use crate::machines::{host, id, nic, simple_host};

fn targets(hosts: &[HostView]) -> ConnectivityTargets {
    let hosts: Vec<_> = hosts.iter().cloned().map(Arc::new).collect();
    ConnectivityTargets::new(&hosts).unwrap()
}

fn parse(argument: &str) -> Vec<ConnectivityCheckHost> {
    serde_json::from_str(argument).unwrap()
}

fn numbers(argument: &str) -> Vec<u128> {
    parse(argument).iter().map(|host| host.host_id.0.as_u128()).collect()
}

#[test]
fn hosts_are_ordered_by_id() {
    let hosts = [3, 1, 2].map(|number| simple_host(number, &format!("192.168.1.1{number}/24")));
    let targets = targets(&hosts);
    for (number, others) in [(1, [2, 3]), (2, [1, 3]), (3, [1, 2])] {
        assert_eq!(numbers(&targets.argument_for(HostId(id(number))).unwrap()), others);
    }
    assert_eq!(
        targets.argument_for(HostId(id(1))).unwrap().split_once("},{").unwrap().0,
        r#"[{"host_id":"00000000-0000-0000-0000-000000000002","nics":[{"ip_addresses":["192.168.1.12"],"mac":"52:54:00:00:00:02","name":"eth0"}]"#
    );
}

#[test]
fn host_outside_the_list_receives_all_entries() {
    let targets = targets(&[simple_host(1, "192.168.1.11/24"), simple_host(2, "192.168.1.12/24")]);
    assert_eq!(numbers(&targets.argument_for(HostId(id(9))).unwrap()), [1, 2]);
}

#[test]
fn single_host_has_nothing_to_check() {
    let one = targets(&[simple_host(1, "192.168.1.11/24")]);
    assert_eq!(one.argument_for(HostId(id(1))), None);
    assert!(!one.is_empty());
    let none = targets(&[]);
    assert_eq!(none.argument_for(HostId(id(1))), None);
    assert!(none.is_empty());
    assert_eq!(none.len(), 0);
}

#[test]
fn unreachable_hosts_are_omitted() {
    let with_status = |number, status| HostView { status, ..simple_host(number, "192.168.1.11/24") };
    let hosts = [
        with_status(1, HostStatus::Discovering),
        with_status(2, HostStatus::Disconnected),
        with_status(3, HostStatus::Insufficient),
        with_status(4, HostStatus::Installed),
        host(5, Vec::new()),
        host(6, vec![nic("eth0", "52:54:00:00:00:06", &[])]),
        HostView { summary: Arc::default(), ..simple_host(7, "192.168.1.17/24") },
    ];
    assert_eq!(numbers(&targets(&hosts).argument_for(HostId(id(9))).unwrap()), [3, 4]);
}

#[test]
fn interfaces_without_addresses_are_listed() {
    let nics = vec![
        nic("bond0", "52:54:00:00:00:01", &["192.168.1.11/24", "fd00::11/64"]),
        nic("eth1", "52:54:00:00:00:02", &[]),
    ];
    assert_eq!(
        targets(&[host(1, nics)]).argument_for(HostId(id(9))).unwrap(),
        concat!(
            r#"[{"host_id":"00000000-0000-0000-0000-000000000001","nics":["#,
            r#"{"ip_addresses":["192.168.1.11","fd00::11"],"mac":"52:54:00:00:00:01","name":"bond0"},"#,
            r#"{"ip_addresses":null,"mac":"52:54:00:00:00:02","name":"eth1"}]}]"#
        )
    );
}

#[test]
fn list_of_500_hosts_has_the_documented_size() {
    let hosts: Vec<_> =
        (0..500_u128).map(|n| simple_host(n, &format!("10.0.{}.{}/16", n / 250, n % 250))).collect();
    let len = targets(&hosts).len();
    assert!((66_000..67_500).contains(&len), "{len}");
}

fn any_host() -> impl Strategy<Value = HostView> {
    let status = prop::sample::select(HostStatus::ALL);
    let address = prop::sample::select(&["192.168.1.11/24", "fd00::11/64", "10.0.0.1/8"][..]);
    let nic_of = (".{0,4}", "[0-9a-f:\"\\\\]{0,17}", prop::collection::vec(address, 0..3));
    (0..12_u128, status, prop::collection::vec(nic_of, 0..3)).prop_map(|(number, status, nics)| {
        let nics = nics.iter().map(|(name, mac, addresses)| nic(name, mac, addresses));
        HostView { status, ..host(number, nics.collect()) }
    })
}

proptest! {
    /// Ids may repeat: a machine that booted images of two infra-envs appears as two hosts with the same id.
    #[test]
    fn argument_lists_all_other_hosts(hosts in prop::collection::vec(any_host(), 0..12), number in 0..12_u128) {
        let targets = targets(&hosts);
        let mut expected: Vec<_> = hosts
            .iter()
            .filter(|host| !matches!(host.status, HostStatus::Discovering | HostStatus::Disconnected))
            .filter(|host| host.nics().iter().any(|nic| !nic.addresses.is_empty()))
            .map(|host| host.id)
            .filter(|host| host.0 != id(number))
            .collect();
        expected.sort();
        match targets.argument_for(HostId(id(number))) {
            Some(argument) => {
                let ids: Vec<_> = parse(&argument).iter().map(|host| host.host_id).collect();
                prop_assert_eq!(ids, expected);
            }
            None => prop_assert!(expected.is_empty()),
        }
    }
}
