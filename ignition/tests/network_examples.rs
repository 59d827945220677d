//! Documents and their expected results, which users of released agents rely on.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "test code")]

use std::error::Error;

use ignition::network::{
    EntryKind, HostNetwork, HostNetworkFiles, InitrdOptions, KeyfileCache, MacInterface, NetworkGeneration,
    keyfiles,
};

/// Creates a host whose map assigns the MAC addresses 52:54:00:aa:bb:01, 52:54:00:aa:bb:02 and so on to `names`.
fn host(document: &str, names: &[&str]) -> HostNetwork {
    let interface = |(number, name): (usize, &&str)| MacInterface {
        logical_nic_name: (*name).to_owned(),
        mac_address: format!("52:54:00:aa:bb:{:02x}", number + 1),
    };
    HostNetwork::from_unchecked(document, names.iter().enumerate().map(interface).collect())
}

/// Returns the text of one file of the first host in an initrd.
fn file(host: HostNetwork, generation: NetworkGeneration, name: &str) -> String {
    let networks = HostNetworkFiles::generate(&[host], generation, &KeyfileCache::default()).unwrap();
    let path = format!("/etc/assisted/network/host0/{name}");
    let entries = networks.initrd_entries(&InitrdOptions::default());
    let entry = entries.into_iter().find(|entry| entry.path == path).unwrap_or_else(|| panic!("no {path}"));
    let EntryKind::File { contents, .. } = entry.kind else { panic!("{path} is not a file") };
    String::from_utf8(contents.to_vec()).unwrap()
}

const STATIC: &str = "\
interfaces:
- name: eth0
  type: ethernet
  state: up
  ipv4: {enabled: true, dhcp: false, address: [{ip: 192.0.2.10, prefix-length: 24}]}
dns-resolver: {config: {search: [lab.example.com], server: [192.0.2.53]}}
routes:
  config: [{destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, next-hop-interface: eth0, table-id: 254}]
";

#[test]
fn static_address_name_server_and_route_are_in_the_keyfile() {
    let keyfile = file(host(STATIC, &["eth0"]), NetworkGeneration::Keyfiles, "eth0.nmconnection");
    let sections: Vec<Vec<&str>> = keyfile.trim_end().split("\n\n").map(|it| it.lines().collect()).collect();
    let expected = [
        vec![
            "[connection]",
            "autoconnect=true",
            "autoconnect-slaves=-1",
            "id=eth0",
            "interface-name=eth0",
            "type=802-3-ethernet",
            "uuid=dfd202f5-562f-5f07-8f2a-a7717756fb70",
            "autoconnect-priority=1",
        ],
        vec![
            "[ipv4]",
            "address0=192.0.2.10/24",
            "dhcp-timeout=2147483647",
            "dns=192.0.2.53",
            "dns-priority=40",
            "dns-search=lab.example.com",
            "method=manual",
            "route0=0.0.0.0/0,192.0.2.1,0",
            "route0_options=table=254",
        ],
        vec!["[ipv6]", "dhcp-timeout=2147483647", "method=disabled"],
    ];
    assert_eq!(sections, expected);
    let map = file(host(STATIC, &["eth0"]), NetworkGeneration::Keyfiles, "mac_interface.ini");
    assert_eq!(map, "52:54:00:aa:bb:01=eth0");
}

const BOND: &str = "\
interfaces:
- name: bond0
  type: bond
  state: up
  link-aggregation: {mode: active-backup, options: {miimon: '140'}, port: [eth0, eth1]}
- name: bond0.404
  type: vlan
  state: up
  vlan: {id: 404, base-iface: bond0}
  ipv4: {enabled: true, dhcp: false, address: [{ip: 198.51.100.20, prefix-length: 25}]}
  ipv6: {enabled: false}
- {name: eth0, type: ethernet, state: up}
- {name: eth1, type: ethernet, state: up}
dns-resolver: {config: {server: [198.51.100.2]}}
routes:
  config: [{destination: 0.0.0.0/0, next-hop-address: 198.51.100.1, next-hop-interface: bond0.404}]
";

#[test]
fn bond_and_its_vlan_have_keyfiles() {
    let keyfile = |name: &str| {
        file(host(BOND, &["eth0", "eth1"]), NetworkGeneration::Keyfiles, &format!("{name}.nmconnection"))
    };
    let has = |name: &str, lines: &[&str]| {
        let text = keyfile(name);
        assert!(lines.iter().all(|line| text.lines().any(|it| it == *line)), "{name}: {text}");
    };
    has("bond0", &["type=bond", "autoconnect-slaves=1", "uuid=925b4a95-2de0-5b2d-bcf5-8b684a7e9cb4"]);
    has("bond0", &["miimon=140", "mode=active-backup", "method=disabled"]);
    has("bond0.404", &["type=vlan", "uuid=51208365-6570-5e34-8be3-d5bcf2190cbd", "method=manual"]);
    has("bond0.404", &["flags=1", "id=404", "parent=bond0", "addr-gen-mode=0"]);
    has("eth1", &["master=bond0", "slave-type=bond", "uuid=0523c0a1-5f5e-5603-bcf2-68155d5d322e"]);
    assert!(!keyfile("eth0").contains("[ipv"), "{}", keyfile("eth0"));
}

#[test]
fn policy_names_interfaces_by_their_addresses() {
    let generation = NetworkGeneration::for_version("4.18.1");
    let policy = file(host(BOND, &["eth0", "eth1"]), generation, "ymlFile0.yml");
    for text in [
        "interfaces.mac-address == \"52:54:00:AA:BB:01\"",
        "interfaces.mac-address == \"52:54:00:AA:BB:02\"",
        "{{ capture.iface0.interfaces.0.name }}",
        "{{ capture.iface1.interfaces.0.name }}",
        "name: bond0.404",
        "next-hop-interface: bond0.404",
    ] {
        assert!(policy.contains(text), "{text}: {policy}");
    }
    assert!(!policy.contains("eth0"), "{policy}");
    // The document is a policy that contains a state. The generator accepts only a state.
    assert!(keyfiles(policy.as_bytes()).is_err());
    for version in ["4.18.0-rc.1", "", "4.17.9"] {
        assert_eq!(NetworkGeneration::for_version(version), NetworkGeneration::Keyfiles, "{version}");
    }
}

#[test]
fn rejects_settings_that_no_keyfile_can_express() {
    let refused = |interfaces: &str, rest: &str, expected: &str| {
        let document = format!("interfaces: [{interfaces}]\n{rest}");
        let error = keyfiles(document.as_bytes()).unwrap_err();
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        assert!(text.contains(expected), "{document}: {text}");
    };
    refused("{name: e, type: ethernet, ipv4: {enable: true}}", "", "unknown field `enable`");
    let bond = "{name: b, type: bond, state: up, link-aggregation: {mode: foo, port: []}}";
    refused(bond, "", "unknown variant `foo`");
    let down = "{name: e, type: ethernet, state: up}";
    refused(down, "dns-resolver: {config: {server: [192.0.2.1]}}", "InvalidArgument");
    let half = "{name: e, type: ethernet, state: up, ipv6: {enabled: true, autoconf: true}}";
    refused(half, "", "NotImplementedError");
    refused("{name: v, type: vlan, state: up, vlan: {id: 4}}", "", "InvalidArgument");
}

#[test]
fn empty_list_has_no_host() {
    assert_eq!(keyfiles(b"interfaces: []").unwrap().len(), 0);
    let none = host("interfaces: []", &["eth0"]);
    assert!(
        HostNetworkFiles::generate(&[none], NetworkGeneration::Keyfiles, &KeyfileCache::default()).is_err()
    );
}

#[test]
fn interface_matched_by_mac_address_has_no_name_in_its_keyfile() {
    let document = "interfaces: [{name: prov, type: ethernet, state: up, identifier: mac-address, \
                    mac-address: '52:54:00:aa:bb:01', ipv4: {enabled: true, dhcp: true}}]";
    let keyfiles = keyfiles(document.as_bytes()).unwrap();
    let [keyfile] = &keyfiles[..] else { panic!("{} keyfiles", keyfiles.len()) };
    assert_eq!(keyfile.name, "prov.nmconnection");
    assert!(!keyfile.contents.contains("interface-name="), "{}", keyfile.contents);
    assert!(keyfile.contents.contains("[ethernet]\nmac-address=52:54:00:AA:BB:01\n"), "{}", keyfile.contents);
}
