//! `kindling iso inspect`: all that is known about an image.

use std::fmt::Write;

use anyhow::Result;
use clap::Args;
use ignition::summary::Summary;
use isogen::inspect::{BootFile, IgnitionSummary, Inspection, KargsSummary};
use isogen::{BaseImage, Extent};
use serde::Serialize;

use crate::cli::output::{Lines, print_bytes, print_json};

#[derive(Debug, Args)]
pub(in crate::cli) struct Inspect {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Image that this one was made of: tell whether what secure boot checks is the same
    #[arg(long, value_name = "ISO")]
    base: Option<String>,
    /// ISO image
    #[arg(value_name = "ISO")]
    input: String,
}

/// An inspection together with what the config in the image does.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    image: Inspection,
    ignition: Option<Summary>,
    ignition_error: Option<String>,
    /// Of the base image that was named: the boot files that this image has otherwise, or not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    boot_files_differing: Option<Vec<String>>,
    #[serde(skip)]
    base: Option<String>,
}

impl Inspect {
    pub(super) fn run(self) -> Result<()> {
        let image = BaseImage::open(&self.input)?.inspect()?;
        let config = image.ignition_area.as_ref().and_then(|area| area.config.as_deref());
        let (ignition, ignition_error) = match config.map(Summary::of) {
            Some(Ok(summary)) => (Some(summary), None),
            Some(Err(error)) => (None, Some(error.to_string())),
            None => (None, None),
        };
        let base_files = self.base.as_ref().map(|base| BaseImage::open(base)?.boot_files()).transpose()?;
        let boot_files_differing = base_files.map(|files| differing(&files, &image.boot_files));
        let report = Report { image, ignition, ignition_error, boot_files_differing, base: self.base };
        if self.json { print_json(&report) } else { print_bytes(text(&report)?.as_bytes()) }
    }
}

/// The paths of boot files that are in one image only, or differ.
fn differing(base: &[BootFile], image: &[BootFile]) -> Vec<String> {
    let only = |one: &[BootFile], other: &[BootFile]| -> Vec<String> {
        one.iter().filter(|file| !other.contains(file)).map(|file| file.path.clone()).collect()
    };
    let mut paths = [only(base, image), only(image, base)].concat();
    paths.sort();
    paths.dedup();
    paths
}

fn text(report: &Report) -> Result<String> {
    let mut out = Lines::default();
    let image = &report.image;
    let architecture = image.architecture.map_or("unknown".to_owned(), |it| format!("{it:?}").to_lowercase());
    writeln!(out, "{}: {} bytes", image.file, image.len)?;
    writeln!(out, "Volume:        {} ({} sectors)", image.volume.id, image.volume.sectors)?;
    writeln!(out, "Architecture:  {architecture}")?;
    writeln!(out, "Generation:    {}", image.generation)?;
    match &image.new_layout {
        Some(reason) => writeln!(out, "Layout:        new: {reason}")?,
        None => writeln!(out, "Layout:        as mastered")?,
    }
    boot(&mut out, image)?;
    boot_files(&mut out, report)?;
    match &image.ignition_area {
        Some(area) => ignition(&mut out, area, report)?,
        None => writeln!(out, "Ignition area: none")?,
    }
    match &image.kargs {
        Some(summary) => kargs(&mut out, summary)?,
        None => writeln!(out, "Kernel args:   no areas")?,
    }
    let features = &image.features;
    let known = [
        ("installer-config", features.installer_config),
        ("live-initrd-network", features.live_initrd_network),
    ];
    let mut features: Vec<String> =
        known.iter().filter(|(_, has)| *has).map(|(name, _)| (*name).to_owned()).collect();
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
        let slash = if file.directory { "/" } else { "" };
        writeln!(out, "{:>12} {:>12}  {}{slash}", file.extent.offset(), file.extent.len(), file.path)?;
    }
    for finding in &image.findings {
        writeln!(out, "note: byte {}: {}", finding.offset, finding.message)?;
    }
    Ok(out.into_text())
}

fn boot(out: &mut Lines, image: &Inspection) -> Result<()> {
    for entry in image.boot_catalog.iter().flat_map(|catalog| &catalog.entries) {
        let (platform, sector) = (entry.platform, entry.sector);
        let path = image.files.iter().find(|file| !file.directory && file.extent.offset() == sector.offset());
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

fn boot_files(out: &mut Lines, report: &Report) -> Result<()> {
    let base = report.base.as_deref().unwrap_or_default();
    match &report.boot_files_differing {
        None => writeln!(out, "Boot files:    {}, by SHA-256", report.image.boot_files.len())?,
        Some(paths) if paths.is_empty() => {
            let count = report.image.boot_files.len();
            writeln!(out, "Boot files:    {count}, byte for byte those of {base}")?;
        }
        Some(paths) => writeln!(out, "Boot files:    not those of {base}: {}", paths.join(" "))?,
    }
    for file in &report.image.boot_files {
        writeln!(out, "  {}  {}", file.sha256, file.path)?;
    }
    Ok(())
}

fn ignition(out: &mut Lines, area: &IgnitionSummary, report: &Report) -> Result<()> {
    writeln!(
        out,
        "Ignition area: {} of {} bytes used, {}",
        area.used,
        area.extent.len(),
        place(area.extent)
    )?;
    if let Some(error) = &area.error {
        writeln!(out, "  {error}")?;
    }
    for member in &area.members {
        writeln!(out, "  {:>10}  {}", member.len, member.name)?;
    }
    if let Some(error) = &report.ignition_error {
        writeln!(out, "  the config: {error}")?;
    }
    if let Some(it) = &report.ignition {
        writeln!(
            out,
            "  the config: spec {}, {} merged, {} files, {} directories, {} links, units: {}, users: {}",
            it.version,
            it.merges,
            it.files,
            it.directories,
            it.links,
            or_none(&it.units.join(" ")),
            or_none(&it.users.join(" ")),
        )?;
        if !it.removed_users.is_empty() {
            writeln!(out, "  users removed: {}", it.removed_users.join(" "))?;
        }
        it.warnings.iter().try_for_each(|warning| writeln!(out, "  warning: {warning}"))?;
    }
    Ok(())
}

fn kargs(out: &mut Lines, summary: &KargsSummary) -> Result<()> {
    match (&summary.current, &summary.error) {
        (Some(current), _) => writeln!(out, "Kernel args:   {current}")?,
        (None, error) => writeln!(out, "Kernel args:   {}", error.as_deref().unwrap_or("unknown"))?,
    }
    if summary.default != summary.current {
        writeln!(out, "  default: {}", summary.default.as_deref().unwrap_or("not recorded"))?;
    }
    writeln!(out, "  {} of {} bytes free in each area", summary.free, summary.area_len)?;
    for area in &summary.areas {
        writeln!(out, "  {} of {}", place(area.extent), area.file.as_deref().unwrap_or("no file"))?;
    }
    Ok(())
}

fn place(extent: Extent) -> String {
    format!("bytes {} to {}", extent.offset(), extent.end())
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}
