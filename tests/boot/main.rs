//! Boot tests: images of every kind start in QEMU and print facts over the serial line. The tests compare these facts
//! with the embedded data: the kernel's command line literally, and every file of the initramfs by its digest.
//!
//! The base is an image of the `fixtures` crate with real boot loaders, a real kernel and a small initramfs
//! ([`boot_parts`]). Every product starts in five ways ([`StartMethod`]), by software emulation. A boot takes a few
//! seconds and needs no privileges.
//!
//! The tests need the packages `qemu-system-x86 qemu-block-extra ovmf isolinux syslinux-common grub-efi-amd64-bin
//! grub-common mtools cpio busybox-static`, and for [`served`] also `ipxe-qemu squashfs-tools ignition shim-signed
//! grub-efi-amd64-signed`. They also need a kernel, which `KINDLING_BOOT_KERNEL` names, with its modules if its package
//! has them. Without these, all tests are skipped. [`system`] describes the requirements of machines other than PCs.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod boot_parts;
mod broken;
mod command;
mod facts;
mod kernel;
mod machine;
mod matrix;
mod over_http;
mod products;
mod proxy_dhcp;
mod served;
#[path = "../support/mod.rs"]
mod support;
mod system;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use fixtures::{Architecture, Era, Recipe};
use isogen::{Archive, BaseImage, Source, initrd};
use sha2::{Digest, Sha256};

use boot_parts::BootPrograms;
use machine::{BootLoader, StartMethod, boot_image};
use matrix::MatrixCell;
use products::BootProduct;
use support::Scratch;

const KERNEL: &str = "/images/pxeboot/vmlinuz";
const INITRDS: [&str; 2] = ["/images/pxeboot/initrd.img", "/images/ignition.img"];
/// Offset and text of the El Torito identifier in the boot record of a volume.
const BOOT_SYSTEM: std::ops::Range<usize> = 17 * 2048 + 7..17 * 2048 + 39;

/// Offset of the partitions in an MBR.
const PARTITIONS: std::ops::Range<usize> = 446..510;

/// The image from which all others are made.
struct BootBase {
    programs: BootPrograms,
    recipe: Recipe,
    image: BaseImage,
    /// Digests of the files of the initrd.
    files: BTreeMap<String, String>,
}

impl BootBase {
    fn new(architecture: Architecture) -> Option<Self> {
        let recipe = Recipe::new(architecture, Era::E2024_12);
        let (programs, parts) = boot_parts::collect_parts(&recipe)?;
        Some(Self::from_recipe(programs, recipe.boot_parts(parts)))
    }

    fn from_recipe(programs: BootPrograms, recipe: Recipe) -> Self {
        let image = BaseImage::from_source(Source::from_bytes(recipe.file_name(), recipe.build())).unwrap();
        let initrd = image.file("images/pxeboot/initrd.img").unwrap();
        let archive = Archive::read(initrd.reader(), initrd::ArchiveLimits::INITRD).unwrap();
        let files = archive.iter().map(|(name, bytes)| (name.to_owned(), sha256_hex(bytes))).collect();
        Self { programs, recipe, image, files }
    }
}

/// One base image per processor, created on first use.
struct BootBases([OnceLock<Option<BootBase>>; Architecture::ALL.len()], fn(Architecture) -> Option<BootBase>);

impl BootBases {
    const fn new(make: fn(Architecture) -> Option<BootBase>) -> Self {
        Self([const { OnceLock::new() }; Architecture::ALL.len()], make)
    }

    fn get(&self, architecture: Architecture) -> Option<&BootBase> {
        let place = Architecture::ALL.iter().position(|other| *other == architecture).unwrap();
        self.0[place].get_or_init(|| self.1(architecture)).as_ref()
    }
}

static BASES: BootBases = BootBases::new(BootBase::new);

fn x86_64_base() -> Option<&'static BootBase> {
    BASES.get(Architecture::X86_64)
}

fn sha256_hex(bytes: &[u8]) -> String {
    fixtures::hex(&Sha256::digest(bytes))
}

/// Boots a product in one way, and compares the facts with the embedded data.
fn check_product(name: &'static str, product: fn(&BaseImage) -> BootProduct, start: StartMethod) {
    let Some(base) = BASES.get(start.processor()) else { return };
    let cell = MatrixCell::begin("made", name, start);
    let product = product(&base.image);
    let mut bytes = product.plan.read_all(1 << 30).unwrap();
    remove_other_boot_methods(&mut bytes, start);
    let scratch = Scratch::new();
    let boot = boot_image(&base.programs, &scratch.write("image.iso", bytes), start);

    assert_eq!(boot.facts.command_line, expected_command_line(&product, start.boot_loader()));
    let mut files = base.files.clone();
    files.extend(product.files.iter().map(|(name, bytes)| (name.clone(), sha256_hex(bytes))));
    assert_eq!(boot.facts.files, files);
    // The stub config prints this text, which must appear only if firmware started from the EFI partition.
    let stub = format!("Loading the boot menu of {}", base.recipe.volume_id());
    assert_eq!(boot.log.contains(&stub), start.is_from_partition(), "{}", boot.log);
    cell.record_pass(boot.seconds, &base.programs);
}

/// Removes the boot methods of other firmware from an image, so that this firmware cannot use them.
fn remove_other_boot_methods(bytes: &mut [u8], start: StartMethod) {
    if !start.is_from_partition() {
        return;
    }
    assert!(bytes[BOOT_SYSTEM].starts_with(b"EL TORITO"));
    bytes[BOOT_SYSTEM].fill(0);
    if start == StartMethod::UefiGpt {
        // Adds one protective partition over the whole disk, because the firmware reads no GPT without it.
        let last = u32::try_from(bytes.len() / 512 - 1).unwrap();
        bytes[PARTITIONS].fill(0);
        bytes[PARTITIONS][..12].copy_from_slice(&[0, 0, 2, 0, 0xEE, 0xFF, 0xFF, 0xFF, 1, 0, 0, 0]);
        bytes[PARTITIONS][12..16].copy_from_slice(&last.to_le_bytes());
    }
}

/// Returns the command line that the kernel receives. isolinux passes the text in the kernel arguments area on
/// unchanged; GRUB interprets quotes and spaces.
fn expected_command_line(product: &BootProduct, loader: BootLoader) -> String {
    match loader {
        BootLoader::Isolinux => {
            let initrds = [&INITRDS[..], &product.initrds].concat().join(",");
            format!("BOOT_IMAGE={KERNEL} initrd={initrds} {}", product.kargs)
        }
        BootLoader::Grub => format!("BOOT_IMAGE={KERNEL} {}", product.kargs.replace('"', "")),
        BootLoader::Firmware => product.kargs.clone(),
        BootLoader::Ipxe => panic!("iPXE does not boot images"),
    }
}

/// Defines a test that boots a product, either in every run or only as part of the whole matrix.
macro_rules! boot_test {
    (run $product:ident $name:ident $start:ident) => {
        #[test]
        fn $name() {
            super::check_product(stringify!($product), super::products::$product, super::StartMethod::$start);
        }
    };
    (full $product:ident $name:ident $start:ident) => {
        #[test]
        #[ignore = "of the whole matrix"]
        fn $name() {
            super::check_product(stringify!($product), super::products::$product, super::StartMethod::$start);
        }
    };
}

/// Defines one test for every product and start method.
macro_rules! boots {
    ($($product:ident: $bios_disc:ident $bios_stick:ident $uefi_disc:ident $uefi_stick:ident $uefi_partition:ident;)*) => { $(
        mod $product {
            boot_test!($bios_disc $product bios_disc BiosDisc);
            boot_test!($bios_stick $product bios_stick BiosStick);
            boot_test!($uefi_disc $product uefi_disc UefiDisc);
            boot_test!($uefi_stick $product uefi_stick UefiStick);
            boot_test!($uefi_partition $product uefi_partition UefiPartition);
        }
    )* };
}

// Every run boots most edited products once, because each boot takes up to a minute in software emulation. `.ci/full`
// boots everything.
// In the order of the tests above: BIOS disc and stick, UEFI disc, stick and partition.
boots! {
    unchanged:               full full full full full;
    edited_in_place:         full run  full full full;
    with_large_archive:      full full full full full;
    with_long_kargs:         full full full full full;
    with_longest_kargs:      run  full full full full;
    with_additional_initrd:  full run  full full full;
    minimal_as_described:    full full full run  full;
    minimal_relaid_out:      full run  full full run;
    with_moved_boot_images:  full full run  full full;
    with_replaced_boot_image: run full full full full;
}

/// Boots the products that differ on IBM Z, whose boot image contains the kernel, the kernel arguments and the Ignition
/// area.
mod mainframe {
    use super::{StartMethod, check_product, products};

    #[test]
    #[ignore = "of the whole matrix"]
    fn unchanged() {
        check_product("unchanged", products::unchanged, StartMethod::MainframeDisc);
    }

    #[test]
    fn edited_in_place() {
        check_product("edited_in_place", products::edited_in_place, StartMethod::MainframeDisc);
    }

    #[test]
    #[ignore = "of the whole matrix"]
    fn with_large_archive() {
        check_product("with_large_archive", products::with_large_archive, StartMethod::MainframeDisc);
    }

    #[test]
    #[ignore = "of the whole matrix"]
    fn minimal_as_described() {
        check_product("minimal_as_described", products::minimal_as_described, StartMethod::MainframeDisc);
    }

    #[test]
    #[ignore = "of the whole matrix"]
    fn minimal_relaid_out() {
        check_product("minimal_relaid_out", products::minimal_relaid_out, StartMethod::MainframeDisc);
    }

    #[test]
    #[ignore = "of the whole matrix"]
    fn with_additional_initrd() {
        check_product("with_additional_initrd", products::with_additional_initrd, StartMethod::MainframeDisc);
    }
}

/// Covers what the other start methods do not read: the GPT of an unchanged image, and the GPT of an image in which
/// everything has moved.
mod uefi_gpt {
    use super::{StartMethod, check_product, products};

    #[test]
    #[ignore = "of the whole matrix"]
    fn unchanged() {
        check_product("unchanged", products::unchanged, StartMethod::UefiGpt);
    }

    #[test]
    #[ignore = "of the whole matrix"]
    fn with_moved_boot_images() {
        check_product("with_moved_boot_images", products::with_moved_boot_images, StartMethod::UefiGpt);
    }
}
