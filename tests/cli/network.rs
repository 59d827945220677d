//! `kindling network`: findings with their files and lines, keyfiles, and exit codes for scripts.

use serde_json::Value;

use crate::support::Scratch;

const GOOD: &str = "interfaces:\n- name: eth0\n  type: ethernet\n  state: up\n  ipv4:\n    enabled: true\n    address:\n\
    \x20   - ip: 192.0.2.10\n      prefix-length: 24\n";
const WARNED: &str =
    "interfaces:\n- name: v0\n  type: vlan\n  vlan: {id: 0, base-iface: d0}\n- {name: d0, type: dummy}\n";

/// Returns the network configs of two hosts with the same address.
fn hosts_with_the_same_address() -> String {
    let host = |mac: &str| {
        serde_json::json!({"network_yaml": GOOD,
            "mac_interface_map": [{"mac_address": mac, "logical_nic_name": "eth0"}]})
    };
    Value::from(vec![host("52:54:00:aa:bb:01"), host("52:54:00:aa:bb:02")]).to_string()
}

fn scratch_with_hosts() -> Scratch {
    let scratch = Scratch::new();
    for (name, text) in [
        ("good.yaml", GOOD),
        ("other.yaml", &GOOD.replace("192.0.2.10", "192.0.2.11").replace("eth0", "eth1")),
        ("warned.yaml", WARNED),
        ("hosts.json", &hosts_with_the_same_address()),
        ("broken.yaml", "interfaces: 7\n"),
        ("numbers.json", "[1]"),
    ] {
        scratch.write(name, text);
    }
    scratch
}

/// Runs a command. Returns its exit code and both output streams.
#[track_caller]
fn exit_code_and_output(scratch: &Scratch, line: &str) -> (i32, String, String) {
    let output = scratch.run_kindling(line);
    let text = output.stdout_text().to_owned();
    assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
    (output.status.code().unwrap(), text, output.stderr)
}

#[test]
fn valid_hosts_pass() {
    let scratch = scratch_with_hosts();
    let text = scratch.run_kindling("network check --strict good.yaml other.yaml").expect_text();
    assert_eq!(text, "2 hosts, 0 errors, 0 warnings\n");
    let piped = scratch.command(["network", "check", "-"]).stdin(GOOD).run();
    assert_eq!(piped.expect_text(), "1 host, 0 errors, 0 warnings\n");
}

#[test]
fn findings_decide_the_exit_code() {
    let scratch = scratch_with_hosts();
    let warning = "warned.yaml:4: interfaces[0].vlan.id: warning: VLAN 0 is not a VLAN: it only marks the priority of packets\n";
    let expected = format!("{warning}1 host, 0 errors, 1 warning\n");
    assert_eq!(
        exit_code_and_output(&scratch, "network check warned.yaml"),
        (0, expected.clone(), String::new())
    );
    assert_eq!(
        exit_code_and_output(&scratch, "network check --strict warned.yaml"),
        (1, expected, String::new())
    );
    let (code, text, _) = exit_code_and_output(&scratch, "network check hosts.json good.yaml");
    let finding = |host: &str| {
        format!(
            "{host}:8: interfaces[0].ipv4.address[0].ip: error: 192.0.2.10 is also the address of eth0 in hosts.json[0]\n"
        )
    };
    assert_eq!(code, 1);
    assert_eq!(
        text,
        format!("{}{}3 hosts, 2 errors, 0 warnings\n", finding("hosts.json[1]"), finding("good.yaml"))
    );
    let (code, text, _) = exit_code_and_output(&scratch, "network check broken.yaml");
    assert!(code == 1 && text.starts_with("broken.yaml:1: interfaces: error: "), "{text}");
}

/// Returns a manifest with the network config of a host.
fn network_manifest(name: &str, mac: &str, address: &str) -> String {
    let config = GOOD.replace("192.0.2.10", address).replace('\n', "\n    ");
    format!(
        "apiVersion: agent-install.openshift.io/v1beta1\nkind: NMStateConfig\nmetadata:\n  name: {name}\nspec:\n  interfaces:\n  - \
         name: eth0\n    macAddress: {mac}\n  config:\n    {}\n",
        config.trim_end()
    )
}

const SECRET: &str = "kind: Secret\nmetadata: {name: pull-secret}\n";

#[test]
fn manifests_and_documents_of_one_file_are_checked() {
    let scratch = Scratch::new();
    let one = network_manifest("node-0", "52:54:00:aa:bb:01", "192.0.2.10");
    scratch.write(
        "good.yaml",
        format!("{SECRET}---\n{one}---\n{}", network_manifest("node-1", "52:54:00:aa:bb:02", "192.0.2.11")),
    );
    let text = scratch.run_kindling("network check --strict good.yaml").expect_text();
    assert_eq!(text, "2 hosts, 0 errors, 0 warnings\n");
    scratch.write(
        "same.yaml",
        format!("{one}---\n{}", network_manifest("node-1", "52:54:00:AA:BB:01", "192.0.2.10")),
    );
    let (code, text, errors) = exit_code_and_output(&scratch, "network check same.yaml");
    assert_eq!((code, errors.as_str()), (1, ""));
    assert_eq!(
        text,
        "same.yaml:27: spec.interfaces[0].macAddress: error: 52:54:00:AA:BB:01 is also the address of eth0 in node-0\n\
         same.yaml:36: spec.config.interfaces[0].ipv4.address[0].ip: error: 192.0.2.10 is also the address of eth0 in node-0\n\
         2 hosts, 2 errors, 0 warnings\n"
    );
    scratch.write("plain.yaml", format!("# two hosts\n---\n{GOOD}---\n{GOOD}...\n"));
    let (code, text, _) = exit_code_and_output(&scratch, "network check plain.yaml");
    assert_eq!(code, 1);
    assert_eq!(
        text,
        "plain.yaml:20: interfaces[0].ipv4.address[0].ip: error: 192.0.2.10 is also the address of eth0 in plain.yaml:2\n\
         2 hosts, 1 error, 0 warnings\n"
    );
    scratch.write("one.yaml", format!("---\n{GOOD}---\n"));
    assert_eq!(
        scratch.run_kindling("network check one.yaml").expect_text(),
        "1 host, 0 errors, 0 warnings\n"
    );
}

/// The manifests of a cluster with an API VIP and a machine network.
const CLUSTER: &str = "kind: AgentClusterInstall\nmetadata: {name: site}\nspec:\n  apiVIP: 192.0.2.10\n  networking:\n    \
                       machineNetwork:\n    - cidr: 192.0.2.0/24\n";

#[test]
fn manifests_of_other_kinds_are_not_errors() {
    let scratch = Scratch::new();
    scratch.write("host.yaml", network_manifest("node-0", "52:54:00:aa:bb:01", "192.0.2.11"));
    scratch.write("cluster.yaml", CLUSTER);
    scratch.write("secret.yaml", SECRET);
    let text =
        scratch.run_kindling("network check --strict cluster.yaml host.yaml secret.yaml").expect_text();
    assert_eq!(text, "1 host, 0 errors, 0 warnings\n");
    scratch.run_kindling("network keyfiles cluster.yaml host.yaml").expect_text();
    let none = "cluster.yaml: error: has no NMStateConfig\nsecret.yaml: error: has no NMStateConfig\n0 hosts, 2 errors, 0 \
                warnings\n";
    assert_eq!(
        exit_code_and_output(&scratch, "network check cluster.yaml secret.yaml"),
        (1, none.to_owned(), String::new())
    );
}

#[test]
fn hosts_are_compared_with_the_cluster_among_the_files() {
    let scratch = Scratch::new();
    scratch.write("cluster.yaml", CLUSTER);
    let host = |name: &str, mac: &str, address: &str| {
        scratch.write(&format!("{name}.yaml"), network_manifest(name, mac, address));
    };
    host("node-0", "52:54:00:aa:bb:01", "192.0.2.10");
    host("node-1", "52:54:00:aa:bb:02", "198.51.100.7");
    let (code, text, _) =
        exit_code_and_output(&scratch, "network check node-0.yaml node-1.yaml cluster.yaml");
    assert_eq!(code, 1);
    let path = "spec.config.interfaces[0].ipv4.address[0].ip:";
    assert_eq!(
        text,
        format!(
            "node-0.yaml:17: {path} error: 192.0.2.10 is also the API VIP in cluster.yaml:4\nnode-1.yaml:17: {path} warning: the \
             host has no static address in the machine network 192.0.2.0/24\n2 hosts, 1 error, 1 warning\n"
        )
    );
    // With two clusters, it is unknown to which one the hosts belong.
    scratch.write("second.yaml", CLUSTER.replace("name: site", "name: other"));
    scratch.run_kindling("network check --strict node-0.yaml cluster.yaml second.yaml").expect_text();
}

#[test]
fn findings_without_a_line_get_the_first_line_of_their_document() {
    let scratch = Scratch::new();
    scratch.write("hosts.yaml", format!("{GOOD}---\n# empty\ncolour: 1\n---\nhello\n"));
    let (_, text, _) = exit_code_and_output(&scratch, "network check hosts.yaml");
    let places: Vec<&str> = text.lines().filter_map(|line| line.split(": ").next()).collect();
    assert_eq!(places[..places.len() - 1], ["hosts.yaml:10", "hosts.yaml:13"], "{text}");
    scratch.write("broken.yaml", "interfaces:\n- name: eth0\n  mtu: 99999999999999999999\n");
    let (_, text, _) = exit_code_and_output(&scratch, "network check broken.yaml");
    assert!(text.starts_with("broken.yaml:3: error: parsing YAML: the number "), "{text}");
}

/// The documentation contains a list of hosts, ready to paste.
#[test]
fn documented_example_passes() {
    let page = include_str!("../../docs/network.md");
    let example = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let scratch = Scratch::new();
    scratch.write("hosts.json", example);
    assert_eq!(
        scratch.run_kindling("network check --strict hosts.json").expect_text(),
        "1 host, 0 errors, 0 warnings\n"
    );
}

#[test]
fn keyfiles_of_manifests_are_printed_with_host_names() {
    let scratch = Scratch::new();
    scratch.write("one.yaml", network_manifest("node-0", "52:54:00:aa:bb:01", "192.0.2.10"));
    let text = scratch.run_kindling("network keyfiles one.yaml").expect_text();
    assert!(text.starts_with("# node-0: eth0.nmconnection\n[connection]\n"), "{text}");
    scratch.write("wrong.yaml", "kind: NMStateConfig\nmetadata: {name: node-0}\nspec: {interfaces: []}\n");
    let (code, text, errors) = exit_code_and_output(&scratch, "network keyfiles wrong.yaml");
    assert_eq!((code, text.as_str()), (1, ""));
    assert_eq!(
        errors,
        "wrong.yaml:3: spec.config: error: NMStateConfig node-0 has no spec.config\n\
         Error: 1 error; nothing was written\n"
    );
}

#[test]
fn malformed_manifests_are_findings() {
    let scratch = Scratch::new();
    let text = network_manifest("node-0", "52:54:00:aa:bb:01", "192.0.2.10");
    scratch.write("fields.yaml", text.replace("  config:", "  extra: 1\n  config:"));
    let line = "fields.yaml:9: spec.extra: warning: unknown field\n1 host, 0 errors, 1 warning\n";
    assert_eq!(
        exit_code_and_output(&scratch, "network check fields.yaml"),
        (0, line.to_owned(), String::new())
    );
    assert_eq!(exit_code_and_output(&scratch, "network check --strict fields.yaml").0, 1);
    scratch.write("map.yaml", text.replace("    macAddress: 52:54:00:aa:bb:01\n", ""));
    let line = "map.yaml:7: spec.interfaces[0]: error: needs a name and a macAddress\n0 hosts, 1 error, 0 warnings\n";
    assert_eq!(exit_code_and_output(&scratch, "network check map.yaml"), (1, line.to_owned(), String::new()));
    let (_, json, _) = exit_code_and_output(&scratch, "network check --json map.yaml");
    let json: Value = serde_json::from_str(&json).unwrap();
    let expected = serde_json::json!([{
        "severity": "error", "rule": null, "host": null, "name": "map.yaml", "interface": null,
        "path": "spec.interfaces[0]", "line": 7, "message": "needs a name and a macAddress",
    }]);
    assert_eq!(json["findings"], expected);
    scratch.write("none.yaml", SECRET);
    let line = "none.yaml: error: has no NMStateConfig\n0 hosts, 1 error, 0 warnings\n";
    assert_eq!(
        exit_code_and_output(&scratch, "network check none.yaml"),
        (1, line.to_owned(), String::new())
    );
    scratch.write("broken.yaml", format!("{text}---\nkind: [\n"));
    let line = "broken.yaml:20: error: is not valid YAML: did not find expected node content while parsing a flow node\n\
                1 host, 1 error, 0 warnings\n";
    assert_eq!(
        exit_code_and_output(&scratch, "network check broken.yaml"),
        (1, line.to_owned(), String::new())
    );
}

#[test]
fn error_names_a_tab_in_the_indentation() {
    let scratch = Scratch::new();
    scratch.write("tab.yaml", "interfaces:\n- name: eth0\n\ttype: ethernet\n");
    let line = "tab.yaml:3: error: parsing YAML: the line is indented with a tab; YAML allows only spaces";
    let (code, text, _) = exit_code_and_output(&scratch, "network check tab.yaml");
    assert!(code == 1 && text.starts_with(line), "{text}");
}

#[test]
fn findings_are_printed_as_json() {
    let (code, text, _) = exit_code_and_output(&scratch_with_hosts(), "network check --json hosts.json");
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &json["hosts"], &json["errors"]), (1, &2.into(), &1.into()));
    let finding = &json["findings"][0];
    assert_eq!(finding["rule"], "duplicate-address");
    assert_eq!(
        (&finding["host"], &finding["interface"], &finding["line"]),
        (&1.into(), &"eth0".into(), &8.into())
    );
}

#[test]
fn keyfiles_are_printed() {
    let scratch = scratch_with_hosts();
    let text = scratch.run_kindling("network keyfiles good.yaml other.yaml").expect_text();
    assert!(text.starts_with("# good.yaml: eth0.nmconnection\n[connection]\nautoconnect=true\n"), "{text}");
    assert!(text.contains("method=disabled\n\n# other.yaml: eth1.nmconnection\n[connection]\n"), "{text}");
    let json = scratch
        .command(["network", "keyfiles", "--json", "-"])
        .stdin(hosts_with_the_same_address())
        .run()
        .expect_text();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[1]["name"], "stdin[1]");
    let contents = json[0]["keyfiles"][0]["contents"].as_str().unwrap();
    assert!(text.contains(contents) && contents.contains("address0=192.0.2.10/24\n"));
}

#[test]
fn keyfiles_are_written_and_never_overwrite() {
    let scratch = scratch_with_hosts();
    let printed = scratch.run_kindling("network keyfiles good.yaml -o one").expect_text();
    assert_eq!(printed, "one/eth0.nmconnection\n");
    let contents = String::from_utf8(scratch.read("one/eth0.nmconnection")).unwrap();
    assert!(contents.contains("interface-name=eth0\n"));
    let (code, _, errors) = exit_code_and_output(&scratch, "network keyfiles good.yaml -o one");
    assert!(code == 1 && errors.contains("cannot create one/eth0.nmconnection: File exists; remove it, or use another path for --output"), "{errors}");
    scratch.run_kindling("network keyfiles good.yaml other.yaml -o two").expect_text();
    assert!(
        scratch.has_file("two/host0/eth0.nmconnection") && scratch.has_file("two/host1/eth1.nmconnection")
    );
    let (code, _, errors) = exit_code_and_output(&scratch, "network keyfiles good.yaml broken.yaml -o three");
    assert!(code == 1 && errors.contains("translating broken.yaml"), "{errors}");
    assert!(!scratch.has_file("three"));
}

#[test]
fn wrong_usage_is_refused() {
    let scratch = scratch_with_hosts();
    scratch.run_kindling("network check").expect_usage_error("<FILE>...");
    scratch.run_kindling("network keyfiles good.yaml --json -o x").expect_usage_error("cannot be used with");
    scratch.run_kindling("network check - -").expect_failure("stdin can be read only once");
    scratch.run_kindling("network check gone.yaml").expect_failure("opening gone.yaml");
    scratch
        .run_kindling("network check numbers.json")
        .expect_failure("numbers.json:1: [0]: is not a host with network_yaml and mac_interface_map");
}
