//! How much is kept of the hosts of an infra-env, which any holder of its token can fill.

use axum::http::StatusCode;

use super::record::{Findings, HostRecord};
use crate::api_error::ApiError;
use crate::inventory::HostLimits;
use crate::inventory::id::InfraEnvId;
use crate::inventory::store::{Bound, Change, Kind};

fn too_large(reason: String) -> ApiError {
    // Agents retry registrations and drop reports that are refused with this status.
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, reason)
}

/// Refuses a report with more bytes than one may have.
pub(super) fn check_report(kind: &str, report: &str, limits: &HostLimits) -> Result<(), ApiError> {
    if report.len() <= limits.bytes_per_report {
        return Ok(());
    }
    Err(too_large(format!("{kind} report too large, discarded (limit {} bytes)", limits.bytes_per_report)))
}

/// Refuses a change after which more is kept of the reports of a host than may be, and more than before.
pub(super) fn check_reports(host: &HostRecord, before: usize, limits: &HostLimits) -> Result<(), ApiError> {
    let (len, most) = (len_of_reports(host), limits.bytes_per_host());
    if len <= most || len <= before {
        return Ok(());
    }
    Err(too_large(format!("reports of host {} too large together, discarded (limit {most} bytes)", host.id)))
}

/// The change is refused if an infra-env has more hosts or bytes than it may have afterwards.
pub(super) fn require_room(change: &mut Change, infra_env: InfraEnvId, limits: &HostLimits) {
    let HostLimits { hosts, bytes, .. } = *limits;
    let refusal = too_large(format!(
        "infra-env {infra_env} is full (limits: {hosts} hosts, {bytes} bytes of reports); delete hosts that are no \
         longer needed"
    ));
    change.require_within(Bound { kind: Kind::Host, parent: infra_env.0, records: hosts, bytes }, refusal);
}

/// The bytes of all that the agent of a host reported.
pub(super) fn len_of_reports(host: &HostRecord) -> usize {
    let Findings {
        inventory,
        hostname,
        validations: _,
        connectivity,
        api_vip_connectivity,
        tang_connectivity,
        disks_info,
        ntp_sources,
        images_status,
        domain_name_resolutions,
        free_addresses,
        media: _,
    } = &host.findings;
    let reports = [
        inventory,
        hostname,
        connectivity,
        api_vip_connectivity,
        tang_connectivity,
        disks_info,
        ntp_sources,
        images_status,
        domain_name_resolutions,
        free_addresses,
    ];
    let disk = host.choices.installation_disk.iter().flat_map(|disk| [&disk.id, &disk.path]);
    let texts = reports.into_iter().chain(disk).chain(&host.choices.disks_to_be_formatted);
    texts.map(String::len).sum()
}
