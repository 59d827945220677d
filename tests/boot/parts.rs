//! What the images boot with: a kernel, an initramfs that tells what arrived, and the boot loaders.
//!
//! All of it comes from packages of Debian (or Ubuntu), most from where they are installed. The kernel does not:
//! `KINDLING_BOOT_KERNEL` names its file, since reading the one in `/boot` is not for everybody.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fixtures::{BootParts, Recipe};

use crate::kernel;
use crate::support::{Run, Scratch, require_file, require_path, require_tool};

const ISOLINUX: &str = "/usr/lib/ISOLINUX/isolinux.bin";
const DISK_BOOT_CODE: &str = "/usr/lib/ISOLINUX/isohdpfx.bin";
const ISOLINUX_MODULES: &str = "/usr/lib/syslinux/modules/bios";
const FIRMWARE: &str = "/usr/share/ovmf/OVMF.fd";
const SECURE_FIRMWARE: &str = "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd";
const SECURE_VARIABLES: &str = "/usr/share/OVMF/OVMF_VARS_4M.ms.fd";
const SIGNED_SHIM: &str = "/usr/lib/shim/shimx64.efi.signed";
/// It has its config in `EFI/debian` of the volume.
const SIGNED_GRUB: &str = "/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed";
const GRUB_MODULES: &str = "/usr/lib/grub/x86_64-efi";

/// The modules of isolinux that real images have beside it.
const MODULES: [&str; 4] = ["ldlinux.c32", "libcom32.c32", "libutil.c32", "vesamenu.c32"];

/// Ignition's engine.
const IGNITION: &str = "/usr/lib/dracut/modules.d/30ignition/ignition";
/// What `apply.sh` uses of busybox.
const BUSYBOX_APPLETS: [&str; 10] =
    ["sh", "cat", "cp", "cut", "find", "mkdir", "sed", "sha256sum", "stat", "tail"];

/// What sets networks up in a real initramfs, and where it is there and here.
const NETWORK_PROGRAMS: [(&str, &str); 2] = [
    ("usr/sbin/NetworkManager", "/usr/sbin/NetworkManager"),
    ("usr/lib/systemd/systemd-udevd", "/usr/bin/udevadm"),
];

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
    /// The same for Secure Boot, and its variables with the keys that PCs are sold with.
    pub(crate) secure_firmware: PathBuf,
    pub(crate) secure_variables: PathBuf,
}

/// Everything, or nothing and a notice where something is missing.
pub(crate) fn collect(recipe: &Recipe) -> Option<(Programs, BootParts)> {
    let programs = Programs {
        qemu: require_tool("qemu-system-x86_64")?,
        firmware: require_file(FIRMWARE)?,
        secure_firmware: require_file(SECURE_FIRMWARE)?,
        secure_variables: require_file(SECURE_VARIABLES)?,
    };
    let parts = BootParts {
        kernel: fs::read(require_path("KINDLING_BOOT_KERNEL")?).unwrap(),
        initramfs: initramfs()?,
        efi_partition: efi_partition(recipe)?,
        isolinux: isolinux()?,
        vendor: None,
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
    let files = Files::new();
    files.put("bin/busybox", fs::read(require_tool("busybox")?).unwrap());
    files.put("init", include_bytes!("init.sh"));
    files.archive()
}

/// The same with what the later stages need: `stages.sh` and modules of the kernel.
pub(crate) fn with_stages(mut parts: BootParts) -> Option<BootParts> {
    let files = Files::new();
    files.put("stages.sh", include_bytes!("stages.sh"));
    let mut order = String::new();
    for (name, bytes) in kernel::modules()? {
        files.put(&format!("modules/{name}.ko"), bytes);
        order.push_str(&format!("{name}\n"));
    }
    files.put("modules/order", order);
    parts.initramfs.extend(files.archive()?);
    Some(parts)
}

/// The same with the real NetworkManager, and udev, which tells it what devices there are.
pub(crate) fn with_network_manager(mut parts: BootParts) -> Option<BootParts> {
    let files = Files::new();
    for (path, program) in NETWORK_PROGRAMS {
        files.put_program(path, &require_file(program)?)?;
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
    fn put_program(&self, path: &str, program: &Path) -> Option<()> {
        let ldd = require_tool("ldd")?;
        let linked = Run::new(ldd, self.0.folder()).args([program]).output().printed();
        for library in linked.split_whitespace().filter(|word| word.starts_with('/')) {
            self.put(library.strip_prefix('/')?, fs::read(library).unwrap());
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
pub(crate) fn root_file_system() -> Option<Vec<u8>> {
    let files = Files::new();
    files.put("bin/busybox", fs::read(require_tool("busybox")?).unwrap());
    for name in BUSYBOX_APPLETS {
        std::os::unix::fs::symlink("busybox", files.0.path("root/bin").join(name)).unwrap();
    }
    files.put_program("bin/ignition", &require_file(IGNITION)?)?;
    for name in ["usr/sbin/useradd", "usr/sbin/usermod", "usr/sbin/groupadd"] {
        files.put_program(name, &require_file(Path::new("/").join(name))?)?;
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
fn efi_partition(recipe: &Recipe) -> Option<Vec<u8>> {
    let mkimage = require_tool("grub-mkimage")?;
    require_file(Path::new(GRUB_MODULES).join("moddep.lst"))?;
    let scratch = Scratch::new();
    scratch.write("EFI/BOOT/grub.cfg", recipe.efi_stub());
    scratch.write("first.cfg", GRUB_FIRST);
    let output = "-O x86_64-efi -p /EFI/fedora -c first.cfg -o EFI/BOOT/BOOTX64.EFI";
    let line = format!("{output} -d {GRUB_MODULES} {}", GRUB_BUILT_IN.join(" "));
    Run::new(mkimage, scratch.folder()).args(line.split_whitespace()).output().success();
    fat(&scratch, &["EFI/BOOT/BOOTX64.EFI", "EFI/BOOT/grub.cfg"])
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
