//! The expected discovery config, and the expected results of Ignition.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::report::SystemReport;
use crate::products::incompressible_bytes;
use crate::sha256_hex;

pub(super) const SSH_KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f boot@example";

/// An override with a file that is too large for the Ignition area with any compression.
pub(super) fn large_override() -> String {
    let source = format!("data:;base64,{}", STANDARD.encode(incompressible_bytes(400_000)));
    let file = json!({"path": "/etc/large", "mode": 0o600, "contents": {"source": source}});
    json!({"ignition": {"version": "3.1.0"}, "storage": {"files": [file]}}).to_string()
}

/// Checks that Ignition has created the files with their modes, the units and the users of the config.
pub(super) fn check_applied(config: &Value, report: &SystemReport) {
    let files = config["storage"]["files"].as_array().unwrap();
    // Skip appended files: the result depends on the existing file.
    let mut compared = 0;
    for file in files.iter().filter(|file| file["append"].is_null()) {
        let path = file["path"].as_str().unwrap();
        let report_file = report.files.get(path).unwrap_or_else(|| panic!("no {path} in {:?}", report.files));
        assert_eq!(
            report_file.digest,
            sha256_hex(&data_url_contents(file["contents"]["source"].as_str().unwrap())),
            "{path}"
        );
        assert_eq!(report_file.mode, format!("{:o}", file["mode"].as_u64().unwrap()), "{path}");
        assert_eq!(report_file.owner, "root", "{path}");
        compared += 1;
    }
    assert!(compared > 5, "{files:?}");
    for unit in config["systemd"]["units"].as_array().unwrap() {
        let name = unit["name"].as_str().unwrap();
        if let Some(text) = unit["contents"].as_str() {
            let report_file = &report.files[&format!("/etc/systemd/system/{name}")];
            assert_eq!(report_file.digest, sha256_hex(text.as_bytes()), "{name}");
        }
        assert_eq!(report.enabled.contains(name), unit["enabled"] == true, "{name}");
    }
    for user in config["passwd"]["users"].as_array().unwrap() {
        assert!(report.accounts.contains(user["name"].as_str().unwrap()), "{user}: {:?}", report.accounts);
    }
    let has_key = report.files.keys().any(|path| path.contains("/core/.ssh/"));
    assert!(has_key, "{:?}", report.files.keys());
}

fn data_url_contents(url: &str) -> Vec<u8> {
    let (kind, data) = url.strip_prefix("data:").unwrap().split_once(',').unwrap();
    let mut bytes = Vec::new();
    let mut rest = data.bytes();
    while let Some(byte) = rest.next() {
        let coded = || -> [u8; 2] { [rest.next().unwrap(), rest.next().unwrap()] };
        bytes.push(if byte == b'%' { decode_hex_byte(coded) } else { byte });
    }
    if kind.ends_with(";base64") { STANDARD.decode(bytes).unwrap() } else { bytes }
}

fn decode_hex_byte(digits: impl FnOnce() -> [u8; 2]) -> u8 {
    u8::from_str_radix(std::str::from_utf8(&digits()).unwrap(), 16).unwrap()
}

#[test]
fn data_urls_are_decoded() {
    assert_eq!(data_url_contents("data:,a%20b%0A"), b"a b\n");
    assert_eq!(data_url_contents("data:text/plain;charset=utf-8;base64,YQ%3D%3D"), b"a");
}
