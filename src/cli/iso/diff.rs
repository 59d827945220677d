//! `kindling iso diff`: what differs between two images.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use isogen::{BaseImage, Difference};

use crate::cli::output::{Lines, print_bytes, print_json};

/// The exit code where images cannot be compared.
pub(super) const TROUBLE: u8 = 2;

#[derive(Debug, Args)]
#[command(
    after_help = "Exit code: 0 the images are equal to the byte, 1 they differ, 2 they cannot be compared."
)]
pub(in crate::cli) struct Diff {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// First ISO image
    #[arg(value_name = "A")]
    first: String,
    /// Second ISO image
    #[arg(value_name = "B")]
    second: String,
}

impl Diff {
    pub(super) fn run(self) -> Result<ExitCode> {
        let difference =
            Difference::between(&BaseImage::open(&self.first)?, &BaseImage::open(&self.second)?)?;
        if self.json {
            print_json(&difference)?;
        } else {
            print_bytes(text(&difference)?.as_bytes())?;
        }
        Ok(if difference.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn text(difference: &Difference) -> Result<String> {
    let mut out = Lines::default();
    for change in &difference.changes {
        writeln!(out, "{}", change.what)?;
        for (sign, value) in [('-', &change.first), ('+', &change.second)] {
            if let Some(value) = value {
                writeln!(out, "  {sign} {value}")?;
            }
        }
    }
    if let Some((first, second)) = difference.lengths {
        writeln!(out, "length")?;
        writeln!(out, "  - {first} bytes")?;
        writeln!(out, "  + {second} bytes")?;
    }
    for stretch in &difference.stretches {
        writeln!(out, "bytes {} to {} differ ({})", stretch.offset(), stretch.end(), stretch.len())?;
    }
    if difference.more {
        writeln!(out, "more bytes differ")?;
    }
    Ok(out.into_text())
}
