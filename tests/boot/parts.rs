//! What the images boot with: a kernel, an initramfs that tells what arrived, and the boot loaders.
//!
//! All of it comes from packages of Debian (or Ubuntu), most from where they are installed. The kernel does not:
//! `KINDLING_BOOT_KERNEL` names its file, since reading the one in `/boot` is not for everybody.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fixtures::{BootParts, Recipe};

use crate::support::{Run, Scratch, require_file, require_path, require_tool};

const ISOLINUX: &str = "/usr/lib/ISOLINUX/isolinux.bin";
const DISK_BOOT_CODE: &str = "/usr/lib/ISOLINUX/isohdpfx.bin";
const ISOLINUX_MODULES: &str = "/usr/lib/syslinux/modules/bios";
const FIRMWARE: &str = "/usr/share/ovmf/OVMF.fd";
const GRUB_MODULES: &str = "/usr/lib/grub/x86_64-efi";

/// The modules of isolinux that real images have beside it.
const MODULES: [&str; 4] = ["ldlinux.c32", "libcom32.c32", "libutil.c32", "vesamenu.c32"];

/// What real GRUB images have built in, as far as the configs need it.
const GRUB_BUILT_IN: [&str; 14] = [
    "all_video",
    "configfile",
    "echo",
    "eval",
    "fat",
    "gzio",
    "iso9660",
    "linux",
    "normal",
    "part_gpt",
    "part_msdos",
    "search",
    "search_label",
    "test",
];

/// What GRUB does first. Started by El Torito, it finds its config where it was told to look, on the volume; started from
/// the EFI partition, beside itself: that config is the stub. (Its first parser knows no conditions; `eval` calls the other.)
const GRUB_FIRST: &str = "eval 'if [ ! -e $prefix/grub.cfg ]; then set prefix=$cmdpath; fi'\n";

/// The size of the EFI partition in disk sectors: 8 MiB, about what real ones have.
const EFI_PARTITION_SECTORS: u32 = 16_384;

/// The programs that a boot needs.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) qemu: PathBuf,
    /// UEFI for a PC.
    pub(crate) firmware: PathBuf,
}

/// Everything, or nothing and a notice where something is missing.
pub(crate) fn collect(recipe: &Recipe) -> Option<(Programs, BootParts)> {
    let programs = Programs { qemu: require_tool("qemu-system-x86_64")?, firmware: require_file(FIRMWARE)? };
    let parts = BootParts {
        kernel: fs::read(require_path("KINDLING_BOOT_KERNEL")?).unwrap(),
        initramfs: initramfs()?,
        efi_partition: efi_partition(recipe)?,
        isolinux: isolinux()?,
        disk_boot_code: fs::read(require_file(DISK_BOOT_CODE)?).unwrap(),
    };
    Some((programs, parts))
}

fn isolinux() -> Option<BTreeMap<String, Vec<u8>>> {
    let modules = MODULES.map(|name| Path::new(ISOLINUX_MODULES).join(name));
    let mut files = BTreeMap::new();
    for path in modules.into_iter().chain([ISOLINUX.into()]) {
        let path = require_file(path)?;
        files.insert(path.file_name()?.to_str()?.to_owned(), fs::read(path).unwrap());
    }
    Some(files)
}

/// An initramfs of two files: a static busybox, and a script that uses it.
fn initramfs() -> Option<Vec<u8>> {
    let (busybox, cpio) = (require_tool("busybox")?, require_tool("cpio")?);
    let scratch = Scratch::new();
    let files = [
        scratch.write("bin/busybox", fs::read(busybox).unwrap()),
        scratch.write("init", include_bytes!("init.sh")),
    ];
    for file in files {
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let names = "init\nbin\nbin/busybox\n";
    let archive = Run::new(cpio, scratch.folder()).args(["-o", "-H", "newc", "--quiet"]).stdin(names);
    Some(archive.output().success())
}

/// A FAT filesystem with GRUB in the place of shim, and the stub config.
fn efi_partition(recipe: &Recipe) -> Option<Vec<u8>> {
    let mkimage = require_tool("grub-mkimage")?;
    require_file(Path::new(GRUB_MODULES).join("moddep.lst"))?;
    let mtools = ["mformat", "mmd", "mcopy"].map(require_tool);
    let [Some(mformat), Some(mmd), Some(mcopy)] = mtools else { return None };

    let scratch = Scratch::new();
    scratch.write("grub.cfg", recipe.efi_stub());
    scratch.write("first.cfg", GRUB_FIRST);
    let run = |program: &Path, line: &str| {
        Run::new(program, scratch.folder()).args(line.split_whitespace()).output().success()
    };
    let modules = GRUB_BUILT_IN.join(" ");
    let output = "-O x86_64-efi -p /EFI/fedora -c first.cfg -o grub.efi";
    run(&mkimage, &format!("{output} -d {GRUB_MODULES} {modules}"));
    run(&mformat, &format!("-i efiboot.img -C -T {EFI_PARTITION_SECTORS} -v EFI-SYSTEM ::"));
    run(&mmd, "-i efiboot.img ::/EFI ::/EFI/BOOT");
    run(&mcopy, "-i efiboot.img grub.efi ::/EFI/BOOT/BOOTX64.EFI");
    run(&mcopy, "-i efiboot.img grub.cfg ::/EFI/BOOT/grub.cfg");
    Some(scratch.read("efiboot.img"))
}
