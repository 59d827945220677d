//! Checks across several values: each value is valid on its own, but may be a mistake or conflict with another.

use ignition::discovery::ComposeError;
use ignition::lint;
use ignition::network::check::{ClusterNetworks, check_hosts};
use ignition::network::{HostNetwork, KeyfileCache};
use ignition::report::{ConfigFinding, Severity};
use ignition::version::Version;

use crate::finding::{DiscoveryFinding, DiscoveryReport, FindingKind, Located, SourceLocation};
use crate::host::Host;
use crate::version::OpenshiftVersion;

/// Checks the host networks, and compares the hosts with each other and with the networks of their cluster.
pub(crate) fn check_networks(
    hosts: &[Host],
    cluster: &ClusterNetworks,
    cache: &KeyfileCache,
    findings: &mut DiscoveryReport,
) {
    let networks: Vec<HostNetwork> = hosts.iter().map(|host| host.network.clone()).collect();
    for finding in check_hosts(&networks, cluster, cache).findings() {
        let place = hosts
            .get(finding.host)
            .map_or_else(|| SourceLocation::whole(finding.to_string()), |host| host.place_of(finding));
        let finding = DiscoveryFinding::new(finding.severity, place, finding.message.clone());
        findings.push(finding.with_kind(FindingKind::Network));
    }
    // A booted machine selects its network by MAC address, so it could not use a network without MAC addresses.
    for host in hosts.iter().filter(|host| host.network.interfaces().is_none()) {
        let message = "has no MAC addresses; use an NMStateConfig, or a list with mac_interface_map";
        let finding = DiscoveryFinding::new(Severity::Error, host.place(), message);
        findings.push(finding.with_kind(FindingKind::Network));
    }
}

/// Checks an Ignition config to merge over the generated one.
pub(crate) fn check_override(over: &Located<&str>, findings: &mut DiscoveryReport) {
    for finding in lint::check(over.value.as_bytes()).findings() {
        findings.push(override_finding(finding, &over.place));
    }
}

/// Adds the reasons why no config can be composed with the override at `place`.
pub(crate) fn report_compose_error(
    error: &ComposeError,
    place: &SourceLocation,
    findings: &mut DiscoveryReport,
) {
    let before = findings.as_slice().len();
    for finding in error.findings() {
        findings.push(override_finding(finding, place));
    }
    if findings.as_slice().len() == before {
        let finding = DiscoveryFinding::new(Severity::Error, place.clone(), error.to_string());
        findings.push(finding.with_kind(FindingKind::Override));
    }
}

/// Converts a config finding about the override at `place` to a discovery finding.
fn override_finding(finding: &ConfigFinding, place: &SourceLocation) -> DiscoveryFinding {
    let ConfigFinding { severity, pointer, position, message, .. } = finding.clone();
    let SourceLocation { file, line, path } = place.clone();
    // If the override is a string in a manifest, the line number within the config is not a line number of the
    // manifest. The finding then contains the line of the string, and the message contains the path in the config.
    let (line, message) = match path.is_empty() {
        true => (position.map(|it| it.line).or(line), message),
        false if pointer.is_empty() => (line, message),
        false => (line, format!("{pointer}: {message}")),
    };
    let path = if path.is_empty() { pointer } else { path };
    let place = SourceLocation { file, line, path };
    DiscoveryFinding::new(severity, place, message).with_kind(FindingKind::Override)
}

/// Warns about an unknown OpenShift version, because a typing error is more likely than a newer release.
pub(crate) fn check_version(version: &Located<&OpenshiftVersion>, findings: &mut DiscoveryReport) {
    if Version::KNOWN_MINORS.contains(&version.value.parsed().minor()) {
        return;
    }
    let ((major, minor), (last_major, last_minor)) = Version::KNOWN_MINORS.into_inner();
    let expected = format!("expected {major}.{minor} to {last_major}.{last_minor}");
    let message = format!("{} is not a known OpenShift version: {expected}", version.value);
    findings.warning(version.place.clone(), message);
}
