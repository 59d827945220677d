//! Step replies: the results of steps, in the form in which a host's agent sends them.

use std::collections::BTreeSet;

use assisted::host::{HostStatus, MediaStatus};
use assisted::inventory_report::InventoryReport;
use assisted::reply::{DiskSpeedReport, ExitCode, ImagesReport, ReplyPayload, StepReply, UpgradeReport};
use assisted::step::StepType;
use rules::host::state::{HostEvent, MediaLoss, decide};
use rules::host::status::{MEDIA_DISCONNECTED, is_before_installation, is_in_pool};
use serde_json::{Map, Value, json};

use super::assessment::{HostContext, assess_unbound, choose_disks};
use super::bounds::{check_report, check_reports, len_of_reports};
use super::connection::is_silent;
use super::draft::{ASSESSED, HostDraft};
use super::inventory_report::{keep_usable_interfaces, macs, to_text};
use super::record::HostRecord;
use super::reported::{check_text, read, write};
use super::stored_summary::{summarize, summarize_inventory};
use crate::HostLimits;
use crate::error::Error;
use crate::event::Severity;
use crate::journal::Journal;
use crate::json::to_json_value;
use crate::store::{ReportKind, ReportKinds};

/// Maximum length of a stored host name, in characters. Valid names are shorter.
const MAX_HOSTNAME: usize = 255;

/// Maximum length of an error text stored as a report, in characters.
const MAX_ERROR_TEXT: usize = 4096;

/// Maximum number of container images, or of disks, whose results are stored for a host. An installation has far fewer.
const MAX_ENTRIES: usize = 1000;

/// The parsed result of a step.
#[derive(Debug)]
pub(crate) enum StepOutput<'a> {
    /// An inventory report.
    Inventory(Box<EvaluatedInventory<'a>>),
    /// A report of another kind, with the text to store. The text contains no unknown keys.
    Report(ReportKind, ReplyPayload<'a>, String),
    /// The text of a failed check of the Tang servers.
    TangFailure(String),
    /// Availability of container images. It is added to the stored report.
    Images(ImagesReport<'a>),
    /// Speed of a disk, and the exit code of the measurement. It is added to the stored report.
    DiskSpeed(DiskSpeedReport<'a>, ExitCode),
    /// Result of an upgrade of the agent.
    Upgrade(UpgradeReport<'a>),
    /// The agent cannot read its boot media.
    MediaLost,
    /// The step succeeded, and its output is not stored.
    Succeeded,
    /// The step failed, or its type is missing.
    Ignored,
}

impl<'a> StepOutput<'a> {
    pub(crate) fn parse(reply: &'a StepReply, limits: &HostLimits) -> Result<Self, Error> {
        // The agent omits empty texts and the exit code 0, as Go does.
        let output = reply.output.as_deref().unwrap_or_default();
        let exit_code = reply.exit_code();
        let Some(kind) = reply.known_type() else { return Ok(Self::Ignored) };
        check_report(kind.as_str(), output, limits)?;
        match (kind, exit_code) {
            (_, ExitCode::MEDIA_LOST) => Ok(Self::MediaLost),
            (StepType::ContainerImageAvailability, code) if !output.is_empty() => {
                Self::measurement_result(code, read(kind.as_str(), output).map(Self::Images))
            }
            (StepType::InstallationDiskSpeedCheck, code) if !output.is_empty() => {
                let report = read(kind.as_str(), output);
                Self::measurement_result(code, report.map(|report| Self::DiskSpeed(report, code)))
            }
            (StepType::TangConnectivityCheck, code) if !code.is_success() => {
                let error = reply.error.as_deref().unwrap_or_default();
                Ok(Self::TangFailure(error.chars().take(MAX_ERROR_TEXT).collect()))
            }
            (_, ExitCode::SUCCESS) => Self::parse_success(kind, output),
            _ => {
                tracing::info!(step = %kind, exit_code = exit_code.0, "agent step failed");
                Ok(Self::Ignored)
            }
        }
    }

    /// Returns the result of a measurement. A failed step is ignored if its output is not a report.
    fn measurement_result(exit_code: ExitCode, report: Result<Self, Error>) -> Result<Self, Error> {
        match report {
            Err(error) if !exit_code.is_success() => {
                tracing::info!(exit_code = exit_code.0, %error, "agent step failed without a result");
                Ok(Self::Ignored)
            }
            report => report,
        }
    }

    fn parse_success(kind: StepType, output: &'a str) -> Result<Self, Error> {
        // The output is empty while another scan or measurement is in progress.
        let may_be_empty = matches!(
            kind,
            StepType::FreeNetworkAddresses
                | StepType::ContainerImageAvailability
                | StepType::InstallationDiskSpeedCheck
        );
        if may_be_empty && output.is_empty() {
            return Ok(Self::Succeeded);
        }
        let name = kind.as_str();
        let payload = read_payload(kind, output)?;
        let (report, text) = match &payload {
            ReplyPayload::Connectivity(report) => (ReportKind::Connectivity, write(name, report)?),
            ReplyPayload::ApiVip(report) => (ReportKind::ApiVipConnectivity, write(name, report)?),
            ReplyPayload::Tang(report) => (ReportKind::TangConnectivity, write(name, report)?),
            // The API returns only the list, so only the list is stored.
            ReplyPayload::Ntp(report) => (ReportKind::NtpSources, write(name, &report.ntp_sources)?),
            ReplyPayload::Domains(report) => (ReportKind::DomainNameResolutions, write(name, report)?),
            ReplyPayload::FreeAddresses(networks) if networks.iter().next().is_none() => {
                return Err(Error::invalid(format!("{name}: the list of networks is empty")));
            }
            ReplyPayload::FreeAddresses(networks) => (ReportKind::FreeAddresses, write(name, networks)?),
            ReplyPayload::Vips(vips) => (ReportKind::VerifiedVips, write(name, vips)?),
            ReplyPayload::DhcpLeases(report) => (ReportKind::VipLeases, write(name, report)?),
            _ => return Self::without_report(payload),
        };
        Ok(Self::Report(report, payload, text))
    }

    fn without_report(payload: ReplyPayload<'a>) -> Result<Self, Error> {
        Ok(match payload {
            ReplyPayload::Inventory(report) => Self::Inventory(Box::new(EvaluatedInventory::new(*report)?)),
            ReplyPayload::Upgrade(report) => Self::Upgrade(report),
            _ => Self::Succeeded,
        })
    }

    /// Returns the stored reports that [`store`](Self::store) reads.
    pub(crate) fn needed_reports(&self) -> ReportKinds {
        const IMAGES: ReportKinds =
            ReportKinds::new(&[ReportKind::Summary, ReportKind::Results, ReportKind::ImagesStatus]);
        const DISKS: ReportKinds =
            ReportKinds::new(&[ReportKind::Summary, ReportKind::Results, ReportKind::DisksInfo]);
        match self {
            Self::Images(_) => IMAGES,
            Self::DiskSpeed(..) => DISKS,
            _ => ASSESSED,
        }
    }

    /// Returns `true` if the step succeeded, so that its output is a report.
    pub(crate) fn is_accepted_report(&self) -> bool {
        !matches!(self, Self::MediaLost | Self::Ignored)
    }

    /// Returns `true` if a repetition of the reply never changes the host. A repeated upgrade adds an event again after
    /// an hour. Image availability and disk speed are added to stored reports, which may be damaged.
    pub(crate) fn is_repeatable(&self) -> bool {
        !matches!(self, Self::Upgrade(_) | Self::Images(_) | Self::DiskSpeed(..))
    }

    /// Stores the output, and assesses the host.
    pub(crate) fn store(
        &self,
        draft: &mut HostDraft,
        context: &HostContext<'_>,
        journal: &mut Journal,
    ) -> Result<(), Error> {
        let before = len_of_reports(&draft.record);
        match self {
            Self::Inventory(evaluated) => store_inventory(draft, evaluated, context)?,
            Self::Report(kind, payload, text) => {
                check_leases(payload, context)?;
                draft.set_report(*kind, text.clone());
                draft
                    .edit_summary(|summary| summarize(summary, payload))?
                    .map_err(|error| Error::invalid(format!("{kind}: {error}")))?;
            }
            Self::TangFailure(text) => {
                draft.set_report(ReportKind::TangConnectivity, text.clone());
                draft.edit_summary(|summary| summary.set_tang(Err(text)))?;
            }
            Self::Images(report) => store_images(draft, report)?,
            Self::DiskSpeed(report, exit_code) => store_disk_speed(draft, report, *exit_code)?,
            Self::Upgrade(report) => report_upgrade(&mut draft.record, report, journal),
            Self::MediaLost => {
                set_media_disconnected(&mut draft.record, journal);
                return assess_unbound(draft, context, journal);
            }
            Self::Succeeded => {}
            Self::Ignored => return Ok(()),
        }
        check_reports(&draft.record, before, &context.settings.host_limits)?;
        draft.record.findings.media = Some(MediaStatus::Connected);
        assess_unbound(draft, context, journal)
    }
}

fn read_payload(kind: StepType, output: &str) -> Result<ReplyPayload<'_>, Error> {
    check_text(kind.as_str(), output)?;
    ReplyPayload::parse(kind, output).map_err(|error| Error::invalid(format!("{kind}: {error}")))
}

/// Returns an error if leases of virtual IP addresses are useless. The cluster must get these addresses from a DHCP
/// server, and the leased addresses must be in its machine network.
fn check_leases(payload: &ReplyPayload<'_>, context: &HostContext<'_>) -> Result<(), Error> {
    let ReplyPayload::DhcpLeases(report) = payload else { return Ok(()) };
    let refuse = |reason: String| Err(Error::invalid(format!("dhcp-lease-allocate: {reason}")));
    let Some(view) = context.cluster.as_ref().filter(|view| view.cluster.vip_dhcp_allocation) else {
        return refuse("the cluster does not get its virtual IP addresses from a DHCP server".to_owned());
    };
    let Some(network) = view.cluster.machine_networks.first() else {
        return refuse("the cluster has no machine network".to_owned());
    };
    for address in [&report.api_vip_address, &report.ingress_vip_address] {
        if !address.parse().is_ok_and(|address| network.contains(address)) {
            return refuse(format!(
                "{:?} is not an address of the machine network {network}",
                address.as_str()
            ));
        }
    }
    Ok(())
}

/// An inventory report with all values derived from it. They are computed once, even if storing them is retried.
#[derive(Debug)]
pub(crate) struct EvaluatedInventory<'a> {
    inventory: InventoryReport<'a>,
    hostname: String,
    macs: BTreeSet<String>,
    /// The report in its stored form.
    report: String,
}

impl<'a> EvaluatedInventory<'a> {
    /// Parses the text of a report.
    pub(crate) fn parse(text: &'a str, limits: &HostLimits) -> Result<Self, Error> {
        let kind = StepType::Inventory.as_str();
        check_report(kind, text, limits)?;
        Self::new(read(kind, text)?)
    }

    fn new(mut inventory: InventoryReport<'a>) -> Result<Self, Error> {
        keep_usable_interfaces(&mut inventory);
        Ok(Self {
            hostname: inventory.hostname.chars().take(MAX_HOSTNAME).collect(),
            macs: macs(&inventory),
            report: to_text(&inventory)?,
            inventory,
        })
    }
}

fn store_inventory(
    draft: &mut HostDraft,
    evaluated: &EvaluatedInventory<'_>,
    context: &HostContext<'_>,
) -> Result<(), Error> {
    let host = &draft.record;
    let status = host.status();
    if matches!(status, HostStatus::Binding | HostStatus::Unbinding | HostStatus::UnbindingPendingUserAction)
    {
        // The agent is about to register again, which removes its reports.
        return Ok(());
    }
    let is_preparing = matches!(
        status,
        HostStatus::PreparingForInstallation | HostStatus::PreparingFailed | HostStatus::PreparingSuccessful
    );
    let is_accepted = is_in_pool(status) || is_before_installation(status) || is_preparing;
    if !is_accepted && status != HostStatus::InstallingInProgress {
        return Err(Error::conflict(format!(
            "Host {} cannot update its inventory in state {status}",
            host.id
        )));
    }
    set_inventory(draft, evaluated, context)
}

/// Stores an inventory report with its host, and selects disks.
pub(crate) fn set_inventory(
    draft: &mut HostDraft,
    evaluated: &EvaluatedInventory<'_>,
    context: &HostContext<'_>,
) -> Result<(), Error> {
    let host = &mut draft.record;
    host.findings.hostname.clone_from(&evaluated.hostname);
    host.findings.macs.clone_from(&evaluated.macs);
    draft.set_report(ReportKind::Inventory, evaluated.report.clone());
    draft.edit_summary(|summary| summarize_inventory(summary, &evaluated.inventory))?;
    choose_disks(draft, context)
}

/// Adds entries to a report stored as a JSON object.
fn add_entries(
    draft: &mut HostDraft,
    kind: ReportKind,
    entries: impl IntoIterator<Item = (String, Value)>,
) -> Result<(), Error> {
    let mut stored = match draft.report(kind)? {
        "" => Map::new(),
        text => serde_json::from_str(text).map_err(|error| {
            Error::broken(format_args!("the stored {kind} of host {} is damaged: {error}", draft.record.id))
        })?,
    };
    for (key, value) in entries {
        if stored.contains_key(&key) || stored.len() < MAX_ENTRIES {
            stored.insert(key, value);
        }
    }
    let text = Value::Object(stored).to_string();
    draft.set_report(kind, text.clone());
    let summarized = draft.edit_summary(|summary| match kind {
        ReportKind::ImagesStatus => summary.set_images(&text),
        _ => summary.set_disk_speeds(&text),
    })?;
    summarized.map_err(|error| Error::broken(format_args!("cannot summarize {kind}: {error}")))
}

fn store_images(draft: &mut HostDraft, report: &ImagesReport<'_>) -> Result<(), Error> {
    let mut entries = Vec::new();
    for image in report.images.iter() {
        entries.push((image.name.to_string(), to_json_value("an image status", image)?));
    }
    add_entries(draft, ReportKind::ImagesStatus, entries)
}

fn store_disk_speed(
    draft: &mut HostDraft,
    report: &DiskSpeedReport<'_>,
    exit_code: ExitCode,
) -> Result<(), Error> {
    let mut speed = Map::from_iter([("tested".to_owned(), Value::Bool(true))]);
    for (key, number) in [("exit_code", exit_code.0), ("speed_ms", report.io_sync_duration)] {
        if number != 0 {
            speed.insert(key.to_owned(), number.into());
        }
    }
    let entry = (report.path.to_string(), json!({"disk_speed": speed, "path": report.path}));
    add_entries(draft, ReportKind::DisksInfo, [entry])
}

fn report_upgrade(host: &mut HostRecord, report: &UpgradeReport<'_>, journal: &mut Journal) {
    let image = &report.agent_image;
    match &*report.result {
        "success" => {
            let message = format!("Successfully upgraded its agent to {image}");
            journal.add_hourly_event(host, "upgrade_agent_finished", Severity::Info, &message);
        }
        "failure" => {
            let message = format!("Failed to upgrade its agent to {image}");
            journal.add_hourly_event(host, "upgrade_agent_failed", Severity::Error, &message);
        }
        // Another upgrade is in progress.
        _ => {}
    }
}

/// Records that the host cannot read its boot media. This disconnects the host, or makes its installation fail.
fn set_media_disconnected(host: &mut HostRecord, journal: &mut Journal) {
    if host.findings.media == Some(MediaStatus::Disconnected) {
        return;
    }
    // Record whether the host is silent, because the status does not show this after the change.
    host.findings.silent = Some(is_silent(host));
    host.findings.media = Some(MediaStatus::Disconnected);
    journal.add_event(host, "host_media_disconnected", Severity::Error, MEDIA_DISCONNECTED.to_owned());
    let event = HostEvent::LoseMedia(MediaLoss { status_info: host.status_info() });
    if let Ok(transition) = decide(host.status(), &event, journal.now()) {
        journal.apply(host, &transition);
    }
}
