//! Tests that a summary refuses invalid replies and stays unchanged.

use rules::summary::HostSummary;
use serde_json::json;

use crate::apply::apply;
use crate::golden::summary_of;

#[test]
fn rejects_invalid_replies_without_changes() {
    let long = "1".repeat(1000);
    for (step, reply, message) in [
        ("free-network-addresses", json!([]), "free-network-addresses: the reply has no results"),
        (
            "free-network-addresses",
            json!([{"network": "10.0.0.0"}]),
            "free-network-addresses: invalid network \"10.0.0.0\", expected an address and a prefix length such as \
             192.0.2.0/24",
        ),
        (
            "free-network-addresses",
            json!([{"network": "10.0.0.0/24", "free_addresses": ["10.0.0.1/24"]}]),
            "free-network-addresses: invalid IP address \"10.0.0.1/24\"",
        ),
        ("verify-vips", json!([{"vip": "NaN"}]), "verify-vips: invalid IP address \"NaN\""),
        ("verify-vips", json!([{}]), "verify-vips: invalid IP address \"\""),
        (
            "dhcp-lease-allocate",
            json!({"api_vip_address": "10.0.0.1", "ingress_vip_address": long}),
            &format!("dhcp-lease-allocate: invalid IP address {:?}", &long[..256]),
        ),
        (
            "api-vip-connectivity-check",
            json!({"is_success": true, "ignition": "{"}),
            "api-vip-connectivity-check: invalid JSON: EOF while parsing an object at line 1 column 1",
        ),
        (
            "api-vip-connectivity-check",
            json!({"is_success": true, "ignition": "{\"storage\": {\"luks\": {}}}"}),
            "api-vip-connectivity-check: invalid JSON: invalid type: map, expected a sequence at line 1 column 21",
        ),
    ] {
        let before = summary_of("odd_values.json");
        let mut summary = before.clone();
        assert_eq!(apply(&mut summary, step, &reply).unwrap_err().to_string(), message);
        assert_eq!(summary, before);
    }
}

#[test]
fn rejects_damaged_stored_results() {
    let mut summary = HostSummary::default();
    assert!(summary.set_disk_speeds("").is_ok());
    assert!(summary.set_images("").is_ok());
    for text in [
        "[]",
        "{",
        r#"{"a": 1}"#,
        r#"{"a": {"disk_speed": 1}}"#,
        r#"{"a": {"disk_speed": {"speed_ms": 0.5}}}"#,
    ] {
        assert!(summary.set_disk_speeds(text).is_err(), "{text}");
    }
    for text in ["[]", "{", r#"{"a": 1}"#, r#"{"a": []}"#, r#"{"a": {"size_bytes": "NaN"}}"#] {
        assert!(summary.set_images(text).is_err(), "{text}");
    }
    assert_eq!(summary, HostSummary::default());
}
