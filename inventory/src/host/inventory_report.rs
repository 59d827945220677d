//! The inventory report: the hardware of a host, as its agent reports it in the reply to the step `inventory`.
//!
//! The reply is parsed like the replies to other steps, and its summary is stored. The stored report itself is read
//! again only for responses.

use std::collections::BTreeSet;

use assisted::inventory_report::InventoryReport;
use rules::disk::splice_eligibility;

use super::reported::write;
use super::stored_results::AssessmentResults;
use crate::error::Error;
use crate::id::HostId;

/// Maximum number of MAC addresses of one host stored for searches.
const MAX_MACS: usize = 256;

/// Parses the stored inventory report of a host. The result is empty if the host has sent no report.
///
/// # Errors
///
/// Returns an internal error if the stored text is not a report.
pub(crate) fn from_stored(host: HostId, report: &str) -> Result<InventoryReport<'_>, Error> {
    if report.is_empty() {
        return Ok(InventoryReport::default());
    }
    serde_json::from_str(report).map_err(|error| {
        Error::broken(format_args!("the stored inventory report of host {host} is damaged: {error}"))
    })
}

/// Returns the text to store with the host.
pub(crate) fn to_text(report: &InventoryReport<'_>) -> Result<String, Error> {
    write("inventory", report)
}

/// Returns the valid hardware addresses of all interfaces, in lower case. InfiniBand addresses are 20 bytes long.
pub(crate) fn macs(report: &InventoryReport<'_>) -> BTreeSet<String> {
    let is_octet = |octet: &str| octet.len() == 2 && octet.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_mac = |text: &&str| (6..=20).contains(&text.split(':').count()) && text.split(':').all(is_octet);
    let macs = report.interfaces.iter().map(|it| &*it.mac_address).filter(is_mac);
    macs.take(MAX_MACS).map(str::to_ascii_lowercase).collect()
}

/// Removes the interfaces that a cluster cannot use.
pub(crate) fn keep_usable_interfaces(report: &mut InventoryReport<'_>) {
    // Old agents report no interface type, and report only physical interfaces.
    report.interfaces.retain(|it| matches!(&*it.interface_type, "" | "physical" | "vlan" | "bond"));
}

/// Adds the reasons against an installation on each disk to an inventory report. The reasons are results of the
/// assessment.
///
/// # Errors
///
/// Returns an internal error if the stored text is not a report.
pub(crate) fn with_eligibility(
    host: HostId,
    report: String,
    results: Option<&AssessmentResults>,
) -> Result<String, Error> {
    let Some(results) = results.filter(|results| !results.disks.is_empty() && !report.is_empty()) else {
        return Ok(report);
    };
    splice_eligibility(&report, &results.disks).map_err(|error| {
        Error::broken(format_args!("the stored inventory report of host {host} is damaged: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn damaged_stored_report_is_an_internal_error() {
        let host = HostId::fresh();
        assert_eq!(from_stored(host, "").unwrap(), InventoryReport::default());
        for text in ["{", "[]", r#"{"interfaces": "eth0"}"#, r#"{"interfaces": [{"ipv4_addresses": [1]}]}"#] {
            let error = from_stored(host, text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Internal, "{text}");
        }
    }

    #[test]
    fn addresses_include_all_interfaces() {
        let text = r#"{"interfaces": [{"ipv4_addresses": ["192.0.2.1/24"], "ipv6_addresses": null}, {},
            {"ipv6_addresses": ["2001:db8::1/64", "fe80::1/64"]}]}"#;
        let report = from_stored(HostId::fresh(), text).unwrap();
        let text = to_text(&report).unwrap();
        let stored = from_stored(HostId::fresh(), &text).unwrap();
        assert_eq!(stored.addresses().collect::<Vec<_>>(), ["192.0.2.1/24", "2001:db8::1/64", "fe80::1/64"]);
    }
}
