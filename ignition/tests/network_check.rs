//! Findings of the network checks: a case for every rule, and sets of hosts.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod network;

use std::error::Error as _;

use ignition::network::check::{Cidr, ClusterNetworks, NetworkReport, Rule, check_hosts};
use ignition::network::{HostNetwork, KeyfileCache, MacInterface, keyfiles};
use network::{BOND, PAIR, VLAN, host, mac};
use proptest::prelude::*;

fn run(hosts: &[HostNetwork]) -> NetworkReport {
    check_hosts(hosts, &ClusterNetworks::default(), &KeyfileCache::default())
}

/// Returns the findings about a host whose map contains `eth0` and `eth1`, without the host's name.
fn findings(document: &str) -> String {
    run(&[host(document, 16).with_name("a")]).to_string().replace("a:", "")
}

/// Returns the findings about a document without a map.
fn unmapped(document: &str) -> String {
    run(&[HostNetwork::without_macs(document).with_name("a")]).to_string().replace("a:", "")
}

fn map(pairs: &[(&str, &str)]) -> HostNetwork {
    let interface = |(name, mac): &(&str, &str)| MacInterface {
        logical_nic_name: (*name).to_owned(),
        mac_address: (*mac).to_owned(),
    };
    HostNetwork::from_unchecked(
        "interfaces: [{name: eth0, type: ethernet, state: up}]",
        pairs.iter().map(interface).collect(),
    )
    .with_name("a")
}

#[test]
fn valid_hosts_have_no_findings() {
    assert_eq!(findings(BOND), "");
    assert_eq!(findings(VLAN), "");
    assert_eq!(findings(PAIR), "");
    assert_eq!(unmapped(BOND), "");
    let renumbered = BOND.replace("198.51.100.20,", "198.51.100.21,");
    let report = run(&[host(PAIR, 16), host(BOND, 32), host(VLAN, 48), host(&renumbered, 64)]);
    assert_eq!(report.to_string(), "");
}

#[test]
fn rejects_unusable_documents() {
    assert!(unmapped("interfaces:\n- name: [\n- a: 1: 2\n").starts_with("3: error: parsing YAML: "));
    assert_eq!(unmapped("interfaces: []"), "1: interfaces: error: the document has no interfaces\n");
    assert_eq!(unmapped(""), " interfaces: error: the document has no interfaces\n");
    let text = unmapped("interfaces: [{name: eth0, type: ethernet, state: up, colour: 1}]");
    assert!(
        text.starts_with("1: interfaces[0]: error: parsing nmstate: ") && text.contains("colour"),
        "{text}"
    );
    let text = unmapped("interfaces:\n- name: eth0\n- name: eth1\n  type: ethernet\n  state: 7\n");
    assert!(text.starts_with("3: interfaces[1]: error: parsing nmstate: "), "{text}");
    let text = unmapped("{\"interfaces\": [{\"name\": \"eth0\"}], \"colour\": 1}");
    assert!(text.starts_with("1: colour: error: parsing nmstate: ") && !text.contains(" at line "), "{text}");
    let document = "interfaces: [{name: eth0, type: ethernet, state: absent}]";
    assert!(unmapped(document).contains("has no interfaces"));
}

/// Findings are on the lines that editors show. YAML's parser counts additional line breaks.
#[test]
fn line_numbers_of_findings_count_only_line_breaks_of_editors() {
    for line_break in ["\r", "\u{85}", "\u{2028}", "\u{2029}"] {
        let breaks = line_break.repeat(60);
        let text = format!(
            "interfaces: #{line_break}# NICs\n- {{name: v0, {breaks}type: vlan, vlan: {{id: 5000, base-iface: eth0}}}}\n"
        );
        let vlan = "2: interfaces[0].vlan.id: error: VLAN 5000 is not within 1 to 4094\n";
        assert!(unmapped(&text).contains(vlan), "{line_break:?}: {}", unmapped(&text));
        let unfinished = unmapped(&format!("interfaces:\n- [{breaks}\n"));
        assert!(unfinished.starts_with("2: error: parsing YAML: "), "{line_break:?}: {unfinished}");
    }
    let text =
        "interfaces:\r\n- name: v0\r\n  type: vlan\r\n  vlan:\r\n    id: 5000\r\n    base-iface: eth0\r\n";
    assert!(unmapped(text).contains("5: interfaces[0].vlan.id: error: "), "{}", unmapped(text));
}

/// The inputs are former failures of the fuzz target.
#[test]
fn former_crashes_of_the_fuzz_target_have_findings_within_the_document() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/regressions/network_input");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let report = run(&[HostNetwork::without_macs(&*text)]);
        let last = text.lines().count();
        assert!(!report.findings().is_empty(), "{}", path.display());
        assert!(report.findings().iter().all(|it| it.line.is_none_or(|line| line <= last)), "{report}");
    }
}

/// Returns the findings about a map, without their common prefix.
fn mapped(pairs: &[(&str, &str)]) -> String {
    run(&[map(pairs)]).to_string().replace("a: mac_interface_map", "")
}

#[test]
fn rejects_invalid_interface_maps() {
    assert_eq!(mapped(&[("eth0", "52:54:00:aa:bb:01")]), "");
    assert_eq!(
        mapped(&[]),
        ": error: the host has no MAC address, so no machine can match it\n\
         a:1: interfaces[0]: error: interface eth0 has no MAC address in the map\n"
    );
    assert_eq!(
        mapped(&[("eth0", "52-54")]),
        "[0].mac_address: error: \"52-54\" is not a MAC address such as 52:54:00:AA:BB:01\n"
    );
    assert_eq!(
        mapped(&[("eth0", "01:00:5e:00:00:01")]),
        "[0].mac_address: error: no interface can have the address 01:00:5e:00:00:01\n"
    );
    assert_eq!(
        mapped(&[("eth0", "52:54:00:aa:bb:01"), ("eth0", "52:54:00:aa:bb:02")]),
        "[1].logical_nic_name: error: eth0 is in the map twice\n"
    );
    assert_eq!(
        mapped(&[("eth0", "52:54:00:aa:bb:01"), ("eth9", "52:54:00:AA:BB:01")]),
        "[1].mac_address: error: 52:54:00:AA:BB:01 is the address of both eth0 and eth9\n\
         [1].logical_nic_name: warning: the document has no interface eth9\n"
    );
    let text = mapped(&[("eth0", "52:54:00:aa:bb:01"), ("a b", "52:54:00:aa:bb:02")]);
    assert!(
        text.starts_with("[1].logical_nic_name: error: \"a b\" is not a valid interface name\n"),
        "{text}"
    );
    let text = mapped(&[("eth0", "52:54:00:aa:bb:01"), ("a\n\"", "52:54:00:aa:bb:02")]);
    assert!(text.contains(": error: \"a\\n\\\"\" is not a valid interface name\n"), "{text}");
}

/// The map is sorted, but findings refer to the original order.
#[test]
fn map_entries_keep_their_position() {
    assert_eq!(
        mapped(&[("nic9", "52:54:00:aa:bb:02"), ("eth0", "52:54"), ("nic8", "52:54:00:aa:bb:03")]),
        "[1].mac_address: error: \"52:54\" is not a MAC address such as 52:54:00:AA:BB:01\n\
         [2].logical_nic_name: warning: the document has no interface nic8\n\
         [0].logical_nic_name: warning: the document has no interface nic9\n"
    );
}

#[test]
fn values_are_quoted_as_written() {
    let document = "interfaces:
- name: eth0
  type: ethernet
  state: up
  mac-address: 33:33:00:cc:bb:0c
  ipv6:
    enabled: true
    address:
    - {ip: 2001:DB8:0::5, prefix-length: '0x99'}
- {name: eth1, type: ethernet, state: up}
- {name: v, type: vlan, state: up, mtu: '0x10', vlan: {id: '0x1388', base-iface: eth0}}
routes:
  config:
  - {destination: '::/0', next-hop-address: 2001:DB8:1::0001, next-hop-interface: eth1}
dns-resolver: {config: {server: [192.0.2.1, 2001:DB8:0::1]}}
";
    assert_eq!(
        findings(document),
        "5: interfaces[0].mac-address: error: no interface can have the address 33:33:00:cc:bb:0c\n\
         11: interfaces[2].mtu: error: an MTU of 0x10 is not within 68 to 65535\n\
         11: interfaces[2].vlan.id: error: VLAN 0x1388 is not within 1 to 4094\n\
         9: interfaces[0].ipv6.address[0].prefix-length: error: a prefix of 0x99 bits is not within 0 to 128\n\
         14: routes.config[0].next-hop-address: error: eth1 has no IPv6 to reach the gateway 2001:DB8:1::0001\n\
         15: dns-resolver.config.server[0]: error: no interface has IPv4 to reach the name server 192.0.2.1\n"
    );
    let one = |ip: &str, mac: usize| {
        let address = format!("ipv6: {{enabled: true, address: [{{ip: '{ip}', prefix-length: 64}}]}}");
        host(&format!("interfaces:\n- {{name: eth0, type: ethernet, state: up, {address}}}\n"), mac)
    };
    let report = run(&[one("2001:db8::5", 16), one("2001:DB8:0::5", 32)]);
    let error = report.findings().iter().find(|finding| finding.rule == Rule::DuplicateAddress).unwrap();
    assert_eq!(
        error.to_string(),
        "host 2:2: interfaces[0].ipv6.address[0].ip: error: 2001:DB8:0::5 is also the address of eth0 in host 1"
    );
}

#[test]
fn messages_show_numbers_as_written() {
    let document = "interfaces:
- {name: eth0, type: ethernet, state: up, mtu: 0x10, ipv4: {enabled: true, address: [{ip: 192.0.2.1, prefix-length: 0o41}]}}
- {name: v, type: vlan, state: up, vlan: {id: 0x1388, base-iface: eth0}}
- {name: w, type: vlan, state: up, vlan: {id: +5000, base-iface: eth0}}
";
    assert_eq!(
        unmapped(document),
        "2: interfaces[0].mtu: error: an MTU of 0x10 is not within 68 to 65535\n\
         3: interfaces[1].vlan.id: error: VLAN 0x1388 is not within 1 to 4094\n\
         4: interfaces[2].vlan.id: error: VLAN +5000 is not within 1 to 4094\n\
         2: interfaces[0].ipv4.address[0].prefix-length: error: a prefix of 0o41 bits is not within 0 to 32\n"
    );
}

#[test]
fn interfaces_without_a_mac_address_are_reported() {
    let document = |more: &str| format!("interfaces:\n- name: prov\n  type: ethernet\n  state: up\n{more}");
    let text = findings(&document(""));
    assert!(
        text.starts_with("2: interfaces[0]: error: interface prov has no MAC address in the map\n"),
        "{text}"
    );
    assert_eq!(unmapped(&document("")), "");
    let with_address = document("  identifier: mac-address\n  mac-address: 52:54:00:AA:BB:09\n");
    assert!(!findings(&with_address).contains("error"), "{}", findings(&with_address));
    let text = findings(&document("  identifier: mac-address\n"));
    assert_eq!(
        text.lines().next(),
        Some(
            "5: interfaces[0].identifier: error: the interface is identified by its MAC address, but has none"
        )
    );
    assert!(!findings(&document("").replace("prov", "enp1s0")).contains("error"));
    let text = findings(&document("  mac-address: ZZ:54\n").replace("prov", "eth0"));
    assert!(
        text.starts_with("5: interfaces[0].mac-address: error: \"ZZ:54\" is not a MAC address"),
        "{text}"
    );
}

#[test]
fn interface_names_are_checked() {
    let document = "interfaces:\n- {name: a-very-long-name, type: dummy, state: up}\n- {name: a/b, type: dummy, state: up}\n";
    assert_eq!(
        unmapped(document),
        "2: interfaces[0].name: error: the name a-very-long-name is 16 bytes long; the kernel accepts at most 15\n\
         3: interfaces[1].name: error: \"a/b\" is not a valid interface name\n"
    );
    let twice = "interfaces:\n- name: d\n  type: dummy\n- name: d\n  type: dummy\n";
    assert_eq!(unmapped(twice), "4: interfaces[1].name: error: duplicate interface d\n");
    let switch = "interfaces:\n- {name: br0, type: ovs-bridge, state: up, bridge: {port: [{name: br0}]}}\n- {name: br0, type: ovs-interface, state: up}\n";
    assert_eq!(unmapped(switch), "");
}

#[test]
fn vlan_ids_and_mtus_are_checked() {
    let vlan = |id: &str, more: &str| {
        let base = "interfaces:\n- name: eth0\n  type: ethernet\n  state: up\n  mtu: 9000\n";
        unmapped(&format!(
            "{base}- name: v\n  type: vlan\n  state: up\n  vlan:\n    base-iface: eth0\n    id: {id}\n{more}"
        ))
    };
    assert_eq!((vlan("1", ""), vlan("4094", ""), vlan("'7'", "  mtu: 9000\n")), <_>::default());
    assert_eq!(vlan("4095", ""), "11: interfaces[1].vlan.id: error: VLAN 4095 is not within 1 to 4094\n");
    assert!(vlan("0", "").contains("warning: VLAN 0"));
    assert_eq!(vlan("0x7", ""), "");
    assert_eq!(vlan("-1", ""), "11: interfaces[1].vlan.id: error: VLAN -1 is not within 1 to 4094\n");
    assert_eq!(vlan("lab", ""), "11: interfaces[1].vlan.id: error: \"lab\" is not a valid VLAN ID\n");
    let nameless =
        "interfaces:\n- {name: e, type: dummy}\n- name: v\n  type: vlan\n  vlan:\n    base-iface: e\n";
    assert_eq!(
        unmapped(nameless),
        "5: interfaces[1].vlan.id: error: the VLAN ID is missing or not a number\n"
    );
    assert_eq!(
        vlan("7", "  mtu: 9001\n"),
        "12: interfaces[1].mtu: error: an MTU of 9001 exceeds the MTU of the base interface 9000\n"
    );
    let mtu = |mtu: &str, more: &str| {
        unmapped(&format!("interfaces:\n- {{name: eth0, type: ethernet, state: up, mtu: {mtu}{more}}}\n"))
    };
    assert_eq!((mtu("68", ""), mtu("65535", "")), <_>::default());
    assert_eq!(mtu("67", ""), "2: interfaces[0].mtu: error: an MTU of 67 is not within 68 to 65535\n");
    assert!(mtu("'65536'", "").contains("an MTU of 65536 is not"));
    assert_eq!(mtu("-5", ""), "2: interfaces[0].mtu: error: an MTU of -5 is not within 68 to 65535\n");
    assert_eq!(mtu("large", ""), "2: interfaces[0].mtu: error: \"large\" is not a valid MTU\n");
    assert!(
        mtu("1279", ", ipv6: {enabled: true, dhcp: true, autoconf: true}").contains("too small for IPv6")
    );
    assert_eq!(mtu("1279", ", ipv6: {enabled: false}"), "");
}

#[test]
fn ports_and_base_interfaces_are_checked() {
    let bond = |name: &str, ports: &str| {
        format!(
            "- {{name: {name}, type: bond, state: up, link-aggregation: {{mode: active-backup, port: [{ports}]}}}}\n"
        )
    };
    let both = format!("interfaces:\n{}{}", bond("b0", "eth0"), bond("b1", "eth1, eth0"));
    assert_eq!(
        findings(&both),
        "3: interfaces[1].link-aggregation.port[1]: error: eth0 is a port of both b0 and b1\n"
    );
    let unknown = format!("interfaces:\n{}", bond("b0", "eth0, eth1, nic2, enp1s0"));
    assert_eq!(
        findings(&unknown),
        "2: interfaces[0].link-aggregation.port[2]: error: b0 uses nic2, which the document does not declare, and the map has no \
         MAC address for it\n2: interfaces[0].link-aggregation.port[3]: warning: b0 uses enp1s0, which the document does not \
         declare: it works only on a machine with a network card of that name\n"
    );
    assert!(unmapped(&unknown).contains("warning: b0 uses nic2, which the document does not declare"));
    let vlan = "interfaces:\n- {name: v, type: vlan, state: up, vlan: {id: 7, base-iface: nic2}}\n";
    assert!(unmapped(vlan).contains(
        "interfaces[0].vlan.base-iface: error: v uses nic2, which the document does not declare\n"
    ));
    let bridge = "interfaces:\n- {name: br0, type: linux-bridge, state: up, bridge: {port: [{name: eth0}, {name: nic2}]}}\n- {name: eth0, type: ethernet, state: up}\n";
    assert!(unmapped(bridge).contains("2: interfaces[0].bridge.port[1]: warning: br0 uses nic2, which"));
    let down =
        format!("interfaces:\n{}{}", bond("b0", "eth0"), bond("b1", "eth1, eth0").replace("up", "absent"));
    assert!(!findings(&down).contains("error"));
}

#[test]
fn rejects_interfaces_based_on_themselves() {
    let vlan = |name: &str, base: &str| {
        format!("- {{name: {name}, type: vlan, state: up, vlan: {{id: 7, base-iface: {base}}}}}\n")
    };
    let all = |interfaces: &[String]| unmapped(&format!("interfaces:\n{}", interfaces.concat()));
    assert_eq!(all(&[vlan("v", "v")]), "2: interfaces[0].vlan.base-iface: error: v is built on itself\n");
    assert_eq!(
        all(&[vlan("x", "b"), vlan("a", "b"), vlan("b", "a")]),
        "3: interfaces[1].vlan.base-iface: error: a is built on itself, by way of b\n"
    );
    let bond =
        "- {name: b, type: bond, state: up, link-aggregation: {mode: active-backup, port: [eno1, br]}}\n"
            .to_owned();
    let bridge =
        "- {name: br, type: linux-bridge, state: up, bridge: {port: [{name: eno2}, {name: v}]}}\n".to_owned();
    assert_eq!(all(&[bond.clone(), bridge.clone(), vlan("v", "eno3")]).matches("built").count(), 0);
    let text = all(&[vlan("v", "b"), bond, bridge]);
    assert!(
        text.contains("interfaces[0].vlan.base-iface: error: v is built on itself, by way of b, br\n"),
        "{text}"
    );
    let long: Vec<String> = (0..9).map(|it| vlan(&format!("v{it}"), &format!("v{}", (it + 1) % 9))).collect();
    assert!(all(&long).ends_with(" v0 is built on itself, by way of v1, v2, v3, v4, others\n"));
    assert_eq!(all(&[vlan("v", "v"), vlan("a", "b"), vlan("b", "a")]).lines().count(), 2);
}

#[test]
fn prefix_lengths_are_checked() {
    let prefix = |family: &str, ip: &str, prefix: &str, route: &str| {
        unmapped(&format!(
            "interfaces:\n- name: eth0\n  type: ethernet\n  state: up\n  {family}:\n    enabled: true\n    address:\n    - ip: {ip}\n{prefix}{route}"
        ))
    };
    let path = "interfaces[0].ipv4.address[0].prefix-length: error:";
    let route = "routes: {config: [{destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, next-hop-interface: eth0}]}\n";
    for (text, message) in [
        ("33", "a prefix of 33 bits is not within 0 to 32"),
        ("999", "a prefix of 999 bits is not within 0 to 32"),
        ("-1", "a prefix of -1 bits is not within 0 to 32"),
        ("/24", "\"/24\" is not a valid prefix length"),
    ] {
        let text = prefix("ipv4", "192.0.2.10", &format!("      prefix-length: {text}\n"), route);
        assert_eq!(text, format!("9: {path} {message}\n"));
    }
    assert_eq!(prefix("ipv4", "192.0.2.10", "", ""), format!("8: {path} the address has no prefix length\n"));
    assert_eq!(prefix("ipv6", "2001:db8::1", "      prefix-length: '128'\n", ""), "");
    assert!(prefix("ipv6", "2001:db8::1", "      prefix-length: 129\n", "").contains("not within 0 to 128"));
    let off = "interfaces:\n- {name: eth0, type: ethernet, state: up, ipv4: {enabled: false, address: [{ip: 192.0.2.1, prefix-length: 33}]}}\n";
    assert!(unmapped(off).contains("not within 0 to 32"));
}

#[test]
fn malformed_addresses_are_reported_with_line_and_value() {
    let document = "interfaces:
- name: eth0
  type: ethernet
  state: up
  ipv4:
    enabled: true
    dhcp: false
    address:
    - ip: 192.0.2.300
      prefix-length: 24
  ipv6: {enabled: true, dhcp: false, address: [{ip: '2001:db8::g', prefix-length: 64}]}
- {name: eth1, type: ethernet, state: up}
routes:
  config:
  - destination: 198.51.100.0/33
    next-hop-address: 192.0.2,1
    next-hop-interface: eth0
  - destination: 2001:db8:::/32
    next-hop-interface: eth0
dns-resolver:
  config:
    server:
    - 192.0.2.1
    - 192.0.2.1:53
    - fe80::1%eth0
    - fe80:::1%eth0
";
    assert_eq!(
        unmapped(document),
        "9: interfaces[0].ipv4.address[0].ip: error: \"192.0.2.300\" is not an IP address\n\
         11: interfaces[0].ipv6.address[0].ip: error: \"2001:db8::g\" is not an IP address\n\
         15: routes.config[0].destination: error: \"198.51.100.0/33\" is not a network such as 192.0.2.0/24\n\
         16: routes.config[0].next-hop-address: error: \"192.0.2,1\" is not an IP address\n\
         18: routes.config[1].destination: error: \"2001:db8:::/32\" is not a network such as 2001:db8::/64\n\
         24: dns-resolver.config.server[1]: error: \"192.0.2.1:53\" is not an IP address\n\
         26: dns-resolver.config.server[3]: error: \"fe80:::1%eth0\" is not an IP address\n"
    );
    // nmstate accepts a destination without a prefix length.
    let single = document.replace("198.51.100.0/33", "198.51.100.7");
    assert!(!unmapped(&single).contains("198.51.100.7"));
}

/// Returns the findings about a host of a cluster with one IPv4 machine network.
fn outside(document: &str) -> String {
    let machine_networks = vec![Cidr::parse("10.0.0.0/24").unwrap()];
    let cluster = ClusterNetworks { machine_networks, ..ClusterNetworks::default() };
    check_hosts(&[HostNetwork::without_macs(document)], &cluster, &KeyfileCache::default()).to_string()
}

#[test]
fn dhcp_hosts_may_be_in_the_machine_network() {
    let document = |ipv4: &str| {
        format!(
            "interfaces: [{{name: eth0, type: ethernet, state: up, ipv4: {ipv4}, ipv6: {{enabled: true, dhcp: false, \
             address: [{{ip: '2001:db8::5', prefix-length: 64}}]}}}}]"
        )
    };
    assert_eq!(outside(&document("{enabled: true, dhcp: true}")), "");
    let warning = "host 1:1: interfaces[0].ipv6.address[0].ip: warning: the host has no static address in the machine network \
                   10.0.0.0/24\n";
    assert_eq!(outside(&document("{enabled: false, dhcp: true}")), warning);
    assert_eq!(outside(&document("{enabled: true, dhcp: false}")), warning);
}

#[test]
fn routes_and_gateways_are_checked() {
    let routed = |address: &str, route: &str| {
        unmapped(&format!(
            "interfaces:\n- name: eth0\n  type: ethernet\n  state: up\n  ipv4:\n    enabled: true\n    address: [{address}]\nroutes:\n  config:\n{route}"
        ))
    };
    let near = "{ip: 192.0.2.10, prefix-length: 24}";
    let route = |gateway: &str, interface: &str| {
        format!(
            "  - destination: 0.0.0.0/0\n    next-hop-address: {gateway}\n    next-hop-interface: {interface}\n"
        )
    };
    assert_eq!(routed(near, &route("192.0.2.1", "eth0")), "");
    assert_eq!(
        routed(near, &route("192.0.3.1", "eth0")),
        "11: routes.config[0].next-hop-address: error: the gateway 192.0.3.1 is not in a network of eth0\n"
    );
    assert!(routed(near, &route("192.0.2.10", "eth0")).contains("192.0.2.10 is the interface eth0 itself"));
    let single = routed("{ip: 192.0.2.10, prefix-length: 32}", &route("192.0.2.1", "eth0"));
    assert!(single.contains("warning: the gateway 192.0.2.1"), "{single}");
    let on_link = format!(
        "{}  - {{destination: 192.0.3.0/24, next-hop-interface: eth0}}\n",
        route("192.0.3.1", "eth0")
    );
    assert_eq!(routed(near, &on_link), "");
    assert_eq!(
        routed(near, &route("192.0.2.1", "eth7")),
        "12: routes.config[0].next-hop-interface: error: the document has no interface eth7\n"
    );
    assert!(
        routed(near, "  - {destination: 10.0.0.0/8, next-hop-address: 192.0.2.1}\n")
            .contains("no interface to go through")
    );
    assert!(!routed(near, "  - {destination: 10.0.0.0/8, route-type: blackhole}\n").contains("through"));
    assert_eq!(routed(near, "  - {state: absent, next-hop-interface: eth7}\n"), "");
    let six = "interfaces:\n- {name: eth0, type: ethernet, state: up, ipv6: {enabled: true, address: [{ip: '2001:db8::5', prefix-length: 64}]}}
routes: {config: [{destination: '::/0', next-hop-address: 'GATEWAY', next-hop-interface: eth0}]}";
    assert_eq!(unmapped(&six.replace("GATEWAY", "fe80::1")), "");
    assert_eq!(unmapped(&six.replace("GATEWAY", "2001:db8::1")), "");
    assert!(unmapped(&six.replace("GATEWAY", "2001:db8:1::1")).contains("not in a network of eth0"));
    assert_eq!(
        unmapped(&six.replace("'::/0'", "0.0.0.0/0").replace("GATEWAY", "fe80::1")),
        "3: routes.config[0].next-hop-address: error: the gateway fe80::1 is IPv6, the destination is IPv4\n"
    );
    assert!(
        routed(near, &route("'fe80::1'", "eth0"))
            .contains("the gateway fe80::1 is IPv6, the destination is IPv4")
    );
    assert!(
        routed(near, &route("192.0.2.1", "eth0").replace("0.0.0.0/0", "'::/0'"))
            .contains("the gateway 192.0.2.1 is IPv4, the destination is IPv6")
    );
    let other = |gateway: &str| routed(near, &route(gateway, "eth0").replace("0.0.0.0/0", "'::/0'"));
    assert!(other("'fe80::1'").contains("error: eth0 has no IPv6 to reach the gateway fe80::1\n"));
    assert!(
        routed("", &route("192.0.2.1", "eth0"))
            .contains("error: eth0 has no IPv4 address to reach the gateway 192.0.2.1\n")
    );
    let disabled = six.replace("enabled: true", "enabled: false").replace("GATEWAY", "fe80::1");
    assert!(unmapped(&disabled).contains("error: eth0 has no IPv6 to reach the gateway fe80::1\n"));
    let bare = six.replace(", address: [{ip: '2001:db8::5', prefix-length: 64}]", "");
    assert_eq!(unmapped(&bare.replace("GATEWAY", "fe80::1")), "");
    assert!(
        unmapped(&bare.replace("GATEWAY", "2001:db8::1"))
            .contains("has no IPv6 address to reach the gateway")
    );
    let dynamic = six.replace("enabled: true,", "enabled: true, dhcp: true, autoconf: true,");
    assert!(!unmapped(&dynamic.replace("GATEWAY", "2001:db8:1::1")).contains("not in a network"));
}

#[test]
fn name_servers_are_checked() {
    let document = |address: &str, server: &str| {
        unmapped(&format!(
            "interfaces:\n- {{name: eth0, type: ethernet, state: up, {address}}}\ndns-resolver:\n  config:\n    server:\n    - {server}\n"
        ))
    };
    let dynamic = "ipv4: {enabled: true, dhcp: true, auto-dns: false}";
    assert_eq!(document(dynamic, "192.0.2.1"), "");
    let none = "6: dns-resolver.config.server[0]: error: no interface has IPv6 to reach the name server 2001:db8::1\n";
    assert_eq!(document(dynamic, "2001:db8::1"), none);
    assert!(document("ipv4: {enabled: false}", "192.0.2.1").contains("no interface has IPv4"));
}

#[test]
fn colliding_hosts_are_reported() {
    let one = "interfaces: [{name: eth0, type: ethernet, state: up, ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 24}]}}]\nhostname: {config: Node}\n";
    let other = one.replace("Node", "node").replace("192.0.2.10", "192.0.2.11");
    let hosts = [
        host(one, 16).with_name("a"),
        host(BOND, 32).with_name("b"),
        host(&other, 33),
        host(one, 64).with_name("d"),
    ];
    let report = run(&hosts);
    let errors: Vec<String> =
        report.findings().iter().map(ToString::to_string).filter(|it| it.contains("error")).collect();
    assert_eq!(
        errors,
        [
            "host 3: mac_interface_map[0].mac_address: error: 52:54:00:aa:00:21 is also the address of eth1 in b",
            "host 3:2: hostname.config: error: node is also the name of a",
            "d:1: interfaces[0].ipv4.address[0].ip: error: 192.0.2.10 is also the address of eth0 in a",
            "d:2: hostname.config: error: Node is also the name of a",
        ]
    );
    let duplicate = report.findings().iter().find(|finding| finding.rule == Rule::DuplicateMac);
    let json = serde_json::to_value(duplicate).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "severity": "error", "rule": "duplicate-mac", "host": 2, "name": null, "interface": "eth0",
            "path": "mac_interface_map[0].mac_address", "line": null,
            "message": "52:54:00:aa:00:21 is also the address of eth1 in b",
        })
    );
    // The same value is twice on one host, and in positions where duplicates are harmless.
    let twice = PAIR.replace("192.0.2.130", "192.0.2.10");
    assert!(
        findings(&twice)
            .contains("interfaces[1].ipv4.address[0].ip: error: 192.0.2.10 is also the address of eth0")
    );
    let anycast = one.replace("ethernet", "dummy").replace("hostname: {config: Node}", "");
    let report = run(&[host(&anycast, 16), host(&anycast, 32)]);
    assert!(!report.is_fatal(), "{report}");
}

#[test]
fn many_findings_are_truncated() {
    let interfaces: String =
        (0..400).map(|it| format!("- {{name: a-name-that-is-too-long-{it}, type: dummy}}\n")).collect();
    let report = run(&[HostNetwork::without_macs(format!("interfaces:\n{interfaces}"))]);
    assert_eq!(report.findings().len(), 101);
    assert!(report.findings()[100].message.contains("only the first 100"));
    let vlan = |name: usize, id: usize| {
        format!("- {{name: v{name}, type: vlan, vlan: {{id: {id}, base-iface: eno1}}}}\n")
    };
    let warnings: String = (1..200).map(|name| vlan(name, 0)).collect();
    let is_fatal = |last: usize| {
        let document = format!("interfaces:\n{warnings}{}", vlan(0, last));
        run(&[HostNetwork::without_macs(document)]).is_fatal()
    };
    assert!(!is_fatal(0) && is_fatal(5000), "errors beyond the listed ones still count");
    let hostile = "interfaces: [{name: \"\\e[31m\\n\", type: dummy}]";
    let report = run(&[HostNetwork::without_macs(hostile)]);
    assert!(report.is_fatal() && !report.findings()[0].to_string().contains(char::is_control));
}

#[test]
fn findings_are_in_host_order() {
    let hosts: Vec<HostNetwork> = (0..64).map(|number| host(PAIR, 2 * number)).collect();
    let first = run(&hosts);
    assert_eq!(first.findings().len(), 2 * 63);
    assert!(first.findings().is_sorted_by_key(|finding| finding.host));
    assert_eq!(run(&hosts), first);
    assert!(!first.to_string().contains(&mac(0)));
}

/// Returns a document with a bond over a declared port and an undeclared port, and with a second network card.
fn bonded(port: &str, card: &str) -> String {
    format!(
        "interfaces:\n- name: bond0\n  type: bond\n  state: up\n  link-aggregation:\n    mode: active-backup\n    port:\n    - eth0\n    \
         - {port}\n- name: eth0\n  type: ethernet\n  state: up\n- name: {card}\n  type: ethernet\n  state: up\n"
    )
}

#[test]
fn undeclared_ports_are_reported_whatever_their_names() {
    for port in ["ens1f07", "enp3s0f7", "eno7"] {
        let path = "9: interfaces[0].link-aggregation.port[1]: warning:";
        let expected = format!(
            "{path} bond0 uses {port}, which the document does not declare: it works only on a machine with a network \
             card of that name\n"
        );
        assert_eq!(findings(&bonded(port, "eth1")), expected);
        assert_eq!(unmapped(&bonded(port, "eth1")), expected);
    }
    let error = "9: interfaces[0].link-aggregation.port[1]: error: bond0 uses eth7, which the document does not declare, \
                 and the map has no MAC address for it\n";
    assert_eq!(findings(&bonded("eth7", "eth1")), error);
    let warning = "9: interfaces[0].link-aggregation.port[1]: warning: bond0 uses eth7, which the document does not declare\n";
    assert_eq!(unmapped(&bonded("eth7", "eth1")), warning);
}

#[test]
fn undeclared_base_interfaces_are_reported_whatever_their_names() {
    let vlan = |base: &str| {
        format!(
            "interfaces:\n- {{name: v, type: vlan, state: up, vlan: {{id: 7, base-iface: {base}}}}}\n- {{name: eth0, type: \
             ethernet, state: up}}\n- {{name: eth1, type: ethernet, state: up}}\n"
        )
    };
    let path = "2: interfaces[0].vlan.base-iface:";
    let warning = format!(
        "{path} warning: v uses eno7, which the document does not declare: it works only on a machine with a network card of \
         that name\n"
    );
    assert_eq!(findings(&vlan("eno7")), warning);
    assert_eq!(unmapped(&vlan("eno7")), warning);
    assert_eq!(
        unmapped(&vlan("nic2")),
        format!("{path} error: v uses nic2, which the document does not declare\n")
    );
}

#[test]
fn undeclared_bridge_ports_without_a_mac_address_are_errors() {
    let bridge = |port: &str| {
        format!(
            "interfaces:\n- {{name: br0, type: linux-bridge, state: up, bridge: {{port: [{{name: eth0}}, {{name: {port}}}]}}}}\n\
             - {{name: eth0, type: ethernet, state: up}}\n- {{name: eth1, type: ethernet, state: up}}\n"
        )
    };
    let path = "2: interfaces[0].bridge.port[1]:";
    let error = format!(
        "{path} error: br0 uses nic2, which the document does not declare, and the map has no MAC address for it\n"
    );
    assert_eq!(findings(&bridge("nic2")), error);
    assert_eq!(
        unmapped(&bridge("nic2")),
        format!("{path} warning: br0 uses nic2, which the document does not declare\n")
    );
    assert!(findings(&bridge("ens2")).starts_with(&format!("{path} warning: br0 uses ens2, ")));
}

#[test]
fn nics_without_a_mac_address_are_reported_whatever_their_names() {
    for card in ["ens1f07", "enp3s0f7", "eno7"] {
        let warning = format!(
            "13: interfaces[2]: warning: interface {card} has no MAC address in the map: the settings apply only on a \
             machine with a card of that name\n"
        );
        let mapped = bonded("eth1", card);
        assert_eq!(findings(&mapped), warning);
        assert_eq!(
            unmapped(&mapped),
            "9: interfaces[0].link-aggregation.port[1]: warning: bond0 uses eth1, which the document does not declare\n"
        );
    }
    let error = "13: interfaces[2]: error: interface eth7 has no MAC address in the map\n";
    assert_eq!(findings(&bonded("eth1", "eth7")), error);
}

/// Returns the single error of a document. It must be the same in every run, although the order in hash tables differs.
fn only_error(document: &str) -> String {
    let first = unmapped(document);
    for _ in 0..60 {
        assert_eq!(unmapped(document), first, "{document}");
    }
    let errors: Vec<&str> = first.lines().filter(|line| line.contains(" error: ")).collect();
    assert_eq!(errors.len(), 1, "{first}");
    errors.concat()
}

/// Returns an interface that the generator rejects.
fn faulty(name: &str) -> String {
    format!("- {{name: {name}, type: ethernet, ipv6: {{enabled: true, autoconf: true}}}}\n")
}

const FAULT: &str =
    "generating configuration from nmstate: NotImplementedError: Autoconf without DHCP is not supported yet";

#[test]
fn first_of_several_faulty_interfaces_is_reported() {
    let faults = ["e5", "e1", "e4", "e2", "e3"].map(faulty).concat();
    let text = only_error(&format!("interfaces:\n- {{name: a, type: dummy}}\n{faults}"));
    assert_eq!(text, format!("3: interfaces[1]: error: {FAULT}"));
    // The two messages differ, and the generator may return either of them.
    let bridge = |number: u8| {
        format!("- {{name: b{number}, type: linux-bridge, copy-mac-from: e{number}, bridge: {{port: []}}}}\n")
    };
    let text = only_error(&format!("interfaces:\n{}{}", bridge(1), bridge(0)));
    assert!(text.starts_with("2: interfaces[0]: error: generating") && text.contains(" e1 "), "{text}");
}

#[test]
fn faulty_port_is_reported_before_its_bond() {
    let bond = "- {name: a, type: bond, link-aggregation: {mode: 802.3ad, port: [e9], options: {miimon: 9, arp_interval: 9}}}\n";
    let text = only_error(&format!("interfaces:\n{bond}{}", faulty("e9")));
    assert_eq!(text, format!("3: interfaces[1]: error: {FAULT}"));
    let text = only_error(&format!("interfaces:\n{bond}"));
    assert!(
        text.starts_with("2: interfaces[0]: error: generating") && text.contains("Bond miimon"),
        "{text}"
    );
    let fine = bond.replace("miimon: 9, ", "");
    let text = only_error(&format!("interfaces:\n{fine}{}", faulty("e9")));
    assert_eq!(text, format!("3: interfaces[1]: error: {FAULT}"));
}

#[test]
fn reference_to_a_later_interface_is_accepted() {
    let bridge = "- {name: b, type: linux-bridge, copy-mac-from: e0, bridge: {port: [{name: e0}]}}\n";
    let text = only_error(&format!("interfaces:\n{bridge}- {{name: e0, type: ethernet}}\n{}", faulty("e1")));
    assert_eq!(text, format!("4: interfaces[2]: error: {FAULT}"));
}

#[test]
fn generator_error_names_interface_and_line() {
    let error = keyfiles(format!("interfaces:\n- {{name: a, type: dummy}}\n{}", faulty("e1")).as_bytes());
    let error = error.unwrap_err();
    assert_eq!(error.to_string(), "generating configuration from nmstate at interfaces[1], line 3");
    let routes = "routes: {config: [{destination: 198.51.1.0/24, next-hop-interface: gone1}]}";
    let error = keyfiles(format!("interfaces: [{{name: a, type: dummy}}]\n{routes}").as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "generating configuration from nmstate");
    assert!(error.source().unwrap().to_string().contains("gone1"));
}

#[test]
fn errors_of_large_documents_have_no_position() {
    let vlan =
        |it: usize| format!("- {{name: v{it}, type: vlan, vlan: {{id: 4, base-iface: v{}}}}}\n", it + 1);
    let chain = |count: usize| (0..count).map(vlan).collect::<String>() + &faulty("z");
    let error = |count: usize| keyfiles(format!("interfaces:\n{}", chain(count)).as_bytes()).unwrap_err();
    assert!(error(50).to_string().ends_with(" at interfaces[50], line 52"));
    assert_eq!(error(3000).to_string(), "generating configuration from nmstate");
    assert!(FAULT.ends_with(&error(3000).source().unwrap().to_string()));
}

/// Interfaces that the generator rejects, and a few that it accepts. `%` stands for a number, and `@` for the number of
/// another interface.
const FAULTS: [&str; 16] = [
    "{name: i%, type: ethernet, ipv6: {enabled: true, autoconf: true}}",
    "{name: i%, type: ethernet, ethtool: {feature: {b-%: true, a-%: true, c-@: false}}}",
    "{name: i%, type: ethernet, alt-names: [{name: same}, {name: i@}]}",
    "{name: i%, type: ethernet, profile-name: i@}",
    "{name: i%, type: ethernet, controller: i@}",
    "{name: i%, type: ethernet, copy-mac-from: i@}",
    "{name: i%, type: ethernet, ethernet: {sr-iov: {total-vfs: 1, vfs: [{id: 7}]}}}",
    "{name: i%, type: veth, veth: {peer: i@}}",
    "{name: i%, type: vlan, vlan: {id: 4, base-iface: i@}}",
    "{name: i%, type: vrf, vrf: {port: [i@], route-table-id: 0}}",
    "{name: i%, type: bond, link-aggregation: {mode: balance-rr, port: [i@], ports-config: [{name: p%}, {name: q%}]}}",
    "{name: i%, type: bond, link-aggregation: {mode: balance-rr, port: [i@, p%], options: {miimon: 9, arp_interval: 9}}}",
    "{name: i%, type: infiniband, infiniband: {mode: datagram, pkey: '0xffff'}}",
    "{name: i%, type: linux-bridge, bridge: {port: [{name: i@}, {name: p%}]}}",
    "{name: i%, type: dummy, state: absent}",
    "{name: i%, type: ovs-bridge, bridge: {port: [{name: i@}, {name: o%, link-aggregation: {mode: balance-slb, port: [{name: p%}]}}]}}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn same_interface_is_reported_every_time(
        chosen in prop::collection::vec((0..FAULTS.len(), 0_usize..6), 1..6),
        routes in prop::collection::vec(0_usize..7, 0..4),
        server in prop::option::of("(192\\.0\\.2\\.1|fe80::1%i0|2001:db8::1)"),
    ) {
        let interface = |(number, (fault, other)): (usize, &(usize, usize))| {
            let text = FAULTS[*fault].replace('%', &number.to_string()).replace('@', &other.to_string());
            format!("- {text}\n")
        };
        let mut document = "interfaces:\n".to_owned();
        document.extend(chosen.iter().enumerate().map(interface));
        if !routes.is_empty() {
            document += "routes:\n  config:\n";
        }
        for route in routes {
            document += &format!("  - {{destination: 198.51.{route}.0/24, next-hop-interface: i{route}, next-hop-address: 192.0.2.1}}\n");
        }
        if let Some(server) = server {
            document += &format!("dns-resolver: {{config: {{server: ['{server}']}}}}\n");
        }
        // The source may differ, because the generator lists names in hash table order.
        let reported = || match keyfiles(document.as_bytes()) {
            Ok(files) => format!("{files:?}"),
            Err(error) => error.to_string(),
        };
        let first = reported();
        for _ in 0..12 {
            prop_assert_eq!(&reported(), &first, "{}", document);
        }
    }
}

proptest! {
    #[test]
    fn hosts_without_errors_have_keyfiles(
        document in prop::sample::select(vec![BOND, PAIR, VLAN]),
        place in any::<prop::sample::Index>(),
        len in 0_usize..12,
        piece in "[a-z0-9:{}\\[\\],.\n -]{0,6}|eth[01]|up|absent|- |\\*a|&a |true|null",
        mapped: bool,
    ) {
        let start = place.index(document.len());
        let end = document.len().min(start + len);
        let changed = format!("{}{piece}{}", &document[..start], &document[end..]);
        let host = if mapped { host(&changed, 16) } else { HostNetwork::without_macs(changed.as_str()) };
        let report = run(&[host]);
        prop_assert!(report.findings().iter().all(|it| it.line.is_none_or(|line| line <= changed.lines().count())));
        if !report.is_fatal() {
            prop_assert!(keyfiles(changed.as_bytes()).is_ok(), "{}", changed);
        }
    }
}
