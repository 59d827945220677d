//! Tests of simulated machines: reports of different machines agree, each fault changes the expected reports, and the
//! models of the upstream client accept all reports. `KINDLING_CLIENTS` is the folder that contains its Python code.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a failed expectation must stop the test"
)]

#[path = "../../tests/support/skip.rs"]
mod skip;

use std::env;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use agent::session::HostSession;
use agent::simulated::{Fault, Profile, SimulatedMachine, SimulatedSite};
use agent::{Machine, StepFailure, StepOutcome};
use assisted::client::ApiClient;
use assisted::connectivity::{ConnectivityCheckHost, ConnectivityCheckNic, RemoteHost};
use assisted::inventory_report::InventoryReport;
use assisted::reply::{ExitCode, ReplyPayload};
use assisted::request::{
    ApiVipRequest, BootArtifactsRequest, DhcpRequest, DiskSpeedRequest, DomainName, DomainRequest,
    ImagesRequest, InventoryRequest, NtpRequest, ReclaimRequest, StepRequest, TangRequest, UpgradeRequest,
    VipToVerify,
};
use assisted::step::VipType;
use assisted::{HostId, InfraEnvId, List, Secret, Text};
use serde_json::{Value, json};
use skip::report_missing;

fn profile(yaml: &str) -> Profile {
    serde_yaml_ng::from_str(yaml).unwrap()
}

fn machines(yaml: &str, hosts: u32) -> Vec<SimulatedMachine> {
    Arc::new(SimulatedSite::new(profile(yaml), hosts, 1).unwrap()).machines().collect()
}

/// Returns a machine with one fault, after two machines without faults.
fn faulty(fault: Fault) -> SimulatedMachine {
    let yaml = format!("groups: [{{name: usual, count: 2}}, {{name: faulty, faults: [{fault}]}}]");
    machines(&yaml, 3).pop().unwrap()
}

fn usual() -> SimulatedMachine {
    machines("groups: [{name: usual}]", 3).remove(0)
}

fn run(machine: &SimulatedMachine, request: StepRequest) -> Result<StepOutcome, StepFailure> {
    let client = ApiClient::new("http://127.0.0.1:1").unwrap();
    let session = HostSession::new(client, InfraEnvId::fresh(), machine.id());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(machine.run_step(request, &session))
}

/// Returns the output of a step that succeeds.
fn output(machine: &SimulatedMachine, request: StepRequest) -> ReplyPayload<'static> {
    match run(machine, request).unwrap() {
        StepOutcome::Output(output) => output,
        other => panic!("{other:?}"),
    }
}

/// Returns the argument of a connectivity check, as the service creates it from the reports of hosts.
fn hosts_to_check<'a>(others: impl IntoIterator<Item = &'a SimulatedMachine>) -> StepRequest {
    let host = |machine: &SimulatedMachine| {
        let report = machine.inventory_report();
        let nics = report.interfaces.iter().map(|interface| ConnectivityCheckNic {
            ip_addresses: interface
                .ipv4_addresses
                .iter()
                .map(|address| address.split('/').next().unwrap().to_owned())
                .collect(),
            mac: interface.mac_address.to_string(),
            name: interface.name.to_string(),
        });
        ConnectivityCheckHost { host_id: machine.id(), nics: nics.collect() }
    };
    StepRequest::ConnectivityCheck(others.into_iter().map(host).collect())
}

fn connectivity(machine: &SimulatedMachine, others: &[SimulatedMachine]) -> Vec<RemoteHost<'static>> {
    match output(machine, hosts_to_check(others)) {
        ReplyPayload::Connectivity(report) => report.remote_hosts.0.unwrap(),
        other => panic!("{other:?}"),
    }
}

fn address(report: &InventoryReport<'_>) -> String {
    report.addresses().next().unwrap().split('/').next().unwrap().to_owned()
}

#[test]
fn hosts_of_one_segment_reach_each_other() {
    let mut all = machines("groups: [{name: node}]", 3);
    let first = all.remove(0);
    let reports = connectivity(&first, &all);
    assert_eq!(reports.len(), 2);
    for report in &reports {
        let other = all.iter().find(|machine| report.host_id == machine.id().to_string()).unwrap();
        let other = other.inventory_report();
        let links: Vec<_> = report.l2_connectivity.iter().collect();
        assert_eq!(links.len(), 1);
        assert!(links[0].successful);
        assert_eq!(links[0].outgoing_nic, "eth0");
        assert_eq!(links[0].outgoing_ip_address, address(&first.inventory_report()));
        assert_eq!(links[0].remote_ip_address, address(&other));
        assert_eq!(links[0].remote_mac, other.interfaces.iter().next().unwrap().mac_address);
        let pings: Vec<_> = report.l3_connectivity.iter().collect();
        assert!(pings.len() == 1 && pings[0].successful && pings[0].average_rtt_ms > 0.0);
        // Interfaces with the usual MTU send no large packets.
        assert_eq!(report.mtu_report, List(None));
    }
    assert!(reports[0].host_id < reports[1].host_id);
}

/// Returns the round-trip times of several checks of one peer.
fn round_trips(yaml: &str, seed: u64, checks: usize) -> Vec<f64> {
    let site = Arc::new(SimulatedSite::new(profile(yaml), 2, seed).unwrap());
    let all: Vec<_> = site.machines().collect();
    let check = |_| connectivity(&all[0], &all[1..])[0].l3_connectivity.iter().next().unwrap().average_rtt_ms;
    (0..checks).map(check).collect()
}

#[test]
fn latency_varies_per_check_and_is_determined_by_the_seed() {
    let yaml = "{latency: {base_ms: 20, spread_ms: 5}, groups: [{name: node}]}";
    let times = round_trips(yaml, 1, 200);
    assert!(times.windows(2).all(|pair| pair[0] != pair[1]));
    assert!(times.iter().all(|time| (15.0 - 0.002..=25.0 + 0.002).contains(time)));
    assert!(times.iter().any(|time| *time < 15.5) && times.iter().any(|time| *time > 24.5));
    let microseconds = |time: &f64| (time * 1000.0 - (time * 1000.0).round()).abs() < 1e-6;
    assert!(times.iter().all(microseconds));
    assert_eq!(times, round_trips(yaml, 1, 200));
    assert_ne!(times, round_trips(yaml, 2, 200));
}

#[test]
fn latency_differs_between_hosts() {
    let all = machines("groups: [{name: node}]", 3);
    let times = |machine: &SimulatedMachine, others: &[SimulatedMachine]| {
        let reports = connectivity(machine, others);
        reports.iter().flat_map(|host| host.l3_connectivity.iter().map(|ping| ping.average_rtt_ms)).collect()
    };
    let mut latencies: Vec<f64> = times(&all[0], &all[1..]);
    latencies.extend(times(&all[1], &all[2..]));
    assert!(latencies[0] != latencies[1] && latencies[1] != latencies[2], "{latencies:?}");
}

#[test]
fn latency_without_spread_is_stable() {
    for (base, expected) in [("7.5", 7.5), ("0.0001", 0.001)] {
        let yaml = format!("{{latency: {{base_ms: {base}, spread_ms: 0}}, groups: [{{name: node}}]}}");
        assert_eq!(round_trips(&yaml, 1, 3), [expected; 3]);
    }
    // A time of 0 would be absent from the report.
    let times = round_trips("{latency: {base_ms: 0.001, spread_ms: 0.001}, groups: [{name: node}]}", 1, 100);
    assert!(times.iter().all(|time| *time >= 0.001), "{times:?}");
}

#[test]
fn replies_except_connectivity_are_stable() {
    let all = machines("groups: [{name: node, interfaces: [{mtu: 9000}]}]", 3);
    let requests = || outputs_of(&all).into_iter();
    for ((model, first), (_, second)) in requests().zip(requests()) {
        assert_eq!(first == second, model != "ConnectivityReport", "{model}");
    }
}

#[test]
fn hosts_in_other_segments_reply_only_to_pings() {
    let all = machines("{network: 10.0.0.0/27, groups: [{name: node}]}", 21);
    let reports = connectivity(&all[0], &all[20..]);
    assert_eq!(reports[0].l2_connectivity, List(None));
    assert!(reports[0].l3_connectivity.iter().all(|ping| ping.successful));
}

#[test]
fn unknown_hosts_do_not_reply() {
    let strangers = machines("{network: 10.99.0.0/24, groups: [{name: stranger}]}", 1);
    let reports = connectivity(&usual(), &strangers);
    assert_eq!(reports[0].l2_connectivity, List(None));
    let pings: Vec<_> = reports[0].l3_connectivity.iter().collect();
    assert!(pings.len() == 1 && !pings[0].successful);
}

#[test]
fn reply_from_another_mac_address_is_a_failure() {
    let all = machines("groups: [{name: node}]", 2);
    let StepRequest::ConnectivityCheck(mut hosts) = hosts_to_check(&all[1..]) else { panic!() };
    hosts
        .iter_mut()
        .flat_map(|host| host.nics.iter_mut())
        .for_each(|nic| nic.mac = "52:54:00:00:00:99".to_owned());
    let ReplyPayload::Connectivity(report) = output(&all[0], StepRequest::ConnectivityCheck(hosts)) else {
        panic!()
    };
    let remote = report.remote_hosts.iter().next().unwrap();
    assert!(remote.l2_connectivity.iter().all(|link| !link.successful));
}

#[test]
fn large_packets_need_a_large_mtu_on_both_sides() {
    let yaml = "groups: [{name: large, count: 2, interfaces: [{mtu: 9000}]}, {name: small}]";
    let all = machines(yaml, 3);
    let reports = connectivity(&all[0], &all[1..]);
    let successful = |machine: &SimulatedMachine| {
        let id = machine.id().to_string();
        let report = reports.iter().find(|report| report.host_id == id).unwrap();
        report.mtu_report.iter().map(|mtu| mtu.mtu_successful).collect::<Vec<_>>()
    };
    assert_eq!((successful(&all[1]), successful(&all[2])), (vec![true], vec![false]));
}

#[test]
fn unplugged_host_has_no_address_and_reaches_nothing() {
    let machine = faulty(Fault::UnpluggedLink);
    let report = machine.inventory_report();
    let interface = report.interfaces.iter().next().unwrap();
    assert!(!interface.has_carrier && interface.ipv4_addresses.is_empty());
    assert!(report.routes.is_empty());
    let reports = connectivity(&machine, &machines("groups: [{name: usual}]", 1));
    assert!(reports[0].l3_connectivity.iter().all(|ping| !ping.successful));
    let ntp = ntp_states(&machine, "");
    assert_eq!(ntp, ["unreachable"]);
}

#[test]
fn address_is_on_the_first_connected_interface() {
    let yaml =
        "groups: [{name: a, interfaces: [{name: eth0, connected: false}, {name: eth1}, {name: eth2}]}]";
    let report = machines(yaml, 1)[0].inventory_report();
    let interfaces: Vec<_> =
        report.interfaces.iter().map(|it| (it.has_carrier, it.ipv4_addresses.len())).collect();
    assert_eq!(interfaces, [(false, 0), (true, 1), (true, 0)]);
    assert_eq!(report.routes.iter().next().unwrap().interface, "eth1");
}

#[test]
fn packet_loss_is_reported() {
    let reports = connectivity(&faulty(Fault::PacketLoss), &machines("groups: [{name: usual}]", 1));
    assert!(reports[0].l3_connectivity.iter().all(|ping| ping.packet_loss_percentage > 0.0));
}

#[test]
fn high_latency_is_measured_by_the_faulty_host_only() {
    let usual = || machines("groups: [{name: usual}]", 1);
    let times = |machine: &SimulatedMachine, others: &[SimulatedMachine]| {
        let reports = connectivity(machine, others);
        reports[0]
            .l3_connectivity
            .iter()
            .map(|ping| (ping.successful, ping.average_rtt_ms))
            .collect::<Vec<_>>()
    };
    let pings = times(&faulty(Fault::HighLatency), &usual());
    assert!(pings[0].0 && (1500.0..1501.0).contains(&pings[0].1), "{pings:?}");
    let all = machines("groups: [{name: a, count: 1}, {name: b, faults: [high-latency]}]", 2);
    assert!(times(&all[0], &all[1..])[0].1 < 1.0);
}

#[test]
fn isolated_host_and_others_do_not_reach_each_other() {
    let yaml = "groups: [{name: a, count: 2, interfaces: [{mtu: 9000}]}, {name: b, faults: [isolated]}]";
    let all = machines(yaml, 3);
    for (from, to) in [(2, 0..2), (0, 2..3)] {
        for report in connectivity(&all[from], &all[to]) {
            assert_eq!((report.l2_connectivity, report.mtu_report), (List(None), List(None)));
            assert!(report.l3_connectivity.iter().all(|ping| !ping.successful));
        }
    }
    // The host still has an address and a gateway, and treats its own address as used.
    assert!(all[2].inventory_report().addresses().next().is_some());
    let free = free_addresses(&all[2]);
    assert!(free.contains(&"192.168.111.11".to_owned()));
    assert!(!free.contains(&"192.168.111.13".to_owned()) && !free.contains(&"192.168.111.1".to_owned()));
    assert!(free_addresses(&all[0]).contains(&"192.168.111.13".to_owned()));
    assert_eq!(ntp_states(&all[2], ""), ["synced"]);
}

#[test]
fn two_mac_addresses_reply_for_a_collided_address() {
    let all = machines("groups: [{name: a, count: 1}, {name: b, faults: [address-collision]}]", 3);
    let reports = connectivity(&all[0], &all[1..]);
    for (report, other) in all[1..].iter().map(|other| {
        let id = other.id().to_string();
        (reports.iter().find(|report| report.host_id == id).unwrap(), other.inventory_report())
    }) {
        let own = other.interfaces.iter().next().unwrap().mac_address.clone();
        let links: Vec<_> = report.l2_connectivity.iter().collect();
        assert_eq!(links.len(), 2);
        assert!(links[0].remote_mac < links[1].remote_mac);
        assert!(links.iter().all(|link| link.remote_ip_address == address(&other)));
        assert!(links.iter().all(|link| link.successful == (link.remote_mac == own)));
        assert!(links.iter().any(|link| link.successful));
    }
    // The faulty host itself does not notice the collision.
    assert_eq!(connectivity(&all[1], &all[..1])[0].l2_connectivity.len(), 1);
}

#[test]
fn host_without_default_route_keeps_its_address() {
    let report = faulty(Fault::NoDefaultRoute).inventory_report();
    assert!(report.routes.is_empty() && report.addresses().next().is_some());
    assert_eq!(usual().inventory_report().routes.len(), 1);
}

#[test]
fn dns_faults_change_which_names_are_resolved() {
    let queries =
        ["api.c.example.com", "validateNoWildcardDNS.c.example.com.", "validateNoWildcardDNS.c.example.com"];
    for (fault, expected) in [(Fault::NoDns, [0, 0, 0]), (Fault::WildcardDns, [1, 1, 1])] {
        let ReplyPayload::Domains(report) = output(&faulty(fault), names(&queries)) else { panic!() };
        let counts: Vec<_> = report.resolutions.iter().map(|it| it.ipv4_addresses.len()).collect();
        assert_eq!(counts, expected, "{fault}");
        assert!(report.resolutions.iter().all(|it| it.cnames.len() == it.ipv4_addresses.len()));
    }
}

#[test]
fn used_virtual_addresses_are_neither_verified_nor_free() {
    let machine = faulty(Fault::VipsInUse);
    let request = vips(&["192.168.111.5", "192.168.111.250", "fd00::5"]);
    let ReplyPayload::Vips(verified) = output(&machine, request) else { panic!() };
    assert!(verified.iter().all(|vip| serde_json::to_value(&vip.verification).unwrap() == "failed"));
    let free = free_addresses(&machine);
    assert_eq!(free.len(), 256 - 3 - 1 - 9);
    assert!(!free.contains(&"192.168.111.2".to_owned()) && !free.contains(&"192.168.111.10".to_owned()));
}

fn free_addresses(machine: &SimulatedMachine) -> Vec<String> {
    let request = StepRequest::FreeAddresses(vec!["192.168.111.0/24".to_owned()].into());
    let ReplyPayload::FreeAddresses(networks) = output(machine, request) else { panic!() };
    networks.iter().next().unwrap().free_addresses.iter().map(ToString::to_string).collect()
}

#[test]
fn free_addresses_exclude_hosts_and_gateways() {
    let all = machines("groups: [{name: node}]", 3);
    let request = StepRequest::FreeAddresses(vec!["192.168.111.0/24".to_owned()].into());
    let ReplyPayload::FreeAddresses(networks) = output(&all[0], request) else { panic!() };
    let free: Vec<_> = networks.iter().next().unwrap().free_addresses.iter().map(Text::as_str).collect();
    assert_eq!(free.len(), 256 - 3 - 1);
    for used in ["192.168.111.1", "192.168.111.11", "192.168.111.13"] {
        assert!(!free.contains(&used), "{used}");
    }
    assert!(free.contains(&"192.168.111.0") && free.contains(&"192.168.111.5"));
    let large = StepRequest::FreeAddresses(vec!["10.0.0.0/8".to_owned()].into());
    let ReplyPayload::FreeAddresses(networks) = output(&all[0], large) else { panic!() };
    assert_eq!(networks.iter().next().unwrap().free_addresses.len(), 8000);
    for invalid in ["", "10.0.0.1/8", "10.0.0.0/33", "fd00::/64"] {
        let request = StepRequest::FreeAddresses(vec![invalid.to_owned()].into());
        assert_eq!(run(&all[0], request).unwrap_err().exit_code(), ExitCode::INVALID, "{invalid}");
    }
}

fn vips(addresses: &[&str]) -> StepRequest {
    let vip = |address: &&str| VipToVerify { vip: (*address).to_owned(), vip_type: VipType::Api };
    StepRequest::Vips(addresses.iter().map(vip).collect())
}

#[test]
fn used_virtual_addresses_fail_the_verification() {
    let all = machines("groups: [{name: node}]", 3);
    let request = vips(&["192.168.111.5", "192.168.111.12", "192.168.111.1", "fd00::5"]);
    let ReplyPayload::Vips(verified) = output(&all[0], request) else { panic!() };
    let results: Vec<_> =
        verified.iter().map(|vip| serde_json::to_value(&vip.verification).unwrap()).collect();
    assert_eq!(results, ["succeeded", "failed", "failed", "succeeded"]);
}

fn ntp_states(machine: &SimulatedMachine, added: &str) -> Vec<String> {
    let request = StepRequest::Ntp(NtpRequest { ntp_source: added.to_owned() });
    let ReplyPayload::Ntp(report) = output(machine, request) else { panic!() };
    report.ntp_sources.iter().map(|source| source.source_state.to_string()).collect()
}

#[test]
fn time_servers_are_synchronized() {
    assert_eq!(ntp_states(&usual(), "ntp1.example.com, 192.0.2.1"), ["synced", "combined", "combined"]);
    assert_eq!(ntp_states(&faulty(Fault::NoNtp), "ntp1.example.com"), ["unreachable", "unreachable"]);
    let request = StepRequest::Ntp(NtpRequest { ntp_source: "a b".to_owned() });
    assert_eq!(run(&usual(), request).unwrap_err().exit_code(), ExitCode::INVALID);
}

fn names(names: &[&str]) -> StepRequest {
    let name = |name: &&str| DomainName { domain_name: (*name).to_owned() };
    StepRequest::Domains(DomainRequest { domains: names.iter().map(name).collect() })
}

#[test]
fn names_are_resolved_in_their_order() {
    let queries = [
        "api.c.example.com",
        "api-int.c.example.com",
        "console-openshift-console.apps.c.example.com",
        "validateNoWildcardDNS.c.example.com.",
        "validateNoWildcardDNS.c.example.com",
        "quay.io",
    ];
    let ReplyPayload::Domains(report) = output(&usual(), names(&queries)) else { panic!() };
    let resolved: Vec<_> = report.resolutions.iter().map(|it| it.domain_name.as_str()).collect();
    assert_eq!(resolved, queries);
    let counts: Vec<_> = report.resolutions.iter().map(|it| it.ipv4_addresses.len()).collect();
    assert_eq!(counts, [1, 1, 1, 0, 0, 1]);
}

fn disk_speed(path: &str) -> StepRequest {
    StepRequest::DiskSpeed(DiskSpeedRequest { path: path.to_owned(), timeout: Duration::from_secs(480) })
}

#[test]
fn disk_speed_follows_from_the_description() {
    let machine =
        machines("groups: [{name: a, disks: [{name: sda, sync_ms: 3}, {name: sdb, sync_ms: 9}]}]", 1)
            .remove(0);
    let by_id = machine.inventory_report().disks.iter().nth(1).unwrap().id.clone();
    for (path, time) in [("/dev/sda", 3), (by_id.as_str(), 9)] {
        let ReplyPayload::DiskSpeed(report) = output(&machine, disk_speed(path)) else { panic!() };
        assert_eq!((report.path.as_str(), report.io_sync_duration), (path, time));
    }
    let ReplyPayload::DiskSpeed(report) = output(&faulty(Fault::SlowDisk), disk_speed("/dev/sda")) else {
        panic!()
    };
    assert_eq!(report.io_sync_duration, 50);
    for (machine, path) in [(faulty(Fault::BrokenDisk), "/dev/sda"), (usual(), "/dev/sdz")] {
        let failure = run(&machine, disk_speed(path)).unwrap_err();
        assert_eq!(failure.exit_code(), ExitCode::FAILED);
        let Some(ReplyPayload::DiskSpeed(report)) = failure.output() else { panic!() };
        assert_eq!(report.path, path);
    }
}

fn images(timeout: i64) -> StepRequest {
    let images = ["quay.io/a:1", "quay.io/b:2", "quay.io/c:3"].map(str::to_owned).to_vec();
    StepRequest::Images(ImagesRequest { images: images.into(), timeout })
}

#[test]
fn image_downloads_take_time_by_size_and_rate() {
    let machine = machines("{download_mb_per_second: 10, groups: [{name: a}]}", 1).remove(0);
    let ReplyPayload::Images(report) = output(&machine, images(960)) else { panic!() };
    for image in report.images.iter() {
        assert_eq!(image.result, "success");
        assert!((200e6..600e6).contains(&image.size_bytes));
        assert!((image.size_bytes / 1e6 / image.time - 10.0).abs() < 1e-6);
    }
    // The download of an image takes at least 20 seconds, so it exceeds a timeout of 15 seconds.
    for (machine, timeout) in [(machine, 15), (faulty(Fault::NoImages), 960)] {
        let failure = run(&machine, images(timeout)).unwrap_err();
        assert_eq!(failure.exit_code(), ExitCode::IMAGE_UNAVAILABLE);
        let Some(ReplyPayload::Images(report)) = failure.output() else { panic!() };
        assert!(report.images.iter().all(|image| image.result == "failure"));
    }
}

#[test]
fn faults_change_reports() {
    let report = |fault| faulty(fault).inventory_report();
    assert_eq!(report(Fault::LittleMemory).memory.unwrap().physical_bytes, 4 << 30);
    assert_eq!(report(Fault::SmallDisk).disks.iter().next().unwrap().size_bytes, 10_000_000_000);
    assert_eq!(report(Fault::InvalidHostname).hostname, "localhost");
    assert_eq!(report(Fault::DuplicateHostname).hostname, "usual-1");
    assert!(serde_json::to_string(&report(Fault::ReportTooLarge)).unwrap().len() > 1 << 20);
    let request = StepRequest::Inventory(InventoryRequest {
        host_id: HostId::fresh(),
        output_max_size: None,
        disk_min_size: None,
    });
    assert!(matches!(output(&faulty(Fault::InvalidReport), request), ReplyPayload::Text(_)));
    let behind = usual().unix_time() - faulty(Fault::WrongClock).unix_time();
    assert!((1799..=1800).contains(&behind), "{behind}");
}

fn inventory(machine: &SimulatedMachine, output: Option<u64>, disk: Option<u64>) -> InventoryReport<'static> {
    let request = InventoryRequest { host_id: machine.id(), output_max_size: output, disk_min_size: disk };
    match self::output(machine, StepRequest::Inventory(request)) {
        ReplyPayload::Inventory(report) => *report,
        other => panic!("{other:?}"),
    }
}

#[test]
fn report_respects_the_limits_of_the_request() {
    let yaml =
        "groups: [{name: a, cpu_flags: [vmx], disks: [{name: sda, size_gb: 10}, {name: sdb, size_gb: 20}]}]";
    let machine = machines(yaml, 1).remove(0);
    let names = |report: &InventoryReport<'_>| {
        report.disks.iter().map(|disk| disk.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(&inventory(&machine, None, Some(10_000_000_000))), ["sda", "sdb"]);
    assert_eq!(names(&inventory(&machine, None, Some(10_000_000_001))), ["sdb"]);
    let length = |report: &InventoryReport<'_>| serde_json::to_string(report).unwrap().len();
    let complete = inventory(&machine, Some(1 << 20), None);
    assert_eq!(complete, machine.inventory_report());
    let long = faulty(Fault::ReportTooLarge);
    for (machine, limit, kind) in [(&long, 4000, "partial"), (&machine, 1000, "full")] {
        let report = inventory(machine, Some(limit), None);
        assert!(length(&report) <= usize::try_from(limit).unwrap(), "{}", length(&report));
        assert_eq!(report.truncation.unwrap().kind, kind);
    }
}

#[test]
fn duplicate_hostname_fault_copies_the_name_of_another_host() {
    let yaml = "groups: [{name: a}]";
    let site = SimulatedSite::new(profile(yaml), 5, 1).unwrap().with_fault(Fault::DuplicateHostname, 2);
    let names: Vec<_> =
        Arc::new(site).machines().map(|machine| machine.inventory_report().hostname).collect();
    assert_eq!(names.iter().filter(|name| *name == "a-1").count(), 3, "{names:?}");
}

#[test]
fn equal_seeds_produce_equal_reports() {
    let reports = |seed| {
        let site = SimulatedSite::new(profile("groups: [{name: a}]"), 20, seed).unwrap();
        let site = Arc::new(site.with_fault(Fault::LittleMemory, 5));
        site.machines().map(|machine| machine.inventory_report()).collect::<Vec<_>>()
    };
    assert_eq!(reports(4), reports(4));
    assert_ne!(reports(4), reports(5));
}

#[test]
fn installation_is_refused() {
    let id = "4f630ba3-0297-4d99-a7c7-f62e7bca1332";
    let arguments = json!({
        "boot_device": "/dev/sda", "cluster_id": id, "controller_image": "c", "host_id": id, "infra_env_id": id,
        "installer_image": "i", "role": "master",
    });
    let request = StepRequest::Install(Box::new(serde_json::from_value(arguments).unwrap()));
    let failure = run(&usual(), request).unwrap_err();
    assert_eq!(failure.message(), "simulated hosts do not support the step install");
    let reclaim = StepRequest::RebootForReclaim(ReclaimRequest { host_fs_mount_dir: "/host".to_owned() });
    assert_eq!(run(&usual(), reclaim).unwrap(), StepOutcome::Rebooting);
}

/// Returns the output of each step with a report, and the name of the upstream model for it.
fn outputs_of(all: &[SimulatedMachine]) -> Vec<(&'static str, Value)> {
    let text = str::to_owned;
    let requests = [
        ("ConnectivityReport", hosts_to_check(&all[1..])),
        ("list[FreeNetworkAddresses]", StepRequest::FreeAddresses(vec![text("192.168.111.0/24")].into())),
        (
            "DhcpAllocationResponse",
            StepRequest::DhcpLeases(DhcpRequest {
                api_vip_lease: String::new(),
                api_vip_mac: text("00:1a:4a:00:00:01"),
                ingress_vip_lease: String::new(),
                ingress_vip_mac: text("00:1a:4a:00:00:02"),
                interface: text("eth0"),
            }),
        ),
        ("NtpSynchronizationResponse", StepRequest::Ntp(NtpRequest { ntp_source: text("192.0.2.1") })),
        ("DomainResolutionResponse", names(&["api.c.example.com", "validateNoWildcardDNS.c.example.com"])),
        (
            "ApiVipConnectivityResponse",
            StepRequest::ApiVip(Box::new(ApiVipRequest {
                ca_certificate: None,
                ignition_endpoint_token: None,
                request_headers: Vec::new(),
                url: text("https://api-int.c.example.com:22623/config/worker"),
                verify_cidr: false,
            })),
        ),
        (
            "TangConnectivityResponse",
            StepRequest::Tang(TangRequest {
                tang_servers: text(r#"[{"url":"http://tang:7500","thumbprint":"abc"}]"#),
            }),
        ),
        ("list[VerifiedVip]", vips(&["192.168.111.5", "192.168.111.12"])),
        ("DiskSpeedCheckResponse", disk_speed("/dev/sda")),
        ("ContainerImageAvailabilityResponse", images(960)),
        ("UpgradeAgentResponse", StepRequest::Upgrade(UpgradeRequest { agent_image: text("quay.io/a:2") })),
        (
            "Inventory",
            StepRequest::Inventory(InventoryRequest {
                host_id: all[0].id(),
                output_max_size: None,
                disk_min_size: None,
            }),
        ),
    ];
    let value = |request| serde_json::from_str(&output(&all[0], request).to_output().unwrap()).unwrap();
    let artifacts = StepRequest::BootArtifacts(BootArtifactsRequest {
        host_fs_mount_dir: text("/host"),
        initrd_url: Secret::new("i"),
        kernel_url: Secret::new("k"),
        rootfs_url: Secret::new("r"),
    });
    assert!(matches!(output(&all[0], artifacts), ReplyPayload::Text(_)));
    requests.into_iter().map(|(model, request)| (model, value(request))).collect()
}

#[test]
fn generated_client_models_accept_all_outputs() {
    let documents = outputs_of(&machines("groups: [{name: node, interfaces: [{mtu: 9000}]}]", 3));
    let Some(folder) = env::var_os("KINDLING_CLIENTS") else {
        report_missing("KINDLING_CLIENTS is not set");
        return;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../assisted/tests/upstream_models.py");
    let mut program = Command::new(PathBuf::from(folder).join("python"))
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: String = documents.iter().map(|document| format!("{}\n", json!(document))).collect();
    program.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let result = program.wait_with_output().unwrap();
    let (found, log) = (String::from_utf8_lossy(&result.stdout), String::from_utf8_lossy(&result.stderr));
    assert!(result.status.success(), "{log}");
    assert_eq!(found, "");
    assert_eq!(log, format!("{} documents were read\n", documents.len()));
}
