//! Damaged and hostile images and archives. They are refused with an error that contains the reason and the position,
//! or accepted without harm: no panic, no endless work, and no memory use beyond the limits.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::panic,
    reason = "test code over images that `fixtures` made"
)]

mod image_operations;
mod images;

use std::time::{Duration, Instant};

use fixtures::{Expect, Stage, hostile, hostile_archives};
use images::{FixtureImage, diverse_images};
use isogen::initrd::ArchiveLimits;
use isogen::verify::CheckOutcome;
use isogen::{Archive, ArchiveError, BaseImage, Edits, Error, ImageDifference, Source, Volume};

/// Maximum time for one image or archive, in an unoptimised build on a busy machine. Most images take milliseconds.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Maximum memory of the whole test program: the limits of the crate, plus the memory for creating the images.
const MEMORY_LIMIT: u64 = 768 << 20;

/// Joins the messages of an error and all its causes in one line.
fn error_chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Returns `true` if an error names the file and the position in it.
fn names_position(error: &Error, file: &str) -> bool {
    let text = error_chain(error);
    let has_name = text.contains(file);
    let has_position = text.contains("byte ") || text.contains("coreos/") || text.contains("system area");
    // These errors are about the whole file, and contain the numbers or the digests instead of a position.
    has_name && (has_position || matches!(error, Error::Incomplete { .. } | Error::MinimalDigest { .. }))
}

fn within_time_limit<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    assert!(start.elapsed() < TIME_LIMIT, "{name} took {:?}", start.elapsed());
    result
}

/// Opens an image and runs every operation on it.
fn run_all_operations(source: Source) -> Result<(), Error> {
    let image = BaseImage::from_source(source)?;
    image_operations::read_structures(&image);
    image_operations::plan_relayouts(&image);
    image_operations::read_contents(&image);
    Ok(())
}

fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Runs the operations up to a stage.
fn run_until_stage(stage: Stage, source: Source) -> Result<BaseImage, Error> {
    let image = BaseImage::from_source(source)?;
    if stage >= Stage::Areas
        && let Some(kargs) = image.kargs()
    {
        kargs.current()?;
        kargs.default()?;
    }
    if stage == Stage::Minimal {
        image.verify_minimal()?;
        image.plan(&Edits::new().minimal(None))?;
    }
    if stage == Stage::Archive {
        image.archive()?;
    }
    Ok(image)
}

/// Returns `true` if the tables that the crate only displays are reported as invalid.
fn reports_wrong_tables(image: &BaseImage) -> bool {
    let tables = ["boot catalogue", "boot info table", "partition tables"];
    let checks = image.verify().unwrap();
    checks.iter().any(|check| tables.contains(&check.name) && matches!(check.outcome, CheckOutcome::Wrong(_)))
}

#[test]
fn invalid_images_are_refused_at_the_expected_stage() {
    for hostile in hostile() {
        let file = format!("{}.iso", hostile.name);
        let bytes = bytes::Bytes::from(hostile.image());
        let source = || Source::from_bytes(file.clone(), bytes.clone());
        within_time_limit(hostile.name, || match (hostile.expect, hostile.expect) {
            (Expect::Accept, _) => {
                run_until_stage(Stage::Archive, source())
                    .unwrap_or_else(|error| panic!("{file}: {}", error_chain(&error)));
            }
            // An image with invalid boot tables may open, because edits do not move the targets of these tables.
            // `verify` must then report the problems.
            (Expect::Refuse(Stage::Boot), _) => match run_until_stage(Stage::Boot, source()) {
                Ok(image) => assert!(reports_wrong_tables(&image), "{file}"),
                Err(error) => assert!(names_position(&error, &file), "{}", error_chain(&error)),
            },
            (Expect::Refuse(stage), _) => match run_until_stage(stage, source()) {
                Ok(_) => panic!("{file} was accepted: {}", hostile.what),
                Err(error) => assert!(names_position(&error, &file), "{}", error_chain(&error)),
            },
            (Expect::Either, _) => {
                for stage in [Stage::Minimal, Stage::Archive] {
                    if let Err(error) = run_until_stage(stage, source()) {
                        assert!(names_position(&error, &file), "{}", error_chain(&error));
                    }
                }
            }
        });
        within_time_limit(hostile.name, || run_all_operations(source()).ok());
    }
    assert!(peak_memory() < MEMORY_LIMIT, "{} bytes", peak_memory());
}

#[test]
fn invalid_archives_are_refused_and_unusual_ones_read() {
    for hostile in hostile_archives() {
        let bytes = hostile.bytes();
        let read =
            within_time_limit(hostile.name, || Archive::read(&bytes[..], ArchiveLimits::IGNITION_AREA));
        match hostile.expect {
            Expect::Accept => {
                let read = read.unwrap_or_else(|error| panic!("{}: {}", hostile.name, error_chain(&error)));
                let files: Vec<_> = read.iter().map(|(name, contents)| (name, &contents[..])).collect();
                assert_eq!(files, hostile.files, "{}", hostile.name);
            }
            Expect::Refuse(Stage::Archive) => {
                let error = read.map(|_| hostile.what).unwrap_err();
                assert!(error_chain(&error).contains("byte "), "{}: {}", hostile.name, error_chain(&error));
            }
            // The reader accepts unsafe member names, because code that extracts members to a folder must check the
            // names itself.
            _ => assert!(read.is_ok_and(|read| read.len() < 1_000_000) || hostile.expect == Expect::Either),
        }
    }
    assert!(peak_memory() < MEMORY_LIMIT, "{} bytes", peak_memory());
}

/// A small random number generator with a fixed seed, so that every run tries the same damage.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// Returns the extents in which damage may have an effect: all metadata.
fn metadata_extents(fixture: &FixtureImage) -> Vec<fixtures::Extent> {
    let at = |offset, len| fixtures::Extent { offset, len };
    let mut extents = vec![at(0, 4096), at(32_600, 168), at(16 * 2048, 4 * 2048)];
    let image = fixture.open();
    let volume = image.volume();
    for tree in std::iter::once(volume.tree()).chain(volume.joliet_tree()) {
        let directories =
            tree.entries().filter(|(_, entry)| entry.kind == isogen::volume::EntryKind::Directory);
        extents.extend(directories.map(|(_, entry)| at(entry.extent.offset(), entry.extent.len())));
    }
    extents.extend(image.boot_catalog().map(|catalog| at(catalog.sector.offset(), 128)));
    let starts = ["coreos/igninfo.json", "coreos/kargs.json", "coreos/features.json", "coreos/miniso.dat"];
    let configs =
        ["EFI/fedora/grub.cfg", "isolinux/isolinux.cfg", "boot/grub/grub.cfg", "images/pxeboot/initrd.img"];
    for path in starts.into_iter().chain(configs) {
        extents.extend(fixture.mastered.files.get(path).map(|file| at(file.offset, file.len.min(2600))));
    }
    extents.push(at(fixture.mastered.ignition.unwrap().offset, 200));
    extents
}

#[test]
fn damaged_images_are_refused_or_harmless() {
    const ROUNDS: usize = 120;
    let numbers = &mut RandomNumbers(1);
    for fixture in diverse_images() {
        let extents = metadata_extents(fixture);
        let mut opened = 0;
        for round in 0..ROUNDS {
            let mut bytes = fixture.bytes.to_vec();
            let changes = if round % 2 == 0 { 1 } else { 1 + numbers.below(4) };
            for _ in 0..changes {
                let extent = extents[numbers.below(extents.len() as u64) as usize];
                let at = (extent.offset + numbers.below(extent.len)) as usize;
                let width = if round % 2 == 0 { 1 } else { 1 + numbers.below(8) as usize };
                let value = [0, u64::MAX, 1, 0x80, numbers.next()][numbers.below(5) as usize].to_le_bytes();
                let end = (at + width).min(bytes.len());
                bytes[at..end].copy_from_slice(&value[..end - at]);
            }
            if numbers.below(20) == 0 {
                bytes.truncate(numbers.below(fixture.bytes.len() as u64) as usize);
            }
            let source = Source::from_bytes("damaged.iso", bytes);
            match within_time_limit(&fixture.name(), || run_all_operations(source)) {
                Ok(()) => opened += 1,
                Err(error) => assert!(names_position(&error, "damaged.iso"), "{}", error_chain(&error)),
            }
        }
        // Damage is usually in names, dates and copies of numbers. If no damaged image opened, the test would cover
        // little.
        assert!((ROUNDS / 20..ROUNDS).contains(&opened), "{}: {opened} of {ROUNDS} opened", fixture.name());
    }
    assert!(peak_memory() < MEMORY_LIMIT, "{} bytes", peak_memory());
}

/// A handmade volume: the descriptors of a valid image, followed by other directories after its end.
struct HandmadeVolume {
    image: Vec<u8>,
}

impl HandmadeVolume {
    fn new() -> Self {
        // The image has no partition table after the volume, and no Joliet tree, which would need the same changes.
        let fixture = diverse_images().iter().find(|fixture| fixture.name().contains("ppc64le")).unwrap();
        Self { image: fixture.bytes.to_vec() }
    }

    fn sector(&self) -> u32 {
        (self.image.len() / 2048) as u32
    }

    /// Appends bytes and returns their sector.
    fn append(&mut self, bytes: &[u8]) -> u32 {
        let sector = self.sector();
        self.image.extend_from_slice(bytes);
        self.image.resize(self.image.len().next_multiple_of(2048), 0);
        sector
    }

    /// Appends a directory and returns its sector and length.
    fn directory(&mut self, records: impl IntoIterator<Item = Vec<u8>>) -> (u32, u32) {
        let mut bytes: Vec<u8> = Vec::new();
        for record in records {
            let rest = 2048 - bytes.len() % 2048;
            let len = if rest < record.len() { bytes.len() + rest } else { bytes.len() };
            bytes.resize(len, 0);
            bytes.extend(record);
        }
        bytes.resize(bytes.len().next_multiple_of(2048), 0);
        (self.append(&bytes), bytes.len() as u32)
    }

    fn set_root(&mut self, (sector, len): (u32, u32)) {
        let root = directory_record(b"\0", sector, len, 2);
        self.image[16 * 2048 + 156..][..root.len()].copy_from_slice(&root);
    }

    fn set_ignition_header(&mut self) {
        self.image[32_744..32_752].copy_from_slice(b"coreiso+");
        self.image[32_752..32_760].copy_from_slice(&65_536_u64.to_le_bytes());
        self.image[32_760..32_768].copy_from_slice(&1024_u64.to_le_bytes());
    }

    fn source(self) -> Source {
        Source::from_bytes("by-hand.iso", self.image)
    }
}

fn directory_record(name: &[u8], sector: u32, len: u32, flags: u8) -> Vec<u8> {
    let mut record = vec![0; (33 + name.len()).next_multiple_of(2)];
    record[0] = record.len() as u8;
    for (at, number) in [(2, sector), (10, len)] {
        record[at..at + 4].copy_from_slice(&number.to_le_bytes());
        record[at + 4..at + 8].copy_from_slice(&number.to_be_bytes());
    }
    record[25] = flags;
    record[32] = name.len() as u8;
    record[33..33 + name.len()].copy_from_slice(name);
    record
}

/// Eight thousand directories of 1 MiB each use the same few sectors. Without a limit on the total length of
/// directories, a file of 17 MiB would take 20 GiB of memory.
#[test]
fn directories_that_share_their_sectors_are_refused() {
    let mut volume = HandmadeVolume::new();
    let dots = directory_record(b"\0", 0, 0, 2);
    let (first, _) = volume.directory(std::iter::repeat_n(dots, 60 * 512));
    let count = 8000;
    volume.append(&vec![0; count as usize * 2048]);
    let name = |number: u32| format!("{number:05}").into_bytes();
    let root = volume
        .directory((0..count).map(|number| directory_record(&name(number), first + number, 1 << 20, 2)));
    volume.set_root(root);
    let error = within_time_limit("directories", || Volume::read(&volume.source())).unwrap_err();
    assert!(names_position(&error, "by-hand.iso"), "{error}");
    assert!(error.to_string().contains("bytes of directories"), "{error}");
    assert!(peak_memory() < MEMORY_LIMIT, "{} bytes", peak_memory());
}

/// Twenty thousand configs of 64 KiB use the same sectors. Searching all of them for the marker would take too long.
#[test]
fn number_of_configs_searched_for_the_marker_is_limited() {
    let mut volume = HandmadeVolume::new();
    let config = volume.append(&[b'#'; 64 << 10]);
    let records = (0..20_000).map(|_| directory_record(b"GRUB.CFG;1", config, 64 << 10, 0));
    let root = volume.directory(records);
    volume.set_root(root);
    volume.set_ignition_header();
    let start = Instant::now();
    let image = BaseImage::from_source(volume.source()).unwrap();
    assert!(image.kargs().is_none());
    assert!(start.elapsed() < TIME_LIMIT / 3, "{:?}", start.elapsed());
}

/// The old header contains an Ignition area outside of any file, so a re-layout cannot grow a file.
#[test]
fn rejects_relayouts_of_ignition_areas_outside_of_files() {
    let mut volume = HandmadeVolume::new();
    let kernel = volume.append(b"kernel");
    let root = volume.directory([directory_record(b"KERNEL;1", kernel, 6, 0)]);
    volume.set_root(root);
    volume.set_ignition_header();
    let image = BaseImage::from_source(volume.source()).unwrap();
    let packed = isogen::PackedArchive::from_encoded(vec![b'0'; 2000].into());
    let error = image.plan(&Edits::new().archive(packed)).map(|_| "taken").unwrap_err();
    assert!(matches!(error, Error::Malformed { offset: 65_536, .. }), "{error}");
}

/// The path has thousands of components, each in a directory with thousands of entries.
#[test]
fn long_paths_through_large_directories_are_followed_quickly() {
    let mut volume = HandmadeVolume::new();
    let steps = "last/../".repeat(2000);
    let path = format!("{steps}missing");
    let json = format!(r#"{{"default":"","files":[{{"path":"{path}","offset":0}}],"size":1}}"#);
    assert!(json.len() < 64 << 10);
    let kargs = volume.append(json.as_bytes());
    let coreos = volume.directory([directory_record(b"KARGS.JSO;1", kargs, json.len() as u32, 0)]);
    let files = (0..20_000).map(|number: u32| directory_record(format!("{number:05}").as_bytes(), 0, 0, 0));
    let directories =
        [directory_record(b"COREOS", coreos.0, coreos.1, 2), directory_record(b"LAST", coreos.0, 0, 2)];
    let root = volume.directory(files.chain(directories));
    volume.set_root(root);
    volume.set_ignition_header();
    let start = Instant::now();
    let error = BaseImage::from_source(volume.source()).unwrap_err();
    assert!(error.to_string().contains("which does not exist"), "{error}");
    assert!(start.elapsed() < TIME_LIMIT / 3, "{:?}", start.elapsed());
}

/// Twenty thousand different files share their bytes. Inspecting, verifying and comparing the image must not read or
/// list the same bytes for each file.
#[test]
fn files_that_overlap_are_read_once() {
    let mut volume = HandmadeVolume::new();
    let first = volume.append(&vec![1; 1 << 20]);
    let file =
        |number: u32| directory_record(format!("{number:05}").as_bytes(), first, (1 << 20) - number, 0);
    let root = volume.directory((0..20_000).map(file));
    volume.set_root(root);
    volume.set_ignition_header();
    let image = BaseImage::from_source(volume.source()).unwrap();
    let start = Instant::now();
    image.inspect().unwrap();
    image.verify().unwrap();
    assert!(ImageDifference::between(&image, &image).unwrap().is_empty());
    assert!(start.elapsed() < TIME_LIMIT / 3, "{:?}", start.elapsed());
}

/// Each of the thousand streams is within the limits, but all streams together exceed them.
#[test]
fn concatenated_bombs_share_one_limit() {
    let mut archive = Archive::new();
    archive.insert("zeros", vec![0; 2 << 20]);
    let bomb = archive.pack(isogen::Encoding::Gzip).unwrap();
    let many = bomb.as_bytes().repeat(1000);
    let error =
        within_time_limit("bombs", || Archive::read(&many[..], ArchiveLimits::IGNITION_AREA)).unwrap_err();
    assert!(matches!(error, ArchiveError::Limit { .. }), "{error}");
    assert!(peak_memory() < MEMORY_LIMIT, "{} bytes", peak_memory());
}
