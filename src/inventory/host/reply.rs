//! What the agent of a host says of its steps.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::bounds::{check_report, check_reports, len_of_reports};
use super::journal::Journal;
use super::machine::Machine;
use super::record::HostRecord;
use super::refresh::refresh;
use super::reported::{
    ApiVipReport, ConnectivityReport, DiskSpeedReport, DomainReport, FreeNetwork, ImagesReport, List,
    NtpReport, TangReport, UpgradeReport, read, write,
};
use super::status::{HostStatus, MediaStatus};
use super::steps::{StepReply, StepType};
use super::validation::{MEDIA_DISCONNECTED, of_machine};
use crate::api_error::ApiError;
use crate::inventory::event::Severity;
use crate::inventory::{HostLimits, Settings};

/// The exit code of a step whose agent cannot read what it booted from.
const MEDIA_LOST: i64 = 256;

/// What a name of a machine has at most, in characters: more than any resolver takes.
const MOST_NAME: usize = 255;

/// What is kept of a failure in words, in characters.
const MOST_WORDS: usize = 4096;

/// How many images or disks are remembered of a host. An installation needs a few.
const MOST_REMEMBERED: usize = 1000;

/// What a reply says, read and checked.
#[derive(Debug)]
pub(super) enum Finding {
    /// What the machine is made of.
    Machine(Box<Machine>),
    /// A text, and where it is kept.
    Text(Kept, String),
    /// Which images could be fetched.
    Images(ImagesReport),
    /// How fast a disk is, and how the measuring ended.
    DiskSpeed(DiskSpeedReport, i64),
    /// What became of another version of the agent.
    Upgrade(UpgradeReport),
    /// The media cannot be read.
    MediaLost,
    /// The step went well, and nothing is kept of it.
    Well,
    /// It did not.
    Nothing,
}

/// Where a finding is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Connectivity,
    ApiVip,
    Tang,
    Ntp,
    Domains,
    FreeAddresses,
}

impl Finding {
    /// Reads a reply.
    pub(super) fn read(reply: &StepReply, limits: &HostLimits) -> Result<Self, ApiError> {
        let output = reply.output.as_deref().unwrap_or_default();
        let exit_code = reply.exit_code.unwrap_or_default();
        let Some(kind) = reply.step_type else { return Ok(Self::Nothing) };
        check_report(kind.as_str(), output, limits)?;
        match (kind, exit_code) {
            (_, MEDIA_LOST) => Ok(Self::MediaLost),
            (StepType::ContainerImageAvailability, _) if !output.is_empty() => {
                read(kind.as_str(), output).map(Self::Images)
            }
            (StepType::InstallationDiskSpeedCheck, _) if !output.is_empty() => {
                read(kind.as_str(), output).map(|report| Self::DiskSpeed(report, exit_code))
            }
            (StepType::TangConnectivityCheck, code) if code != 0 => {
                let error = reply.error.as_deref().unwrap_or_default();
                Ok(Self::Text(Kept::Tang, error.chars().take(MOST_WORDS).collect()))
            }
            (_, 0) => Self::read_success(kind, output),
            _ => {
                tracing::info!(step = %kind, exit_code, "a step of an agent failed");
                Ok(Self::Nothing)
            }
        }
    }

    fn read_success(kind: StepType, output: &str) -> Result<Self, ApiError> {
        let name = kind.as_str();
        match kind {
            StepType::Inventory => Ok(Self::Machine(Box::new(read(name, output)?))),
            StepType::ConnectivityCheck => text::<ConnectivityReport>(Kept::Connectivity, name, output),
            StepType::ApiVipConnectivityCheck => text::<ApiVipReport>(Kept::ApiVip, name, output),
            StepType::TangConnectivityCheck => text::<TangReport>(Kept::Tang, name, output),
            StepType::NtpSynchronizer => text::<NtpReport>(Kept::Ntp, name, output),
            StepType::DomainResolution => text::<DomainReport>(Kept::Domains, name, output),
            // Nothing comes while another scan is under way.
            StepType::FreeNetworkAddresses if output.is_empty() => Ok(Self::Well),
            StepType::FreeNetworkAddresses => text::<List<FreeNetwork>>(Kept::FreeAddresses, name, output),
            StepType::UpgradeAgent => read(name, output).map(Self::Upgrade),
            _ => Ok(Self::Well),
        }
    }

    /// Keeps what was said, and moves the host to where it belongs then.
    pub(super) fn keep(
        &self,
        host: &mut HostRecord,
        settings: &Settings,
        journal: &mut Journal,
    ) -> Result<(), ApiError> {
        let before = len_of_reports(host);
        match self {
            Self::Machine(machine) => keep_machine(host, machine)?,
            Self::Text(kept, text) => keep_text(host, *kept, text),
            Self::Images(report) => keep_images(host, report),
            Self::DiskSpeed(report, exit_code) => keep_disk_speed(host, report, *exit_code),
            Self::Upgrade(report) => tell_upgrade(host, report, journal),
            Self::MediaLost => {
                lose_media(host, journal);
                return Ok(());
            }
            Self::Well => {}
            Self::Nothing => return Ok(()),
        }
        check_reports(host, before, &settings.host_limits)?;
        host.findings.media = Some(MediaStatus::Connected);
        refresh(host, settings, journal);
        Ok(())
    }
}

/// Reads a report that is kept as it is, without what nobody knows.
fn text<T: DeserializeOwned + Serialize>(kept: Kept, name: &str, output: &str) -> Result<Finding, ApiError> {
    Ok(Finding::Text(kept, write(&read::<T>(name, output)?)))
}

fn keep_machine(host: &mut HostRecord, machine: &Machine) -> Result<(), ApiError> {
    let status = host.status;
    if matches!(status, HostStatus::Binding | HostStatus::Unbinding | HostStatus::UnbindingPendingUserAction)
    {
        // The agent is about to register again, and what it found is forgotten then.
        return Ok(());
    }
    let is_preparing = matches!(
        status,
        HostStatus::PreparingForInstallation | HostStatus::PreparingFailed | HostStatus::PreparingSuccessful
    );
    let counts = status.is_in_pool() || status.is_before_installation() || is_preparing;
    if !counts && status != HostStatus::InstallingInProgress {
        return Err(ApiError::conflict(format!("Host {} takes no inventory in state {status}", host.id)));
    }
    let mut machine = machine.clone();
    machine.judge();
    host.choices.installation_disk = machine.installation_disk(host.choices.installation_disk.as_ref());
    host.choices.disks_to_be_formatted = machine.disks_to_format();
    host.findings.validations = of_machine(&machine);
    host.findings.hostname = machine.hostname.chars().take(MOST_NAME).collect();
    host.findings.inventory = write(&machine);
    Ok(())
}

fn keep_text(host: &mut HostRecord, kept: Kept, text: &str) {
    let findings = &mut host.findings;
    let place = match kept {
        Kept::Connectivity => &mut findings.connectivity,
        Kept::ApiVip => &mut findings.api_vip_connectivity,
        Kept::Tang => &mut findings.tang_connectivity,
        Kept::Ntp => &mut findings.ntp_sources,
        Kept::Domains => &mut findings.domain_name_resolutions,
        Kept::FreeAddresses => &mut findings.free_addresses,
    };
    text.clone_into(place);
}

/// An object that is kept as text, with something put into it.
fn put(text: &mut String, entries: impl Iterator<Item = (String, Value)>) {
    let mut all: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    for (key, value) in entries {
        if all.contains_key(&key) || all.len() < MOST_REMEMBERED {
            all.insert(key, value);
        }
    }
    *text = Value::Object(all).to_string();
}

fn keep_images(host: &mut HostRecord, report: &ImagesReport) {
    let entry = |image: &super::reported::ImageReport| {
        (image.name.clone(), serde_json::to_value(image).unwrap_or_default())
    };
    put(&mut host.findings.images_status, report.images.iter().map(entry));
}

fn keep_disk_speed(host: &mut HostRecord, report: &DiskSpeedReport, exit_code: i64) {
    let mut speed = Map::from_iter([("tested".to_owned(), Value::Bool(true))]);
    for (key, number) in [("exit_code", exit_code), ("speed_ms", report.io_sync_duration)] {
        if number != 0 {
            speed.insert(key.to_owned(), number.into());
        }
    }
    let entry = (report.path.clone(), json!({"disk_speed": speed, "path": report.path}));
    put(&mut host.findings.disks_info, std::iter::once(entry));
}

fn tell_upgrade(host: &mut HostRecord, report: &UpgradeReport, journal: &mut Journal) {
    let image = &report.agent_image;
    match report.result.as_str() {
        "success" => {
            let message = format!("Successfully upgraded its agent to {image}");
            journal.tell_hourly(host, "upgrade_agent_finished", Severity::Info, &message);
        }
        "failure" => {
            let message = format!("Failed to upgrade its agent to {image}");
            journal.tell_hourly(host, "upgrade_agent_failed", Severity::Error, &message);
        }
        // Another one is under way.
        _ => {}
    }
}

/// The media are gone: nothing that has to be read from them will work.
fn lose_media(host: &mut HostRecord, journal: &mut Journal) {
    use HostStatus as S;
    if host.findings.media == Some(MediaStatus::Disconnected) {
        return;
    }
    host.findings.media = Some(MediaStatus::Disconnected);
    let status = match host.status {
        status if status.is_in_pool() => S::DisconnectedUnbound,
        status if status.is_before_installation() || status == S::Binding => S::Disconnected,
        status if status.is_installing() && status != S::InstallingPendingUserAction => S::Error,
        status => status,
    };
    journal.tell(host, "host_media_disconnected", Severity::Error, MEDIA_DISCONNECTED);
    match status {
        S::Disconnected | S::DisconnectedUnbound => journal.move_host(host, status, MEDIA_DISCONNECTED),
        S::Error => {
            let before =
                if host.status_info.is_empty() { String::new() } else { format!(". {}", host.status_info) };
            journal.move_host(host, S::Error, &format!("Failed - {MEDIA_DISCONNECTED}{before}"));
        }
        _ => {}
    }
}
