//! `kindling iso verify`: whether an image is sound.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use isogen::BaseImage;
use isogen::initrd::IGNITION_CONFIG;
use isogen::verify::{Check, Outcome};

use crate::cli::discovery::read_plan;
use crate::cli::ignition::invalid;
use crate::cli::output::{Lines, print_bytes, print_json};
use crate::discovery::{PlanFile, Stamp};

#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0 all checks hold, 1 one does not or the image cannot be read.")]
pub(in crate::cli) struct Verify {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Plan file: tell whether the image is the one that was planned, byte for byte
    #[arg(long, value_name = "FILE")]
    plan: Option<String>,
    /// ISO image
    #[arg(value_name = "ISO")]
    input: String,
}

impl Verify {
    pub(super) fn run(self) -> Result<ExitCode> {
        let plan = self.plan.as_ref().map(|path| read_plan(path, "ISO and --plan")).transpose()?;
        let image = BaseImage::open(&self.input)?;
        let mut checks = image.verify()?;
        checks.push(Check { name: "ignition config", outcome: check_config(&image) });
        if let Some(plan) = &plan {
            checks.push(as_planned(&image, plan)?);
        }
        if self.json {
            print_json(&checks)?;
        } else {
            print_bytes(text(&checks)?.as_bytes())?;
        }
        let sound = !checks.iter().any(|check| matches!(check.outcome, Outcome::Wrong(_)));
        Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Whether the embedded Ignition config is valid. The check of the Ignition area reports an area that cannot be read.
fn check_config(image: &BaseImage) -> Outcome {
    if image.ignition_area().is_none() {
        return Outcome::Absent;
    }
    let Ok(archive) = image.archive() else {
        return Outcome::Skipped("the Ignition area cannot be read".to_owned());
    };
    let Some(config) = archive.get(IGNITION_CONFIG) else { return Outcome::Absent };
    let errors = invalid::errors(IGNITION_CONFIG, config);
    if errors.is_empty() { Outcome::Ok } else { Outcome::Wrong(errors) }
}

/// Whether an image is the one of a plan.
fn as_planned(image: &BaseImage, plan: &PlanFile) -> Result<Check> {
    let source = image.source();
    let found = Stamp { size: source.len(), sha256: source.digest()? };
    let outcome = if found == plan.result() {
        Outcome::Ok
    } else {
        Outcome::Wrong(vec![format!("it has {found}, and planned was {}", plan.result())])
    };
    Ok(Check { name: "plan", outcome })
}

fn text(checks: &[Check]) -> Result<String> {
    let mut out = Lines::default();
    checks.iter().try_for_each(|check| write(&mut out, check))?;
    Ok(out.into_text())
}

fn write(out: &mut Lines, check: &Check) -> std::fmt::Result {
    let (outcome, details): (&str, &[String]) = match &check.outcome {
        Outcome::Ok => ("ok", &[]),
        Outcome::Absent => ("absent", &[]),
        Outcome::Skipped(reason) => ("skipped", std::slice::from_ref(reason)),
        Outcome::Wrong(wrong) => ("WRONG", wrong),
    };
    writeln!(out, "{:<18} {outcome}", check.name)?;
    details.iter().try_for_each(|detail| writeln!(out, "    {detail}"))
}
