//! Images that must not boot: one field each is wrong, as a defect of the engine would leave it. They show that the other
//! tests can fail.

use std::time::Duration;

use crate::machine::{Setup, Start};
use crate::support::Scratch;
use crate::{BASES, Base, KERNEL, base, prepare};

const SECTOR: usize = 2048;
const DISK_SECTOR: usize = 512;
/// Where the boot record of a volume has the place of the boot catalogue.
const CATALOGUE: usize = 17 * SECTOR + 0x47;
/// Where an entry of the catalogue has the place of its image.
const ENTRY_PLACE: usize = 8;
const DEFAULT_ENTRY: usize = 32;
const EFI_ENTRY: usize = 96;
/// Where a boot info table has the place of its file, and the sum of its contents.
const TABLE_PLACE: usize = 12;
const TABLE_SUM: usize = 20;
/// Where the boot image of a mainframe has the pages of the place of its initrd: the upper half of this byte, and those before.
const INITRD_PAGE: usize = 0x1040E;
/// Where the second partition of an MBR has its first sector.
const SECOND_PARTITION: usize = 446 + 16 + 8;
/// Where a GPT header has the sum of itself.
const HEADER_SUM: usize = 16;

/// What goes wrong in an image.
type Damage = fn(&mut [u8]);

fn read(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().unwrap())
}

fn add(bytes: &mut [u8], offset: usize, number: u32) {
    let changed = read(bytes, offset).wrapping_add(number);
    bytes[offset..offset + 4].copy_from_slice(&changed.to_le_bytes());
}

fn offset(sector: u32) -> usize {
    usize::try_from(sector).unwrap() * SECTOR
}

fn catalogue(bytes: &[u8]) -> usize {
    offset(read(bytes, CATALOGUE))
}

/// The boot image of the first entry.
fn boot_image(bytes: &[u8]) -> usize {
    offset(read(bytes, catalogue(bytes) + DEFAULT_ENTRY + ENTRY_PLACE))
}

fn directory_records_shifted(bytes: &mut [u8]) {
    let image = &base().unwrap().image;
    let first = image.require_file(KERNEL.trim_start_matches('/')).unwrap().extent.offset() / SECTOR as u64;
    let both_orders = |sector: u32| [sector.to_le_bytes(), sector.to_be_bytes()].concat();
    let first = u32::try_from(first).unwrap();
    let (right, wrong) = (both_orders(first), both_orders(first + 1));
    let places: Vec<_> =
        bytes.windows(8).enumerate().filter(|(_, it)| *it == right).map(|(at, _)| at).collect();
    // One in the tree, and one in that of Joliet.
    assert_eq!(places.len(), 2, "{places:?}");
    for place in places {
        bytes[place..place + 8].copy_from_slice(&wrong);
    }
}

fn boot(base: &Base, start: Start, patience: Option<Duration>, damage: Damage) -> Result<f64, String> {
    let mut bytes = base.recipe.build();
    prepare(&mut bytes, start);
    damage(&mut bytes);
    let scratch = Scratch::new();
    let image = scratch.write("image.iso", bytes);
    let mut setup = Setup::new(&base.programs, &image, start);
    setup.patience = patience.unwrap_or(setup.patience);
    setup.boot().map(|boot| boot.seconds)
}

/// The image boots as it is, and within twice the time and a half it does not with any of the damages.
fn check(start: Start, damages: &[(&str, Damage)]) {
    let Some(base) = BASES.of(start.architecture()) else { return };
    let sound = boot(base, start, None, |_| {}).unwrap();
    let patience = Duration::from_secs_f64(sound * 2.5);
    for (name, damage) in damages {
        let outcome = boot(base, start, Some(patience), *damage);
        assert!(outcome.is_err(), "{start:?} with {name} boots after {outcome:?} s, {sound} s without");
    }
}

#[test]
fn bios_disc() {
    check(
        Start::BiosDisc,
        &[
            ("a wrong sum in the boot info table", |bytes| add(bytes, boot_image(bytes) + TABLE_SUM, 1)),
            ("a boot info table of another place", |bytes| {
                add(bytes, boot_image(bytes) + TABLE_PLACE, 1);
            }),
            ("a catalogue entry of another place", |bytes| {
                add(bytes, catalogue(bytes) + DEFAULT_ENTRY + ENTRY_PLACE, 1);
            }),
            ("directory records of another place", directory_records_shifted),
        ],
    );
}

#[test]
fn uefi_disc() {
    check(
        Start::UefiDisc,
        &[
            ("a catalogue entry of another place", |bytes| {
                add(bytes, catalogue(bytes) + EFI_ENTRY + ENTRY_PLACE, 1);
            }),
            ("directory records of another place", directory_records_shifted),
        ],
    );
}

#[test]
fn uefi_partition() {
    let damage: Damage = |bytes| add(bytes, SECOND_PARTITION, 1);
    check(Start::UefiPartition, &[("a partition of another place", damage)]);
}

#[test]
fn uefi_partition_of_the_gpt() {
    let both: Damage = |bytes| {
        add(bytes, DISK_SECTOR + HEADER_SUM, 1);
        let backup = bytes.len() - DISK_SECTOR;
        assert!(bytes[backup..].starts_with(b"EFI PART"));
        add(bytes, backup + HEADER_SUM, 1);
    };
    check(Start::UefiGpt, &[("wrong sums in both headers", both)]);
}

#[test]
#[ignore = "of the whole matrix"]
fn arm_disc() {
    let damage: Damage = |bytes| add(bytes, catalogue(bytes) + DEFAULT_ENTRY + ENTRY_PLACE, 1);
    check(Start::ArmDisc, &[("a catalogue entry of another place", damage)]);
}

#[test]
#[ignore = "of the whole matrix"]
fn mainframe_disc() {
    check(
        Start::MainframeDisc,
        &[
            ("a catalogue entry of another place", |bytes| {
                add(bytes, catalogue(bytes) + DEFAULT_ENTRY + ENTRY_PLACE, 1);
            }),
            ("an initrd of another place", |bytes| {
                let at = boot_image(bytes) + INITRD_PAGE;
                bytes[at] ^= 0x10;
            }),
        ],
    );
}
