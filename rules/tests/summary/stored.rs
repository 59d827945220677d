//! Tests the stored form of summaries, and the removal of facts when a host registers again or leaves its cluster.

use std::error::Error as _;

use rules::summary::{HostSummary, StoredSummary, VERSION};

use crate::golden::summary_of;

#[test]
fn other_versions_are_not_parsed() {
    let newer = VERSION + 1;
    let text = format!(r#"{{"summary": {{"inventory": 5}}, "version": {newer}}}"#);
    assert_eq!(HostSummary::from_stored(&text).unwrap(), StoredSummary::Newer(newer));
    assert_eq!(HostSummary::from_stored(r#"{"version": 0}"#).unwrap(), StoredSummary::Older(0));
}

#[test]
fn rejects_damaged_texts() {
    let whole = summary_of("usual_machine.json").to_stored().unwrap();
    for end in 0..whole.len() {
        let error = HostSummary::from_stored(&whole[..end]).unwrap_err();
        assert_eq!(error.to_string(), "the stored summary is damaged");
        assert!(error.source().is_some());
    }
    for text in [
        "{}",
        "[]",
        r#"{"version": -1}"#,
        r#"{"version": 1}"#,
        r#"{"version": 1, "summary": null}"#,
        r#"{"version": 1, "summary": {"peers": {"hosts": [{}]}}}"#,
        r#"{"version": 1, "summary": {"free_addresses": [{"network": "10.0.0.0/33", "bits": ""}]}}"#,
        r#"{"version": 1, "summary": {"free_addresses": [{"network": "10.0.0.0/24", "bits": "!"}]}}"#,
        r#"{"version": 1, "summary": {"inventory": {"routes": [["10.0.0.0", null, "eth0"]]}}}"#,
        r#"{"version": 1, "summary": {"peers": {"hosts":
            [{"host": "0aa1aa6b-3ea4-4fcb-a7d4-5b3c1e2f0a11", "ips": [["10.0.0.1", 4]]}]}}}"#,
    ] {
        assert!(HostSummary::from_stored(text).is_err(), "{text}");
    }
}

#[test]
fn short_bits_of_unused_addresses_do_not_panic() {
    let text = r#"{"version": 1, "summary": {"free_addresses": [{"network": "0.0.0.0/0", "bits": "gA"}]}}"#;
    let StoredSummary::Current(summary) = HostSummary::from_stored(text).unwrap() else { panic!("{text}") };
    assert!(summary.free_addresses[0].contains("0.0.0.0".parse().unwrap()));
    assert!(!summary.free_addresses[0].contains("255.255.255.255".parse().unwrap()));
    assert!(!summary.free_addresses[0].contains("::".parse().unwrap()));
}

#[test]
fn new_registration_removes_boot_facts() {
    let mut summary = summary_of("odd_values.json");
    let mut preparing = summary.clone();
    preparing.clear_boot_facts_except_inventory();
    summary.clear_boot_facts();
    assert_eq!((summary.inventory.is_some(), preparing.inventory.is_some()), (false, true));
    for summary in [&summary, &preparing] {
        assert_eq!((&summary.time_sources, summary.images.len()), (&None, 0));
        assert!(summary.peers.is_some() && summary.names.is_some() && summary.ignition_endpoint.is_some());
        assert_eq!(
            (summary.free_addresses.len(), summary.disk_speeds.len(), summary.excess.len()),
            (2, 1, 1)
        );
    }
}

#[test]
fn leaving_the_cluster_keeps_only_hardware_facts() {
    let mut summary = summary_of("odd_values.json");
    let expected = HostSummary {
        inventory: summary.inventory.clone(),
        time_sources: summary.time_sources.clone(),
        disk_speeds: summary.disk_speeds.clone(),
        excess: summary
            .excess
            .iter()
            .copied()
            .filter(|excess| excess.step.as_str() == "ntp-synchronizer")
            .collect(),
        ..HostSummary::default()
    };
    assert_eq!(expected.excess.len(), 1);
    let leases_and_vips = summary_of("vips.json");
    (summary.vips, summary.leases) = (leases_and_vips.vips, leases_and_vips.leases);
    summary.tang = summary_of("tang.json").tang;
    summary.clear_cluster_facts();
    assert_eq!(summary, expected);
}
