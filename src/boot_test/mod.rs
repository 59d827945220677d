//! Boots an image in QEMU, and waits until a marker appears on its serial console.
//!
//! Use this to check that an image boots before you boot it on a remote machine. QEMU and the firmware must be
//! installed on the system. Neither the image nor the firmware variables are changed. Without KVM, QEMU emulates the
//! CPU, and a boot takes ten times as long.

mod console;
mod machine;
mod trace;

use std::io::{self, Write};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use console::{MachineOutput, MarkerWatch, RunningMachine};

pub use trace::{ClientReading, ReadingRange, TraceError, fetch_readings, trace_url};

/// The line that CoreOS prints before the first login prompt if Ignition applied a user's config.
pub const IGNITION_MARKER: &str = "Ignition: user-provided config was applied";

/// The firmware of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Firmware {
    /// A legacy BIOS, the default firmware of QEMU.
    #[default]
    Bios,
    /// UEFI without Secure Boot.
    Uefi,
    /// UEFI with Secure Boot, which starts only signed programs.
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
    /// As a CD that the machine reads from a server during the boot, like the virtual media of a BMC. The image must be
    /// a URL.
    Http,
    /// Over the network: iPXE runs a script. The image must be the URL of the script.
    Ipxe,
}

/// A boot test: the virtual machine to start, the image, and the expected output.
#[derive(Clone, Debug)]
pub struct BootTest {
    /// A file, or an `http` or `https` URL. The machine reads a URL in ranges during the boot.
    pub image: String,
    /// The firmware. Defaults to a BIOS.
    pub firmware: Firmware,
    /// How the machine reads the image. Defaults to a CD.
    pub media: BootMedia,
    /// Whether to emulate the CPU even if KVM is available.
    pub emulate: bool,
    /// The memory of the machine in MiB. A CoreOS live system needs 4096.
    pub memory_mib: u32,
    /// The text on the console that ends the test. Defaults to [`IGNITION_MARKER`].
    pub marker: String,
    /// Maximum time to wait for the marker. Defaults to ten minutes.
    pub timeout: Duration,
}

/// The result of a boot test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootOutcome {
    /// The marker appeared after this time.
    Seen(Duration),
    /// The machine ended before the marker appeared.
    Ended(ExitStatus),
    /// The marker did not appear in time.
    TimedOut,
}

/// Why a boot test could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BootTestError {
    /// The medium requires a URL, but the image is a file.
    #[error("this medium needs an http or https URL, but {image} is a file")]
    NeedsUrl {
        /// The file name passed as the image.
        image: String,
    },
    /// The marker is empty, so it would match any output.
    #[error("the marker is empty")]
    EmptyMarker,
    /// The firmware files are not installed.
    #[error("firmware not found: none of {looked_for:?} exists; install the package ovmf or edk2-ovmf")]
    NoFirmware {
        /// The paths without a firmware file.
        looked_for: Vec<&'static str>,
    },
    /// QEMU is not installed, or it cannot be started.
    #[error("cannot start qemu-system-x86_64; install the package qemu-system-x86")]
    Qemu(#[source] io::Error),
    /// KVM failed while the machine was running. A common cause is faulty nested virtualization.
    #[error("KVM cannot run the machine: {message}")]
    Kvm {
        /// The message of QEMU.
        message: String,
    },
    /// The console cannot be read, or its output cannot be written.
    #[error("cannot follow the console")]
    Console(#[source] io::Error),
}

impl BootTest {
    /// Creates a test that boots an image from a CD on a BIOS machine, and waits up to ten minutes for
    /// [`IGNITION_MARKER`].
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

    /// Boots the machine, and copies its console output to `output`. The machine is stopped before this function
    /// returns.
    ///
    /// # Errors
    ///
    /// Returns an error if the test cannot be run. A failed boot is not an error but a [`BootOutcome`].
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
        let start = Instant::now();
        let mut console = RunningMachine::start(&mut command).map_err(BootTestError::Qemu)?;
        let mut watch = MarkerWatch::new(&self.marker);
        while let Some(left) = self.timeout.checked_sub(start.elapsed()) {
            let Some(next) = console.next_output(left).map_err(BootTestError::Console)? else {
                return if start.elapsed() < self.timeout {
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
                return Ok(BootOutcome::Seen(start.elapsed()));
            }
        }
        Ok(BootOutcome::TimedOut)
    }
}
