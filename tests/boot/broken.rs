//! Images that must not boot: one field of each is wrong, as a bug of the image engine could leave it. These images
//! show that the other boot tests can fail.

use std::time::Duration;

use crate::machine::{MachineSetup, StartMethod};
use crate::support::Scratch;
use crate::{BASES, BootBase, KERNEL, remove_other_boot_methods, x86_64_base};

const SECTOR: usize = 2048;
const DISK_SECTOR: usize = 512;
/// Offset in the boot record of a volume: sector of the boot catalogue.
const CATALOGUE: usize = 17 * SECTOR + 0x47;
/// Offset in a catalogue entry: sector of the boot image.
const ENTRY_SECTOR: usize = 8;
const DEFAULT_ENTRY: usize = 32;
const EFI_ENTRY: usize = 96;
/// Offsets in a boot info table: sector of its file, and checksum.
const TABLE_SECTOR: usize = 12;
const TABLE_CHECKSUM: usize = 20;
/// Offset of a byte in a mainframe boot image. The upper half of this byte and the bytes before it are the page number
/// of the initrd.
const INITRD_PAGE: usize = 0x1040E;
/// Offset in an MBR: first sector of the second partition.
const SECOND_PARTITION: usize = 446 + 16 + 8;
/// Offset in a GPT header: checksum of the header.
const HEADER_CHECKSUM: usize = 16;

type ImageDamage = fn(&mut [u8]);

fn read_u32(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().unwrap())
}

fn add_u32(bytes: &mut [u8], offset: usize, number: u32) {
    let changed = read_u32(bytes, offset).wrapping_add(number);
    bytes[offset..offset + 4].copy_from_slice(&changed.to_le_bytes());
}

fn sector_offset(sector: u32) -> usize {
    usize::try_from(sector).unwrap() * SECTOR
}

fn boot_catalogue_offset(bytes: &[u8]) -> usize {
    sector_offset(read_u32(bytes, CATALOGUE))
}

/// Returns the offset of the boot image of the first entry.
fn boot_image_offset(bytes: &[u8]) -> usize {
    sector_offset(read_u32(bytes, boot_catalogue_offset(bytes) + DEFAULT_ENTRY + ENTRY_SECTOR))
}

fn directory_records_shifted(bytes: &mut [u8]) {
    let image = &x86_64_base().unwrap().image;
    let first = image.require_file(KERNEL.trim_start_matches('/')).unwrap().extent.offset() / SECTOR as u64;
    let both_orders = |sector: u32| [sector.to_le_bytes(), sector.to_be_bytes()].concat();
    let first = u32::try_from(first).unwrap();
    let (right, wrong) = (both_orders(first), both_orders(first + 1));
    let places: Vec<_> =
        bytes.windows(8).enumerate().filter(|(_, it)| *it == right).map(|(at, _)| at).collect();
    // One record in the primary tree and one in the Joliet tree.
    assert_eq!(places.len(), 2, "{places:?}");
    for place in places {
        bytes[place..place + 8].copy_from_slice(&wrong);
    }
}

fn boot_damaged(
    base: &BootBase,
    start: StartMethod,
    patience: Option<Duration>,
    damage: ImageDamage,
) -> Result<f64, String> {
    let mut bytes = base.recipe.build();
    remove_other_boot_methods(&mut bytes, start);
    damage(&mut bytes);
    let scratch = Scratch::new();
    let image = scratch.write("image.iso", bytes);
    let mut setup = MachineSetup::new(&base.programs, &image, start);
    setup.patience = patience.unwrap_or(setup.patience);
    setup.boot().map(|boot| boot.seconds)
}

/// Boots the undamaged image, and then each damaged image. A damaged image must not boot within 2.5 times the first
/// duration.
fn check_damages(start: StartMethod, damages: &[(&str, ImageDamage)]) {
    let Some(base) = BASES.get(start.processor()) else { return };
    let sound = boot_damaged(base, start, None, |_| {}).unwrap();
    let patience = Duration::from_secs_f64(sound * 2.5);
    for (name, damage) in damages {
        let outcome = boot_damaged(base, start, Some(patience), *damage);
        assert!(
            outcome.is_err(),
            "{start:?} with {name} boots after {outcome:?} s, without the damage after {sound} s"
        );
    }
}

#[test]
#[ignore = "of the whole matrix"]
fn damaged_bios_discs_do_not_boot() {
    check_damages(
        StartMethod::BiosDisc,
        &[
            ("a wrong sum in the boot info table", |bytes| {
                add_u32(bytes, boot_image_offset(bytes) + TABLE_CHECKSUM, 1)
            }),
            ("a boot info table of another place", |bytes| {
                add_u32(bytes, boot_image_offset(bytes) + TABLE_SECTOR, 1);
            }),
            ("a catalogue entry of another place", |bytes| {
                add_u32(bytes, boot_catalogue_offset(bytes) + DEFAULT_ENTRY + ENTRY_SECTOR, 1);
            }),
            ("directory records of another place", directory_records_shifted),
        ],
    );
}

#[test]
#[ignore = "of the whole matrix"]
fn damaged_uefi_discs_do_not_boot() {
    check_damages(
        StartMethod::UefiDisc,
        &[
            ("a catalogue entry of another place", |bytes| {
                add_u32(bytes, boot_catalogue_offset(bytes) + EFI_ENTRY + ENTRY_SECTOR, 1);
            }),
            ("directory records of another place", directory_records_shifted),
        ],
    );
}

#[test]
#[ignore = "of the whole matrix"]
fn damaged_efi_partition_does_not_boot() {
    let damage: ImageDamage = |bytes| add_u32(bytes, SECOND_PARTITION, 1);
    check_damages(StartMethod::UefiPartition, &[("a partition of another place", damage)]);
}

#[test]
#[ignore = "of the whole matrix"]
fn damaged_gpt_does_not_boot() {
    let both: ImageDamage = |bytes| {
        add_u32(bytes, DISK_SECTOR + HEADER_CHECKSUM, 1);
        let backup = bytes.len() - DISK_SECTOR;
        assert!(bytes[backup..].starts_with(b"EFI PART"));
        add_u32(bytes, backup + HEADER_CHECKSUM, 1);
    };
    check_damages(StartMethod::UefiGpt, &[("wrong sums in both headers", both)]);
}

#[test]
#[ignore = "of the whole matrix"]
fn damaged_arm_discs_do_not_boot() {
    let damage: ImageDamage =
        |bytes| add_u32(bytes, boot_catalogue_offset(bytes) + DEFAULT_ENTRY + ENTRY_SECTOR, 1);
    check_damages(StartMethod::ArmDisc, &[("a catalogue entry of another place", damage)]);
}

#[test]
#[ignore = "of the whole matrix"]
fn damaged_mainframe_discs_do_not_boot() {
    check_damages(
        StartMethod::MainframeDisc,
        &[
            ("a catalogue entry of another place", |bytes| {
                add_u32(bytes, boot_catalogue_offset(bytes) + DEFAULT_ENTRY + ENTRY_SECTOR, 1);
            }),
            ("an initrd of another place", |bytes| {
                let at = boot_image_offset(bytes) + INITRD_PAGE;
                bytes[at] ^= 0x10;
            }),
        ],
    );
}
