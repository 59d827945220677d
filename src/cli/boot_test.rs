//! `kindling boot-test`: whether an image boots.

use std::fmt::Write;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use super::duration;
use crate::boot_test::{BootTest, Firmware, IGNITION_MARKER, Media, Outcome, ReadRange, Reading, readings};

/// Boot an image in QEMU, and wait until its serial console says that it is up
///
/// The console goes to the standard output. A system says something there only if its kernel arguments have
/// console=ttyS0. With the URL of an image of `kindling serve`, what the server says was read comes at the end.
#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0 the marker was seen, 1 it was not.")]
pub(super) struct Boot {
    /// What starts the machine
    #[arg(long, value_name = "FIRMWARE", default_value = "bios")]
    firmware: FirmwareName,
    /// How the image gets into the machine
    #[arg(long, value_name = "MEDIA", default_value = "cd")]
    media: MediaName,
    /// What the console has to say
    #[arg(long, value_name = "TEXT", default_value = IGNITION_MARKER)]
    marker: String,
    /// How long to wait for that
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration::parse)]
    timeout: Duration,
    /// Emulate the processor, even if there is KVM
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
enum FirmwareName {
    Bios,
    Uefi,
    /// UEFI that starts only what is signed
    #[value(name = "secureboot")]
    SecureBoot,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum MediaName {
    Cd,
    /// A USB stick
    Usb,
    /// A CD that is read off a server while the machine boots
    Http,
    /// None: the URL is that of a script for iPXE
    Ipxe,
}

impl Boot {
    pub(super) fn run(self) -> Result<ExitCode> {
        let test = BootTest {
            image: self.image,
            firmware: match self.firmware {
                FirmwareName::Bios => Firmware::Bios,
                FirmwareName::Uefi => Firmware::Uefi,
                FirmwareName::SecureBoot => Firmware::SecureBoot,
            },
            media: match self.media {
                MediaName::Cd => Media::Cd,
                MediaName::Usb => Media::Usb,
                MediaName::Http => Media::Http,
                MediaName::Ipxe => Media::Ipxe,
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
            Outcome::Seen(after) => {
                eprintln!("{:?} after {:.1} s", test.marker, after.as_secs_f64());
                ExitCode::SUCCESS
            }
            Outcome::Ended(status) => {
                eprintln!("The machine has ended ({status}) without {:?}", test.marker);
                ExitCode::FAILURE
            }
            Outcome::TimedOut => {
                eprintln!("The machine has not said {:?} within {:?}", test.marker, test.timeout);
                ExitCode::FAILURE
            }
        })
    }
}

/// What the server says; that it does not say it changes nothing.
fn print_readings(image: &str) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("the runtime cannot be started")?;
    match runtime.block_on(readings(image)) {
        Ok(readings) => readings.iter().for_each(|reading| eprint!("{}", lines(reading))),
        Err(error) => eprintln!("Warning: {:#}", anyhow::Error::new(error)),
    }
    Ok(())
}

/// What a client has read, and below it the ranges with the files in them.
fn lines(reading: &Reading) -> String {
    let Reading { client, file, size, percent, bytes_sent, answers, ranges, .. } = reading;
    let mut text = format!(
        "{client} has read {percent} % of the {size} bytes of {file}: {bytes_sent} bytes in {answers} answers\n"
    );
    for ReadRange { first, last, files, .. } in ranges {
        // Text has room for whatever is written.
        let _ = writeln!(text, "{first:>14} to {last:<14} {}", files.join(" "));
    }
    text
}
