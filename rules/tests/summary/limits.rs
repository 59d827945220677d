//! Tests that a summary truncates replies that exceed its limits.

use rules::summary::limits::{MAX_DISK_BYTES, MAX_MEMORY, MAX_PEERS, MAX_TANG_SERVERS};
use rules::summary::{ExcessPart, HostSummary, StoredSummary};
use serde_json::{Value, json};

use crate::apply::{apply, summary};

fn numbers(summary: &HostSummary) -> Vec<(ExcessPart, usize, usize)> {
    summary.excess.iter().map(|excess| (excess.part, excess.found, excess.kept)).collect()
}

fn list(count: usize, item: impl Fn(usize) -> Value) -> Value {
    (0..count).map(item).collect()
}

fn id(number: usize) -> String {
    format!("0aa1aa6b-3ea4-4fcb-a7d4-{number:012x}")
}

fn ipv4(number: usize) -> String {
    format!("10.{}.{}.{}", number >> 16 & 255, number >> 8 & 255, number & 255)
}

#[test]
fn truncates_1000_disks_to_256() {
    let disks = list(1000, |number| json!({"name": format!("sd{number}"), "size_bytes": number}));
    let summary = summary("inventory", &json!({ "disks": disks }));
    let disks = &summary.inventory.as_ref().unwrap().disks;
    assert_eq!(disks.len(), 256);
    assert_eq!(disks[255].size_bytes, 255);
    assert_eq!(numbers(&summary), [(ExcessPart::Disks, 1000, 256)]);
    assert_eq!(summary.excess_text().unwrap(), "inventory: 1000 disks reported, the first 256 are used");
}

#[test]
fn disks_over_the_byte_limit_are_omitted_as_a_whole() {
    let reasons = list(20, |number| json!(format!("{number}: {}", "long reason ".repeat(30))));
    let disks = list(50, |number| {
        json!({"name": format!("sd{number}"), "id": "i".repeat(300),
            "installation_eligibility": {"eligible": false, "not_eligible_reasons": reasons}})
    });
    let summary = summary("inventory", &json!({ "disks": disks }));
    let disks = &summary.inventory.as_ref().unwrap().disks;
    assert!((10..20).contains(&disks.len()), "{}", disks.len());
    assert!(disks.iter().all(|disk| disk.agent_reasons.len() == 16 && disk.id.len() == 256));
    let texts = disks.iter().flat_map(|disk| &disk.agent_reasons);
    assert!(texts.map(|text| text.len()).sum::<usize>() <= MAX_DISK_BYTES);
    let longest = "0: ".len() + 30 * "long reason ".len();
    assert_eq!(
        numbers(&summary),
        [
            (ExcessPart::Disks, 50, disks.len()),
            (ExcessPart::Reasons, 20, 16),
            (ExcessPart::Text, longest + 1, 256)
        ]
    );
}

#[test]
fn truncates_10000_addresses_to_16() {
    let addresses = list(10_000, |number| json!(format!("{}/8", ipv4(number))));
    let interfaces = list(100, |number| json!({"name": format!("eth{number}"), "ipv4_addresses": addresses}));
    let routes = list(300, |_| json!({"destination": "0.0.0.0"}));
    let gpus = list(33, |_| json!({"vendor_id": "10de"}));
    let summary = summary("inventory", &json!({"interfaces": interfaces, "routes": routes, "gpus": gpus}));
    let inventory = summary.inventory.as_ref().unwrap();
    assert_eq!(inventory.nics.len(), 64);
    assert!(inventory.nics.iter().all(|nic| nic.addresses.len() == 16));
    assert_eq!((inventory.routes.len(), inventory.gpus.len()), (256, 32));
    assert_eq!(
        numbers(&summary),
        [
            (ExcessPart::Nics, 100, 64),
            (ExcessPart::Addresses, 10_000, 16),
            (ExcessPart::Routes, 300, 256),
            (ExcessPart::Gpus, 33, 32)
        ]
    );
}

#[test]
fn next_reply_to_the_same_step_replaces_its_excess() {
    let disks = list(300, |_| json!({}));
    let sources = list(65, |_| json!({"source_name": "a"}));
    let mut summary = summary("inventory", &json!({ "disks": disks }));
    apply(&mut summary, "ntp-synchronizer", &sources).unwrap();
    assert_eq!(numbers(&summary), [(ExcessPart::Disks, 300, 256), (ExcessPart::TimeSources, 65, 64)]);
    apply(&mut summary, "inventory", &json!({})).unwrap();
    assert_eq!(numbers(&summary), [(ExcessPart::TimeSources, 65, 64)]);
    summary.clear_boot_facts();
    assert_eq!(summary, HostSummary::default());
    assert_eq!(summary.excess_text(), None);
}

#[test]
fn large_networks_are_omitted() {
    let report = json!([{"network": "10.0.0.0/16", "free_addresses": ["10.0.0.1"]},
        {"network": "10.1.0.0/22", "free_addresses": ["10.1.0.1"]}, {"network": "10.2.0.0/21"}]);
    let large = summary("free-network-addresses", &report);
    assert_eq!(large.free_addresses.len(), 1);
    assert!(large.free_addresses[0].contains("10.1.0.1".parse().unwrap()));
    let text = "free-network-addresses: 3 networks with unused addresses reported, 1 of at most 1024 addresses are used";
    assert_eq!(large.excess_text().unwrap(), text);

    let many = list(100, |number| json!({"network": format!("10.0.{number}.0/24")}));
    let many = summary("free-network-addresses", &many);
    assert_eq!(many.free_addresses.len(), 16);
    assert_eq!(numbers(&many), [(ExcessPart::Networks, 100, 16)]);
}

#[test]
fn tang_servers_are_kept_or_dropped_as_a_whole() {
    let servers = list(200, |number| json!({"url": "u".repeat(60), "thumbprint": number.to_string()}));
    let ignition = json!({"storage": {"luks": [{"clevis": {"tang": servers}}]}}).to_string();
    let summary = summary("api-vip-connectivity-check", &json!({ "ignition": ignition }));
    let servers = &summary.ignition_endpoint.as_ref().unwrap().tang_servers;
    let stored: Vec<Value> = serde_json::from_str(servers).unwrap();
    assert!(servers.len() <= MAX_TANG_SERVERS && stored.len() > 50, "{} {}", servers.len(), stored.len());
    assert_eq!(numbers(&summary), [(ExcessPart::TangServers, 200, stored.len())]);
}

/// Returns the summary of replies as large as the limits allow, with four bytes for each character.
fn largest() -> HostSummary {
    let text = "𝄞".repeat(2000);
    let texts = list(20, |_| json!(text));
    let addresses = list(100, |number| json!(format!("{}/8", ipv4(number))));
    let disk = json!({"id": "x".repeat(200)});
    let nic = json!({"name": text, "mac_address": text, "ipv4_addresses": addresses});
    let route = json!({"destination": "::", "gateway": "::", "interface": text, "metric": 1});
    let links = |host: usize| {
        list(
            20,
            |number| json!({"outgoing_nic": text, "remote_ip_address": ipv4(host % 80), "remote_mac": format!("{number} {text}")}),
        )
    };
    let pings = |host: usize| {
        list(4, |number| json!({"remote_ip_address": ipv4(host * 4 + number), "successful": true}))
    };
    let broken = list(20, |number| json!({"outgoing_nic": text, "remote_ip_address": ipv4(number)}));
    let mut summary = HostSummary::default();
    let luks = json!([{"clevis": {"tang": list(100, |_| json!({"url": "\u{1}".repeat(20)}))}}]);
    let results = |value: Value| -> Value {
        Value::Object((0..100).map(|number| (format!("{number:03} {text}"), value.clone())).collect())
    };
    for (step, reply) in [
        (
            "inventory",
            json!({"hostname": text, "cpu": {"architecture": text, "flags": ["vmx", "svm", "sev", "sev_es"]},
                "boot": {"current_boot_mode": text, "secure_boot_state": text}, "tpm_version": text,
                "system_vendor": {"manufacturer": text, "product_name": text},
                "truncation": {"type": text, "reasons": texts},
                "gpus": list(40, |_| json!({"vendor_id": text})), "interfaces": list(70, |_| nic.clone()),
                "routes": list(300, |_| route.clone()), "disks": list(300, |_| disk.clone())}),
        ),
        (
            "connectivity-check",
            json!({"remote_hosts": list(1200, |host| json!({"host_id": id(host), "l3_connectivity": pings(host),
                "l2_connectivity": if host < 100 { links(host) } else { json!(null) },
                "mtu_report": if host < 2 { broken.clone() } else { json!(null) }}))}),
        ),
        ("free-network-addresses", list(20, |number| json!({"network": format!("10.{number}.0.0/22")}))),
        ("ntp-synchronizer", list(70, |_| json!({"source_name": text, "source_state": text}))),
        (
            "domain-resolution",
            json!({"resolutions": list(70, |_| json!({"domain_name": "n", "ipv4_addresses": ["1"], "cnames": ["a"]}))}),
        ),
        ("verify-vips", list(20, |number| json!({"vip": ipv4(number), "vip_type": "api"}))),
        ("dhcp-lease-allocate", json!({"api_vip_address": "::", "ingress_vip_address": "::"})),
        (
            "api-vip-connectivity-check",
            json!({"url": text, "download_error": text, "ignition": json!({"storage": {"luks": luks}}).to_string()}),
        ),
        ("tang-connectivity-check", json!(text)),
        ("installation-disk-speed-check", results(json!({"disk_speed": {"tested": true, "speed_ms": 1}}))),
        ("container-image-availability", results(json!({}))),
    ] {
        apply(&mut summary, step, &reply).unwrap();
    }
    summary
}

#[test]
fn largest_replies_stay_within_the_memory_limit() {
    let summary = largest();
    let len = summary.memory_len();
    assert!(len <= MAX_MEMORY, "{len}");
    assert!(len > MAX_MEMORY / 2, "{len}");
    assert!(summary.peers.as_ref().unwrap().hosts.len() > MAX_PEERS * 9 / 10);
    let StoredSummary::Current(stored) = HostSummary::from_stored(&summary.to_stored().unwrap()).unwrap()
    else {
        panic!("another version");
    };
    assert_eq!(*stored, summary);
    assert_eq!(stored.memory_len(), len);
}
