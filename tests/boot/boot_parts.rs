//! The boot files of the images: a kernel, an initramfs that prints facts, and the boot loaders.
//!
//! All of them come from packages of Debian (or Ubuntu), which [`DebianSystem`] finds.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fixtures::{Architecture, BootParts, Recipe};

use crate::kernel;
use crate::support::{ProgramRun, Scratch, require_file, require_tool};
use crate::system::DebianSystem;

const ISOLINUX: &str = "/usr/lib/ISOLINUX/isolinux.bin";
const DISK_BOOT_CODE: &str = "/usr/lib/ISOLINUX/isohdpfx.bin";
const ISOLINUX_MODULES: &str = "/usr/lib/syslinux/modules/bios";
const FIRMWARE: &str = "/usr/share/ovmf/OVMF.fd";
const ARM_FIRMWARE: &str = "/usr/share/qemu-efi-aarch64/QEMU_EFI.fd";
const SECURE_FIRMWARE: &str = "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd";
const SECURE_VARIABLES: &str = "/usr/share/OVMF/OVMF_VARS_4M.ms.fd";
const SIGNED_SHIM: &str = "/usr/lib/shim/shimx64.efi.signed";
/// A build of GRUB that reads its config from `EFI/debian` on the volume.
const SIGNED_GRUB: &str = "/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed";

/// The modules of isolinux that real images have next to it.
const MODULES: [&str; 4] = ["ldlinux.c32", "libcom32.c32", "libutil.c32", "vesamenu.c32"];

/// Ignition's engine.
const IGNITION: &str = "usr/lib/dracut/modules.d/30ignition/ignition";
/// The busybox applets that `apply.sh` uses.
const BUSYBOX_APPLETS: [&str; 10] =
    ["sh", "cat", "cp", "cut", "find", "mkdir", "sed", "sha256sum", "stat", "tail"];

/// Programs that configure networks in a real initramfs: their paths in the initramfs and in the system.
const NETWORK_PROGRAMS: [(&str, &str); 2] = [
    ("usr/sbin/NetworkManager", "usr/sbin/NetworkManager"),
    ("usr/lib/systemd/systemd-udevd", "usr/bin/udevadm"),
];

/// The built-in modules of real GRUB images that the configs need.
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

/// GRUB's embedded config. If GRUB is started by El Torito, its prefix points to the volume, where it finds its config.
/// If it is started from the EFI partition, it finds the stub config next to itself. (The first parser does not support
/// conditions; `eval` calls a parser that does.)
const GRUB_EMBEDDED_CONFIG: &str = "eval 'if [ ! -e $prefix/grub.cfg ]; then set prefix=$cmdpath; fi'\n";

/// Size of the EFI partition in disk sectors: 8 MiB, about the size of real ones.
const EFI_PARTITION_SECTORS: u32 = 16_384;

#[derive(Debug)]
pub(crate) struct BootPrograms {
    pub(crate) qemu: PathBuf,
    /// UEFI firmware for this machine, if QEMU does not include it.
    pub(crate) firmware: Option<PathBuf>,
    /// Firmware of a PC with Secure Boot.
    pub(crate) secure: Option<SecureFirmware>,
}

#[derive(Debug)]
pub(crate) struct SecureFirmware {
    pub(crate) code: PathBuf,
    /// Variables with the keys that PCs are sold with.
    pub(crate) variables: PathBuf,
}

/// Returns all files, or prints a notice and returns `None` if one is missing.
pub(crate) fn collect_parts(recipe: &Recipe) -> Option<(BootPrograms, BootParts)> {
    let system = DebianSystem::for_architecture(recipe.architecture())?;
    let common = BootParts {
        kernel: fs::read(&system.kernel).unwrap(),
        initramfs: initramfs(&system)?,
        ..BootParts::default()
    };
    match recipe.architecture() {
        Architecture::X86_64 => {
            let (isolinux, disk_boot_code) = (isolinux()?, disk_boot_code()?);
            let efi_partition = efi_partition(recipe, &system)?;
            Some((pc_programs()?, BootParts { efi_partition, isolinux, disk_boot_code, ..common }))
        }
        Architecture::Aarch64 => {
            let programs = programs_for_machine("qemu-system-aarch64", Some(ARM_FIRMWARE))?;
            Some((programs, BootParts { efi_partition: efi_partition(recipe, &system)?, ..common }))
        }
        Architecture::Ppc64le => {
            let power_loader = power_loader(recipe, &system)?;
            Some((programs_for_machine("qemu-system-ppc64", None)?, BootParts { power_loader, ..common }))
        }
        Architecture::S390x => Some((programs_for_machine("qemu-system-s390x", None)?, common)),
    }
}

fn pc_programs() -> Option<BootPrograms> {
    let secure =
        SecureFirmware { code: require_file(SECURE_FIRMWARE)?, variables: require_file(SECURE_VARIABLES)? };
    let qemu = require_tool("qemu-system-x86_64")?;
    Some(BootPrograms { qemu, firmware: Some(require_file(FIRMWARE)?), secure: Some(secure) })
}

/// Returns the programs for a machine other than a PC.
fn programs_for_machine(qemu: &str, firmware: Option<&str>) -> Option<BootPrograms> {
    let firmware = match firmware {
        Some(path) => Some(require_file(path)?),
        None => None,
    };
    Some(BootPrograms { qemu: require_tool(qemu)?, firmware, secure: None })
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

/// Packs an initramfs with two files: a static busybox, and a script for it.
fn initramfs(system: &DebianSystem) -> Option<Vec<u8>> {
    let files = SystemFiles::new();
    files.add_file("bin/busybox", fs::read(system.program("busybox")?).unwrap());
    files.add_file("init", include_bytes!("init.sh"));
    files.pack()
}

/// Adds the files of the later stages to the initramfs: `stages.sh` and kernel modules.
pub(crate) fn with_stage_files(mut parts: BootParts, system: &DebianSystem) -> Option<BootParts> {
    let files = SystemFiles::new();
    files.add_file("stages.sh", include_bytes!("stages.sh"));
    let mut order = String::new();
    for (name, bytes) in kernel::kernel_modules(system)? {
        files.add_file(&format!("modules/{name}.ko"), bytes);
        order.push_str(&format!("{name}\n"));
    }
    files.add_file("modules/order", order);
    parts.initramfs.extend(files.pack()?);
    Some(parts)
}

/// Adds the real NetworkManager to the initramfs, and udev, which reports devices to it.
pub(crate) fn with_network_manager(mut parts: BootParts, system: &DebianSystem) -> Option<BootParts> {
    let files = SystemFiles::new();
    for (path, program) in NETWORK_PROGRAMS {
        files.add_program(path, &system.package_file(program)?, system)?;
    }
    parts.initramfs.extend(files.pack()?);
    Some(parts)
}

/// Files of a system, to be packed as an initramfs or as squashfs.
struct SystemFiles(Scratch);

impl SystemFiles {
    fn new() -> Self {
        Self(Scratch::new())
    }

    /// Adds an executable file and its folders.
    fn add_file(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let file = self.0.write(&format!("root/{path}"), bytes);
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Adds a program with its shared libraries.
    fn add_program(&self, path: &str, program: &Path, system: &DebianSystem) -> Option<()> {
        for (path, library) in system.libraries(program)? {
            self.add_file(&path, fs::read(library).unwrap());
        }
        self.add_file(path, fs::read(program).unwrap());
        Some(())
    }

    /// Packs all files as a compressed archive.
    fn pack(&self) -> Option<Vec<u8>> {
        let cpio = require_tool("cpio")?;
        let root = self.0.path("root");
        let names =
            ProgramRun::new(require_tool("find")?, &root).args([".", "-mindepth", "1", "-printf", "%P\n"]);
        let names = names.run().expect_text();
        let archive = ProgramRun::new(cpio, &root)
            .args(["-o", "-H", "newc", "--quiet"])
            .stdin(names)
            .run()
            .expect_success();
        Some(ProgramRun::new(require_tool("gzip")?, &root).args(["-1"]).stdin(archive).run().expect_success())
    }
}

/// Packs a squashfs root file system with Ignition and the programs that it calls.
pub(crate) fn root_file_system(system: &DebianSystem) -> Option<Vec<u8>> {
    let files = SystemFiles::new();
    files.add_file("bin/busybox", fs::read(system.program("busybox")?).unwrap());
    for name in BUSYBOX_APPLETS {
        std::os::unix::fs::symlink("busybox", files.0.path("root/bin").join(name)).unwrap();
    }
    files.add_program("bin/ignition", &system.package_file(IGNITION)?, system)?;
    for name in ["useradd", "usermod", "groupadd"] {
        files.add_program(&format!("usr/sbin/{name}"), &system.program(name)?, system)?;
    }
    files.add_file("bin/setfiles", "#!/bin/sh\nexec cat\n");
    files.add_file("apply.sh", include_bytes!("apply.sh"));
    files.add_file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n");
    files.add_file("etc/group", "root:x:0:\nwheel:x:10:\nsudo:x:27:\nadm:x:4:\nsystemd-journal:x:190:\n");
    files.add_file("etc/shadow", "root:*:19000:0:99999:7:::\n");
    for name in ["run", "proc", "dev", "tmp"] {
        fs::create_dir_all(files.0.path("root").join(name)).unwrap();
    }
    let options = ["root", "root.squashfs", "-quiet", "-no-progress", "-all-root", "-comp", "gzip"];
    ProgramRun::new(require_tool("mksquashfs")?, files.0.folder()).args(options).run().expect_success();
    Some(files.0.read("root.squashfs"))
}

/// Replaces the loaders by shim and GRUB signed for Secure Boot. The packaged kernel is already signed.
pub(crate) fn with_signed_loaders(mut parts: BootParts, recipe: &Recipe) -> Option<BootParts> {
    let [shim, grub] = [require_file(SIGNED_SHIM)?, require_file(SIGNED_GRUB)?];
    parts.vendor = Some("debian");
    let scratch = Scratch::new();
    scratch.write("EFI/BOOT/BOOTX64.EFI", fs::read(shim).unwrap());
    scratch.write("EFI/BOOT/grubx64.efi", fs::read(grub).unwrap());
    scratch.write("EFI/debian/grub.cfg", recipe.clone().boot_parts(parts.clone()).efi_stub());
    parts.efi_partition = make_fat_filesystem(
        &scratch,
        &["EFI/BOOT/BOOTX64.EFI", "EFI/BOOT/grubx64.efi", "EFI/debian/grub.cfg"],
    )?;
    Some(parts)
}

/// Creates a FAT filesystem with GRUB instead of shim, and the stub config.
fn efi_partition(recipe: &Recipe, system: &DebianSystem) -> Option<Vec<u8>> {
    let scratch = Scratch::new();
    scratch.write("EFI/BOOT/grub.cfg", recipe.efi_stub());
    scratch.write("first.cfg", GRUB_EMBEDDED_CONFIG);
    let (platform, name) = match recipe.architecture() {
        Architecture::Aarch64 => ("arm64-efi", "EFI/BOOT/BOOTAA64.EFI"),
        _ => ("x86_64-efi", "EFI/BOOT/BOOTX64.EFI"),
    };
    let built_in = GRUB_BUILT_IN.into_iter().chain(GRUB_BUILT_IN_FOR_EFI).collect::<Vec<_>>().join(" ");
    let options = format!("-p /EFI/fedora -c first.cfg -o {name} {built_in}");
    make_grub_image(&scratch, system, platform, &options)?;
    make_fat_filesystem(&scratch, &[name, "EFI/BOOT/grub.cfg"])
}

/// Builds GRUB for Open Firmware, which starts it from a CD. GRUB would misread the boot path as a partition number.
fn power_loader(recipe: &Recipe, system: &DebianSystem) -> Option<Vec<u8>> {
    let scratch = Scratch::new();
    let volume = recipe.volume_id();
    scratch.write(
        "first.cfg",
        format!("search --set=root --label \"{volume}\"\nset prefix=($root)/boot/grub\n"),
    );
    let options = format!("-p /boot/grub -c first.cfg -o powerpc.elf {}", GRUB_BUILT_IN.join(" "));
    make_grub_image(&scratch, system, "powerpc-ieee1275", &options)?;
    Some(scratch.read("powerpc.elf"))
}

fn make_grub_image(scratch: &Scratch, system: &DebianSystem, platform: &str, options: &str) -> Option<()> {
    let mkimage = require_tool("grub-mkimage")?;
    let modules = system.package_file(&format!("usr/lib/grub/{platform}/moddep.lst"))?;
    let folder = [OsStr::new("-d"), modules.parent()?.as_os_str()];
    let arguments = ["-O", platform].into_iter().chain(options.split_whitespace()).map(OsStr::new);
    ProgramRun::new(mkimage, scratch.folder()).args(arguments.chain(folder)).run().expect_success();
    Some(())
}

fn make_fat_filesystem(scratch: &Scratch, files: &[&str]) -> Option<Vec<u8>> {
    let tools = ["mformat", "mmd", "mcopy"].map(require_tool);
    let [Some(mformat), Some(mmd), Some(mcopy)] = tools else { return None };
    let run = |program: &Path, line: &str| {
        ProgramRun::new(program, scratch.folder()).args(line.split_whitespace()).run().expect_success()
    };
    run(&mformat, &format!("-i efiboot.img -C -T {EFI_PARTITION_SECTORS} -v EFI-SYSTEM ::"));
    run(&mmd, "-i efiboot.img ::/EFI ::/EFI/BOOT ::/EFI/debian");
    for file in files {
        run(&mcopy, &format!("-i efiboot.img {file} ::/{file}"));
    }
    Some(scratch.read("efiboot.img"))
}
