//! `kindling iso verify`: whether an image is sound.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use isogen::BaseImage;
use isogen::verify::{Check, Outcome};

use crate::cli::output::{print_json, print_line};

#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0 all checks hold, 1 one does not or the image cannot be read.")]
pub(in crate::cli) struct Verify {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// ISO image
    #[arg(value_name = "ISO")]
    input: String,
}

impl Verify {
    pub(super) fn run(self) -> Result<ExitCode> {
        let checks = BaseImage::open(&self.input)?.verify()?;
        if self.json {
            print_json(&checks)?;
        } else {
            checks.iter().try_for_each(print)?;
        }
        let sound = !checks.iter().any(|check| matches!(check.outcome, Outcome::Wrong(_)));
        Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn print(check: &Check) -> Result<()> {
    let (outcome, details): (&str, &[String]) = match &check.outcome {
        Outcome::Ok => ("ok", &[]),
        Outcome::Absent => ("absent", &[]),
        Outcome::Skipped(reason) => ("skipped", std::slice::from_ref(reason)),
        Outcome::Wrong(wrong) => ("WRONG", wrong),
    };
    print_line(format!("{:<18} {outcome}", check.name))?;
    details.iter().try_for_each(|detail| print_line(format!("    {}", detail.escape_debug())))
}
