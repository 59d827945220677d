//! Measures the CPU time of an assessment. Runs only on request:
//!
//! ```text
//! cargo test --release -p rules --test assessment -- --ignored --nocapture time
//! ```

use std::sync::Arc;

use assisted::{ClusterId, HostId, InfraEnvId};
use ignition::Cidr;
use rules::summary::{
    DiskSummary, HostSummary, InventorySummary, NicSummary, PeerAddress, PeerSummary, Peers, RouteSummary,
};
use rules::view::{ClusterView, HostView};
use uuid::Uuid;

use crate::assess::{assess, view};
use crate::facts::{ClusterShape, cluster};

/// Returns the two addresses of a host. Each network contains all hosts.
fn addresses(number: u128) -> [Cidr; 2] {
    let (high, low) = (number / 250, number % 250 + 1);
    [format!("192.168.{high}.{low}/16"), format!("10.1.{high}.{low}/16")]
        .map(|text| Cidr::parse(&text).unwrap())
}

fn peer(number: u128) -> PeerSummary {
    let mut addresses =
        addresses(number).map(|it| PeerAddress { address: it.address(), on_link: true, routed: true });
    addresses.sort_by_key(|address| address.address);
    PeerSummary {
        host: HostId(Uuid::from_u128(number)),
        addresses: addresses.to_vec(),
        rtt_ms: Some(1.0),
        loss_percent: Some(0.0),
        broken_mtu: Vec::new(),
        has_mtu: false,
    }
}

fn host(number: u128, host_count: u128) -> HostView {
    let nics = addresses(number).into_iter().enumerate().map(|(index, address)| NicSummary {
        name: format!("eth{index}").into(),
        mac: format!("52:54:00:0{index}:{:02x}:{:02x}", number / 256, number % 256).into(),
        addresses: vec![address],
        ..NicSummary::default()
    });
    let disk = |name: &str| DiskSummary {
        id: format!("/dev/{name}").into(),
        name: name.into(),
        drive_type: "SSD".into(),
        size_bytes: 120 << 30,
        ..DiskSummary::default()
    };
    let route = RouteSummary {
        destination: Some("0.0.0.0".parse().unwrap()),
        gateway: Some("192.168.0.1".parse().unwrap()),
        nic: "eth0".into(),
        metric: 100,
    };
    let inventory = InventorySummary {
        hostname: format!("node-{number}").into(),
        architecture: "x86_64".into(),
        cpus: Some(8),
        physical_bytes: Some(32 << 30),
        usable_bytes: 32 << 30,
        nics: nics.collect(),
        routes: vec![route],
        disks: vec![disk("sda"), disk("sdb")],
        ..InventorySummary::default()
    };
    let others = (0..host_count).filter(|other| *other != number);
    let peers = Peers { hosts: others.map(peer).collect(), ..Peers::default() };
    let summary =
        HostSummary { inventory: Some(Box::new(inventory)), peers: Some(peers), ..HostSummary::default() };
    let id = HostId(Uuid::from_u128(number));
    HostView {
        clock_skew: Some(0),
        summary: Arc::new(summary),
        ..HostView::new(id, InfraEnvId(Uuid::from_u128(0xe)))
    }
}

/// Returns an assessed cluster whose hosts all reach each other.
fn assessed_cluster(host_count: u128) -> ClusterView {
    let mut settings = cluster(ClusterShape::WithWorkers);
    settings.id = ClusterId(Uuid::from_u128(0xc));
    assess(&view(settings, (0..host_count).map(|number| host(number, host_count)))).view
}

#[test]
#[ignore = "a measurement, for optimized builds"]
#[allow(clippy::disallowed_methods, reason = "a measurement needs a clock")]
fn time_of_an_assessment() {
    for (host_count, repetitions) in [(3, 2000), (50, 100), (500, 20)] {
        let view = assessed_cluster(host_count);
        let mut times: Vec<_> = (0..repetitions)
            .map(|_| {
                let start = std::time::Instant::now();
                std::hint::black_box(assess(std::hint::black_box(&view)));
                start.elapsed()
            })
            .collect();
        times.sort_unstable();
        let (fastest, median) = (times[0], times[times.len() / 2]);
        eprintln!("{host_count} hosts: {fastest:?} at least, median {median:?}");
    }
}
