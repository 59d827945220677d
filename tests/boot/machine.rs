//! A PC without hardware: QEMU, which starts an image and writes down what comes over the serial line.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use fixtures::Architecture;

use crate::facts::Facts;
use crate::parts::{Programs, SecureFirmware};
use crate::proxy_dhcp;

/// No boot takes a tenth of it on an idle machine.
const PATIENCE: Duration = Duration::from_secs(300);
/// How many machines run at once. Each takes a processor and some hundred megabytes.
const MACHINES: usize = 2;
/// What both boot menus say while they wait: "Automatic boot in …", "… will be executed automatically in …".
const MENU: &[u8] = b"utomatic";
/// What boot loaders and firmware say when they have nothing left to try.
const DEAD_ENDS: [&[u8]; 6] = [
    b"No bootable option",
    b"No bootable device",
    b"Access Denied",
    b"UEFI Interactive Shell",
    b"you need to load the kernel first",
    b"Minimal BASH-like line editing",
];
/// How much of the serial log a failed boot shows.
const TAIL: usize = 3000;

/// How an image is put into the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Start {
    /// A CD for a BIOS: El Torito, isolinux.
    BiosDisc,
    /// A USB stick for a BIOS: the boot code of the MBR, isolinux.
    BiosStick,
    /// A CD for UEFI: El Torito, GRUB.
    UefiDisc,
    /// A USB stick for UEFI. This firmware follows El Torito there, too.
    UefiStick,
    /// A USB stick for UEFI that knows no El Torito on disks: MBR, EFI partition, GRUB, its stub config.
    UefiPartition,
    /// The same for UEFI that takes the EFI partition from the GPT.
    UefiGpt,
    /// A CD for UEFI with Secure Boot: El Torito, shim, GRUB, all of them signed.
    SecureDisc,
    /// No medium: iPXE out of the network card's ROM, for a BIOS, with the URL of a script in the place of an image.
    BiosNetwork,
    /// The same for UEFI.
    UefiNetwork,
    /// No medium: UEFI loads the image itself, whose URL DHCP tells, into a disk in memory.
    UefiHttp,
    /// A USB CD for 64-bit Arm, as virtual media are there: UEFI, El Torito, GRUB.
    ArmDisc,
    /// A USB stick for it. This firmware follows El Torito there, too: these images have no partition table.
    ArmStick,
    /// A SCSI CD for IBM Z: El Torito, whose boot image is the kernel.
    MainframeDisc,
    /// A SCSI CD for POWER: Open Firmware, `ppc/bootinfo.txt`, GRUB.
    PowerDisc,
}

impl Start {
    fn has_efi(self) -> bool {
        let is_bios = matches!(self, Self::BiosDisc | Self::BiosStick | Self::BiosNetwork);
        !is_bios && matches!(self.architecture(), Architecture::X86_64 | Architecture::Aarch64)
    }

    /// Whether the firmware is to find the EFI partition by a partition table.
    pub(crate) fn is_from_partition(self) -> bool {
        matches!(self, Self::UefiPartition | Self::UefiGpt)
    }

    /// The processor of the machine.
    pub(crate) fn architecture(self) -> Architecture {
        match self {
            Self::ArmDisc | Self::ArmStick => Architecture::Aarch64,
            Self::MainframeDisc => Architecture::S390x,
            Self::PowerDisc => Architecture::Ppc64le,
            _ => Architecture::X86_64,
        }
    }

    fn machine(self) -> &'static [&'static str] {
        match self.architecture() {
            Architecture::Aarch64 => &["-machine", "virt", "-cpu", "cortex-a72"],
            Architecture::S390x => &["-machine", "s390-ccw-virtio"],
            // What is switched off, software emulation does not have.
            Architecture::Ppc64le => {
                &["-machine", "pseries,cap-cfpc=broken,cap-sbbc=broken,cap-ibs=broken,cap-ccf-assist=off"]
            }
            Architecture::X86_64 => &["-machine", "q35", "-vga", "std"],
        }
    }

    pub(crate) fn has_medium(self) -> bool {
        !matches!(self, Self::BiosNetwork | Self::UefiNetwork | Self::UefiHttp)
    }

    /// The boot loader that gets to run.
    pub(crate) fn loader(self) -> Loader {
        match self {
            Self::BiosNetwork | Self::UefiNetwork => Loader::Ipxe,
            Self::MainframeDisc => Loader::Firmware,
            Self::PowerDisc => Loader::Grub,
            _ if self.has_efi() => Loader::Grub,
            _ => Loader::Isolinux,
        }
    }

    /// Where Linux has the image.
    pub(crate) fn device(self) -> &'static str {
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

/// A machine that is about to be started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup<'a> {
    pub(crate) programs: &'a Programs,
    /// A file or a URL.
    pub(crate) image: &'a Path,
    pub(crate) start: Start,
    /// The addresses of its network cards, all on one network, where 10.0.2.2 is the loopback address of this machine.
    pub(crate) cards: &'a [&'a str],
    pub(crate) patience: Duration,
}

impl<'a> Setup<'a> {
    /// A machine without a network.
    pub(crate) fn new(programs: &'a Programs, image: &'a Path, start: Start) -> Self {
        Self { programs, image, start, cards: &[], patience: PATIENCE }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.programs.qemu);
        command.args(["-accel", "tcg", "-m", "768", "-nodefaults", "-no-reboot"]);
        command.args(["-display", "none", "-serial", "stdio"]).args(self.start.machine());
        match (&self.programs.secure, &self.programs.firmware) {
            (Some(secure), _) if self.start == Start::SecureDisc => add_secure_firmware(&mut command, secure),
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
            Start::BiosDisc | Start::UefiDisc | Start::SecureDisc => {
                command.args(["-device", "ide-cd,drive=image,bootindex=0"])
            }
            Start::ArmDisc => {
                command.args(["-device", "qemu-xhci", "-device", "usb-bot,id=bot"]);
                command.args(["-device", "scsi-cd,bus=bot.0,drive=image,bootindex=0"])
            }
            Start::MainframeDisc => {
                command.args(["-device", "virtio-scsi-ccw", "-device", "scsi-cd,drive=image,bootindex=0"])
            }
            Start::PowerDisc => {
                command.args(["-device", "spapr-vscsi", "-device", "scsi-cd,drive=image,bootindex=0"])
            }
            _ => command.args(["-device", "qemu-xhci", "-device", "usb-storage,drive=image,bootindex=0"]),
        };
    }

    /// A hub, which joins the cards and QEMU's own network.
    fn add_network(&self, command: &mut Command) {
        let mut network = "user,id=user".to_owned();
        if self.start.loader() == Loader::Ipxe {
            network += &format!(",bootfile={}", self.image.display());
        }
        command.args(["-netdev", &network, "-netdev", "hubport,id=uplink,hubid=0,netdev=user"]);
        if self.start == Start::UefiHttp {
            let port = proxy_dhcp::start(&self.image.display().to_string());
            let tap = format!("socket,id=tap,udp=127.0.0.1:{port},localaddr=127.0.0.1:0");
            command.args(["-netdev", &tap, "-netdev", "hubport,id=tapped,hubid=0,netdev=tap"]);
            command.args(["-fw_cfg", "name=opt/org.tianocore/IPv4PXESupport,string=no"]);
            command.args(["-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=no"]);
        }
        for (number, mac) in self.cards.iter().enumerate() {
            let is_mainframe = self.start.architecture() == Architecture::S390x;
            let kind = if is_mainframe { "virtio-net-ccw" } else { "virtio-net-pci" };
            let mut card = format!("{kind},netdev=port{number},mac={mac}");
            if self.start.loader() != Loader::Ipxe && !is_mainframe {
                // Without its ROM, firmware loses no time there.
                card += ",romfile=";
            }
            if !self.start.has_medium() {
                card += &format!(",bootindex={number}");
            }
            command.args(["-netdev", &format!("hubport,id=port{number},hubid=0"), "-device", &card]);
        }
    }

    /// Boots until the machine switches itself off, or tells why that came to nothing.
    pub(crate) fn boot(&self) -> Result<Boot, String> {
        let _turn = Turn::take();
        let begun = Instant::now();
        let mut machine = Machine::new(self.command());
        let ended = machine.run(self.patience);
        let seconds = begun.elapsed().as_secs_f64();
        let log = machine.log();
        match (ended, Facts::find(&log)) {
            (true, Some(facts)) => Ok(Boot { log, facts, seconds }),
            (ended, _) => {
                let why = if ended { "ended without telling what it found" } else { "did not end" };
                let tail =
                    log.chars().rev().take(TAIL).collect::<Vec<_>>().into_iter().rev().collect::<String>();
                Err(format!("{:?} {why}; the end of its serial log:\n{tail}", self.start))
            }
        }
    }
}

/// Firmware that keeps its variables from everybody but itself. Changes of them are for this boot alone.
fn add_secure_firmware(command: &mut Command, firmware: &SecureFirmware) {
    command.args(["-machine", "smm=on", "-global", "driver=cfi.pflash01,property=secure,value=on"]);
    let code = format!("if=pflash,unit=0,format=raw,readonly=on,file={}", firmware.code.display());
    let variables = format!("if=pflash,unit=1,format=raw,snapshot=on,file={}", firmware.variables.display());
    command.args(["-drive", &code, "-drive", &variables]);
}

/// The boot loaders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loader {
    Isolinux,
    Grub,
    Ipxe,
    /// None: the firmware loads the kernel.
    Firmware,
}

/// What a boot left behind.
#[derive(Debug)]
pub(crate) struct Boot {
    pub(crate) log: String,
    pub(crate) facts: Facts,
    pub(crate) seconds: f64,
}

/// Boots an image until the machine switches itself off.
#[track_caller]
pub(crate) fn boot(programs: &Programs, image: &Path, start: Start) -> Boot {
    Setup::new(programs, image, start).boot().unwrap_or_else(|why| panic!("{why}"))
}

/// A running QEMU; it does not outlive its test.
struct Machine {
    child: Child,
    keys: ChildStdin,
    log: Arc<Mutex<Vec<u8>>>,
    reader: Option<thread::JoinHandle<()>>,
}

impl Machine {
    fn new(mut command: Command) -> Self {
        // Standard error holds what QEMU complains about; it belongs to the log.
        let (pipe, errors) = std::io::pipe().unwrap();
        command.stdin(Stdio::piped()).stdout(errors.try_clone().unwrap()).stderr(errors);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        // The command holds the other end of the pipe, which would never close.
        drop(command);
        let log = Arc::new(Mutex::new(Vec::new()));
        let reader = Some(collect(pipe, Arc::clone(&log)));
        Self { keys: child.stdin.take().unwrap(), child, log, reader }
    }

    /// Waits for the end; tells whether it came of itself.
    fn run(&mut self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let mut pressed = false;
        while Instant::now() < until {
            if self.child.try_wait().unwrap().is_some() {
                return true;
            }
            if DEAD_ENDS.iter().any(|words| self.says(words)) {
                return false;
            }
            if !pressed && self.says(MENU) {
                // Enter, which saves the seconds until the menu would go on by itself.
                pressed = self.keys.write_all(b"\r").is_ok();
            }
            thread::sleep(Duration::from_millis(100));
        }
        false
    }

    fn says(&self, words: &[u8]) -> bool {
        self.log.lock().unwrap().windows(words.len()).any(|window| window == words)
    }

    /// All that came over the serial line, without what only a terminal understands.
    fn log(&mut self) -> String {
        self.end();
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        let bytes = self.log.lock().unwrap();
        let readable = |character: &char| !character.is_control() || *character == '\n';
        String::from_utf8_lossy(&bytes).chars().filter(readable).collect()
    }

    fn end(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // It may end at just this time.
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.end();
    }
}

fn collect(mut pipe: impl Read + Send + 'static, log: Arc<Mutex<Vec<u8>>>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(len @ 1..) = pipe.read(&mut buffer) {
            log.lock().unwrap().extend_from_slice(&buffer[..len]);
        }
    })
}

/// The right to run a machine.
pub(crate) struct Turn;

static RUNNING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

impl Turn {
    pub(crate) fn take() -> Self {
        let running = RUNNING.lock().unwrap();
        *ENDED.wait_while(running, |running| *running >= MACHINES).unwrap() += 1;
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap() -= 1;
        ENDED.notify_one();
    }
}
