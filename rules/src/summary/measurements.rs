//! Comparison of summaries that ignores measurements, because they differ in each report even if nothing has changed.

use super::connectivity::{PeerSummary, Peers};
use super::host_summary::HostSummary;

/// The limits that validations apply to measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasurementLimits {
    /// Limits for round-trip times, in milliseconds.
    pub rtt_ms: Vec<f64>,
    /// Limits for packet loss, in percent.
    pub loss_percent: Vec<f64>,
}

/// Returns the limits in the default hardware requirements of the Assisted Installer.
impl Default for MeasurementLimits {
    fn default() -> Self {
        Self { rtt_ms: vec![100.0, 1000.0], loss_percent: vec![0.0, 10.0] }
    }
}

impl HostSummary {
    /// Returns `true` if the summaries are equal. Two measurements count as equal if they are on the same side of each
    /// limit.
    #[must_use]
    pub fn is_same_except_measurements(&self, other: &Self, limits: &MeasurementLimits) -> bool {
        let Self {
            inventory,
            peers,
            free_addresses,
            time_sources,
            names,
            vips,
            leases,
            ignition_endpoint,
            tang,
            disk_speeds,
            images,
            excess,
        } = self;
        let are_same_peers = match (peers, &other.peers) {
            (Some(one), Some(other)) => are_same_peers(one, other, limits),
            (one, other) => one.is_none() && other.is_none(),
        };
        are_same_peers
            && *inventory == other.inventory
            && *free_addresses == other.free_addresses
            && *time_sources == other.time_sources
            && *names == other.names
            && *vips == other.vips
            && *leases == other.leases
            && *ignition_endpoint == other.ignition_endpoint
            && *tang == other.tang
            && *disk_speeds == other.disk_speeds
            && *images == other.images
            && *excess == other.excess
    }
}

fn are_same_peers(one: &Peers, other: &Peers, limits: &MeasurementLimits) -> bool {
    let Peers { hosts, collisions } = one;
    *collisions == other.collisions
        && hosts.len() == other.hosts.len()
        && hosts.iter().zip(&other.hosts).all(|(one, other)| is_same_peer(one, other, limits))
}

fn is_same_peer(one: &PeerSummary, other: &PeerSummary, limits: &MeasurementLimits) -> bool {
    let PeerSummary { host, addresses, rtt_ms, loss_percent, broken_mtu, has_mtu } = one;
    *host == other.host
        && *addresses == other.addresses
        && *broken_mtu == other.broken_mtu
        && *has_mtu == other.has_mtu
        && is_same_side(*rtt_ms, other.rtt_ms, &limits.rtt_ms)
        && is_same_side(*loss_percent, other.loss_percent, &limits.loss_percent)
}

/// Returns `true` if both values are on the same side of each limit. NaN and infinite values count as not measured.
fn is_same_side(one: Option<f64>, other: Option<f64>, limits: &[f64]) -> bool {
    match (one.filter(|value| value.is_finite()), other.filter(|value| value.is_finite())) {
        (Some(one), Some(other)) => limits.iter().all(|limit| (one > *limit) == (other > *limit)),
        (one, other) => one.is_none() && other.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_at_a_limit_is_on_its_lower_side() {
        let is_same = |one, other| is_same_side(Some(one), Some(other), &[100.0, 1000.0]);
        assert!(is_same(0.0, 100.0));
        assert!(is_same(100.1, 1000.0));
        assert!(!is_same(100.0, 100.1));
        assert!(!is_same(1.0, 2000.0));
        assert!(!is_same(1.0, f64::NAN));
        assert!(!is_same(f64::INFINITY, 2000.0));
        assert!(is_same(f64::NAN, f64::NEG_INFINITY));
        assert!(is_same_side(None, Some(f64::NAN), &[100.0]));
        assert!(!is_same_side(None, Some(0.0), &[100.0]));
        assert!(is_same_side(Some(1.0), Some(2000.0), &[f64::NAN]));
    }
}
