//! Limits on the hosts of an infra-env and on their reports. Any client with the infra-env's token can register hosts
//! and send reports.

use super::record::HostRecord;
use crate::HostLimits;
use crate::error::Error;
use crate::id::InfraEnvId;
use crate::store::{Bound, Change, Kind, Record as _};

fn too_large(reason: String) -> Error {
    // With this status, agents retry a refused registration, and drop a refused report.
    Error::too_large(reason)
}

/// Returns an error if a report is longer than the limit.
pub(crate) fn check_report(kind: &str, report: &str, limits: &HostLimits) -> Result<(), Error> {
    if report.len() <= limits.bytes_per_report {
        return Ok(());
    }
    Err(too_large(format!("{kind} report too large, discarded (limit {} bytes)", limits.bytes_per_report)))
}

/// Returns an error if the reports of a host exceed the limit and are longer than before.
pub(crate) fn check_reports(host: &HostRecord, before: usize, limits: &HostLimits) -> Result<(), Error> {
    let (len, limit) = (len_of_reports(host), limits.bytes_per_host());
    if len <= limit || len <= before {
        return Ok(());
    }
    Err(too_large(format!("reports of host {} too large together, discarded (limit {limit} bytes)", host.id)))
}

/// Limits a change that adds a host: it fails if the infra-env would exceed its limits on hosts and bytes.
pub(crate) fn require_room_for_host(change: &mut Change, infra_env: InfraEnvId, limits: &HostLimits) {
    let HostLimits { hosts, bytes, .. } = *limits;
    let refusal = too_large(format!(
        "infra-env {infra_env} is full (limits: {hosts} hosts, {bytes} bytes of reports); delete hosts that are no \
         longer needed"
    ));
    change.require_within(Bound { kind: Kind::Host, parent: infra_env.0, records: hosts, bytes }, refusal);
}

/// Limits a change that stores reports of a host: it fails if the infra-env would exceed its limit on bytes.
///
/// The number of hosts is not checked, because the host already exists. An infra-env may have more hosts than its limit
/// if the limit was lowered.
pub(crate) fn require_room_for_reports(change: &mut Change, infra_env: InfraEnvId, limits: &HostLimits) {
    let bytes = limits.bytes;
    let refusal = too_large(format!(
        "reports of all hosts of infra-env {infra_env} too large together, discarded (limit {bytes} bytes); delete \
         hosts that are no longer needed"
    ));
    change.require_within(Bound { kind: Kind::Host, parent: infra_env.0, records: u64::MAX, bytes }, refusal);
}

/// Returns the length of a host's reports and of the values derived from them, in bytes.
pub(crate) fn len_of_reports(host: &HostRecord) -> usize {
    let HostRecord { choices, findings, .. } = host;
    let disk = choices.installation_disk.iter().flat_map(|disk| [&disk.id, &disk.path]);
    let texts = disk.chain(&choices.disks_to_be_formatted).chain(&findings.macs).chain([&findings.hostname]);
    host.reports_len().saturating_add(texts.map(String::len).sum())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use chrono::Utc;
    use rules::host::state::Transition;

    use super::*;
    use crate::host::{Choices, HostFindings, InstallationDisk, ReportSummary};
    use crate::id::{HostId, HostKey};

    #[test]
    fn length_includes_all_values_from_reports() {
        let key = HostKey { infra_env_id: InfraEnvId::fresh(), host_id: HostId::fresh() };
        let mut host = HostRecord::new(key, &Transition::first(false, Utc::now()));
        assert_eq!(len_of_reports(&host), 0);
        let text = |len: usize| "x".repeat(len);
        host.findings = HostFindings {
            hostname: text(1),
            macs: BTreeSet::from([text(2), text(4)]),
            reports: [("inventory".to_owned(), ReportSummary::new(&text(32)))].into(),
            ..HostFindings::default()
        };
        host.choices = Choices {
            installation_disk: Some(InstallationDisk { id: text(64), path: text(128) }),
            disks_to_be_formatted: vec![text(256), text(512)],
            // Chosen by a user, not reported, so it does not count.
            hostname: text(1024),
            ..Choices::default()
        };
        assert_eq!(len_of_reports(&host), 1023 - 8 - 16);
    }
}
