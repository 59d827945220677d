//! Compares the results and refusals of `coreos-installer pxe customize` with Kindling's, for each option and for all
//! options together.
//!
//! The two programs compress differently, so the tests unpack the resources of configs before they compare them. All
//! other text must be equal, including the order of keys. The exception is the comment at the top of a generated unit,
//! which contains the name of the program; the tests replace it.

mod tool;

use tool::OracleCase;

const LIVE: &str = r#"{"ignition": {"version": "3.4.0"}, "systemd": {"units": [{"name": "a.service", "enabled": true, "contents": "[Service]\nExecStart=/bin/true\n"}]}}"#;
const DEST: &str = r#"{"ignition":{"version":"3.0.0"},"storage":{"files":[{"path":"/etc/a","contents":{"source":"data:,b"},"mode":420}]}}"#;
const EMPTY: &str = r#"{"ignition": {"version": "3.6.0"}}"#;
const UNKNOWN_KEYS: &str = r#"{"ignition": {"version": "3.3.0", "a": 1}, "b": [2]}"#;
const CA: &str = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
const KEYFILE: &str = "[connection]\nid=a\ntype=ethernet\n";
const SCRIPT: &str = "#!/bin/bash\necho done\n";
const INSTALL: &str = "# comment\nappend-karg: [a, b]\nfetch-retries: 3\n";
const NMSTATE_YAML: &str = "interfaces:
- {name: eth1, type: ethernet, state: up, ipv4: {enabled: true, dhcp: true}}
- {name: eth2, type: ethernet, state: up, ipv6: {enabled: true, dhcp: true, autoconf: true}}
";
const NMSTATE_JSON: &str = r#"{"interfaces": [{"name": "js1", "type": "ethernet", "state": "up", "ipv4": {"enabled": "true", "dhcp": "true"}}]}"#;
const NMSTATE_STATIC: &str = "dns-resolver: {config: {search: [example.com], server: [192.0.2.53, '2001:db8::53']}}
routes:
  config:
  - {destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, next-hop-interface: bond0.404}
  - {destination: '::/0', next-hop-address: '2001:db8::1', next-hop-interface: bond0.404}
  - {destination: 198.51.100.0/24, next-hop-address: 192.0.2.9, next-hop-interface: bond0.404, metric: 7, table-id: 50}
interfaces:
- {name: bond0, type: bond, state: up, link-aggregation: {mode: active-backup, options: {miimon: '140'}, port: [eth0, eth1]}}
- name: bond0.404
  type: vlan
  state: up
  vlan: {id: 404, base-iface: bond0}
  ipv4: {enabled: true, dhcp: false, address: [{ip: 192.0.2.10, prefix-length: 24}]}
  ipv6: {enabled: true, dhcp: false, autoconf: false, address: [{ip: '2001:db8::10', prefix-length: 64}]}
- {name: eth0, type: ethernet, state: up, mac-address: '52:54:00:aa:bb:01', mtu: 9000}
- {name: eth1, type: ethernet, state: up}
- {name: prov, type: ethernet, state: up, identifier: mac-address, mac-address: '52:54:00:aa:bb:03'}
- {name: br0, type: linux-bridge, state: up, bridge: {port: [{name: eth2}]}, ipv4: {enabled: true, dhcp: true}}
";

#[test]
fn empty_options_match_the_tool() {
    if !tool::is_tool_present() {
        return;
    }
    let ours = OracleCase::new().assert_same();
    assert_eq!((ours.live_config, ours.runs_installer), (None, false));
}

#[test]
fn each_option_matches_the_tool() {
    if !tool::is_tool_present() {
        return;
    }
    let cases = [
        (OracleCase::new().with_file("dest-ignition", "dest.ign", DEST), true),
        (OracleCase::new().with_value("dest-device", "/dev/vda"), true),
        (OracleCase::new().with_value("dest-console", "ttyS0,115200"), true),
        (OracleCase::new().with_value("dest-karg-append", "a=b"), true),
        (OracleCase::new().with_value("dest-karg-delete", "quiet"), true),
        (OracleCase::new().with_file("network-keyfile", "a.nmconnection", KEYFILE), false),
        (OracleCase::new().with_file("network-nmstate", "a.yaml", NMSTATE_YAML), false),
        (OracleCase::new().with_file("network-nmstate", "a.json", NMSTATE_JSON), false),
        (OracleCase::new().with_file("network-nmstate", "static.yaml", NMSTATE_STATIC), false),
        (OracleCase::new().with_file("ignition-ca", "ca.pem", CA), false),
        (OracleCase::new().with_file("pre-install", "hook", SCRIPT), false),
        (OracleCase::new().with_file("post-install", "hook", SCRIPT), false),
        (OracleCase::new().with_file("installer-config", "install.yaml", INSTALL), true),
        (OracleCase::new().with_file("live-ignition", "live.ign", LIVE), false),
    ];
    for (case, runs_installer) in cases {
        assert_eq!(case.assert_same().runs_installer, runs_installer);
    }
}

#[test]
fn all_options_together_match_the_tool() {
    if !tool::is_tool_present() {
        return;
    }
    let case = OracleCase::new()
        .with_file("live-ignition", "live.ign", LIVE)
        .with_file("live-ignition", "live-2.ign", EMPTY)
        .with_file("installer-config", "a/install.yaml", INSTALL)
        .with_file("installer-config", "b/install.yaml", "{}")
        .with_file("post-install", "hook-1", SCRIPT)
        .with_file("post-install", "hook-2", [0, 159, 146, 150])
        .with_file("pre-install", "pre/hook-1", SCRIPT)
        .with_file("pre-install", "pre/hook-2", vec![b'x'; 100_000])
        .with_file("ignition-ca", "ca.pem", CA)
        .with_file("ignition-ca", "ca-2.pem", CA)
        .with_file("network-nmstate", "a.yaml", NMSTATE_STATIC)
        .with_file("network-nmstate", "a.json", NMSTATE_JSON)
        .with_file("network-keyfile", "a.nmconnection", KEYFILE)
        .with_value("dest-karg-delete", "quiet")
        .with_value("dest-karg-append", "a=b")
        .with_value("dest-karg-append", "c")
        .with_value("dest-console", "tty0")
        .with_value("dest-console", "ttyAMA1,300e5")
        .with_value("dest-device", "/dev/disk/by-id/x y")
        .with_file("dest-ignition", "dest.ign", DEST)
        .with_file("dest-ignition", "dest-2.ign", LIVE);
    assert!(case.assert_same().runs_installer);
}

#[test]
fn destination_config_is_wrapped_only_if_necessary() {
    if !tool::is_tool_present() {
        return;
    }
    let one = || OracleCase::new().with_file("dest-ignition", "dest.ign", DEST);
    one().with_file("ignition-ca", "ca.pem", CA).assert_same();
    one().with_file("dest-ignition", "dest-2.ign", EMPTY).assert_same();
    one().with_file("live-ignition", "live.ign", LIVE).assert_same();
    OracleCase::new()
        .with_file("ignition-ca", "ca.pem", CA)
        .with_value("dest-device", "/dev/vda")
        .assert_same();
}

#[test]
fn network_is_copied_only_if_installer_runs() {
    if !tool::is_tool_present() {
        return;
    }
    let network = || OracleCase::new().with_file("network-keyfile", "a", KEYFILE);
    network().with_file("installer-config", "install.yaml", INSTALL).assert_same();
    network().with_value("dest-device", "/dev/vda").assert_same();
    network().with_file("dest-ignition", "dest.ign", DEST).assert_same();
    network().with_file("pre-install", "hook", SCRIPT).assert_same();
    OracleCase::new()
        .with_file("network-nmstate", "a.yaml", "interfaces: []")
        .with_value("dest-device", "/dev/vda")
        .assert_same();
}

#[test]
fn notices_match_the_tool() {
    if !tool::is_tool_present() {
        return;
    }
    OracleCase::new()
        .with_file("dest-ignition", "dest.ign", UNKNOWN_KEYS)
        .with_value("dest-karg-append", "console=ttyS0")
        .with_file("live-ignition", "live.ign", UNKNOWN_KEYS)
        .assert_same();
    OracleCase::new()
        .with_value("dest-karg-append", "console=ttyS0,115200n8")
        .with_value("dest-karg-append", "console=tty0")
        .assert_same();
    OracleCase::new().with_value("dest-karg-append", "console=ttyUSB0").assert_same();
}

#[test]
fn quoted_yaml_values_match_the_tool() {
    if !tool::is_tool_present() {
        return;
    }
    let mut case = OracleCase::new();
    for karg in [
        "",
        " ",
        "a b",
        "true",
        "no",
        "null",
        "~",
        "1",
        "0x1f",
        "1e3",
        ".5",
        "-",
        "- a",
        "a: b",
        "a:b",
        "#a",
        "a #b",
        "'",
        "\"",
        "it's",
        "\\",
        "@a",
        "`a",
        "%a",
        "&a",
        "*a",
        "!a",
        "[a",
        "{a",
        "a\nb",
        "a\tb",
        "é",
        "\u{2028}",
        "\u{7f}",
        "=",
        "<<",
        "2001-01-01",
        "a,b",
        "|",
        ">",
        "?",
        "? a",
        "---",
        "y",
        "1_000",
        "0o17",
        ".inf",
    ] {
        if !karg.starts_with('-') {
            case = case.with_value("dest-karg-append", karg).with_value("dest-karg-delete", karg);
        }
    }
    case.assert_same();
}

#[test]
fn both_refuse_invalid_options() {
    if !tool::is_tool_present() {
        return;
    }
    let keyfile = |name: &str| OracleCase::new().with_file("network-keyfile", name, KEYFILE);
    let twice =
        |option: &str| OracleCase::new().with_file(option, "a/x", SCRIPT).with_file(option, "b/x", SCRIPT);
    twice("pre-install").assert_refused("config already specifies path /usr/local/bin/pre-install-x");
    twice("post-install").assert_refused("config already specifies path /usr/local/bin/post-install-x");
    keyfile("a/x")
        .with_file("network-keyfile", "b/x", KEYFILE)
        .assert_refused("config already specifies keyfile x");
    let generated = keyfile("eth2.nmconnection").with_file("network-nmstate", "a.yaml", NMSTATE_YAML);
    generated.assert_refused("config already specifies keyfile");
    for option in ["live-ignition", "dest-ignition"] {
        for text in
            [KEYFILE, "", "{}", r#"{"ignition":{"version":"3.7.0"}}"#, r#"{"ignition":{"version":"2.2.0"}}"#]
        {
            OracleCase::new().with_file(option, "a", text).assert_refused("parsing Ignition config");
        }
    }
    let nmstate = |text: &str| OracleCase::new().with_file("network-nmstate", "a", text);
    nmstate("interfaces: 5").assert_refused("parsing nmstate");
    nmstate("capture: {}").assert_refused("parsing nmstate");
    nmstate("interfaces: [{name: v, type: vlan, state: up, vlan: {id: 1}}]").assert_refused("nmstate");
    nmstate("dns-resolver: {config: {server: [192.0.2.1]}}")
        .assert_refused("generating configuration from nmstate");
}

#[test]
fn both_refuse_features_that_old_images_lack() {
    if !tool::is_tool_present() {
        return;
    }
    let old = || OracleCase::new().on_old_image();
    let network = "This OS image does not support customizing network settings.";
    let installer = "This OS image does not support customizing installer configuration.";
    let console = "This OS image does not support customizing the destination console.";
    old().with_file("network-keyfile", "a", KEYFILE).assert_refused(network);
    old().with_file("network-nmstate", "a", "[").assert_refused(network);
    old().with_value("dest-device", "/dev/loop0").assert_refused(installer);
    old().with_value("dest-karg-append", "a").assert_refused(installer);
    old().with_value("dest-karg-delete", "a").assert_refused(installer);
    old().with_file("dest-ignition", "a", DEST).assert_refused(installer);
    old().with_file("installer-config", "a", INSTALL).assert_refused(installer);
    old().with_value("dest-console", "tty0").with_value("dest-device", "/dev/loop0").assert_refused(console);
    old().with_file("pre-install", "a", SCRIPT).with_file("ignition-ca", "b", CA).assert_same();
}

/// Both parsers of installer configs must accept or refuse the same texts.
#[test]
fn both_parsers_accept_the_same_installer_configs() {
    if !tool::is_tool_present() {
        return;
    }
    let digest = format!("ignition-hash: sha256-{}", "ab".repeat(32));
    for text in [
        "",
        "\n",
        "---",
        "{}",
        "# a",
        "stream: null",
        "stream: ~",
        "stream: 1",
        "stream: true",
        "append-karg: []",
        "append-karg: [1, 2.5, true]",
        "console: [ttyS0, 'tty0']",
        "copy-network: false",
        "fetch-retries: infinite",
        "fetch-retries: 0",
        "fetch-retries: '7'",
        "image-url: http://example.com",
        "image-url: ~",
        "secure-ipl: true",
        "dest-device: /dev/sda",
        "network-dir: a\narchitecture: b\nplatform: c",
        "save-partindex: [1, 2-3]",
        "stream-base-url: ftp://example.com/a",
        "offline: true\ninsecure: true\ninsecure-ignition: true",
        "preserve-on-error: true",
        "append-karg: &a [x]\ndelete-karg: *a",
        "append-karg:",
        "image-url: 'http:a'",
        "image-file: a\nimage-url: http://b\nstream: c",
        "ignition-url: 'data:,{}'",
        &digest,
        "stream: ''",
    ] {
        OracleCase::new().with_file("installer-config", "a", text).assert_same();
    }
    for text in [
        "[connection]",
        "a",
        "a: b",
        "config-file: a",
        "firstboot-args: a",
        "config-file: [a]",
        "append-karg: a",
        "append-karg: null",
        "stream: [a]",
        "stream: a\nstream: b",
        "copy-network: 'true'",
        "copy-network: yes",
        "copy-network: 1",
        "console: tty0",
        "console: [tty1]",
        "console: ['console=tty0']",
        "fetch-retries: -1",
        "fetch-retries: x",
        "fetch-retries:",
        "image-url: a",
        "image-url: /a",
        "image-url: 'http://'",
        "ignition-hash: a",
        "ignition-hash: sha256-ab",
        "ignition-hash: md5-ab",
        "append_karg: [a]",
        "a: [",
        "---\n{}\n---\n{}",
        "\u{0}",
        "stream: &a [*a]",
        "\ta: b",
        "Stream: a",
        "dest-device: {}",
    ] {
        OracleCase::new().with_file("installer-config", "a", text).assert_refused("parsing installer config");
    }
}
