//! Boots an image in QEMU and follows its serial console until a marker appears.
//!
//! Use it to check that an image boots before a remote machine gets it. QEMU and the firmware are those of the system.
//! Nothing is written, neither to the image nor to the firmware variables. Without KVM, the CPU is emulated, and a boot
//! takes ten times as long.

mod console;
mod machine;
mod trace;

use std::io::{self, Write};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use console::{MachineOutput, MarkerWatch, RunningMachine};

pub use trace::{ClientReading, ReadingRange, TraceError, fetch_readings, trace_url};

/// The line that a system prints before its first login prompt if Ignition applied a config of the user.
pub const IGNITION_MARKER: &str = "Ignition: user-provided config was applied";

/// The firmware of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Firmware {
    /// A BIOS.
    #[default]
    Bios,
    /// UEFI.
    Uefi,
    /// UEFI with Secure Boot: it starts only signed programs.
    SecureBoot,
}

/// How the machine reads the image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BootMedia {
    /// As a CD.
    #[default]
    Cd,
    /// As a USB stick.
    Usb,
    /// As a CD that the machine reads from a server while it boots, as with virtual media of a BMC. The image is a URL.
    Http,
    /// As a network boot: iPXE runs a script. The image is the URL of the script.
    Ipxe,
}

/// A boot to test.
#[derive(Clone, Debug)]
pub struct BootTest {
    /// A file, or an `http` or `https` URL that is read in ranges while the machine boots.
    pub image: String,
    /// The firmware of the machine.
    pub firmware: Firmware,
    /// How the machine reads the image.
    pub media: BootMedia,
    /// Whether to emulate the CPU even if KVM is available.
    pub emulate: bool,
    /// Memory of the machine in MiB. A CoreOS live system needs 4096.
    pub memory_mib: u32,
    /// The text to wait for on the console.
    pub marker: String,
    /// How long to wait for it.
    pub timeout: Duration,
}

/// The result of a boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootOutcome {
    /// The marker appeared after this time.
    Seen(Duration),
    /// The machine ended before the marker appeared.
    Ended(ExitStatus),
    /// The marker did not appear in time.
    TimedOut,
}

/// Why a boot could not be tested.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BootTestError {
    /// The medium needs a URL, and the image is a file.
    #[error("this medium needs an http or https URL, but {image} is a file")]
    NeedsUrl {
        /// The file.
        image: String,
    },
    /// The marker is empty.
    #[error("the marker is empty")]
    EmptyMarker,
    /// The firmware is not installed.
    #[error("firmware not found: none of {looked_for:?} exists; install the package ovmf or edk2-ovmf")]
    NoFirmware {
        /// The paths that were tried.
        looked_for: Vec<&'static str>,
    },
    /// QEMU is not installed or cannot be started.
    #[error("cannot start qemu-system-x86_64; install the package qemu-system-x86")]
    Qemu(#[source] io::Error),
    /// KVM failed while the machine ran. Broken nested virtualization is a usual cause.
    #[error("KVM cannot run the machine: {message}")]
    Kvm {
        /// QEMU's message.
        message: String,
    },
    /// Reading the console or writing its output failed.
    #[error("cannot follow the console")]
    Console(#[source] io::Error),
}

impl BootTest {
    /// Returns a test that boots an image as a CD with a BIOS and waits ten minutes for [`IGNITION_MARKER`].
    #[must_use]
    pub fn new(image: impl Into<String>) -> Self {
        Self {
            image: image.into(),
            firmware: Firmware::default(),
            media: BootMedia::default(),
            emulate: false,
            memory_mib: 4096,
            marker: IGNITION_MARKER.to_owned(),
            timeout: Duration::from_secs(600),
        }
    }

    /// Boots the machine and writes its console output to `output`. The machine is stopped before this returns.
    ///
    /// # Errors
    ///
    /// Returns an error if the boot cannot be tested. A boot that fails is a [`BootOutcome`].
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use kindling::boot_test::{BootOutcome, BootTest, Firmware};
    ///
    /// let test = BootTest { firmware: Firmware::Uefi, ..BootTest::new("discovery.iso") };
    /// assert!(matches!(test.run(&mut std::io::stdout())?, BootOutcome::Seen(_)));
    /// # Ok::<(), kindling::boot_test::BootTestError>(())
    /// ```
    pub fn run(&self, output: &mut impl Write) -> Result<BootOutcome, BootTestError> {
        if self.marker.is_empty() {
            return Err(BootTestError::EmptyMarker);
        }
        let mut command = machine::qemu_command(self)?;
        let begun = Instant::now();
        let mut console = RunningMachine::start(&mut command).map_err(BootTestError::Qemu)?;
        let mut watch = MarkerWatch::new(&self.marker);
        while let Some(left) = self.timeout.checked_sub(begun.elapsed()) {
            let Some(next) = console.next_output(left).map_err(BootTestError::Console)? else {
                return if begun.elapsed() < self.timeout {
                    console.wait().map(BootOutcome::Ended).map_err(BootTestError::Console)
                } else {
                    Ok(BootOutcome::TimedOut)
                };
            };
            let bytes = match next {
                MachineOutput::Console(bytes) => bytes,
                MachineOutput::KvmFailure(message) => return Err(BootTestError::Kvm { message }),
            };
            output.write_all(&bytes).and_then(|()| output.flush()).map_err(BootTestError::Console)?;
            if watch.find_marker(&bytes) {
                return Ok(BootOutcome::Seen(begun.elapsed()));
            }
        }
        Ok(BootOutcome::TimedOut)
    }
}
