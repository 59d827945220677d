//! A virtual machine: QEMU starts an image, and the test records the serial output.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use fixtures::Architecture;

use crate::boot_parts::{BootPrograms, SecureFirmware};
use crate::facts::BootFacts;
use crate::proxy_dhcp;

/// More than ten times the duration of any boot on an idle machine.
const PATIENCE: Duration = Duration::from_secs(300);
/// Maximum number of concurrent machines. Each needs a processor and several hundred megabytes.
const MACHINES: usize = 2;
/// Texts of both boot menus while they wait: "Automatic boot in …", "… will be executed automatically in …".
const MENU: &[u8] = b"utomatic";
/// Messages after the last boot attempt of boot loaders and firmware.
const DEAD_ENDS: [&[u8]; 6] = [
    b"No bootable option",
    b"No bootable device",
    b"Access Denied",
    b"UEFI Interactive Shell",
    b"you need to load the kernel first",
    b"Minimal BASH-like line editing",
];
/// Length of the part of the serial log that a failed boot prints.
const TAIL: usize = 3000;

/// The method by which a machine starts an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StartMethod {
    /// A CD for a BIOS: El Torito, isolinux.
    BiosDisc,
    /// A USB stick for a BIOS: the boot code of the MBR, isolinux.
    BiosStick,
    /// A CD for UEFI: El Torito, GRUB.
    UefiDisc,
    /// A USB stick for UEFI. This firmware follows El Torito on sticks, too.
    UefiStick,
    /// A USB stick for UEFI that ignores El Torito on disks: MBR, EFI partition, GRUB, its stub config.
    UefiPartition,
    /// A USB stick for UEFI that finds the EFI partition in the GPT.
    UefiGpt,
    /// A CD for UEFI with Secure Boot: El Torito, shim and GRUB, both signed.
    SecureDisc,
    /// No medium: iPXE from the network card's ROM, for a BIOS, with the URL of a script instead of an image.
    BiosNetwork,
    /// No medium: iPXE from the network card's ROM, for UEFI.
    UefiNetwork,
    /// No medium: UEFI loads the image into a RAM disk, from a URL that DHCP provides.
    UefiHttp,
    /// A USB CD for 64-bit Arm, as its BMCs emulate it: UEFI, El Torito, GRUB.
    ArmDisc,
    /// A USB stick for 64-bit Arm. This firmware follows El Torito on sticks, too. These images have no partition
    /// table.
    ArmStick,
    /// A SCSI CD for IBM Z: El Torito, whose boot image is the kernel.
    MainframeDisc,
    /// A SCSI CD for POWER: Open Firmware, `ppc/bootinfo.txt`, GRUB.
    PowerDisc,
}

impl StartMethod {
    fn has_efi(self) -> bool {
        let is_bios = matches!(self, Self::BiosDisc | Self::BiosStick | Self::BiosNetwork);
        !is_bios && matches!(self.processor(), Architecture::X86_64 | Architecture::Aarch64)
    }

    /// Returns `true` if the firmware must find the EFI partition in a partition table.
    pub(crate) fn is_from_partition(self) -> bool {
        matches!(self, Self::UefiPartition | Self::UefiGpt)
    }

    /// Returns the processor of the machine.
    pub(crate) fn processor(self) -> Architecture {
        match self {
            Self::ArmDisc | Self::ArmStick => Architecture::Aarch64,
            Self::MainframeDisc => Architecture::S390x,
            Self::PowerDisc => Architecture::Ppc64le,
            _ => Architecture::X86_64,
        }
    }

    fn qemu_arguments(self) -> &'static [&'static str] {
        match self.processor() {
            Architecture::Aarch64 => &["-machine", "virt", "-cpu", "cortex-a72"],
            Architecture::S390x => &["-machine", "s390-ccw-virtio"],
            // Disables processor features that software emulation lacks.
            Architecture::Ppc64le => {
                &["-machine", "pseries,cap-cfpc=broken,cap-sbbc=broken,cap-ibs=broken,cap-ccf-assist=off"]
            }
            Architecture::X86_64 => &["-machine", "q35", "-vga", "std"],
        }
    }

    pub(crate) fn has_medium(self) -> bool {
        !matches!(self, Self::BiosNetwork | Self::UefiNetwork | Self::UefiHttp)
    }

    pub(crate) fn boot_loader(self) -> BootLoader {
        match self {
            Self::BiosNetwork | Self::UefiNetwork => BootLoader::Ipxe,
            Self::MainframeDisc => BootLoader::Firmware,
            Self::PowerDisc => BootLoader::Grub,
            _ if self.has_efi() => BootLoader::Grub,
            _ => BootLoader::Isolinux,
        }
    }

    /// Returns the device on which Linux finds the image.
    pub(crate) fn medium_device(self) -> &'static str {
        match self {
            Self::BiosDisc
            | Self::UefiDisc
            | Self::SecureDisc
            | Self::ArmDisc
            | Self::MainframeDisc
            | Self::PowerDisc => "/dev/sr",
            Self::UefiHttp => "/dev/pmem",
            _ => "/dev/sda",
        }
    }
}

/// The setup of a virtual machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MachineSetup<'a> {
    pub(crate) programs: &'a BootPrograms,
    /// A file or a URL.
    pub(crate) image: &'a Path,
    pub(crate) start: StartMethod,
    /// MAC addresses of the network cards. All cards are on one network, where 10.0.2.2 is the host's loopback address.
    pub(crate) cards: &'a [&'a str],
    pub(crate) patience: Duration,
}

impl<'a> MachineSetup<'a> {
    /// Creates a machine without a network.
    pub(crate) fn new(programs: &'a BootPrograms, image: &'a Path, start: StartMethod) -> Self {
        Self { programs, image, start, cards: &[], patience: PATIENCE }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.programs.qemu);
        command.args(["-accel", "tcg", "-m", "768", "-nodefaults", "-no-reboot"]);
        command.args(["-display", "none", "-serial", "stdio"]).args(self.start.qemu_arguments());
        match (&self.programs.secure, &self.programs.firmware) {
            (Some(secure), _) if self.start == StartMethod::SecureDisc => {
                add_secure_firmware(&mut command, secure)
            }
            (_, Some(firmware)) if self.start.has_efi() => _ = command.arg("-bios").arg(firmware),
            _ => {}
        }
        if self.start.has_medium() {
            self.add_medium(&mut command);
        }
        if !self.cards.is_empty() {
            self.add_network(&mut command);
        }
        command
    }

    fn add_medium(&self, command: &mut Command) {
        let drive = format!("if=none,id=image,format=raw,readonly=on,file={}", self.image.display());
        command.args(["-drive", &drive]);
        match self.start {
            StartMethod::BiosDisc | StartMethod::UefiDisc | StartMethod::SecureDisc => {
                command.args(["-device", "ide-cd,drive=image,bootindex=0"])
            }
            StartMethod::ArmDisc => {
                command.args(["-device", "qemu-xhci", "-device", "usb-bot,id=bot"]);
                command.args(["-device", "scsi-cd,bus=bot.0,drive=image,bootindex=0"])
            }
            StartMethod::MainframeDisc => {
                command.args(["-device", "virtio-scsi-ccw", "-device", "scsi-cd,drive=image,bootindex=0"])
            }
            StartMethod::PowerDisc => {
                command.args(["-device", "spapr-vscsi", "-device", "scsi-cd,drive=image,bootindex=0"])
            }
            _ => command.args(["-device", "qemu-xhci", "-device", "usb-storage,drive=image,bootindex=0"]),
        };
    }

    /// Adds a hub that connects the cards with QEMU's user network.
    fn add_network(&self, command: &mut Command) {
        let mut network = "user,id=user".to_owned();
        if self.start.boot_loader() == BootLoader::Ipxe {
            network += &format!(",bootfile={}", self.image.display());
        }
        command.args(["-netdev", &network, "-netdev", "hubport,id=uplink,hubid=0,netdev=user"]);
        if self.start == StartMethod::UefiHttp {
            let port = proxy_dhcp::start_proxy_dhcp(&self.image.display().to_string());
            let tap = format!("socket,id=tap,udp=127.0.0.1:{port},localaddr=127.0.0.1:0");
            command.args(["-netdev", &tap, "-netdev", "hubport,id=tapped,hubid=0,netdev=tap"]);
            command.args(["-fw_cfg", "name=opt/org.tianocore/IPv4PXESupport,string=no"]);
            command.args(["-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=no"]);
        }
        for (number, mac) in self.cards.iter().enumerate() {
            let is_mainframe = self.start.processor() == Architecture::S390x;
            let kind = if is_mainframe { "virtio-net-ccw" } else { "virtio-net-pci" };
            let mut card = format!("{kind},netdev=port{number},mac={mac}");
            if self.start.boot_loader() != BootLoader::Ipxe && !is_mainframe {
                // Without the option ROM, firmware wastes no time on network boot.
                card += ",romfile=";
            }
            if !self.start.has_medium() {
                card += &format!(",bootindex={number}");
            }
            command.args(["-netdev", &format!("hubport,id=port{number},hubid=0"), "-device", &card]);
        }
    }

    /// Boots until the machine powers off. Returns an error if it does not.
    pub(crate) fn boot(&self) -> Result<BootResult, String> {
        let _turn = BootPermit::acquire();
        let start = Instant::now();
        let mut machine = QemuMachine::new(self.command());
        let ended = machine.run_until_power_off(self.patience);
        let seconds = start.elapsed().as_secs_f64();
        let log = machine.serial_log();
        match (ended, BootFacts::parse_log(&log)) {
            (true, Some(facts)) => Ok(BootResult { log, facts, seconds }),
            (ended, _) => {
                let why = if ended { "ended without telling what it found" } else { "did not end" };
                let tail =
                    log.chars().rev().take(TAIL).collect::<Vec<_>>().into_iter().rev().collect::<String>();
                Err(format!("{:?} {why}; the end of its serial log:\n{tail}", self.start))
            }
        }
    }
}

/// Adds firmware with protected variables. Changes to the variables apply only to this boot.
fn add_secure_firmware(command: &mut Command, firmware: &SecureFirmware) {
    command.args(["-machine", "smm=on", "-global", "driver=cfi.pflash01,property=secure,value=on"]);
    let code = format!("if=pflash,unit=0,format=raw,readonly=on,file={}", firmware.code.display());
    let variables = format!("if=pflash,unit=1,format=raw,snapshot=on,file={}", firmware.variables.display());
    command.args(["-drive", &code, "-drive", &variables]);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BootLoader {
    Isolinux,
    Grub,
    Ipxe,
    /// The firmware loads the kernel without a boot loader.
    Firmware,
}

#[derive(Debug)]
pub(crate) struct BootResult {
    pub(crate) log: String,
    pub(crate) facts: BootFacts,
    pub(crate) seconds: f64,
}

/// Boots an image until the machine powers off.
#[track_caller]
pub(crate) fn boot_image(programs: &BootPrograms, image: &Path, start: StartMethod) -> BootResult {
    MachineSetup::new(programs, image, start).boot().unwrap_or_else(|why| panic!("{why}"))
}

/// A running QEMU, which is killed when the test ends.
struct QemuMachine {
    child: Child,
    keys: ChildStdin,
    log: Arc<Mutex<Vec<u8>>>,
    reader: Option<thread::JoinHandle<()>>,
}

impl QemuMachine {
    fn new(mut command: Command) -> Self {
        // The log includes the error output of QEMU.
        let (pipe, errors) = std::io::pipe().unwrap();
        command.stdin(Stdio::piped()).stdout(errors.try_clone().unwrap()).stderr(errors);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        // Closes the command's write end of the pipe. Otherwise the pipe would never end.
        drop(command);
        let log = Arc::new(Mutex::new(Vec::new()));
        let reader = Some(collect_output(pipe, Arc::clone(&log)));
        Self { keys: child.stdin.take().unwrap(), child, log, reader }
    }

    /// Waits for the end. Returns `true` if the machine powered off.
    fn run_until_power_off(&mut self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let mut pressed = false;
        while Instant::now() < until {
            if self.child.try_wait().unwrap().is_some() {
                return true;
            }
            if DEAD_ENDS.iter().any(|words| self.has_printed(words)) {
                return false;
            }
            if !pressed && self.has_printed(MENU) {
                // Presses Enter, which skips the timeout of the menu.
                pressed = self.keys.write_all(b"\r").is_ok();
            }
            thread::sleep(Duration::from_millis(100));
        }
        false
    }

    fn has_printed(&self, words: &[u8]) -> bool {
        self.log.lock().unwrap().windows(words.len()).any(|window| window == words)
    }

    /// Returns all serial output, without terminal control sequences.
    fn serial_log(&mut self) -> String {
        self.kill();
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        let bytes = self.log.lock().unwrap();
        let readable = |character: &char| !character.is_control() || *character == '\n';
        String::from_utf8_lossy(&bytes).chars().filter(readable).collect()
    }

    fn kill(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // QEMU may have exited meanwhile.
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

impl Drop for QemuMachine {
    fn drop(&mut self) {
        self.kill();
    }
}

fn collect_output(mut pipe: impl Read + Send + 'static, log: Arc<Mutex<Vec<u8>>>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(len @ 1..) = pipe.read(&mut buffer) {
            log.lock().unwrap().extend_from_slice(&buffer[..len]);
        }
    })
}

pub(crate) struct BootPermit;

static RUNNING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

impl BootPermit {
    pub(crate) fn acquire() -> Self {
        let running = RUNNING.lock().unwrap();
        *ENDED.wait_while(running, |running| *running >= MACHINES).unwrap() += 1;
        Self
    }
}

impl Drop for BootPermit {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap() -= 1;
        ENDED.notify_one();
    }
}
