//! What the images boot with: a kernel, an initramfs that tells what arrived, and the boot loaders.
//!
//! All of it comes from packages of Debian (or Ubuntu); [`System`] knows where they are.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fixtures::{Architecture, BootParts, Recipe};

use crate::kernel;
use crate::support::{Run, Scratch, require_file, require_tool};
use crate::system::System;

const ISOLINUX: &str = "/usr/lib/ISOLINUX/isolinux.bin";
const DISK_BOOT_CODE: &str = "/usr/lib/ISOLINUX/isohdpfx.bin";
const ISOLINUX_MODULES: &str = "/usr/lib/syslinux/modules/bios";
const FIRMWARE: &str = "/usr/share/ovmf/OVMF.fd";
const ARM_FIRMWARE: &str = "/usr/share/qemu-efi-aarch64/QEMU_EFI.fd";
const SECURE_FIRMWARE: &str = "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd";
const SECURE_VARIABLES: &str = "/usr/share/OVMF/OVMF_VARS_4M.ms.fd";
const SIGNED_SHIM: &str = "/usr/lib/shim/shimx64.efi.signed";
/// It has its config in `EFI/debian` of the volume.
const SIGNED_GRUB: &str = "/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed";

/// The modules of isolinux that real images have beside it.
const MODULES: [&str; 4] = ["ldlinux.c32", "libcom32.c32", "libutil.c32", "vesamenu.c32"];

/// Ignition's engine.
const IGNITION: &str = "usr/lib/dracut/modules.d/30ignition/ignition";
/// What `apply.sh` uses of busybox.
const BUSYBOX_APPLETS: [&str; 10] =
    ["sh", "cat", "cp", "cut", "find", "mkdir", "sed", "sha256sum", "stat", "tail"];

/// What sets networks up in a real initramfs, and where it is there and here.
const NETWORK_PROGRAMS: [(&str, &str); 2] = [
    ("usr/sbin/NetworkManager", "usr/sbin/NetworkManager"),
    ("usr/lib/systemd/systemd-udevd", "usr/bin/udevadm"),
];

/// What real GRUB images have built in, as far as the configs need it.
const GRUB_BUILT_IN: [&str; 11] = [
    "configfile",
    "echo",
    "eval",
    "gzio",
    "iso9660",
    "linux",
    "normal",
    "part_msdos",
    "search",
    "search_label",
    "test",
];
const GRUB_BUILT_IN_FOR_EFI: [&str; 3] = ["all_video", "fat", "part_gpt"];

/// What GRUB does first. Started by El Torito, it finds its config where it was told to look, on the volume; started from
/// the EFI partition, beside itself: that config is the stub. (Its first parser knows no conditions; `eval` calls the other.)
const GRUB_FIRST: &str = "eval 'if [ ! -e $prefix/grub.cfg ]; then set prefix=$cmdpath; fi'\n";

/// The size of the EFI partition in disk sectors: 8 MiB, about what real ones have.
const EFI_PARTITION_SECTORS: u32 = 16_384;

/// The programs that a boot needs.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) qemu: PathBuf,
    /// UEFI for this machine, where QEMU does not bring the firmware.
    pub(crate) firmware: Option<PathBuf>,
    /// The same for Secure Boot, on a PC.
    pub(crate) secure: Option<SecureFirmware>,
}

#[derive(Debug)]
pub(crate) struct SecureFirmware {
    pub(crate) code: PathBuf,
    /// With the keys that PCs are sold with.
    pub(crate) variables: PathBuf,
}

/// Everything, or nothing and a notice where something is missing.
pub(crate) fn collect(recipe: &Recipe) -> Option<(Programs, BootParts)> {
    let system = System::of(recipe.architecture())?;
    let common = BootParts {
        kernel: fs::read(&system.kernel).unwrap(),
        initramfs: initramfs(&system)?,
        ..BootParts::default()
    };
    match recipe.architecture() {
        Architecture::X86_64 => {
            let (isolinux, disk_boot_code) = (isolinux()?, disk_boot_code()?);
            let efi_partition = efi_partition(recipe, &system)?;
            Some((pc()?, BootParts { efi_partition, isolinux, disk_boot_code, ..common }))
        }
        Architecture::Aarch64 => {
            let programs = other("qemu-system-aarch64", Some(ARM_FIRMWARE))?;
            Some((programs, BootParts { efi_partition: efi_partition(recipe, &system)?, ..common }))
        }
        Architecture::Ppc64le => {
            let power_loader = power_loader(recipe, &system)?;
            Some((other("qemu-system-ppc64", None)?, BootParts { power_loader, ..common }))
        }
        Architecture::S390x => Some((other("qemu-system-s390x", None)?, common)),
    }
}

fn pc() -> Option<Programs> {
    let secure =
        SecureFirmware { code: require_file(SECURE_FIRMWARE)?, variables: require_file(SECURE_VARIABLES)? };
    let qemu = require_tool("qemu-system-x86_64")?;
    Some(Programs { qemu, firmware: Some(require_file(FIRMWARE)?), secure: Some(secure) })
}

/// A machine that is no PC.
fn other(qemu: &str, firmware: Option<&str>) -> Option<Programs> {
    let firmware = match firmware {
        Some(path) => Some(require_file(path)?),
        None => None,
    };
    Some(Programs { qemu: require_tool(qemu)?, firmware, secure: None })
}

fn disk_boot_code() -> Option<Vec<u8>> {
    require_file(DISK_BOOT_CODE).map(|path| fs::read(path).unwrap())
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
fn initramfs(system: &System) -> Option<Vec<u8>> {
    let files = Files::new();
    files.put("bin/busybox", fs::read(system.program("busybox")?).unwrap());
    files.put("init", include_bytes!("init.sh"));
    files.archive()
}

/// The same with what the later stages need: `stages.sh` and modules of the kernel.
pub(crate) fn with_stages(mut parts: BootParts, system: &System) -> Option<BootParts> {
    let files = Files::new();
    files.put("stages.sh", include_bytes!("stages.sh"));
    let mut order = String::new();
    for (name, bytes) in kernel::modules(system)? {
        files.put(&format!("modules/{name}.ko"), bytes);
        order.push_str(&format!("{name}\n"));
    }
    files.put("modules/order", order);
    parts.initramfs.extend(files.archive()?);
    Some(parts)
}

/// The same with the real NetworkManager, and udev, which tells it what devices there are.
pub(crate) fn with_network_manager(mut parts: BootParts, system: &System) -> Option<BootParts> {
    let files = Files::new();
    for (path, program) in NETWORK_PROGRAMS {
        files.put_program(path, &system.file(program)?, system)?;
    }
    parts.initramfs.extend(files.archive()?);
    Some(parts)
}

/// Files for a system that starts here: archived as an initramfs, or squashed.
struct Files(Scratch);

impl Files {
    fn new() -> Self {
        Self(Scratch::new())
    }

    /// An executable file with its folders.
    fn put(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let file = self.0.write(&format!("root/{path}"), bytes);
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A program with the libraries that it is linked with.
    fn put_program(&self, path: &str, program: &Path, system: &System) -> Option<()> {
        for (path, library) in system.libraries(program)? {
            self.put(&path, fs::read(library).unwrap());
        }
        self.put(path, fs::read(program).unwrap());
        Some(())
    }

    /// All of them as a compressed archive.
    fn archive(&self) -> Option<Vec<u8>> {
        let cpio = require_tool("cpio")?;
        let root = self.0.path("root");
        let names = Run::new(require_tool("find")?, &root).args([".", "-mindepth", "1", "-printf", "%P\n"]);
        let names = names.output().printed();
        let archive =
            Run::new(cpio, &root).args(["-o", "-H", "newc", "--quiet"]).stdin(names).output().success();
        Some(Run::new(require_tool("gzip")?, &root).args(["-1"]).stdin(archive).output().success())
    }
}

/// A root file system with Ignition and the programs that it calls, squashed.
pub(crate) fn root_file_system(system: &System) -> Option<Vec<u8>> {
    let files = Files::new();
    files.put("bin/busybox", fs::read(system.program("busybox")?).unwrap());
    for name in BUSYBOX_APPLETS {
        std::os::unix::fs::symlink("busybox", files.0.path("root/bin").join(name)).unwrap();
    }
    files.put_program("bin/ignition", &system.file(IGNITION)?, system)?;
    for name in ["useradd", "usermod", "groupadd"] {
        files.put_program(&format!("usr/sbin/{name}"), &system.program(name)?, system)?;
    }
    files.put("bin/setfiles", "#!/bin/sh\nexec cat\n");
    files.put("apply.sh", include_bytes!("apply.sh"));
    files.put("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n");
    files.put("etc/group", "root:x:0:\nwheel:x:10:\nsudo:x:27:\nadm:x:4:\nsystemd-journal:x:190:\n");
    files.put("etc/shadow", "root:*:19000:0:99999:7:::\n");
    for name in ["run", "proc", "dev", "tmp"] {
        fs::create_dir_all(files.0.path("root").join(name)).unwrap();
    }
    let options = ["root", "root.squashfs", "-quiet", "-no-progress", "-all-root", "-comp", "gzip"];
    Run::new(require_tool("mksquashfs")?, files.0.folder()).args(options).output().success();
    Some(files.0.read("root.squashfs"))
}

/// The same with shim and GRUB as they are signed for Secure Boot; the kernel is signed as it comes.
pub(crate) fn with_signed_loaders(mut parts: BootParts, recipe: &Recipe) -> Option<BootParts> {
    let [shim, grub] = [require_file(SIGNED_SHIM)?, require_file(SIGNED_GRUB)?];
    parts.vendor = Some("debian");
    let scratch = Scratch::new();
    scratch.write("EFI/BOOT/BOOTX64.EFI", fs::read(shim).unwrap());
    scratch.write("EFI/BOOT/grubx64.efi", fs::read(grub).unwrap());
    scratch.write("EFI/debian/grub.cfg", recipe.clone().boot_parts(parts.clone()).efi_stub());
    parts.efi_partition =
        fat(&scratch, &["EFI/BOOT/BOOTX64.EFI", "EFI/BOOT/grubx64.efi", "EFI/debian/grub.cfg"])?;
    Some(parts)
}

/// A FAT filesystem with GRUB in the place of shim, and the stub config.
fn efi_partition(recipe: &Recipe, system: &System) -> Option<Vec<u8>> {
    let scratch = Scratch::new();
    scratch.write("EFI/BOOT/grub.cfg", recipe.efi_stub());
    scratch.write("first.cfg", GRUB_FIRST);
    let (platform, name) = match recipe.architecture() {
        Architecture::Aarch64 => ("arm64-efi", "EFI/BOOT/BOOTAA64.EFI"),
        _ => ("x86_64-efi", "EFI/BOOT/BOOTX64.EFI"),
    };
    let built_in = GRUB_BUILT_IN.into_iter().chain(GRUB_BUILT_IN_FOR_EFI).collect::<Vec<_>>().join(" ");
    let options = format!("-p /EFI/fedora -c first.cfg -o {name} {built_in}");
    grub(&scratch, system, platform, &options)?;
    fat(&scratch, &[name, "EFI/BOOT/grub.cfg"])
}

/// GRUB as Open Firmware starts it from a CD. What it is told of the place that it was started from, it takes for the number of a
/// partition.
fn power_loader(recipe: &Recipe, system: &System) -> Option<Vec<u8>> {
    let scratch = Scratch::new();
    let volume = recipe.volume_id();
    scratch.write(
        "first.cfg",
        format!("search --set=root --label \"{volume}\"\nset prefix=($root)/boot/grub\n"),
    );
    let options = format!("-p /boot/grub -c first.cfg -o powerpc.elf {}", GRUB_BUILT_IN.join(" "));
    grub(&scratch, system, "powerpc-ieee1275", &options)?;
    Some(scratch.read("powerpc.elf"))
}

/// Makes an image of GRUB for a platform.
fn grub(scratch: &Scratch, system: &System, platform: &str, options: &str) -> Option<()> {
    let mkimage = require_tool("grub-mkimage")?;
    let modules = system.file(&format!("usr/lib/grub/{platform}/moddep.lst"))?;
    let folder = [OsStr::new("-d"), modules.parent()?.as_os_str()];
    let arguments = ["-O", platform].into_iter().chain(options.split_whitespace()).map(OsStr::new);
    Run::new(mkimage, scratch.folder()).args(arguments.chain(folder)).output().success();
    Some(())
}

/// A FAT filesystem with files of a folder.
fn fat(scratch: &Scratch, files: &[&str]) -> Option<Vec<u8>> {
    let tools = ["mformat", "mmd", "mcopy"].map(require_tool);
    let [Some(mformat), Some(mmd), Some(mcopy)] = tools else { return None };
    let run = |program: &Path, line: &str| {
        Run::new(program, scratch.folder()).args(line.split_whitespace()).output().success()
    };
    run(&mformat, &format!("-i efiboot.img -C -T {EFI_PARTITION_SECTORS} -v EFI-SYSTEM ::"));
    run(&mmd, "-i efiboot.img ::/EFI ::/EFI/BOOT ::/EFI/debian");
    for file in files {
        run(&mcopy, &format!("-i efiboot.img {file} ::/{file}"));
    }
    Some(scratch.read("efiboot.img"))
}
