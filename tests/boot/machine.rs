//! A PC without hardware: QEMU, which starts an image and writes down what comes over the serial line.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::facts::Facts;
use crate::parts::Programs;
use crate::proxy_dhcp;

/// No boot takes a tenth of it on an idle machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// How many machines run at once. Each takes a processor and some hundred megabytes.
const MACHINES: usize = 2;
/// What both boot menus say while they wait: "Automatic boot in …", "… will be executed automatically in …".
const MENU: &[u8] = b"utomatic";
/// What boot loaders and firmware say when they have nothing left to try.
const DEAD_ENDS: [&[u8]; 5] = [
    b"No bootable option",
    b"No bootable device",
    b"Access Denied",
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
}

impl Start {
    fn has_efi(self) -> bool {
        !matches!(self, Self::BiosDisc | Self::BiosStick | Self::BiosNetwork)
    }

    /// Whether the firmware is to find the EFI partition by a partition table.
    pub(crate) fn is_from_partition(self) -> bool {
        matches!(self, Self::UefiPartition | Self::UefiGpt)
    }

    pub(crate) fn has_medium(self) -> bool {
        !matches!(self, Self::BiosNetwork | Self::UefiNetwork | Self::UefiHttp)
    }

    /// The boot loader that gets to run.
    pub(crate) fn loader(self) -> Loader {
        match self {
            Self::BiosNetwork | Self::UefiNetwork => Loader::Ipxe,
            _ if self.has_efi() => Loader::Grub,
            _ => Loader::Isolinux,
        }
    }

    /// Where Linux has the image.
    pub(crate) fn device(self) -> &'static str {
        match self {
            Self::BiosDisc | Self::UefiDisc | Self::SecureDisc => "/dev/sr",
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
        command.args(["-accel", "tcg", "-machine", "q35", "-m", "768", "-nodefaults", "-no-reboot"]);
        command.args(["-display", "none", "-vga", "std", "-serial", "stdio"]);
        if self.start == Start::SecureDisc {
            self.add_secure_firmware(&mut command);
        } else if self.start.has_efi() {
            command.arg("-bios").arg(&self.programs.firmware);
        }
        if self.start.has_medium() {
            self.add_medium(&mut command);
        }
        if !self.cards.is_empty() {
            self.add_network(&mut command);
        }
        command
    }

    /// Firmware that keeps its variables from everybody but itself. Changes of them are for this boot alone.
    fn add_secure_firmware(&self, command: &mut Command) {
        let (code, variables) = (&self.programs.secure_firmware, &self.programs.secure_variables);
        command.args(["-machine", "smm=on", "-global", "driver=cfi.pflash01,property=secure,value=on"]);
        let code = format!("if=pflash,unit=0,format=raw,readonly=on,file={}", code.display());
        let variables = format!("if=pflash,unit=1,format=raw,snapshot=on,file={}", variables.display());
        command.args(["-drive", &code, "-drive", &variables]);
    }

    fn add_medium(&self, command: &mut Command) {
        let drive = format!("if=none,id=image,format=raw,readonly=on,file={}", self.image.display());
        command.args(["-drive", &drive]);
        match self.start {
            Start::BiosDisc | Start::UefiDisc | Start::SecureDisc => {
                command.args(["-device", "ide-cd,drive=image,bootindex=0"])
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
            let mut card = format!("virtio-net-pci,netdev=port{number},mac={mac}");
            // Without its ROM, firmware loses no time there.
            card += if self.start.loader() == Loader::Ipxe { "" } else { ",romfile=" };
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

/// The boot loaders of a PC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loader {
    Isolinux,
    Grub,
    Ipxe,
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
