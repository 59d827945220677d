//! `kindling iso inspect`: shows the layout and content of an image.

use std::fmt::Write;

use anyhow::Result;
use clap::Args;
use ignition::discovery::{masked_url, service_url};
use ignition::summary::ConfigSummary;
use isogen::inspect::{BootFileSummary, IgnitionSummary, Inspection, KargsSummary};
use isogen::{BaseImage, Extent};
use serde::Serialize;

use crate::cli::output::{EscapedLines, print_bytes, print_json};

#[derive(Debug, Args)]
pub(in crate::cli) struct Inspect {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Image that this one was made from: compare the boot files, which secure boot verifies
    #[arg(long, value_name = "ISO")]
    base: Option<String>,
    /// ISO image
    #[arg(value_name = "ISO")]
    input: String,
}

/// The JSON output: the inspection of an image, and a summary of its Ignition config.
#[derive(Serialize)]
struct InspectReport {
    #[serde(flatten)]
    image: Inspection,
    ignition: Option<ConfigSummary>,
    ignition_error: Option<String>,
    /// The URL of the service in which machines register, without secrets.
    service_url: Option<String>,
    /// Paths of boot files that differ between this image and `--base`, or exist in only one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    boot_files_differing: Option<Vec<String>>,
    #[serde(skip)]
    base: Option<String>,
}

impl Inspect {
    pub(super) fn run(self) -> Result<()> {
        let image = BaseImage::open(&self.input)?.inspect()?;
        let config = image.ignition_area.as_ref().and_then(|area| area.config.as_deref());
        let (ignition, ignition_error) = match config.map(ConfigSummary::parse) {
            Some(Ok(summary)) => (Some(summary), None),
            Some(Err(error)) => (None, Some(error.to_string())),
            None => (None, None),
        };
        let service_url = config.and_then(service_url).map(|url| masked_url(url.as_str()));
        let base_files = self.base.as_ref().map(|base| BaseImage::open(base)?.boot_files()).transpose()?;
        let boot_files_differing = base_files.map(|files| differing_boot_files(&files, &image.boot_files));
        let base = self.base;
        let report =
            InspectReport { image, ignition, ignition_error, service_url, boot_files_differing, base };
        if self.json { print_json(&report) } else { print_bytes(report_text(&report)?.as_bytes()) }
    }
}

/// Returns the paths of boot files that differ, or that exist in only one image.
fn differing_boot_files(base: &[BootFileSummary], image: &[BootFileSummary]) -> Vec<String> {
    let only = |one: &[BootFileSummary], other: &[BootFileSummary]| -> Vec<String> {
        one.iter().filter(|file| !other.contains(file)).map(|file| file.path.clone()).collect()
    };
    let mut paths = [only(base, image), only(image, base)].concat();
    paths.sort();
    paths.dedup();
    paths
}

fn report_text(report: &InspectReport) -> Result<String> {
    let mut out = EscapedLines::default();
    let image = &report.image;
    let architecture = image.architecture.map_or("unknown".to_owned(), |it| format!("{it:?}").to_lowercase());
    writeln!(out, "{}: {} bytes", image.file, image.len)?;
    writeln!(out, "Volume:        {} ({} sectors)", image.volume.id, image.volume.sectors)?;
    writeln!(out, "Architecture:  {architecture}")?;
    writeln!(out, "Generation:    {}", image.generation)?;
    match &image.relayout_reason {
        Some(reason) => writeln!(out, "Layout:        new: {reason}")?,
        None => writeln!(out, "Layout:        original")?,
    }
    write_boot(&mut out, image)?;
    write_boot_files(&mut out, report)?;
    match &image.ignition_area {
        Some(area) => write_ignition(&mut out, area, report)?,
        None => writeln!(out, "Ignition area: none")?,
    }
    if let Some(url) = &report.service_url {
        writeln!(out, "Service:       {url}")?;
    }
    match &image.kargs {
        Some(summary) => write_kargs(&mut out, summary)?,
        None => writeln!(out, "Kernel args:   no embed areas")?,
    }
    let features = &image.features;
    let flags = [
        ("installer-config", features.installer_config),
        ("live-initrd-network", features.live_initrd_network),
    ];
    let mut features: Vec<String> =
        flags.iter().filter(|(_, has)| *has).map(|(name, _)| (*name).to_owned()).collect();
    let directives = image.features.installer_config_directives.len();
    if directives > 0 {
        features.push(format!("{directives} installer directives"));
    }
    writeln!(out, "Features:      {}", or_none(&features.join(", ")))?;
    match (&image.minimal.len, &image.minimal.error) {
        (Some(len), _) => writeln!(out, "Minimal ISO:   {len} bytes")?,
        (None, error) => writeln!(out, "Minimal ISO:   {}", error.as_deref().unwrap_or("none"))?,
    }
    writeln!(out)?;
    writeln!(out, "{:>12} {:>12}  path", "offset", "length")?;
    for file in &image.files {
        let slash = if file.is_directory { "/" } else { "" };
        writeln!(out, "{:>12} {:>12}  {}{slash}", file.extent.offset(), file.extent.len(), file.path)?;
    }
    for finding in &image.findings {
        writeln!(out, "note: byte {}: {}", finding.offset, finding.message)?;
    }
    Ok(out.into_text())
}

fn write_boot(out: &mut EscapedLines, image: &Inspection) -> Result<()> {
    for entry in image.boot_catalog.iter().flat_map(|catalog| &catalog.entries) {
        let (platform, sector) = (entry.platform, entry.sector);
        let path =
            image.files.iter().find(|file| !file.is_directory && file.extent.offset() == sector.offset());
        let path = path.map_or("no file", |file| &file.path);
        writeln!(
            out,
            "Boots:         {platform:?} from CD, {path} (sector {sector}, {} × 512)",
            entry.load_count
        )?;
    }
    let tables = &image.partitions;
    if let Some(mbr) = &tables.mbr {
        writeln!(out, "MBR:           {} partitions, disk {:08x}", mbr.partitions.len(), mbr.disk_id)?;
    }
    if let Some(gpt) = &tables.gpt {
        let copy = if tables.backup_gpt.is_some() { "with backup" } else { "no backup" };
        writeln!(out, "GPT:           {} partitions, disk {}, {copy}", gpt.partitions.len(), gpt.guid)?;
    }
    if !tables.apple.is_empty() {
        writeln!(out, "Apple map:     {} partitions", tables.apple.len())?;
    }
    Ok(())
}

fn write_boot_files(out: &mut EscapedLines, report: &InspectReport) -> Result<()> {
    let base = report.base.as_deref().unwrap_or_default();
    match &report.boot_files_differing {
        None => writeln!(out, "Boot files:    {}, by SHA-256", report.image.boot_files.len())?,
        Some(paths) if paths.is_empty() => {
            let count = report.image.boot_files.len();
            writeln!(out, "Boot files:    {count}, identical to {base}")?;
        }
        Some(paths) => writeln!(out, "Boot files:    different from {base}: {}", paths.join(" "))?,
    }
    for file in &report.image.boot_files {
        writeln!(out, "  {}  {}", file.sha256, file.path)?;
    }
    Ok(())
}

fn write_ignition(out: &mut EscapedLines, area: &IgnitionSummary, report: &InspectReport) -> Result<()> {
    writeln!(
        out,
        "Ignition area: {} of {} bytes used, {}",
        area.used_len,
        area.extent.len(),
        format_extent(area.extent)
    )?;
    if let Some(error) = &area.error {
        writeln!(out, "  {error}")?;
    }
    for member in &area.members {
        writeln!(out, "  {:>10}  {}", member.len, member.name)?;
    }
    if let Some(error) = &report.ignition_error {
        writeln!(out, "  config: {error}")?;
    }
    if let Some(it) = &report.ignition {
        writeln!(
            out,
            "  config: spec {}, {} merged, {} files, {} directories, {} links, units: {}, users: {}",
            it.version,
            it.merges,
            it.files,
            it.directories,
            it.links,
            or_none(&it.units.join(" ")),
            or_none(&it.users.join(" ")),
        )?;
        if !it.removed_users.is_empty() {
            writeln!(out, "  removed users: {}", it.removed_users.join(" "))?;
        }
        it.warnings.iter().try_for_each(|warning| writeln!(out, "  warning: {warning}"))?;
    }
    Ok(())
}

fn write_kargs(out: &mut EscapedLines, summary: &KargsSummary) -> Result<()> {
    match (&summary.current, &summary.error) {
        (Some(current), _) => writeln!(out, "Kernel args:   {current}")?,
        (None, error) => writeln!(out, "Kernel args:   {}", error.as_deref().unwrap_or("unknown"))?,
    }
    if summary.default != summary.current {
        writeln!(out, "  default: {}", summary.default.as_deref().unwrap_or("not recorded"))?;
    }
    writeln!(out, "  {} of {} bytes free in each area", summary.free_len, summary.area_len)?;
    for area in &summary.areas {
        writeln!(out, "  {} of {}", format_extent(area.extent), area.file.as_deref().unwrap_or("no file"))?;
    }
    Ok(())
}

fn format_extent(extent: Extent) -> String {
    format!("bytes {} to {}", extent.offset(), extent.end())
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}
