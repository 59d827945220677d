//! The output of the examples.

#![allow(clippy::unwrap_used, reason = "test code: what is not as expected must stop the test")]

#[allow(dead_code, unreachable_pub, reason = "a program has a main function")]
#[path = "../examples/keyfiles.rs"]
mod keyfiles;
#[allow(dead_code, unreachable_pub, reason = "a program has a main function")]
#[path = "../examples/merge.rs"]
mod merge;

const VERSION: &str = r#""ignition": {"version": "3.3.0"}"#;

#[test]
fn merge_prints_the_result_and_warnings() {
    let parent = format!(
        "{{{VERSION}, \"systemd\": {{\"units\": [{{\"name\": \"a.service\", \"enabled\": true}}]}}}}"
    );
    let child = format!(
        "{{{VERSION}, \"colour\": 1,\n\"systemd\": {{\"units\": [{{\"name\": \"a.service\", \"enabled\": false}}]}}}}"
    );
    let merged = merge::merged(("a.ign", parent.as_bytes()), ("b.ign", child.as_bytes())).unwrap();
    assert_eq!(merged.warnings, "b.ign:1: /colour: warning: unknown key: Ignition ignores it\n");
    let config: serde_json::Value = serde_json::from_str(&merged.config).unwrap();
    assert_eq!(config["systemd"]["units"], serde_json::json!([{"name": "a.service", "enabled": false}]));
}

#[test]
fn merge_rejects_invalid_result() {
    let file = |owner: &str| {
        format!("{{{VERSION}, \"storage\": {{\"files\": [{{\"path\": \"/a\", \"user\": {{{owner}}}}}]}}}}")
    };
    let (parent, child) = (file("\"name\": \"root\""), file("\"id\": 0"));
    let error = merge::merged(("a.ign", parent.as_bytes()), ("b.ign", child.as_bytes())).unwrap_err();
    assert!(error.to_string().starts_with("merged: /storage/files/0/user: error: "), "{error}");
    let error = merge::merged(("a.ign", parent.as_bytes()), ("b.ign", b"{}")).unwrap_err();
    assert!(error.to_string().starts_with("b.ign:1: /ignition/version: error: "), "{error}");
}

#[test]
fn keyfiles_prints_files_with_their_paths() {
    let document =
        "interfaces:\n- {name: eth0, type: ethernet, state: up, ipv4: {enabled: true, dhcp: true}}\n";
    let (files, warnings) =
        keyfiles::keyfiles(document, "52:54:00:AA:BB:01=eth0\n\n52:54:00:AA:BB:02=eth1\n").unwrap();
    assert!(files.starts_with("# /etc/assisted/network/host0/eth0.nmconnection\n[connection]\n"), "{files}");
    let map =
        "\n# /etc/assisted/network/host0/mac_interface.ini\n52:54:00:AA:BB:01=eth0\n52:54:00:AA:BB:02=eth1\n";
    assert!(files.ends_with(map), "{files}");
    assert_eq!(
        warnings,
        "host: mac_interface_map[1].logical_nic_name: warning: the document has no interface eth1\n"
    );
    let error = keyfiles::keyfiles(document, "52:54=eth0\n").unwrap_err();
    assert!(error.to_string().contains("\"52:54\" is not a MAC address"), "{error}");
    assert!(keyfiles::keyfiles(document, "eth0").unwrap_err().to_string().contains("is not MAC=NAME"));
}
