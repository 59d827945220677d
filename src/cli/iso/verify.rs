//! `kindling iso verify`: checks an image for errors, and against a plan file.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use isogen::BaseImage;
use isogen::initrd::IGNITION_CONFIG;
use isogen::verify::{CheckOutcome, ImageCheck};

use crate::cli::discovery::read_plan;
use crate::cli::ignition::invalid;
use crate::cli::output::{EscapedLines, print_bytes, print_json};
use discovery::{ImageIdentity, PlanFile};

#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0 all checks pass, 1 a check fails or the image cannot be read.")]
pub(in crate::cli) struct Verify {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Plan file: check that the image matches it byte for byte
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
        checks.push(ImageCheck { name: "ignition config", outcome: check_config(&image) });
        if let Some(plan) = &plan {
            checks.push(check_against_plan(&image, plan)?);
        }
        if self.json {
            print_json(&checks)?;
        } else {
            print_bytes(checks_text(&checks)?.as_bytes())?;
        }
        let sound = !checks.iter().any(|check| matches!(check.outcome, CheckOutcome::Wrong(_)));
        Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Checks the embedded Ignition config. Ignores an unreadable Ignition area, which another check reports.
fn check_config(image: &BaseImage) -> CheckOutcome {
    if image.ignition_area().is_none() {
        return CheckOutcome::Absent;
    }
    let Ok(archive) = image.archive() else {
        return CheckOutcome::Skipped("the Ignition area cannot be read".to_owned());
    };
    let Some(config) = archive.get(IGNITION_CONFIG) else { return CheckOutcome::Absent };
    let errors = invalid::config_errors(IGNITION_CONFIG, config);
    if errors.is_empty() { CheckOutcome::Ok } else { CheckOutcome::Wrong(errors) }
}

/// Checks that an image is the result of a plan file.
fn check_against_plan(image: &BaseImage, plan: &PlanFile) -> Result<ImageCheck> {
    let source = image.source();
    let actual = ImageIdentity { size: source.len(), sha256: source.digest()? };
    let outcome = if actual == plan.result() {
        CheckOutcome::Ok
    } else {
        CheckOutcome::Wrong(vec![format!("image has {actual}, but the plan file expects {}", plan.result())])
    };
    Ok(ImageCheck { name: "plan", outcome })
}

fn checks_text(checks: &[ImageCheck]) -> Result<String> {
    let mut out = EscapedLines::default();
    checks.iter().try_for_each(|check| write_check(&mut out, check))?;
    Ok(out.into_text())
}

fn write_check(out: &mut EscapedLines, check: &ImageCheck) -> std::fmt::Result {
    let (outcome, details): (&str, &[String]) = match &check.outcome {
        CheckOutcome::Ok => ("ok", &[]),
        CheckOutcome::Absent => ("absent", &[]),
        CheckOutcome::Skipped(reason) => ("skipped", std::slice::from_ref(reason)),
        CheckOutcome::Wrong(wrong) => ("WRONG", wrong),
    };
    writeln!(out, "{:<18} {outcome}", check.name)?;
    details.iter().try_for_each(|detail| writeln!(out, "    {detail}"))
}
