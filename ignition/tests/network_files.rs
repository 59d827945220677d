//! The network files of hosts in images: their contents and paths, which depend only on the hosts.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod network;
#[path = "../../tests/support/skip.rs"]
mod skip;

use std::io::Write as _;
use std::process::{Command, Stdio};

use ignition::discovery::Proxies;
use ignition::network::{
    EntryKind, HostError, HostNetwork, HostNetworkFiles, InitrdOptions, KeyfileCache, NetworkEntry,
    NetworkGeneration, keyfiles,
};
use network::{BOND, PAIR, VLAN, host, mac, texts};
use proptest::prelude::*;
use skip::report_missing;

/// Path of the early-boot script in an image.
const SCRIPT_PATH: &str = "/usr/local/bin/pre-network-manager-config.sh";

fn cached_host_count(cache: &KeyfileCache) -> usize {
    let text = format!("{cache:?}");
    let (_, rest) = text.split_once("hosts: ").unwrap();
    rest.split_once(',').unwrap().0.parse().unwrap()
}

fn generate(hosts: &[HostNetwork], generation: NetworkGeneration) -> HostNetworkFiles {
    HostNetworkFiles::generate(hosts, generation, &KeyfileCache::default()).unwrap()
}

fn initrd(hosts: &[HostNetwork], generation: NetworkGeneration) -> Vec<NetworkEntry> {
    generate(hosts, generation).initrd_entries(&InitrdOptions::default())
}

fn mode(entry: &NetworkEntry) -> u16 {
    match &entry.kind {
        EntryKind::File { mode, .. } => *mode,
        EntryKind::Link { .. } => 0o777,
    }
}

#[test]
fn archive_contains_the_keyfiles() {
    let entries = initrd(&[host(VLAN, 16)], NetworkGeneration::Keyfiles);
    let listed: Vec<String> =
        entries.iter().map(|entry| format!("{:04o} {}", mode(entry), entry.path)).collect();
    let expected = [
        "0600 /etc/assisted/network/host0/eth0.2507.nmconnection",
        "0600 /etc/assisted/network/host0/eth0.nmconnection",
        "0600 /etc/assisted/network/host0/eth1.2507.nmconnection",
        "0600 /etc/assisted/network/host0/eth1.nmconnection",
        "0600 /etc/assisted/network/host0/mac_interface.ini",
        "0755 /usr/local/bin/pre-network-manager-config.sh",
        "0644 /etc/systemd/system/pre-network-manager-config.service",
        "0777 /etc/systemd/system/initrd.target.wants/pre-network-manager-config.service",
    ];
    assert_eq!(listed, expected);
    let texts = texts(&entries);
    let file = |name: &str| texts[format!("/etc/assisted/network/host0/{name}").as_str()];
    assert_eq!(file("mac_interface.ini"), format!("{}=eth0\n{}=eth1", mac(16), mac(17)));
    let connection = "[connection]\nautoconnect=true\nautoconnect-slaves=-1\nid=eth1\ninterface-name=eth1\n\
        type=802-3-ethernet\nuuid=0523c0a1-5f5e-5603-bcf2-68155d5d322e\nautoconnect-priority=1\n\n";
    assert!(file("eth1.nmconnection").starts_with(connection), "{}", file("eth1.nmconnection"));
    assert!(file("eth1.nmconnection").ends_with("method=disabled\n"));
    let unit = texts["/etc/systemd/system/pre-network-manager-config.service"];
    for line in [
        "After=systemd-udev-settle.service",
        "Before=coreos-copy-firstboot-network.service",
        "RemainAfterExit=yes",
    ] {
        assert!(unit.lines().any(|it| it == line), "{line}: {unit}");
    }
    assert!(unit.contains(SCRIPT_PATH) && !unit.contains("TimeoutSec"));
    assert_eq!(
        texts["/etc/systemd/system/initrd.target.wants/pre-network-manager-config.service"],
        "/etc/systemd/system/pre-network-manager-config.service"
    );
}

#[test]
fn archive_contains_the_policies() {
    let networks = generate(&[host(BOND, 16), host(PAIR, 32)], NetworkGeneration::Nmstate);
    let entries =
        networks.initrd_entries(&InitrdOptions { discovery_delay_seconds: 7, ..InitrdOptions::default() });
    let texts = texts(&entries);
    let hosts: Vec<&&str> = texts.keys().filter(|path| path.starts_with("/etc/assisted")).collect();
    let expected =
        ["host0/mac_interface.ini", "host0/ymlFile0.yml", "host1/mac_interface.ini", "host1/ymlFile1.yml"];
    assert_eq!(
        hosts,
        expected.map(|name| format!("/etc/assisted/network/{name}")).iter().collect::<Vec<_>>()
    );
    let policy = texts["/etc/assisted/network/host0/ymlFile0.yml"];
    assert!(
        policy.starts_with("capture:\n  iface0: interfaces.mac-address == \"52:54:00:AA:00:10\"\n"),
        "{policy}"
    );
    let unit = texts["/etc/systemd/system/pre-network-manager-config.service"];
    let lines = [
        "After=nm-initrd.service systemd-udev-settle.service",
        "Before=coreos-livepxe-rootfs.service",
        "Environment=DISCOVERY_DELAY_SECONDS=7",
        "TimeoutSec=67",
    ];
    assert!(lines.iter().all(|line| unit.lines().any(|it| it == *line)), "{unit}");
}

#[test]
fn ignition_config_contains_the_same_files() {
    for generation in [NetworkGeneration::Keyfiles, NetworkGeneration::Nmstate] {
        let networks = generate(&[host(BOND, 16), host(PAIR, 32)], generation);
        let (ignition, initrd) =
            (networks.ignition_files(), networks.initrd_entries(&InitrdOptions::default()));
        let data = |entries: &[NetworkEntry]| -> Vec<NetworkEntry> {
            entries
                .iter()
                .filter(|it| it.path.starts_with("/etc/assisted") || it.path == SCRIPT_PATH)
                .cloned()
                .collect()
        };
        let mut ours = data(&ignition.files);
        ours.rotate_left(1);
        assert_eq!(ours, data(&initrd));
        assert_eq!(ours.len(), ignition.files.len());
        let unit = ignition.unit.unwrap();
        let before = match generation {
            NetworkGeneration::Keyfiles => "Before=NetworkManager.service",
            NetworkGeneration::Nmstate => "Before=nmstate.service",
        };
        assert!(unit.contents.contains(before) && unit.contents.contains("WantedBy=multi-user.target"));
        let mut config = ignition::builder::ConfigBuilder::new();
        config.add_unit(unit.name, unit.contents, ignition::builder::UnitState::Enabled).unwrap();
        let json = config.to_installer_json().unwrap().unwrap();
        assert_eq!(ignition::lint::check(&json).to_text("unit"), "");
    }
}

#[test]
fn proxies_without_networks_result_in_an_archive() {
    let none = generate(&[], NetworkGeneration::Keyfiles);
    assert_eq!(none.initrd_entries(&InitrdOptions::default()), []);
    assert_eq!((none.ignition_files().files.len(), none.ignition_files().unit), (0, None));
    let proxies = Proxies::parse("http://u%40x:p@10.0.0.1:3128", "", ".lab").unwrap();
    let url = "http://u%%40x:p@10.0.0.1:3128";
    let expected = format!(
        "[Service]\nEnvironment=\"HTTP_PROXY={url}\"\nEnvironment=\"http_proxy={url}\"\n\
         Environment=\"NO_PROXY=.lab\"\nEnvironment=\"no_proxy=.lab\"\n"
    );
    let entries = none.initrd_entries(&InitrdOptions { proxies, ..InitrdOptions::default() });
    let [entry] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!(entry.path, "/etc/systemd/system/coreos-livepxe-rootfs.service.d/10-proxy.conf");
    assert_eq!(mode(entry), 0o664);
    assert_eq!(texts(&entries).into_values().collect::<Vec<_>>(), [expected]);
}

#[test]
fn errors_name_the_first_failing_host() {
    let error = |hosts: &[HostNetwork]| {
        HostNetworkFiles::generate(hosts, NetworkGeneration::Keyfiles, &KeyfileCache::default()).unwrap_err()
    };
    let bad = host("interfaces: 7", 16);
    assert_eq!(
        error(&[host(PAIR, 1), bad.clone().with_name("b.yaml"), bad.clone()]).to_string(),
        "network of b.yaml"
    );
    assert_eq!(error(&[host(PAIR, 1), bad]).to_string(), "network of host 2");
    assert!(matches!(error(&[host("interfaces: []", 1)]), HostError::NoInterfaces { .. }));
    assert!(matches!(error(&[HostNetwork::without_macs(PAIR)]), HostError::NoMacs { .. }));
    let twice = "interfaces:\n- {name: eth0, type: ethernet, profile-name: a}\n- {name: eth1, type: ethernet, profile-name: a}\n";
    let error = error(&[host(twice, 1)]);
    assert_eq!(
        error.to_string(),
        "the network of host 1 produces two keyfiles with the name \"a.nmconnection\""
    );
}

#[test]
fn hosts_are_generated_once() {
    let cache = KeyfileCache::default();
    let mut hosts = vec![host(PAIR, 16), host(BOND, 32), host(PAIR, 16).with_name("again")];
    let first = HostNetworkFiles::generate(&hosts, NetworkGeneration::Keyfiles, &cache).unwrap();
    assert_eq!((first.host_count(), cached_host_count(&cache)), (2, 2));
    hosts.push(host(VLAN, 48));
    let second = HostNetworkFiles::generate(&hosts, NetworkGeneration::Keyfiles, &cache).unwrap();
    assert_eq!((second.host_count(), cached_host_count(&cache)), (3, 3));
    let fresh = initrd(&hosts, NetworkGeneration::Keyfiles);
    assert_eq!(second.initrd_entries(&InitrdOptions::default()), fresh);
    // Both sets contain the same cached object, not two equal objects.
    let contents = |networks: &HostNetworkFiles, name: &str| {
        let entry = networks
            .initrd_entries(&InitrdOptions::default())
            .into_iter()
            .find(|it| it.path.contains(name))
            .unwrap();
        let EntryKind::File { contents, .. } = entry.kind else { panic!("{name} is not a file") };
        contents.as_ptr()
    };
    assert_eq!(contents(&first, "bond0.nm"), contents(&second, "bond0.nm"));
    let report = ignition::network::check::check_hosts(&hosts[1..], &<_>::default(), &cache);
    assert_eq!(report.findings(), []);
    assert_eq!(cached_host_count(&cache), 3);
}

/// Runs `nmcli`, which reads a keyfile and writes it again without a daemon.
fn nmcli(keyfile: &str) -> Option<Result<String, String>> {
    let mut command = Command::new("nmcli");
    command.args(["--offline", "connection", "modify", "connection.zone", "checked"]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        report_missing("nmcli is not installed");
        return None;
    };
    child.stdin.take().unwrap().write_all(keyfile.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    // `nmcli` warns about unknown settings and continues.
    let is_good = output.status.success() && output.stderr.is_empty();
    Some(if is_good { Ok(text(output.stdout)) } else { Err(text(output.stderr)) })
}

/// Documents with all supported kinds of interfaces.
const KINDS: &[&str] = &[
    BOND,
    VLAN,
    PAIR,
    "interfaces: [{name: eth0, type: ethernet, state: up, mtu: 9000, mac-address: '52:54:00:aa:bb:cc', identifier: mac-address, ipv4: {enabled: true, dhcp: true, auto-dns: false, auto-route-metric: 50}, ipv6: {enabled: true, dhcp: true, autoconf: true}}]
dns-resolver: {config: {search: [lab.example.com, example.com], server: ['2001:db8::53', 192.0.2.53]}}",
    "interfaces:
- {name: eth0, type: ethernet, state: up, ipv6: {enabled: true, address: [{ip: '2001:db8::5', prefix-length: 64}, {ip: '2001:db8:1::5', prefix-length: 48}]}}
routes: {config: [{destination: '::/0', next-hop-address: 'fe80::1', next-hop-interface: eth0, metric: 90, table-id: 100}]}
route-rules: {config: [{ip-from: '2001:db8::/64', route-table: 100, priority: 5}, {ip-to: '2001:db8:1::/48', route-table: 100}]}",
    "interfaces:
- {name: br0, type: linux-bridge, state: up, bridge: {options: {stp: {enabled: false}}, port: [{name: eth0, vlan: {mode: trunk, trunk-tags: [{id: 101}, {id-range: {min: 200, max: 300}}]}}]}, ipv4: {enabled: true, dhcp: true}}
- {name: eth0, type: ethernet, state: up}",
    "interfaces:
- {name: ovs0, type: ovs-interface, state: up, ipv4: {enabled: true, dhcp: true}}
- {name: br-ex, type: ovs-bridge, state: up, bridge: {port: [{name: ovs0}, {name: eth0}]}}
- {name: eth0, type: ethernet, state: up}",
    "interfaces:
- {name: vrf0, type: vrf, state: up, vrf: {port: [eth0], route-table-id: 7}}
- {name: eth0, type: ethernet, state: up, ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 24}]}}
- {name: d0, type: dummy, state: up}
- {name: mv0, type: mac-vlan, state: up, mac-vlan: {base-iface: eth0, mode: bridge, promiscuous: true}}
- {name: vx0, type: vxlan, state: up, vxlan: {base-iface: eth0, id: 9, remote: 192.0.2.20}}",
    "interfaces:
- name: bond1
  type: bond
  state: up
  link-aggregation: {mode: 802.3ad, options: {miimon: 100, lacp_rate: fast, xmit_hash_policy: layer3+4}, port: [eth0, eth1]}
  ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 24}]}",
];

#[test]
fn network_manager_reads_all_keyfiles() {
    let mut count = 0;
    for document in KINDS {
        let own = keyfiles(document.as_bytes()).unwrap();
        let networks = initrd(&[host(document, 16)], NetworkGeneration::Keyfiles);
        let shipped = texts(&networks).into_iter().filter(|(path, _)| path.ends_with(".nmconnection"));
        let shipped = shipped.map(|(path, text)| (path.to_owned(), text.to_owned()));
        for (name, text) in own.into_iter().map(|it| (it.name, it.contents)).chain(shipped) {
            let Some(answer) = nmcli(&text) else { return };
            let again = answer.unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
            for key in ["id", "uuid"] {
                let line = text.lines().find(|line| line.starts_with(&format!("{key}="))).unwrap();
                assert!(again.lines().any(|it| it == line), "{name}: {line}\n{again}");
            }
            let addresses = |text: &str| text.lines().filter(|line| line.starts_with("address")).count();
            assert_eq!(addresses(&again), addresses(&text), "{name}: {again}");
            let shipped = name.contains('/');
            assert_eq!(again.contains("autoconnect-priority=1\n"), shipped, "{name}: {again}");
            count += 1;
        }
    }
    assert!(count > 40);
    // `nmcli` must reject an invalid keyfile.
    assert!(nmcli("[connection]\nid=a\ntype=802-3-ethernet\n[ipv4]\nmethod=sideways\n").unwrap().is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn order_of_hosts_does_not_change_the_result(order in Just((0..12).collect::<Vec<usize>>()).prop_shuffle(), nmstate: bool) {
        let generation = if nmstate { NetworkGeneration::Nmstate } else { NetworkGeneration::Keyfiles };
        let documents = [PAIR, BOND, VLAN];
        let hosts = |order: &[usize]| -> Vec<HostNetwork> {
            order.iter().map(|number| host(documents[number % 3], 16 * number).with_name(format!("{order:?}"))).collect()
        };
        let sorted: Vec<usize> = (0..12).collect();
        prop_assert_eq!(initrd(&hosts(&order), generation), initrd(&hosts(&sorted), generation));
    }
}
