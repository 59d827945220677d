//! Booting: images of every kind start in QEMU, and what they say over the serial line is compared with what was put
//! into them — the kernel's command line to the letter, and every file of the initramfs by its digest.
//!
//! The base is an image of the `fixtures` crate with real boot loaders, a real kernel and a small initramfs ([`parts`]).
//! Every product starts in five ways ([`Start`]), by software emulation: some seconds each, no privileges needed.
//!
//! Needed are the packages `qemu-system-x86 qemu-block-extra ovmf isolinux syslinux-common grub-efi-amd64-bin grub-common mtools cpio
//! busybox-static`, for [`served`] `ipxe-qemu squashfs-tools ignition shim-signed grub-efi-amd64-signed` as well, and a kernel
//! that `KINDLING_BOOT_KERNEL` names, with its modules where its package has them; without them everything here is skipped. For
//! other machines than PCs, it is what [`system`] says.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod broken;
mod command;
mod facts;
mod kernel;
mod machine;
mod matrix;
mod over_http;
mod parts;
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

use machine::{Loader, Start, boot};
use matrix::Cell;
use parts::Programs;
use products::Product;
use support::Scratch;

const KERNEL: &str = "/images/pxeboot/vmlinuz";
const INITRDS: [&str; 2] = ["/images/pxeboot/initrd.img", "/images/ignition.img"];
/// Where the boot record of a volume says that it is El Torito's.
const BOOT_SYSTEM: std::ops::Range<usize> = 17 * 2048 + 7..17 * 2048 + 39;

/// Where an MBR has its partitions.
const PARTITIONS: std::ops::Range<usize> = 446..510;

/// The image that all others are made of.
struct Base {
    programs: Programs,
    recipe: Recipe,
    image: BaseImage,
    /// Digests of the files of its initrd.
    files: BTreeMap<String, String>,
}

impl Base {
    fn new(architecture: Architecture) -> Option<Self> {
        let recipe = Recipe::new(architecture, Era::E2024_12);
        let (programs, parts) = parts::collect(&recipe)?;
        Some(Self::of(programs, recipe.boot_parts(parts)))
    }

    fn of(programs: Programs, recipe: Recipe) -> Self {
        let image = BaseImage::from_source(Source::from_bytes(recipe.file_name(), recipe.build())).unwrap();
        let initrd = image.file("images/pxeboot/initrd.img").unwrap();
        let archive = Archive::read(initrd.reader(), initrd::Limits::INITRD).unwrap();
        let files = archive.iter().map(|(name, bytes)| (name.to_owned(), digest(bytes))).collect();
        Self { programs, recipe, image, files }
    }
}

/// One base for each processor, made when it is needed.
struct Bases([OnceLock<Option<Base>>; Architecture::ALL.len()], fn(Architecture) -> Option<Base>);

impl Bases {
    const fn new(make: fn(Architecture) -> Option<Base>) -> Self {
        Self([const { OnceLock::new() }; Architecture::ALL.len()], make)
    }

    fn of(&self, architecture: Architecture) -> Option<&Base> {
        let place = Architecture::ALL.iter().position(|known| *known == architecture).unwrap();
        self.0[place].get_or_init(|| self.1(architecture)).as_ref()
    }
}

static BASES: Bases = Bases::new(Base::new);

fn base() -> Option<&'static Base> {
    BASES.of(Architecture::X86_64)
}

fn digest(bytes: &[u8]) -> String {
    fixtures::hex(&Sha256::digest(bytes))
}

/// Boots a product in one way and compares.
fn check(name: &'static str, product: fn(&BaseImage) -> Product, start: Start) {
    let Some(base) = BASES.of(start.architecture()) else { return };
    let cell = Cell::begin("made", name, start);
    let product = product(&base.image);
    let mut bytes = product.plan.read_all(1 << 30).unwrap();
    prepare(&mut bytes, start);
    let scratch = Scratch::new();
    let boot = boot(&base.programs, &scratch.write("image.iso", bytes), start);

    assert_eq!(boot.facts.command_line, command_line(&product, start.loader()));
    let mut files = base.files.clone();
    files.extend(product.files.iter().map(|(name, bytes)| (name.clone(), digest(bytes))));
    assert_eq!(boot.facts.files, files);
    // What the stub config prints shows that it was read, and that it was read in no other way of starting.
    let stub = format!("Loading the boot menu of {}", base.recipe.volume_id());
    assert_eq!(boot.log.contains(&stub), start.is_from_partition(), "{}", boot.log);
    cell.passed(boot.seconds, &base.programs);
}

/// Takes out of an image what firmware of this kind does not know, so that this firmware looks elsewhere.
fn prepare(bytes: &mut [u8], start: Start) {
    if !start.is_from_partition() {
        return;
    }
    assert!(bytes[BOOT_SYSTEM].starts_with(b"EL TORITO"));
    bytes[BOOT_SYSTEM].fill(0);
    if start == Start::UefiGpt {
        // One protective partition over the whole disk: the firmware reads no GPT without it.
        let last = u32::try_from(bytes.len() / 512 - 1).unwrap();
        bytes[PARTITIONS].fill(0);
        bytes[PARTITIONS][..12].copy_from_slice(&[0, 0, 2, 0, 0xEE, 0xFF, 0xFF, 0xFF, 1, 0, 0, 0]);
        bytes[PARTITIONS][12..16].copy_from_slice(&last.to_le_bytes());
    }
}

/// What the kernel gets to see: isolinux passes the area on as it is, GRUB interprets quotes and blanks.
fn command_line(product: &Product, loader: Loader) -> String {
    match loader {
        Loader::Isolinux => {
            let initrds = [&INITRDS[..], &product.initrds].concat().join(",");
            format!("BOOT_IMAGE={KERNEL} initrd={initrds} {}", product.kargs)
        }
        Loader::Grub => format!("BOOT_IMAGE={KERNEL} {}", product.kargs.replace('"', "")),
        Loader::Firmware => product.kargs.clone(),
        Loader::Ipxe => panic!("iPXE boots no image"),
    }
}

/// One test for every product and way of starting.
macro_rules! boots {
    ($($product:ident)*) => { $(
        mod $product {
            use super::{Start, check, products};

            #[test]
            fn bios_disc() {
                check(stringify!($product), products::$product, Start::BiosDisc);
            }

            #[test]
            fn bios_stick() {
                check(stringify!($product), products::$product, Start::BiosStick);
            }

            #[test]
            fn uefi_disc() {
                check(stringify!($product), products::$product, Start::UefiDisc);
            }

            #[test]
            fn uefi_stick() {
                check(stringify!($product), products::$product, Start::UefiStick);
            }

            #[test]
            fn uefi_partition() {
                check(stringify!($product), products::$product, Start::UefiPartition);
            }
        }
    )* };
}

boots! {
    unchanged
    edited_in_place
    with_large_archive
    with_long_kargs
    with_longest_kargs
    with_further_initrd
    minimal_as_described
    minimal_laid_out_anew
    with_moved_boot_images
    with_replaced_boot_image
}

/// The same on another processor, for what is another thing there: this boot image holds kernel, arguments and Ignition area.
mod mainframe {
    use super::{Start, check, products};

    #[test]
    #[ignore = "of the whole matrix"]
    fn unchanged() {
        check("unchanged", products::unchanged, Start::MainframeDisc);
    }

    #[test]
    #[ignore = "of the whole matrix"]
    fn edited_in_place() {
        check("edited_in_place", products::edited_in_place, Start::MainframeDisc);
    }

    #[test]
    #[ignore = "of the whole matrix"]
    fn with_large_archive() {
        check("with_large_archive", products::with_large_archive, Start::MainframeDisc);
    }

    #[test]
    #[ignore = "of the whole matrix"]
    fn minimal_as_described() {
        check("minimal_as_described", products::minimal_as_described, Start::MainframeDisc);
    }

    #[test]
    #[ignore = "of the whole matrix"]
    fn minimal_laid_out_anew() {
        check("minimal_laid_out_anew", products::minimal_laid_out_anew, Start::MainframeDisc);
    }

    #[test]
    #[ignore = "of the whole matrix"]
    fn with_further_initrd() {
        check("with_further_initrd", products::with_further_initrd, Start::MainframeDisc);
    }
}

/// What the other ways of starting do not read: the GPT of an image as it came, and of one in which all has moved.
mod uefi_gpt {
    use super::{Start, check, products};

    #[test]
    fn unchanged() {
        check("unchanged", products::unchanged, Start::UefiGpt);
    }

    #[test]
    fn with_moved_boot_images() {
        check("with_moved_boot_images", products::with_moved_boot_images, Start::UefiGpt);
    }
}
