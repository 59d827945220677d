//! Verifies a whole image: checks that are too expensive or too strict for opening it.

use serde::Serialize;

use crate::base::BaseImage;
use crate::bytes_at::{u16_be, u16_le, u32_be, u32_le};
use crate::eltorito::{BootInfoTable, BootPlatform};
use crate::error::{Error, OrInternal, Result, format_with_causes};
use crate::extent::Extent;
use crate::initrd::ArchiveError;
use crate::partitions::{DISK_SECTOR_SIZE, Gpt};
use crate::volume::{DirectoryTree, EntryId, MAX_PATH_TABLE_LEN, TreeDescriptor};

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "outcome", content = "detail")]
pub enum CheckOutcome {
    /// No problem was found.
    Ok,
    /// The image does not have the structure.
    Absent,
    /// The check does not apply to the image. Contains the reason.
    Skipped(String),
    /// The check found these problems.
    Wrong(Vec<String>),
}

/// A check of an image and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImageCheck {
    /// Name of the check, for example `partition tables`.
    pub name: &'static str,
    /// Outcome of the check.
    #[serde(flatten)]
    pub outcome: CheckOutcome,
}

impl CheckOutcome {
    fn from_problems(problems: impl IntoIterator<Item = String>) -> Self {
        let problems: Vec<String> = problems.into_iter().collect();
        if problems.is_empty() { Self::Ok } else { Self::Wrong(problems) }
    }

    /// Converts an error that ended a check to an outcome. An unsupported compression is not a problem of the image.
    fn from_error(error: &Error) -> Self {
        let text = format_with_causes(error);
        match error {
            Error::UnsupportedCompression { .. }
            | Error::Archive { source: ArchiveError::UnsupportedCompression { .. }, .. } => {
                Self::Skipped(text)
            }
            _ => Self::Wrong(vec![text]),
        }
    }
}

impl BaseImage {
    /// Runs all checks. The check of the minimal ISO reads all bytes that the minimal ISO shares with the image, about
    /// a hundred megabytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the storage fails. Problems of the image are outcomes, not errors.
    pub fn verify(&self) -> Result<Vec<ImageCheck>> {
        let check = |name, outcome| ImageCheck { name, outcome };
        let findings = self.volume().findings().iter();
        let findings = findings.map(|finding| format!("byte {}: {}", finding.offset, finding.message));
        Ok(vec![
            check("volume numbers", CheckOutcome::from_problems(findings)),
            check("path tables", self.check_path_tables()?),
            check("joliet tree", self.check_joliet()),
            check("files do not overlap", self.check_file_overlaps()),
            check("boot catalogue", self.check_catalog()),
            check("boot info table", self.check_boot_info()?),
            check("partition tables", self.check_partitions()),
            check("ignition area", self.check_ignition()),
            check("kernel arguments", self.check_kargs()),
            check("minimal iso", self.check_minimal()?),
        ])
    }

    fn check_path_tables(&self) -> Result<CheckOutcome> {
        let mut problems = Vec::new();
        for (descriptor, tree) in self.volume().trees() {
            problems.extend(self.check_path_table(descriptor, tree)?);
        }
        Ok(CheckOutcome::from_problems(problems))
    }

    fn check_path_table(&self, descriptor: &TreeDescriptor, tree: &DirectoryTree) -> Result<Vec<String>> {
        let mut expected: Vec<u32> = tree.directories().map(|(_, entry)| entry.record.sector.0).collect();
        expected.sort_unstable();
        let tables = &descriptor.path_tables;
        let mut problems = Vec::new();
        for (sector, is_little_endian) in [(tables.little_endian, true), (tables.big_endian, false)] {
            let extent = Extent::at_sector(sector, tables.len);
            if extent.end() > self.source().len() || tables.len > MAX_PATH_TABLE_LEN {
                problems.push(format!("the path table at {extent} is outside the image"));
                continue;
            }
            let mut listed = parse_path_table(&self.source().read_extent(extent)?, is_little_endian);
            listed.sort_unstable();
            if listed != expected {
                let message = "lists other directories than the tree has";
                problems.push(format!("the path table at byte {} {message}", extent.offset()));
            }
        }
        Ok(problems)
    }

    /// Checks that the ISO 9660 tree and the Joliet tree have the same files.
    fn check_joliet(&self) -> CheckOutcome {
        let Some(joliet) = self.volume().joliet_tree() else { return CheckOutcome::Absent };
        let list = |tree: &DirectoryTree| {
            let files = tree.files().map(|(_, file)| file.extent);
            let mut files: Vec<Extent> = files.filter(|extent| !extent.is_empty()).collect();
            files.sort_unstable();
            files
        };
        let (primary, joliet) = (list(self.volume().tree()), list(joliet));
        let missing = primary.iter().filter(|extent| joliet.binary_search(extent).is_err());
        let added = joliet.iter().filter(|extent| primary.binary_search(extent).is_err());
        let missing = missing.map(|extent| format!("the file at {extent} is not in the Joliet tree"));
        let added = added.map(|extent| format!("the file at {extent} is only in the Joliet tree"));
        CheckOutcome::from_problems(missing.chain(added))
    }

    fn check_file_overlaps(&self) -> CheckOutcome {
        let files: Vec<(Extent, Vec<EntryId>)> = self.volume().files_by_extent().into_iter().collect();
        let name =
            |ids: &[EntryId]| ids.iter().take(1).map(|id| self.volume().tree().path(*id)).collect::<String>();
        let overlaps = files.iter().zip(files.iter().skip(1)).filter(|((a, _), (b, _))| a.overlaps(*b));
        CheckOutcome::from_problems(overlaps.take(MAX_OVERLAPS).map(|((a, first), (b, second))| {
            format!("{} ({a}) and {} ({b}) overlap", name(first), name(second))
        }))
    }

    fn check_catalog(&self) -> CheckOutcome {
        let Some(catalog) = self.boot_catalog() else { return CheckOutcome::Absent };
        let mut problems = Vec::new();
        let at = catalog.sector.offset();
        if !catalog.checksum_ok {
            problems.push(format!("the checksum of the validation entry at byte {at} is wrong"));
        }
        if !catalog.sections_complete {
            problems.push(format!("the catalogue at byte {at} ends before the entries that it announces"));
        }
        for sector in catalog.entries.iter().filter(|entry| entry.is_bootable).map(|entry| entry.sector) {
            if !self.volume().tree().files().any(|(_, file)| file.record.sector == sector) {
                problems.push(format!("the boot image at sector {sector} is not a file of the volume"));
            }
        }
        CheckOutcome::from_problems(problems)
    }

    /// Checks the boot info table of a BIOS boot image. isolinux uses the table to find its own file.
    fn check_boot_info(&self) -> Result<CheckOutcome> {
        let bios = |entry: &&crate::eltorito::BootEntry| entry.platform == BootPlatform::Bios;
        let entry = self.boot_catalog().and_then(|catalog| catalog.entries.iter().find(bios));
        let Some(entry) = entry else { return Ok(CheckOutcome::Absent) };
        let tree = self.volume().tree();
        let file = tree.entries().find(|(_, file)| {
            file.name.ends_with("isolinux.bin")
                && file.record.sector == entry.sector
                && (BootInfoTable::END..=BootInfoTable::MAX_FILE_LEN).contains(&file.extent.len())
        });
        let Some((_, file)) = file else { return Ok(CheckOutcome::Absent) };
        let bytes = self.source().read_extent(file.extent)?;
        let names =
            ["sector of the volume descriptor", "sector of the file", "length of the file", "checksum"];
        let table = BootInfoTable::new(self.volume(), entry.sector, &bytes)?;
        let mut problems = Vec::new();
        for ((offset, what), expected) in (8..).step_by(4).zip(names).zip(table.0) {
            let at = file.extent.offset() + offset as u64;
            let actual = u32_le(&bytes, offset).or_internal("short boot info table", at)?;
            if actual != expected {
                problems.push(format!("byte {at}: {what}: expected {expected}, found {actual}"));
            }
        }
        Ok(CheckOutcome::from_problems(problems))
    }

    fn check_partitions(&self) -> CheckOutcome {
        let tables = self.partitions();
        if tables.mbr.is_none() && tables.gpt.is_none() && tables.apple.is_empty() {
            return CheckOutcome::Absent;
        }
        let mut problems = Vec::new();
        let sectors = self.source().len() / DISK_SECTOR_SIZE;
        for partition in tables.mbr.iter().flat_map(|mbr| &mbr.partitions) {
            let (number, end) = (partition.number, u64::from(partition.start) + u64::from(partition.count));
            if end > sectors {
                problems.push(format!("MBR partition {number} ends at sector {end} of {sectors}"));
            }
        }
        if let Some(gpt) = &tables.gpt {
            let backup_at = gpt.backup;
            problems.extend(gpt_problems(gpt, "primary"));
            match &tables.backup_gpt {
                Some(backup) => problems.extend(gpt_problems(backup, "backup")),
                None => problems.push(format!("there is no backup GPT at sector {backup_at}")),
            }
            for partition in gpt.partitions.iter().filter(|it| it.last >= sectors || it.last < it.first) {
                let (number, first, last) = (partition.number, partition.first, partition.last);
                problems.push(format!("GPT partition {number} spans sectors {first} to {last} of {sectors}"));
            }
            if backup_at.checked_add(1) != Some(sectors) {
                problems.push(format!("the backup GPT is at sector {backup_at}, not the last of {sectors}"));
            }
        }
        CheckOutcome::from_problems(problems)
    }

    fn check_ignition(&self) -> CheckOutcome {
        if self.ignition_area().is_none() {
            return CheckOutcome::Absent;
        }
        self.archive().err().map_or(CheckOutcome::Ok, |error| CheckOutcome::from_error(&error))
    }

    fn check_kargs(&self) -> CheckOutcome {
        let Some(kargs) = self.kargs() else { return CheckOutcome::Absent };
        CheckOutcome::from_problems(kargs.current().err().map(|error| error.to_string()))
    }

    fn check_minimal(&self) -> Result<CheckOutcome> {
        match self.require_pristine() {
            Err(Error::Customized { what, .. }) => {
                let reason = format!("customised: {what}; the digest belongs to the unmodified image");
                return Ok(CheckOutcome::Skipped(reason));
            }
            Err(_) => return Ok(CheckOutcome::Skipped("the image's areas cannot be read".into())),
            Ok(()) => {}
        }
        match self.verify_minimal() {
            Ok(()) => Ok(CheckOutcome::Ok),
            Err(Error::NoMinimal { .. }) => Ok(CheckOutcome::Absent),
            Err(error @ Error::Read { .. }) => Err(error),
            Err(error) => Ok(CheckOutcome::from_error(&error)),
        }
    }
}

/// Maximum number of reported overlaps of files. Each overlap needs a search for two names.
const MAX_OVERLAPS: usize = 100;

fn gpt_problems(gpt: &Gpt, copy: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let (position, current) = (gpt.position, gpt.current);
    if !gpt.header_crc_ok {
        problems.push(format!("the checksum of the {copy} GPT header at byte {position} is wrong"));
    }
    if !gpt.table_crc_ok {
        problems.push(format!("the checksum of the {copy} GPT's table at sector {} is wrong", gpt.table));
    }
    if current.checked_mul(DISK_SECTOR_SIZE) != Some(position) {
        problems.push(format!("the {copy} GPT at byte {position} says it is at sector {current}"));
    }
    problems
}

/// Returns the sectors of the directories in a path table.
fn parse_path_table(bytes: &[u8], is_little_endian: bool) -> Vec<u32> {
    let mut sectors = Vec::new();
    let mut at = 0;
    while let Some(name_len @ 1..) = bytes.get(at).copied() {
        let sector = if is_little_endian { u32_le(bytes, at + 2) } else { u32_be(bytes, at + 2) };
        let parent = if is_little_endian { u16_le(bytes, at + 6) } else { u16_be(bytes, at + 6) };
        let (Some(sector), Some(_)) = (sector, parent) else { break };
        sectors.push(sector);
        at += 8 + usize::from(name_len) + usize::from(name_len % 2);
    }
    sectors
}
