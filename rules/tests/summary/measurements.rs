//! Tests the comparison of summaries that differ only in measurements.

use rules::summary::{HostSummary, MeasurementLimits};

use crate::golden::summary_of;

/// Returns the summary with these measurements of its first peer.
fn measured(rtt_ms: Option<f64>, loss_percent: Option<f64>) -> HostSummary {
    let mut summary = summary_of("usual_machine.json");
    let peer = &mut summary.peers.as_mut().unwrap().hosts[0];
    (peer.rtt_ms, peer.loss_percent) = (rtt_ms, loss_percent);
    summary
}

#[test]
fn measurements_on_the_same_side_of_all_limits_are_equal() {
    let limits = MeasurementLimits::default();
    let before = measured(Some(1.0), Some(0.0));
    for (rtt_ms, loss_percent, expected) in [
        (Some(100.0), Some(0.0), true),
        (Some(100.1), Some(0.0), false),
        (Some(2000.0), Some(0.0), false),
        (Some(1.0), Some(0.1), false),
        (None, Some(0.0), false),
        (Some(f64::NAN), Some(0.0), false),
        (Some(1.0), Some(f64::INFINITY), false),
    ] {
        let after = measured(rtt_ms, loss_percent);
        assert_eq!(
            before.is_same_except_measurements(&after, &limits),
            expected,
            "{rtt_ms:?} {loss_percent:?}"
        );
        assert_eq!(
            after.is_same_except_measurements(&before, &limits),
            expected,
            "{rtt_ms:?} {loss_percent:?}"
        );
    }
    let nan = measured(Some(f64::NAN), None);
    assert!(nan.is_same_except_measurements(&nan.clone(), &limits));
    let none = MeasurementLimits { rtt_ms: Vec::new(), loss_percent: Vec::new() };
    assert!(before.is_same_except_measurements(&measured(Some(9999.0), Some(100.0)), &none));
}

#[test]
fn other_differences_are_not_ignored() {
    let limits = MeasurementLimits::default();
    let mut before = summary_of("odd_values.json");
    let others = summary_of("vips.json");
    (before.vips, before.leases, before.tang) = (others.vips, others.leases, summary_of("tang.json").tang);
    assert!(before.is_same_except_measurements(&before.clone(), &limits));
    let changes: [fn(&mut HostSummary); 17] = [
        |it| it.inventory = None,
        |it| it.inventory.as_mut().unwrap().disks[0].bootable = true,
        |it| it.peers = None,
        |it| it.peers.as_mut().unwrap().hosts.truncate(1),
        |it| it.peers.as_mut().unwrap().hosts.reverse(),
        |it| it.peers.as_mut().unwrap().hosts[1].addresses[0].on_link = false,
        |it| it.peers.as_mut().unwrap().hosts[1].broken_mtu.clear(),
        |it| it.peers.as_mut().unwrap().hosts[1].has_mtu = false,
        |it| it.peers.as_mut().unwrap().collisions.clear(),
        |it| it.free_addresses[0].bits[0] = 0,
        |it| it.time_sources.as_mut().unwrap()[0].state = "synced".into(),
        |it| it.names = None,
        |it| it.vips.clear(),
        |it| it.leases = None,
        |it| it.ignition_endpoint = None,
        |it| it.tang = None,
        |it| {
            it.disk_speeds.clear();
            it.excess.clear();
        },
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut after = before.clone();
        change(&mut after);
        assert!(!before.is_same_except_measurements(&after, &limits), "{number}");
    }
}
