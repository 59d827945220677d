//! Step replies: the results of steps, as the agent of a host sends them.

use std::collections::BTreeSet;

use assisted::List;
use assisted::connectivity::ConnectivityReport;
use assisted::host::{HostStatus, MediaStatus, Validation};
use assisted::inventory_report::InventoryReport;
use assisted::reply::{
    ApiVipReport, DiskSpeedReport, DomainReport, ExitCode, FreeNetwork, ImagesReport, NtpReport, StepReply,
    TangReport, UpgradeReport,
};
use assisted::step::StepType;
use rules::host::state::{Details, HostEvent, HostFacts, find_rule};
use rules::host::status::{MEDIA_DISCONNECTED, is_before_installation, is_in_pool};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::bounds::{check_report, check_reports, len_of_reports};
use super::disks::{disks_to_format, installation_disk};
use super::draft::HostDraft;
use super::inventory_report::{evaluate, macs, parse, to_text};
use super::record::HostRecord;
use super::refresh::refresh;
use super::reported::{read, write};
use super::validation::hardware_validations;
use crate::error::Error;
use crate::event::Severity;
use crate::journal::Journal;
use crate::json::to_json_value;
use crate::store::{ReportKind, ReportKinds};
use crate::{HostLimits, Settings};

/// Maximum length of a stored host name, in characters. Valid names are shorter.
const MAX_HOSTNAME: usize = 255;

/// Maximum length of an error text that is stored as a report, in characters.
const MAX_ERROR_TEXT: usize = 4096;

/// Maximum number of container images, or of disks, whose results are stored for a host. An installation has far fewer.
const MAX_ENTRIES: usize = 1000;

/// The parsed result of a step.
#[derive(Debug)]
pub(crate) enum StepOutput<'a> {
    /// An inventory report.
    Inventory(Box<EvaluatedInventory<'a>>),
    /// A report that is stored without unknown keys.
    Report(ReportKind, String),
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
    /// Parses a reply.
    pub(crate) fn parse(reply: &'a StepReply, limits: &HostLimits) -> Result<Self, Error> {
        // The agent omits empty texts and the exit code 0, as Go does.
        let output = reply.output.as_deref().unwrap_or_default();
        let exit_code = reply.exit_code();
        let Some(kind) = reply.known_type() else { return Ok(Self::Ignored) };
        check_report(kind.as_str(), output, limits)?;
        match (kind, exit_code) {
            (_, ExitCode::MEDIA_LOST) => Ok(Self::MediaLost),
            (StepType::ContainerImageAvailability, _) if !output.is_empty() => {
                read(kind.as_str(), output).map(Self::Images)
            }
            (StepType::InstallationDiskSpeedCheck, _) if !output.is_empty() => {
                read(kind.as_str(), output).map(|report| Self::DiskSpeed(report, exit_code))
            }
            (StepType::TangConnectivityCheck, code) if !code.is_success() => {
                let error = reply.error.as_deref().unwrap_or_default();
                Ok(Self::Report(ReportKind::TangConnectivity, error.chars().take(MAX_ERROR_TEXT).collect()))
            }
            (_, ExitCode::SUCCESS) => Self::parse_success(kind, output),
            _ => {
                tracing::info!(step = %kind, exit_code = exit_code.0, "agent step failed");
                Ok(Self::Ignored)
            }
        }
    }

    fn parse_success(kind: StepType, output: &'a str) -> Result<Self, Error> {
        let name = kind.as_str();
        match kind {
            StepType::Inventory => {
                EvaluatedInventory::new(parse(output)?).map(|evaluated| Self::Inventory(Box::new(evaluated)))
            }
            StepType::ConnectivityCheck => {
                report::<ConnectivityReport<'_>>(ReportKind::Connectivity, name, output)
            }
            StepType::ApiVipConnectivityCheck => {
                report::<ApiVipReport<'_>>(ReportKind::ApiVipConnectivity, name, output)
            }
            StepType::TangConnectivityCheck => {
                report::<TangReport<'_>>(ReportKind::TangConnectivity, name, output)
            }
            // The API returns only the list.
            StepType::NtpSynchronizer => {
                let report: NtpReport<'_> = read(name, output)?;
                Ok(Self::Report(ReportKind::NtpSources, write(name, &report.ntp_sources)?))
            }
            StepType::DomainResolution => {
                report::<DomainReport<'_>>(ReportKind::DomainNameResolutions, name, output)
            }
            // The output is empty while another scan is in progress.
            StepType::FreeNetworkAddresses if output.is_empty() => Ok(Self::Succeeded),
            StepType::FreeNetworkAddresses => {
                report::<List<FreeNetwork<'_>>>(ReportKind::FreeAddresses, name, output)
            }
            StepType::UpgradeAgent => read(name, output).map(Self::Upgrade),
            _ => Ok(Self::Succeeded),
        }
    }

    /// Returns the stored reports that [`store`](Self::store) reads.
    pub(crate) fn needed_reports(&self) -> ReportKinds {
        match self {
            Self::Images(_) => ReportKinds::new(&[ReportKind::ImagesStatus]),
            Self::DiskSpeed(..) => ReportKinds::new(&[ReportKind::DisksInfo]),
            _ => ReportKinds::NONE,
        }
    }

    /// Returns `true` if the step succeeded, so that its output is a report.
    pub(crate) fn is_accepted_report(&self) -> bool {
        !matches!(self, Self::MediaLost | Self::Ignored)
    }

    /// Returns `true` if a repetition of the reply never changes anything. An upgrade adds an event again after an
    /// hour. Image availability and disk speed are added to stored reports, which may be damaged.
    pub(crate) fn is_repeatable(&self) -> bool {
        !matches!(self, Self::Upgrade(_) | Self::Images(_) | Self::DiskSpeed(..))
    }

    /// Stores the output, and updates the status of the host.
    pub(crate) fn store(
        &self,
        draft: &mut HostDraft,
        settings: &Settings,
        journal: &mut Journal,
    ) -> Result<(), Error> {
        let before = len_of_reports(&draft.record);
        match self {
            Self::Inventory(evaluated) => store_inventory(draft, evaluated)?,
            Self::Report(kind, text) => draft.set_report(*kind, text.clone()),
            Self::Images(report) => store_images(draft, report)?,
            Self::DiskSpeed(report, exit_code) => store_disk_speed(draft, report, *exit_code)?,
            Self::Upgrade(report) => report_upgrade(&mut draft.record, report, journal),
            Self::MediaLost => {
                set_media_disconnected(&mut draft.record, journal);
                return Ok(());
            }
            Self::Succeeded => {}
            Self::Ignored => return Ok(()),
        }
        check_reports(&draft.record, before, &settings.host_limits)?;
        draft.record.findings.media = Some(MediaStatus::Connected);
        refresh(&mut draft.record, settings, journal);
        Ok(())
    }
}

/// Parses a report and writes it again, which drops unknown keys.
fn report<'a, T: Deserialize<'a> + Serialize>(
    kind: ReportKind,
    name: &str,
    output: &'a str,
) -> Result<StepOutput<'a>, Error> {
    Ok(StepOutput::Report(kind, write(name, &read::<T>(name, output)?)?))
}

/// An inventory report with all values that follow from it. They are computed once, even if storing them is retried.
#[derive(Debug)]
pub(crate) struct EvaluatedInventory<'a> {
    inventory: InventoryReport<'a>,
    validations: Vec<Validation>,
    hostname: String,
    macs: BTreeSet<String>,
    /// The report as it is stored.
    report: String,
}

impl<'a> EvaluatedInventory<'a> {
    fn new(mut inventory: InventoryReport<'a>) -> Result<Self, Error> {
        evaluate(&mut inventory);
        Ok(Self {
            validations: hardware_validations(&inventory),
            hostname: inventory.hostname.chars().take(MAX_HOSTNAME).collect(),
            macs: macs(&inventory),
            report: to_text(&inventory)?,
            inventory,
        })
    }
}

fn store_inventory(draft: &mut HostDraft, evaluated: &EvaluatedInventory<'_>) -> Result<(), Error> {
    let host = &mut draft.record;
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
    let inventory = &evaluated.inventory;
    host.choices.installation_disk = installation_disk(inventory, host.choices.installation_disk.as_ref());
    host.choices.disks_to_be_formatted = disks_to_format(inventory);
    host.findings.validations.clone_from(&evaluated.validations);
    host.findings.hostname.clone_from(&evaluated.hostname);
    host.findings.macs.clone_from(&evaluated.macs);
    draft.set_report(ReportKind::Inventory, evaluated.report.clone());
    Ok(())
}

/// Adds entries to a report that is stored as a JSON object.
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
    draft.set_report(kind, Value::Object(stored).to_string());
    Ok(())
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
    host.findings.media = Some(MediaStatus::Disconnected);
    journal.add_host_event(host, "host_media_disconnected", Severity::Error, MEDIA_DISCONNECTED);
    let Some(rule) = find_rule(host.status(), HostEvent::LoseMedia, &HostFacts::default()) else { return };
    let details = match (rule.details(), host.status_info()) {
        (Some(Details::LostMedia), "") => MEDIA_DISCONNECTED.to_owned(),
        (Some(Details::LostMedia), before) => format!("{MEDIA_DISCONNECTED}. {before}"),
        _ => String::new(),
    };
    journal.apply(host, &rule.transition(&details));
}
