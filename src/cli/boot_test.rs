//! `kindling boot-test`: boots an image in QEMU, and waits for a marker on the serial console.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::duration;
use super::output::{print_json, print_message, stdout_error};
use crate::boot_test::{
    BootMedia, BootOutcome, BootTest, BootTestError, ClientReading, Firmware, IGNITION_MARKER, ReadingRange,
    fetch_readings,
};

/// Boot an image in QEMU, and wait for a marker on its serial console
///
/// The console is copied to stdout, or to stderr with --json. A system writes to it only if its kernel arguments
/// contain console=ttyS0. If the image is a URL of `kindling serve`, the server's boot trace is printed at the end.
#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0 the marker was seen, 1 it was not.")]
pub(super) struct BootTestOptions {
    /// Firmware of the machine
    #[arg(long, value_name = "FIRMWARE", default_value = "bios")]
    firmware: FirmwareOption,
    /// Media that the machine boots from
    #[arg(long, value_name = "MEDIA", default_value = "cd")]
    media: MediaOption,
    /// Text to wait for on the console
    #[arg(long, value_name = "TEXT", default_value = IGNITION_MARKER)]
    marker: String,
    /// How long to wait for the marker
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration::parse_duration)]
    timeout: Duration,
    /// Emulate the CPU, even if KVM is available
    #[arg(long)]
    emulate: bool,
    /// Memory of the machine, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(128..))]
    memory: u32,
    /// Print the result as JSON, and copy the console to stderr
    #[arg(long)]
    json: bool,
    /// ISO image, or URL of one
    #[arg(value_name = "URL|FILE")]
    image: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FirmwareOption {
    Bios,
    Uefi,
    /// UEFI with Secure Boot
    #[value(name = "secureboot")]
    SecureBoot,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum MediaOption {
    Cd,
    /// A USB stick
    Usb,
    /// A CD that QEMU reads from the server while the machine boots
    Http,
    /// No medium: iPXE runs the script at the URL
    Ipxe,
}

impl BootTestOptions {
    fn into_test(self) -> BootTest {
        BootTest {
            image: self.image,
            firmware: match self.firmware {
                FirmwareOption::Bios => Firmware::Bios,
                FirmwareOption::Uefi => Firmware::Uefi,
                FirmwareOption::SecureBoot => Firmware::SecureBoot,
            },
            media: match self.media {
                MediaOption::Cd => BootMedia::Cd,
                MediaOption::Usb => BootMedia::Usb,
                MediaOption::Http => BootMedia::Http,
                MediaOption::Ipxe => BootMedia::Ipxe,
            },
            emulate: self.emulate,
            memory_mib: self.memory,
            marker: self.marker,
            timeout: self.timeout,
        }
    }

    pub(super) fn run(self) -> Result<ExitCode> {
        let as_json = self.json;
        let test = self.into_test();
        let outcome = boot(&test, as_json)?;
        print_message("\n");
        let readings = read_trace(&test.image)?;
        if as_json {
            print_json(&BootReport::new(&test, outcome, readings))?;
        } else {
            readings.iter().for_each(|reading| print_message(format_reading(reading)));
        }
        print_message(outcome_line(&test, outcome));
        if matches!(outcome, BootOutcome::Seen(_)) {
            return Ok(ExitCode::SUCCESS);
        }
        print_kvm_hint(&test);
        Ok(ExitCode::FAILURE)
    }
}

/// Boots the machine. Copies its console to stdout, or to stderr if stdout is for JSON.
fn boot(test: &BootTest, as_json: bool) -> Result<BootOutcome> {
    let outcome = if as_json { test.run(&mut StderrCopy) } else { test.run(&mut io::stdout()) };
    match outcome {
        Err(error @ BootTestError::Kvm { .. }) => {
            Err(error).context("nested virtualization may be broken; emulate the CPU with --emulate")
        }
        // Only stdout can return this error. `StderrCopy` ignores errors, and the console is only read.
        Err(BootTestError::Console(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Err(stdout_error(error))
        }
        outcome => Ok(outcome?),
    }
}

/// Writes the console to stderr. Ignores errors, so a closed stderr does not end the boot.
struct StderrCopy;

impl Write for StderrCopy {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn outcome_line(test: &BootTest, outcome: BootOutcome) -> String {
    let marker = &test.marker;
    match outcome {
        BootOutcome::Seen(after) => format!("{marker:?} after {:.1} s\n", after.as_secs_f64()),
        BootOutcome::Ended(status) => {
            format!("The machine ended ({status}) before the console showed {marker:?}\n")
        }
        BootOutcome::TimedOut => format!("The console did not show {marker:?} within {:?}\n", test.timeout),
    }
}

/// Prints how to boot without KVM, unless the test certainly ran without it.
fn print_kvm_hint(test: &BootTest) {
    if !test.emulate && Path::new("/dev/kvm").exists() {
        print_message(
            "If KVM does not work on this machine, for instance in a virtual machine, add --emulate\n",
        );
    }
}

/// The JSON output.
#[derive(Serialize)]
struct BootReport {
    seen: bool,
    marker: String,
    /// Time until the marker appeared.
    seconds: Option<f64>,
    /// The reason why the marker did not appear.
    reason: Option<String>,
    readings: Vec<ClientReading>,
}

impl BootReport {
    fn new(test: &BootTest, outcome: BootOutcome, readings: Vec<ClientReading>) -> Self {
        let (seconds, reason) = match outcome {
            BootOutcome::Seen(after) => (Some(after.as_secs_f64()), None),
            BootOutcome::Ended(status) => (None, Some(format!("the machine ended ({status})"))),
            BootOutcome::TimedOut => (None, Some(format!("timeout of {:?}", test.timeout))),
        };
        Self { seen: seconds.is_some(), marker: test.marker.clone(), seconds, reason, readings }
    }
}

/// Returns the server's boot trace. Prints a warning if the server does not return it.
fn read_trace(image: &str) -> Result<Vec<ClientReading>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the async runtime")?;
    let readings = runtime.block_on(fetch_readings(image));
    Ok(readings.unwrap_or_else(|error| {
        print_message(format_args!("Warning: {:#}\n", anyhow::Error::new(error)));
        Vec::new()
    }))
}

/// Formats a summary of a client's reads, followed by one line for each range with the files in it.
fn format_reading(reading: &ClientReading) -> String {
    let ClientReading { client, file, size, percent, bytes_sent, answers: responses, ranges, .. } = reading;
    let mut text = format!(
        "{client} read {percent} % of the {size} bytes of {file}: {bytes_sent} bytes in {responses} responses\n"
    );
    for ReadingRange { first, last, files, .. } in ranges {
        // Writing to a `String` does not fail.
        let _ = writeln!(text, "{first:>14} to {last:<14} {}", files.join(" "));
    }
    text
}
