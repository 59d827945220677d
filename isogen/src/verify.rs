//! Checking an image as a whole, beyond what opening it needs.

use serde::Serialize;

use crate::base::BaseImage;
use crate::bytes_at::{u16_be, u16_le, u32_be, u32_le};
use crate::eltorito::Platform;
use crate::error::{Error, Result, with_causes};
use crate::extent::Extent;
use crate::partitions::{DISK_SECTOR_SIZE, Gpt};
use crate::volume::{Kind, MAX_PATH_TABLE_LEN, Tree, VolumeDescriptor};

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "outcome", content = "detail")]
pub enum Outcome {
    /// All is as it should be.
    Ok,
    /// The image has nothing of the kind.
    Absent,
    /// The check does not apply to the image as it is, for this reason.
    Skipped(String),
    /// These things are wrong.
    Wrong(Vec<String>),
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What is checked.
    pub name: &'static str,
    /// What was found.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl BaseImage {
    /// Runs every check. The one of the minimal ISO reads what both images share, about a hundred megabytes.
    ///
    /// # Errors
    ///
    /// Fails where the storage does. What is wrong with the image is in the outcomes.
    pub fn verify(&self) -> Result<Vec<Check>> {
        let check = |name, outcome| Check { name, outcome };
        Ok(vec![
            check(
                "volume numbers",
                found(
                    self.volume()
                        .findings()
                        .iter()
                        .map(|finding| format!("byte {}: {}", finding.offset, finding.message)),
                ),
            ),
            check("path tables", self.check_path_tables()?),
            check("joliet tree", self.check_joliet()),
            check("files apart", self.check_files_apart()),
            check("boot catalogue", self.check_catalog()),
            check("boot info table", self.check_boot_info()?),
            check("partition tables", self.check_partitions()),
            check("ignition area", self.check_ignition()),
            check("kernel arguments", self.check_kargs()),
            check("minimal iso", self.check_minimal()?),
        ])
    }

    fn check_path_tables(&self) -> Result<Outcome> {
        let mut wrong = Vec::new();
        let trees = [
            Some((self.volume().primary(), self.volume().tree())),
            self.volume().joliet().zip(self.volume().joliet_tree()),
        ];
        for (descriptor, tree) in trees.into_iter().flatten() {
            wrong.extend(self.check_path_table(descriptor, tree)?);
        }
        Ok(found(wrong))
    }

    fn check_path_table(&self, descriptor: &VolumeDescriptor, tree: &Tree) -> Result<Vec<String>> {
        let directories = tree.entries().filter(|(_, entry)| entry.kind == Kind::Directory);
        let mut expected: Vec<u32> = directories.map(|(_, entry)| entry.record.sector.0).collect();
        expected.sort_unstable();
        let tables = &descriptor.path_tables;
        let mut wrong = Vec::new();
        for (sector, little) in [(tables.little_endian, true), (tables.big_endian, false)] {
            let extent = Extent::at_sector(sector, tables.len);
            if extent.end() > self.source().len() || tables.len > MAX_PATH_TABLE_LEN {
                wrong.push(format!("the path table at {extent} does not lie in the image"));
                continue;
            }
            let mut listed = parse_path_table(&self.source().read_extent(extent)?, little);
            listed.sort_unstable();
            if listed != expected {
                let message = "lists other directories than the tree has";
                wrong.push(format!("the path table at byte {} {message}", extent.offset()));
            }
        }
        Ok(wrong)
    }

    /// Both trees must lead to the same files.
    fn check_joliet(&self) -> Outcome {
        let Some(joliet) = self.volume().joliet_tree() else { return Outcome::Absent };
        let list = |tree: &Tree| {
            let files = tree.entries().filter(|(_, entry)| entry.kind == Kind::File);
            let mut files: Vec<Extent> =
                files.map(|(_, entry)| entry.extent).filter(|e| !e.is_empty()).collect();
            files.sort_unstable();
            files
        };
        let (primary, joliet) = (list(self.volume().tree()), list(joliet));
        let missing = primary.iter().filter(|extent| joliet.binary_search(extent).is_err());
        let added = joliet.iter().filter(|extent| primary.binary_search(extent).is_err());
        let missing = missing.map(|extent| format!("the file at {extent} is not in the Joliet tree"));
        found(missing.chain(added.map(|extent| format!("the file at {extent} is only in the Joliet tree"))))
    }

    fn check_files_apart(&self) -> Outcome {
        let files = self.volume().files_by_extent();
        let extents: Vec<Extent> = files.keys().copied().collect();
        let name = |extent: &Extent| self.file_at(*extent).unwrap_or_default();
        let overlaps = extents.array_windows().filter(|[a, b]| a.overlaps(*b));
        found(
            overlaps
                .take(MAX_OVERLAPS)
                .map(|[a, b]| format!("{} ({a}) and {} ({b}) overlap", name(a), name(b))),
        )
    }

    fn check_catalog(&self) -> Outcome {
        let Some(catalog) = self.boot_catalog() else { return Outcome::Absent };
        let mut wrong = Vec::new();
        if !catalog.checksum_ok {
            wrong.push(format!(
                "the checksum of the validation entry at byte {} is wrong",
                catalog.sector.offset()
            ));
        }
        if !catalog.sections_complete {
            wrong.push(format!(
                "the catalogue at byte {} ends before the entries that it announces",
                catalog.sector.offset()
            ));
        }
        let tree = self.volume().tree();
        for entry in catalog.entries.iter().filter(|entry| entry.bootable) {
            let named =
                tree.entries().any(|(_, file)| file.record.sector == entry.sector && file.kind == Kind::File);
            if !named {
                wrong.push(format!("the boot image at sector {} is no file of the volume", entry.sector));
            }
        }
        found(wrong)
    }

    /// The table that isolinux reads to find itself, where the BIOS boot image has one.
    fn check_boot_info(&self) -> Result<Outcome> {
        let bios = |entry: &&crate::eltorito::BootEntry| entry.platform == Platform::Bios;
        let entry = self.boot_catalog().and_then(|catalog| catalog.entries.iter().find(bios));
        let Some(entry) = entry else { return Ok(Outcome::Absent) };
        let tree = self.volume().tree();
        let file = tree.entries().find(|(_, file)| {
            file.name.ends_with("isolinux.bin")
                && file.record.sector == entry.sector
                && file.extent.len() >= 64
        });
        let Some((_, file)) = file.filter(|(_, file)| file.extent.len() <= MAX_BOOT_IMAGE_LEN) else {
            return Ok(Outcome::Absent);
        };
        let bytes = self.source().read_extent(file.extent)?;
        let words = bytes.get(64..).unwrap_or_default().chunks(4).map(|chunk| {
            let mut word = [0; 4];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            u32::from_le_bytes(word)
        });
        let sum = words.fold(0, u32::wrapping_add);
        let len = u32::try_from(file.extent.len()).unwrap_or_default();
        let fields = [
            (8, "sector of the volume descriptor", self.volume().primary().sector.0),
            (12, "sector of the file", entry.sector.0),
            (16, "length of the file", len),
            (20, "checksum", sum),
        ];
        let wrong = fields.into_iter().filter_map(|(offset, what, expected)| {
            let found = u32_le(&bytes, offset).unwrap_or_default();
            let at = file.extent.offset() + offset as u64;
            (found != expected).then(|| format!("byte {at}: {what}: expected {expected}, found {found}"))
        });
        Ok(found(wrong))
    }

    fn check_partitions(&self) -> Outcome {
        let tables = self.partitions();
        if tables.mbr.is_none() && tables.gpt.is_none() && tables.apple.is_empty() {
            return Outcome::Absent;
        }
        let mut wrong = Vec::new();
        let sectors = self.source().len() / DISK_SECTOR_SIZE;
        for partition in tables.mbr.iter().flat_map(|mbr| &mbr.partitions) {
            let end = u64::from(partition.start) + u64::from(partition.count);
            if end > sectors {
                wrong.push(format!("MBR partition {} ends at {end} of {sectors} sectors", partition.number));
            }
        }
        if let Some(gpt) = &tables.gpt {
            wrong.extend(gpt_problems(gpt, "primary"));
            match &tables.backup_gpt {
                Some(backup) => wrong.extend(gpt_problems(backup, "backup")),
                None => wrong.push(format!("there is no backup GPT at sector {}", gpt.backup)),
            }
            for partition in gpt.partitions.iter().filter(|it| it.last >= sectors || it.last < it.first) {
                let (number, first, last) = (partition.number, partition.first, partition.last);
                wrong.push(format!("GPT partition {number} is from {first} to {last} of {sectors} sectors"));
            }
            if gpt.backup.checked_add(1) != Some(sectors) {
                wrong.push(format!("the backup GPT is at sector {} of {sectors}", gpt.backup));
            }
        }
        found(wrong)
    }

    fn check_ignition(&self) -> Outcome {
        if self.ignition_area().is_none() {
            return Outcome::Absent;
        }
        self.archive().map_or_else(|error| Outcome::Wrong(vec![with_causes(&error)]), |_| Outcome::Ok)
    }

    fn check_kargs(&self) -> Outcome {
        let Some(kargs) = self.kargs() else { return Outcome::Absent };
        match kargs.current() {
            Ok(_) => Outcome::Ok,
            Err(error) => Outcome::Wrong(vec![error.to_string()]),
        }
    }

    fn check_minimal(&self) -> Result<Outcome> {
        match self.require_pristine() {
            Err(Error::Customized { what, .. }) => {
                return Ok(Outcome::Skipped(format!(
                    "customised: {what}; the digest is of the image before"
                )));
            }
            Err(_) => return Ok(Outcome::Skipped("the image's areas cannot be read".into())),
            Ok(()) => {}
        }
        match self.verify_minimal() {
            Ok(()) => Ok(Outcome::Ok),
            Err(Error::NoMinimal { .. }) => Ok(Outcome::Absent),
            Err(error @ Error::Read { .. }) => Err(error),
            Err(error) => Ok(Outcome::Wrong(vec![with_causes(&error)])),
        }
    }
}

/// Most overlaps of files that are reported: each takes a search for two names.
const MAX_OVERLAPS: usize = 100;
/// Largest boot image whose table is checked: isolinux has some forty kilobytes.
const MAX_BOOT_IMAGE_LEN: u64 = 1 << 20;

fn found(wrong: impl IntoIterator<Item = String>) -> Outcome {
    let wrong: Vec<String> = wrong.into_iter().collect();
    if wrong.is_empty() { Outcome::Ok } else { Outcome::Wrong(wrong) }
}

fn gpt_problems(gpt: &Gpt, which: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if !gpt.header_crc_ok {
        wrong.push(format!("the checksum of the {which} GPT header at byte {} is wrong", gpt.position));
    }
    if !gpt.table_crc_ok {
        wrong.push(format!("the checksum of the {which} GPT's table at sector {} is wrong", gpt.table));
    }
    if gpt.current.checked_mul(DISK_SECTOR_SIZE) != Some(gpt.position) {
        wrong.push(format!("the {which} GPT at byte {} says it is at sector {}", gpt.position, gpt.current));
    }
    wrong
}

/// The sectors of the directories that a path table lists.
fn parse_path_table(bytes: &[u8], little: bool) -> Vec<u32> {
    let mut sectors = Vec::new();
    let mut at = 0;
    while let Some(name_len @ 1..) = bytes.get(at).copied() {
        let sector = if little { u32_le(bytes, at + 2) } else { u32_be(bytes, at + 2) };
        let parent = if little { u16_le(bytes, at + 6) } else { u16_be(bytes, at + 6) };
        let (Some(sector), Some(_)) = (sector, parent) else { break };
        sectors.push(sector);
        at += 8 + usize::from(name_len) + usize::from(name_len % 2);
    }
    sectors
}
