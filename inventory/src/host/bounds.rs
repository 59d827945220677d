//! Limits on the hosts of an infra-env and on their reports. Any client with the infra-env's token can create both.

use axum::http::StatusCode;

use super::record::HostRecord;
use crate::HostLimits;
use crate::api::ApiError;
use crate::id::InfraEnvId;
use crate::store::{Bound, Change, Kind, Record as _};

fn too_large(reason: String) -> ApiError {
    // Agents retry registrations and drop reports that are refused with this status.
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, reason)
}

/// Returns an error if a report is longer than the limit.
pub(super) fn check_report(kind: &str, report: &str, limits: &HostLimits) -> Result<(), ApiError> {
    if report.len() <= limits.bytes_per_report {
        return Ok(());
    }
    Err(too_large(format!("{kind} report too large, discarded (limit {} bytes)", limits.bytes_per_report)))
}

/// Returns an error if the reports of a host exceed the limit and are longer than before.
pub(super) fn check_reports(host: &HostRecord, before: usize, limits: &HostLimits) -> Result<(), ApiError> {
    let (len, limit) = (len_of_reports(host), limits.bytes_per_host());
    if len <= limit || len <= before {
        return Ok(());
    }
    Err(too_large(format!("reports of host {} too large together, discarded (limit {limit} bytes)", host.id)))
}

/// Makes a change fail if the infra-env would exceed its limits on hosts and bytes.
pub(super) fn require_room(change: &mut Change, infra_env: InfraEnvId, limits: &HostLimits) {
    let HostLimits { hosts, bytes, .. } = *limits;
    let refusal = too_large(format!(
        "infra-env {infra_env} is full (limits: {hosts} hosts, {bytes} bytes of reports); delete hosts that are no \
         longer needed"
    ));
    change.require_within(Bound { kind: Kind::Host, parent: infra_env.0, records: hosts, bytes }, refusal);
}

/// Returns the length of a host's reports and of the values derived from them, in bytes.
pub(super) fn len_of_reports(host: &HostRecord) -> usize {
    let disk = host.choices.installation_disk.iter().flat_map(|disk| [&disk.id, &disk.path]);
    let texts = disk.chain(&host.choices.disks_to_be_formatted).chain([&host.findings.hostname]);
    host.reports_len().saturating_add(texts.map(String::len).sum())
}
