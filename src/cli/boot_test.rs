//! `kindling boot-test`: boots an image in QEMU.

use std::fmt::Write;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use super::duration;
use crate::boot_test::{
    BootMedia, BootOutcome, BootTest, ClientReading, Firmware, IGNITION_MARKER, ReadingRange, fetch_readings,
};

/// Boot an image in QEMU, and wait for a marker on its serial console
///
/// The console is copied to stdout. A system writes to it only if its kernel arguments contain console=ttyS0. If the
/// image is a URL of `kindling serve`, the server's boot trace is printed at the end.
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
    pub(super) fn run(self) -> Result<ExitCode> {
        let test = BootTest {
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
        };
        let outcome = test.run(&mut io::stdout())?;
        eprintln!();
        print_readings(&test.image)?;
        Ok(match outcome {
            BootOutcome::Seen(after) => {
                eprintln!("{:?} after {:.1} s", test.marker, after.as_secs_f64());
                ExitCode::SUCCESS
            }
            BootOutcome::Ended(status) => {
                eprintln!("The machine ended ({status}) before the console showed {:?}", test.marker);
                ExitCode::FAILURE
            }
            BootOutcome::TimedOut => {
                eprintln!("The console did not show {:?} within {:?}", test.marker, test.timeout);
                ExitCode::FAILURE
            }
        })
    }
}

/// Prints the server's boot trace, or a warning if the server does not return it.
fn print_readings(image: &str) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the async runtime")?;
    match runtime.block_on(fetch_readings(image)) {
        Ok(readings) => readings.iter().for_each(|reading| eprint!("{}", format_reading(reading))),
        Err(error) => eprintln!("Warning: {:#}", anyhow::Error::new(error)),
    }
    Ok(())
}

/// Formats what a client has read, and below it the ranges with their files.
fn format_reading(reading: &ClientReading) -> String {
    let ClientReading { client, file, size, percent, bytes_sent, answers, ranges, .. } = reading;
    let mut text = format!(
        "{client} read {percent} % of the {size} bytes of {file}: {bytes_sent} bytes in {answers} responses\n"
    );
    for ReadingRange { first, last, files, .. } in ranges {
        // Writing to a `String` does not fail.
        let _ = writeln!(text, "{first:>14} to {last:<14} {}", files.join(" "));
    }
    text
}
