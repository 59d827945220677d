//! Boots an image in QEMU, and follows its serial console until the system says what is waited for.
//!
//! It is for whoever wants to know that an image comes up before a machine far away is given it. QEMU and the firmware are
//! those of the system; nothing is written, neither to the image nor to the variables of the firmware. Without KVM, the
//! processor is emulated, and everything takes ten times as long.

mod console;
mod machine;
mod trace;

use std::io::{self, Write};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use console::{Console, Watch};

pub use trace::{ReadRange, Reading, TraceError, readings, trace_url};

/// What systems with Ignition say before their first login prompt, once a config of the user's was applied.
pub const IGNITION_MARKER: &str = "Ignition: user-provided config was applied";

/// What starts the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Firmware {
    /// A BIOS.
    #[default]
    Bios,
    /// UEFI.
    Uefi,
    /// UEFI that starts what is signed, and nothing else.
    SecureBoot,
}

/// How the image gets into the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Media {
    /// As a CD.
    #[default]
    Cd,
    /// As a USB stick.
    Usb,
    /// As a CD that is read off a server while the machine boots, as the virtual media of a BMC: the image is a URL.
    Http,
    /// Not at all: iPXE boots over the network, and the image is the URL of its script.
    Ipxe,
}

/// A boot to be tried.
#[derive(Clone, Debug)]
pub struct BootTest {
    /// A file or an `http` or `https` URL, which is read in ranges while the machine boots.
    pub image: String,
    /// What starts the machine.
    pub firmware: Firmware,
    /// How the image gets into the machine.
    pub media: Media,
    /// Whether the processor is emulated, even if there is KVM.
    pub emulate: bool,
    /// The memory of the machine, in MiB. A live system of CoreOS wants 4096.
    pub memory_mib: u32,
    /// What the console has to say.
    pub marker: String,
    /// For how long that is waited for.
    pub timeout: Duration,
}

/// How a boot came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The console said what was waited for, after this time.
    Seen(Duration),
    /// The machine ended before, in this way.
    Ended(ExitStatus),
    /// It did not say it in time.
    TimedOut,
}

/// Why a boot could not be tried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BootTestError {
    /// A way of starting that needs a URL, and a file.
    #[error("{image} is a file, and this needs an http or https URL")]
    NeedsUrl {
        /// The file.
        image: String,
    },
    /// Nothing to wait for.
    #[error("the marker is empty, so that everything has it")]
    EmptyMarker,
    /// Firmware that is not installed.
    #[error(
        "there is no firmware for that: neither of {looked_for:?} is there; the package is ovmf or edk2-ovmf"
    )]
    NoFirmware {
        /// Where it was looked for.
        looked_for: Vec<&'static str>,
    },
    /// QEMU is not there, or cannot be run.
    #[error("qemu-system-x86_64 cannot be started; the package is qemu-system-x86")]
    Qemu(#[source] io::Error),
    /// What the machine says cannot be read, or cannot be written.
    #[error("following the console")]
    Console(#[source] io::Error),
}

impl BootTest {
    /// Boots an image as a CD of a BIOS, and waits ten minutes for what Ignition says.
    #[must_use]
    pub fn new(image: impl Into<String>) -> Self {
        Self {
            image: image.into(),
            firmware: Firmware::default(),
            media: Media::default(),
            emulate: false,
            memory_mib: 4096,
            marker: IGNITION_MARKER.to_owned(),
            timeout: Duration::from_secs(600),
        }
    }

    /// Boots it, and writes what the serial console says as it comes. The machine is gone afterwards.
    ///
    /// # Errors
    ///
    /// When the boot cannot be tried; a boot that comes to nothing is an [`Outcome`].
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use kindling::boot_test::{BootTest, Firmware, Outcome};
    ///
    /// let test = BootTest { firmware: Firmware::Uefi, ..BootTest::new("discovery.iso") };
    /// assert!(matches!(test.run(&mut std::io::stdout())?, Outcome::Seen(_)));
    /// # Ok::<(), kindling::boot_test::BootTestError>(())
    /// ```
    pub fn run(&self, output: &mut impl Write) -> Result<Outcome, BootTestError> {
        if self.marker.is_empty() {
            return Err(BootTestError::EmptyMarker);
        }
        let mut command = machine::command(self)?;
        let begun = Instant::now();
        let mut console = Console::start(&mut command).map_err(BootTestError::Qemu)?;
        let mut watch = Watch::new(&self.marker);
        while let Some(left) = self.timeout.checked_sub(begun.elapsed()) {
            let Some(bytes) = console.next(left).map_err(BootTestError::Console)? else {
                return if begun.elapsed() < self.timeout {
                    console.wait().map(Outcome::Ended).map_err(BootTestError::Console)
                } else {
                    Ok(Outcome::TimedOut)
                };
            };
            output.write_all(&bytes).and_then(|()| output.flush()).map_err(BootTestError::Console)?;
            if watch.sees(&bytes) {
                return Ok(Outcome::Seen(begun.elapsed()));
            }
        }
        Ok(Outcome::TimedOut)
    }
}
