//! `kindling iso diff`: compares two images.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use isogen::{BaseImage, ImageDifference};

use crate::cli::output::{EscapedLines, print_bytes, print_json};

/// The exit code if the images cannot be compared.
pub(super) const TROUBLE: u8 = 2;

#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0 the images are identical, 1 they differ, 2 they cannot be compared.")]
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
            ImageDifference::between(&BaseImage::open(&self.first)?, &BaseImage::open(&self.second)?)?;
        if self.json {
            print_json(&difference)?;
        } else {
            print_bytes(difference_text(&difference)?.as_bytes())?;
        }
        Ok(if difference.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn difference_text(difference: &ImageDifference) -> Result<String> {
    let mut out = EscapedLines::default();
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
    for range in &difference.ranges {
        writeln!(out, "bytes {} to {} differ ({})", range.offset(), range.end(), range.len())?;
    }
    if difference.has_more {
        writeln!(out, "more bytes differ")?;
    }
    Ok(out.into_text())
}
