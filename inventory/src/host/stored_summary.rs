//! The stored summary of a host's reports, and its computation from the reports.
//!
//! A summary is stored next to the reports, with its version. If a replica finds no summary, or another version, it
//! computes the summary from the reports, in memory. An older release never replaces a newer version with its own.
//! Instead, it removes the summary, so that every release computes its own.

use assisted::inventory_report::InventoryReport;
use assisted::reply::{ReplyPayload, TangReport};
use assisted::step::StepType;
use rules::summary::{HostSummary, InvalidReply, StoredSummary as Parsed, VirtualInterfaces};

use super::record::HostRecord;
use crate::error::Error;
use crate::store::{ReportKind, Reports};

/// The state of a stored summary.
#[derive(Debug)]
pub(crate) enum StoredSummary {
    /// A summary in the version of this release.
    Current(Box<HostSummary>),
    /// No summary is stored. It must be computed from the reports.
    Missing,
    /// A newer release wrote the stored summary, so it must be computed from the reports.
    Newer,
}

/// Returns the stored summary of a host. A host without reports has an empty one.
///
/// # Errors
///
/// Returns an internal error if the stored text is not a summary.
pub(crate) fn stored_summary(host: &HostRecord, reports: &Reports) -> Result<StoredSummary, Error> {
    if host.findings.reports.is_empty() {
        return Ok(StoredSummary::Current(Box::default()));
    }
    let Some(text) = reports.get(ReportKind::Summary) else { return Ok(StoredSummary::Missing) };
    match HostSummary::from_stored(text) {
        Ok(Parsed::Current(summary)) => Ok(StoredSummary::Current(summary)),
        Ok(Parsed::Older(_)) => Ok(StoredSummary::Missing),
        Ok(Parsed::Newer(_)) => Ok(StoredSummary::Newer),
        Err(error) => Err(damaged(host, ReportKind::Summary, &error)),
    }
}

/// Computes the summary of a host from all of its stored reports.
///
/// # Errors
///
/// Returns an internal error if a stored report is damaged.
pub(crate) fn rebuild(host: &HostRecord, reports: &Reports) -> Result<HostSummary, Error> {
    let mut summary = HostSummary::default();
    for (kind, text) in &reports.0 {
        add(&mut summary, *kind, text).map_err(|error| damaged(host, *kind, &*error))?;
    }
    Ok(summary)
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

fn add(summary: &mut HostSummary, kind: ReportKind, text: &str) -> Result<(), AnyError> {
    let step = match kind {
        ReportKind::Inventory => StepType::Inventory,
        ReportKind::Connectivity => StepType::ConnectivityCheck,
        ReportKind::ApiVipConnectivity => StepType::ApiVipConnectivityCheck,
        ReportKind::DomainNameResolutions => StepType::DomainResolution,
        ReportKind::FreeAddresses => StepType::FreeNetworkAddresses,
        ReportKind::VerifiedVips => StepType::VerifyVips,
        ReportKind::VipLeases => StepType::DhcpLeaseAllocate,
        ReportKind::TangConnectivity => {
            match serde_json::from_str::<TangReport<'_>>(text) {
                Ok(report) => summary.set_tang(Ok(&report)),
                // The stored text of a failed check is not JSON.
                Err(_) => summary.set_tang(Err(text)),
            }
            return Ok(());
        }
        // The stored report is only the list of sources.
        ReportKind::NtpSources => {
            summary.set_time_sources(&serde_json::from_str(text)?);
            return Ok(());
        }
        ReportKind::DisksInfo => return Ok(summary.set_disk_speeds(text)?),
        ReportKind::ImagesStatus => return Ok(summary.set_images(text)?),
        ReportKind::Summary | ReportKind::Results => return Ok(()),
    };
    Ok(summarize(summary, &ReplyPayload::parse(step, text)?)?)
}

/// Replaces the hardware in a summary. The report contains only the interfaces that a cluster can use.
pub(crate) fn summarize_inventory(summary: &mut HostSummary, report: &InventoryReport<'_>) {
    summary.set_inventory(report, VirtualInterfaces::Keep);
}

/// Replaces the part of a summary that depends on a reply. Replies about disks and images are not complete reports.
pub(crate) fn summarize(summary: &mut HostSummary, payload: &ReplyPayload<'_>) -> Result<(), InvalidReply> {
    match payload {
        ReplyPayload::Inventory(report) => summarize_inventory(summary, report),
        ReplyPayload::Connectivity(report) => summary.set_connectivity(report),
        ReplyPayload::ApiVip(report) => return summary.set_ignition_endpoint(report),
        ReplyPayload::Tang(report) => summary.set_tang(Ok(report)),
        ReplyPayload::Ntp(report) => summary.set_time_sources(&report.ntp_sources),
        ReplyPayload::Domains(report) => summary.set_names(report),
        ReplyPayload::FreeAddresses(networks) => return summary.set_free_addresses(networks),
        ReplyPayload::Vips(vips) => return summary.set_vips(vips),
        ReplyPayload::DhcpLeases(report) => return summary.set_leases(report),
        _ => {}
    }
    Ok(())
}

fn damaged(host: &HostRecord, kind: ReportKind, error: &dyn std::error::Error) -> Error {
    Error::broken(format_args!("the stored {kind} of host {} is damaged: {error}", host.id))
}
